//! Servers that restart, vanish and come back, under a client that goes on.

use serde_json::json;

use super::{connected, finish, initialize_params, listening, reopened};
use crate::support::process::Mcpwire;
use crate::support::script::Script;

#[tokio::test]
async fn a_lost_session_is_opened_anew_and_the_request_sent_again() {
    let error = json!({"code": -32000, "message": "Bad Request: Server not initialized"});
    let typescript = json!({"jsonrpc": "2.0", "error": error, "id": null}).to_string();
    let lost = [(404, ""), (400, "Bad Request: No valid session ID provided"), (400, typescript.as_str())];
    for (status, body) in lost {
        let (mut server, mut client) = connected(&[]).await;
        client.request(1, "tools/call", json!({"name": "x"})).await;
        server.expect("tools/call").await.refuse(status, body).await;
        let replayed = server.expect("initialize").await;
        assert_eq!(replayed.message()["params"], initialize_params("2025-11-25"));
        assert_eq!(replayed.header("mcp-session-id"), None);
        replayed.initialized("s2").await;
        server.expect("notifications/initialized").await.accept().await;
        let (a, b) = (server.next().await, server.next().await);
        let (get, call) = if a.method == "GET" { (a, b) } else { (b, a) };
        get.refuse(405, "").await;
        assert_eq!((call.rpc_method().as_str(), call.header("mcp-session-id")), ("tools/call", Some("s2")));
        call.result(json!({"ok": true})).await;
        // The client sees its one answer, and nothing of the handshake.
        assert_eq!(client.message().await, json!({"jsonrpc": "2.0", "id": 1, "result": {"ok": true}}));
        finish(client, server).await;
    }
}

#[tokio::test]
async fn a_400_that_mentions_a_session_does_not_run_a_call_twice() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({"name": "book"})).await;
    server.expect("tools/call").await.refuse(400, "<p>the session in room 5 is booked already</p>").await;
    let answer = client.message().await;
    assert_eq!((&answer["id"], &answer["error"]["data"]["status"]), (&json!(1), &json!(400)), "{answer}");
    // What may be sent twice is: the server may have lost the session.
    client.request(2, "tools/list", json!({})).await;
    server.expect("tools/list").await.refuse(400, "unknown session").await;
    reopened(&mut server, "s2").await.result(json!({"tools": []})).await;
    assert_eq!(client.message().await["id"], 2);
    finish(client, server).await;
}

#[tokio::test]
async fn a_request_is_retried_once_only() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    server.expect("tools/call").await.refuse(404, "").await;
    let call = reopened(&mut server, "s2").await;
    call.refuse(404, "").await;
    let answer = client.message().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("does not know the session"), "{answer}");
    finish(client, server).await;
}

#[tokio::test]
async fn settings_are_restored_and_a_changed_catalogue_is_told() {
    let (mut server, mut client) = connected(&[]).await;
    let settings = [
        ("logging/setLevel", json!({"level": "debug"})),
        ("resources/subscribe", json!({"uri": "test://kept"})),
        ("resources/subscribe", json!({"uri": "test://dropped"})),
        ("resources/unsubscribe", json!({"uri": "test://dropped"})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
    ];
    for (id, (method, params)) in settings.iter().enumerate() {
        client.request(id, method, params.clone()).await;
        server.expect(method).await.result(json!({"list": "old"})).await;
        client.message().await;
    }
    client.request("q", "ping", json!({})).await;
    server.expect("ping").await.refuse(404, "").await;
    server.expect("initialize").await.initialized("s2").await;
    server.expect("notifications/initialized").await.accept().await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        let exchange = server.next().await;
        seen.push(match exchange.rpc_method().as_str() {
            "GET" => "GET".to_owned(),
            method => format!("{method} {}", exchange.message()["params"]),
        });
        match exchange.rpc_method().as_str() {
            "GET" => exchange.refuse(405, "").await,
            "tools/list" => exchange.result(json!({"list": "new"})).await,
            _ => exchange.result(json!({"list": "old"})).await,
        }
    }
    seen.sort();
    let expected = [
        "GET",
        r#"logging/setLevel {"level":"debug"}"#,
        "ping {}",
        "prompts/list null",
        r#"resources/subscribe {"uri":"test://kept"}"#,
        "tools/list null",
    ];
    assert_eq!(seen, expected);
    let mut got = [client.message().await, client.message().await].map(|m| m.get("method").unwrap_or(&m["id"]).clone());
    got.sort_by_key(|value| value.to_string());
    assert_eq!(got, [json!("notifications/tools/list_changed"), json!("q")]);
    finish(client, server).await;
}

