//! Event streams: answers, what the server says by itself, and streams that are cut and resumed.

use serde_json::{Value, json};

use super::{connected, finish, initialize_params, listening};
use crate::support::process::Mcpwire;
use crate::support::script::Script;

fn result(id: i32) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {}})
}

#[tokio::test]
async fn every_form_of_event_is_understood() {
    let (mut server, mut client) = connected(&[]).await;
    for (id, text) in [
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n\n",
        "data:{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
        "id: 7\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\r\n\r\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\r\r",
        "\u{feff}: a comment\n\ndata: {\ndata:   \"jsonrpc\": \"2.0\",\ndata: \"id\": 4, \"result\": {}}\n\n",
        "event: ping\ndata: now\n\ndata: not json\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n\n",
    ]
    .into_iter()
    .enumerate()
    {
        client.request(id, "tools/call", json!({})).await;
        let mut stream = server.expect("tools/call").await.stream().await;
        stream.event(text).await;
        stream.end().await;
        assert_eq!(client.line().await.unwrap(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
    finish(client, server).await;
}

#[tokio::test]
async fn events_pass_in_order_as_they_come() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({"_meta": {"progressToken": "p"}})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    for progress in 1..=3 {
        let params = json!({"progressToken": "p", "progress": progress});
        let message = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        stream.send(message.clone()).await;
        assert_eq!(client.message().await, message, "it comes before the next one is sent");
    }
    stream.send(result(1)).await;
    assert_eq!(client.message().await, result(1));
    stream.end().await;
    finish(client, server).await;
}

#[tokio::test]
async fn an_event_that_was_not_ended_does_not_count() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    stream.event(&format!("data: {}\n", result(1))).await;
    stream.end().await;
    let answer = client.message().await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    finish(client, server).await;
}

#[tokio::test]
async fn requests_of_the_server_reach_the_client_and_its_answers_go_back() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    // Under an id that the client uses itself: they are two different things.
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {"messages": []}});
    stream.send(ask.clone()).await;
    assert_eq!(client.message().await, ask);
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"role": "assistant"}});
    client.send(answer.clone()).await;
    let posted = server.expect("response").await;
    assert_eq!((posted.message(), posted.header("mcp-session-id")), (answer, Some("s1")));
    posted.accept().await;
    stream.send(result(1)).await;
    assert_eq!(client.message().await, result(1));
    stream.end().await;
    client.send(json!({"jsonrpc": "2.0", "id": 99, "result": {}})).await; // nobody asked
    finish(client, server).await;
}

#[tokio::test]
async fn the_listening_stream_brings_messages_and_is_resumed() {
    let (mut server, mut client, mut stream) = listening().await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    stream.event(&format!("retry: 10\nid: e1\ndata: {changed}\n\n")).await;
    assert_eq!(client.message().await, changed);
    stream.send(json!({"jsonrpc": "2.0", "id": "ask", "method": "roots/list"})).await;
    assert_eq!(client.message().await["method"], "roots/list");
    stream.cut();
    let again = server.expect("GET").await;
    assert_eq!(again.header("last-event-id"), Some("e1"));
    let mut stream = again.stream().await;
    stream.send(changed.clone()).await;
    assert_eq!(client.message().await, changed);
    client.send(json!({"jsonrpc": "2.0", "id": "ask", "result": {"roots": []}})).await;
    server.expect("response").await.accept().await;
    finish(client, server).await;
}

#[tokio::test]
async fn an_answer_on_the_listening_stream_counts() {
    let (mut server, mut client, mut stream) = listening().await;
    client.request(1, "tools/call", json!({})).await;
    server.expect("tools/call").await.accept().await;
    stream.send(result(1)).await;
    assert_eq!(client.message().await, result(1));
    finish(client, server).await;
}

#[tokio::test]
async fn a_server_that_has_another_listener_is_left_alone() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start_with(&["connect", &server.url()], &[("LOG_LEVEL", "debug")]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    server.expect("initialize").await.initialized("s1").await;
    client.message().await;
    client.notify("notifications/initialized").await;
    server.expect("notifications/initialized").await.accept().await;
    server.expect("GET").await.refuse(409, "").await;
    client.logged("has a listening stream open already").await;
    client.request(1, "ping", json!({})).await;
    server.expect("ping").await.result(json!({})).await;
    client.message().await;
    finish(client, server).await;
}

