//! How it ends.

use serde_json::json;

use super::{connected, finish};

#[tokio::test]
async fn answers_under_way_are_delivered_after_stdin_ends() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    let call = server.expect("tools/call").await;
    client.close_stdin();
    call.result(json!({"late": true})).await;
    assert_eq!(client.message().await["result"]["late"], true);
    finish(client, server).await;
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_an_error() {
    let (mut server, mut client) = connected(&["--drain", "200ms"]).await;
    client.request(1, "tools/call", json!({})).await;
    let _call = server.expect("tools/call").await;
    client.close_stdin();
    let answer = client.message().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
    finish(client, server).await;
}

#[tokio::test]
async fn signals_end_it_as_the_end_of_stdin_does() {
    for name in ["INT", "TERM"] {
        let (mut server, mut client) = connected(&[]).await;
        client.request(1, "tools/call", json!({})).await;
        let call = server.expect("tools/call").await;
        client.signal(name);
        client.logged("stopping").await;
        call.result(json!({})).await;
        assert_eq!(client.message().await["id"], 1);
        server.expect("DELETE").await.answer(200, &[], "").await;
        assert_eq!(client.line().await, None);
        assert_eq!(client.wait().await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let (mut server, mut client) = connected(&["--drain", "1h"]).await;
    client.request(1, "tools/call", json!({})).await;
    let _call = server.expect("tools/call").await;
    client.signal("TERM");
    client.logged("stopping").await;
    client.signal("TERM");
    assert_eq!(client.wait().await.code(), Some(130));
}

#[tokio::test]
async fn a_signal_while_draining_ends_it_at_once() {
    let (mut server, mut client) = connected(&["--drain", "1h"]).await;
    client.request(1, "tools/call", json!({})).await;
    let _call = server.expect("tools/call").await;
    client.close_stdin();
    client.logged("the client is done").await;
    client.signal("TERM");
    assert_eq!(client.message().await["error"]["code"], -32603);
    server.expect("DELETE").await.answer(200, &[], "").await;
    assert_eq!(client.wait().await.code(), Some(0));
}

#[tokio::test]
async fn a_broken_stdout_ends_it_quietly() {
    let (mut server, mut client) = connected(&[]).await;
    client.close_stdout();
    client.request(1, "ping", json!({})).await;
    server.expect("ping").await.result(json!({})).await;
    server.expect("DELETE").await.answer(200, &[], "").await;
    assert_eq!(client.wait().await.code(), Some(0));
    assert!(!client.stderr().contains("ERROR"), "{}", client.stderr());
}

#[tokio::test]
async fn a_server_that_does_not_say_goodbye_does_not_hold_it_up() {
    let (mut server, client) = connected(&[]).await;
    let mut client = client;
    client.close_stdin();
    let _unanswered = server.expect("DELETE").await;
    client.finish().await;
}

#[tokio::test]
async fn a_stderr_that_nobody_reads_holds_nothing_up() {
    let mut server = crate::support::script::Script::start().await;
    let mut client = crate::support::process::Mcpwire::start_deaf(&["connect", &server.url(), "-v"]);
    super::open(&mut client, &mut server, "2025-11-25").await;
    // Each line is logged several times over: far more than a pipe holds.
    for id in 0..1000 {
        client.request(id, "ping", json!({})).await;
        server.expect("ping").await.result(json!({})).await;
        assert_eq!(client.message().await["id"], id);
    }
    client.signal("TERM");
    server.expect("DELETE").await.answer(200, &[], "").await;
    assert_eq!(client.wait().await.code(), Some(0));
}