#[tokio::test]
async fn a_server_that_is_down_at_the_start_is_waited_for() {
    let reserved = Script::start().await;
    let (address, url) = (reserved.address(), reserved.url());
    reserved.stop().await;
    let mut client = Mcpwire::start(&["connect", &url]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    client.logged("next try in").await;
    let mut server = Script::start_at(address).await;
    server.expect("initialize").await.initialized("s1").await;
    assert_eq!(client.message().await["id"], 0);
    finish(client, server).await;
}

#[tokio::test]
async fn a_server_that_stays_down_is_an_error_and_the_bridge_lives_on() {
    let reserved = Script::start().await;
    let (address, url) = (reserved.address(), reserved.url());
    reserved.stop().await;
    let mut client = Mcpwire::start(&["connect", &url, "--wait", "300ms"]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    let answer = client.message().await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("cannot reach the server") && text.contains("refused"), "{answer}");
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(0), &json!(-32603)));
    let mut server = Script::start_at(address).await;
    client.request(1, "initialize", initialize_params("2025-11-25")).await;
    server.expect("initialize").await.initialized("s1").await;
    assert_eq!(client.message().await["result"]["serverInfo"]["name"], "script");
    finish(client, server).await;
}

#[tokio::test]
async fn a_starting_server_behind_a_proxy_is_waited_for() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url()]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    server.expect("initialize").await.refuse(503, "starting").await;
    server.expect("initialize").await.initialized("s1").await;
    assert_eq!(client.message().await["id"], 0);
    finish(client, server).await;
}

#[tokio::test]
async fn a_restart_between_two_calls_is_not_noticed_by_the_client() {
    let (server, mut client) = connected(&[]).await;
    let address = server.address();
    server.stop().await;
    client.request(1, "tools/call", json!({})).await;
    client.logged("next try in").await;
    let mut server = Script::start_at(address).await;
    let first = server.expect("tools/call").await;
    assert_eq!(first.header("mcp-session-id"), Some("s1"));
    first.refuse(404, "").await;
    let call = reopened(&mut server, "s2").await;
    call.result(json!({"ok": 1})).await;
    assert_eq!(client.message().await["result"]["ok"], 1);
    finish(client, server).await;
}

#[tokio::test]
async fn a_call_that_may_have_run_is_never_sent_twice() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    server.expect("tools/call").await.cut();
    let answer = client.message().await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("may have been executed and was not sent again"), "{answer}");
    client.request(2, "vendor/unknown", json!({})).await;
    server.expect("vendor/unknown").await.stream().await.cut();
    assert_eq!(client.message().await["error"]["code"], -32603);
    client.request(3, "ping", json!({})).await;
    server.expect("ping").await.result(json!({})).await;
    assert_eq!(client.message().await["id"], 3);
    finish(client, server).await;
}

#[tokio::test]
async fn a_read_that_was_cut_is_repeated_once() {
    let (mut server, mut client) = connected(&[]).await;
    for method in ["tools/list", "resources/read", "prompts/get", "completion/complete"] {
        client.request(1, method, json!({})).await;
        server.expect(method).await.stream().await.cut();
        server.expect(method).await.result(json!({"n": 2})).await;
        assert_eq!(client.message().await["result"]["n"], 2);
    }
    client.request(2, "tools/list", json!({})).await;
    server.expect("tools/list").await.cut();
    server.expect("tools/list").await.cut();
    assert_eq!(client.message().await["error"]["code"], -32603);
    finish(client, server).await;
}