#[tokio::test]
async fn a_stream_the_server_ends_is_polled_for_the_answer() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    stream.event("id: s-1\nretry: 20\ndata:\n\n").await;
    stream.end().await;
    let poll = server.expect("GET").await;
    assert_eq!((poll.header("last-event-id"), poll.header("mcp-session-id")), (Some("s-1"), Some("s1")));
    let mut stream = poll.stream().await;
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    stream.event(&format!("id: s-2\ndata: {progress}\n\n")).await;
    assert_eq!(client.message().await, progress);
    stream.cut();
    let poll = server.expect("GET").await;
    assert_eq!(poll.header("last-event-id"), Some("s-2"));
    let mut stream = poll.stream().await;
    stream.send(result(1)).await;
    stream.end().await;
    assert_eq!(client.message().await, result(1));
    finish(client, server).await;
}

#[tokio::test]
async fn a_cancelled_call_is_let_go_even_if_the_server_never_ends_its_stream() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    let stream = server.expect("tools/call").await.stream().await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    client.send(cancel.clone()).await;
    let posted = server.expect("notifications/cancelled").await;
    assert_eq!(posted.message(), cancel);
    posted.accept().await;
    stream.closed().await;
    // The id is free again, and no answer was written for the cancelled request.
    client.request(1, "ping", json!({})).await;
    server.expect("ping").await.result(json!({})).await;
    assert_eq!(client.message().await, result(1));
    finish(client, server).await;
}

#[tokio::test]
async fn a_notification_answered_with_an_open_stream_holds_nothing_up() {
    let (mut server, mut client) = connected(&[]).await;
    client.notify("notifications/a").await;
    let mut stream = server.expect("notifications/a").await.stream().await;
    client.notify("notifications/b").await;
    server.expect("notifications/b").await.accept().await;
    stream.send(json!({"jsonrpc": "2.0", "method": "notifications/x"})).await;
    assert_eq!(client.message().await["method"], "notifications/x");
    finish(client, server).await;
}

#[tokio::test]
async fn a_notification_the_server_never_takes_holds_up_no_request_and_no_end() {
    let (mut server, mut client) = connected(&[]).await;
    for _ in 0..400 {
        client.notify("notifications/a").await;
    }
    let _stuck = server.expect("notifications/a").await;
    client.request(1, "ping", json!({})).await;
    server.expect("ping").await.result(json!({})).await;
    assert_eq!(client.message().await["id"], 1);
    finish(client, server).await;
}

#[tokio::test]
async fn notifications_before_the_end_are_still_sent_in_order() {
    let (mut server, mut client) = connected(&[]).await;
    for number in 0..40 {
        client.notify(&format!("notifications/{number}")).await;
    }
    client.close_stdin();
    for number in 0..40 {
        server.expect(&format!("notifications/{number}")).await.accept().await;
    }
    finish(client, server).await;
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_is_an_error_in_the_end() {
    let (mut server, mut client) = connected(&["--wait", "500ms"]).await;
    client.request(1, "tools/call", json!({})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    stream.event("id: s-1\nretry: 10\ndata:\n\n").await;
    stream.cut();
    let _unanswered = server.expect("GET").await;
    let answer = client.message().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("could not be resumed"), "{answer}");
    finish(client, server).await;
}

#[tokio::test]
async fn an_event_id_that_no_header_can_carry_is_none() {
    let (mut server, mut client) = connected(&[]).await;
    for id in ["\u{1}odd", ""] {
        client.request(1, "tools/call", json!({})).await;
        let mut stream = server.expect("tools/call").await.stream().await;
        stream.event(&format!("id: before\n\nid: {id}\ndata:\n\n")).await;
        stream.cut();
        let answer = client.message().await;
        assert!(answer["error"]["message"].as_str().unwrap().contains("may have been executed"), "{answer}");
    }
    finish(client, server).await;
}

#[tokio::test]
async fn a_listening_stream_that_the_server_has_not_missed_yet_is_asked_for_again() {
    let (mut server, mut client, mut stream) = listening().await;
    stream.event("retry: 10\n\n").await;
    stream.cut();
    server.expect("GET").await.refuse(409, "").await;
    let mut stream = server.expect("GET").await.stream().await;
    stream.send(json!({"jsonrpc": "2.0", "method": "notifications/x"})).await;
    assert_eq!(client.message().await["method"], "notifications/x");
    finish(client, server).await;
}