#[tokio::test]
async fn a_session_lost_while_idle_is_opened_anew_by_itself() {
    let (mut server, mut client, mut stream) = listening().await;
    stream.event("retry: 10\n\n").await;
    stream.send(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).await;
    assert_eq!(client.message().await["id"], 1);
    stream.cut();
    server.expect("GET").await.refuse(404, "").await;
    server.expect("initialize").await.initialized("s2").await;
    // The old server's question is withdrawn, and a late answer to it goes nowhere.
    let withdrawn = client.message().await;
    assert_eq!(
        (&withdrawn["method"], &withdrawn["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(1))
    );
    server.expect("notifications/initialized").await.accept().await;
    let mut stream = server.expect("GET").await.stream().await;
    stream.send(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).await;
    let asked = client.message().await;
    assert_ne!(asked["id"], 1, "the new question cannot be mistaken for the old one");
    client.send(json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": "late"}})).await;
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": "new"}})).await;
    let answer = server.expect("response").await;
    assert_eq!(answer.message(), json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": "new"}}));
    answer.accept().await;
    finish(client, server).await;
}

#[tokio::test]
async fn a_refused_new_session_is_an_error_and_tried_again_with_the_next_request() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    server.expect("tools/call").await.refuse(404, "").await;
    server.expect("initialize").await.refuse(401, "").await;
    let answer = client.message().await;
    assert_eq!(answer["id"], 1);
    assert!(answer["error"]["message"].as_str().unwrap().contains("401"), "{answer}");
    client.request(2, "ping", json!({})).await;
    let ping = reopened(&mut server, "s2").await;
    ping.result(json!({})).await;
    assert_eq!(client.message().await["id"], 2);
    finish(client, server).await;
}

#[tokio::test]
async fn a_server_without_a_listening_stream_may_say_404() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start_with(&["connect", &server.url()], &[("LOG_LEVEL", "debug")]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    server.expect("initialize").await.initialized("s1").await;
    client.message().await;
    client.notify("notifications/initialized").await;
    server.expect("notifications/initialized").await.accept().await;
    server.expect("GET").await.refuse(404, "Cannot GET /mcp").await;
    client.logged("offers no listening stream").await;
    client.request(1, "ping", json!({})).await;
    server.expect("ping").await.result(json!({})).await;
    assert_eq!(client.message().await["id"], 1, "the session goes on");
    finish(client, server).await;
}

#[tokio::test]
async fn a_handshake_that_is_cut_twice_is_an_error_and_tried_again_with_the_next_request() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url()]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    server.expect("initialize").await.cut();
    server.expect("initialize").await.cut();
    assert_eq!(client.message().await["error"]["code"], -32603);
    client.request(1, "initialize", initialize_params("2025-11-25")).await;
    server.expect("initialize").await.initialized("s1").await;
    assert_eq!(client.message().await["id"], 1);
    finish(client, server).await;
}

#[tokio::test]
async fn calls_in_flight_while_a_new_session_is_opened_stay_in_a_session() {
    let (mut server, mut client) = connected(&[]).await;
    for id in 0..20 {
        client.request(id, "tools/call", json!({})).await;
    }
    let mut lost = Vec::new();
    for _ in 0..20 {
        lost.push(server.expect("tools/call").await);
    }
    for exchange in lost {
        assert_eq!(exchange.header("mcp-session-id"), Some("s1"));
        exchange.refuse(404, "").await;
    }
    server.expect("initialize").await.initialized("s2").await;
    server.expect("notifications/initialized").await.accept().await;
    for _ in 0..21 {
        let exchange = server.next().await;
        assert_eq!(exchange.header("mcp-session-id"), Some("s2"), "{}", exchange.body);
        match exchange.method.as_str() {
            "GET" => exchange.refuse(405, "").await,
            _ => exchange.result(json!({})).await,
        }
    }
    for _ in 0..20 {
        assert!(client.message().await.get("result").is_some());
    }
    finish(client, server).await;
}
