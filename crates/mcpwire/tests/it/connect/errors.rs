//! What the client is told when the server says no.

use serde_json::{Value, json};

use super::{connected, finish};
use crate::support::process::Mcpwire;
use crate::support::script::Script;

/// One call that the server refuses in this way, and the error the client gets.
async fn refused(status: u16, body: &str) -> Value {
    let (mut server, mut client) = connected(&[]).await;
    client.request("q", "tools/call", json!({})).await;
    server.expect("tools/call").await.refuse(status, body).await;
    let answer = client.message().await;
    assert_eq!(answer["id"], "q");
    finish(client, server).await;
    answer["error"].clone()
}

#[tokio::test]
async fn an_http_error_becomes_one_error_with_status_and_excerpt() {
    let error = refused(500, &format!("<html>\nboom {}", "x".repeat(100_000))).await;
    assert_eq!((&error["code"], &error["data"]["status"]), (&json!(-32603), &json!(500)));
    let text = error["message"].as_str().unwrap();
    assert!(text.starts_with("HTTP 500 Internal Server Error: <html> boom xxx"), "{text}");
    assert!(text.len() < 500, "{}", text.len());
}

#[tokio::test]
async fn a_json_rpc_error_in_the_body_passes_as_it_is() {
    let own = json!({"code": -32000, "message": "own", "data": {"why": "x"}});
    for id in [json!("q"), json!(null)] {
        let body = json!({"jsonrpc": "2.0", "id": id, "error": own}).to_string();
        assert_eq!(refused(400, &body).await, own);
    }
}

#[tokio::test]
async fn missing_credentials_are_explained() {
    assert!(refused(401, "").await["message"].as_str().unwrap().contains("--header 'Authorization: Bearer"));
    assert!(refused(403, "go away").await["message"].as_str().unwrap().contains("--header"));
}

#[tokio::test]
async fn an_answer_that_is_no_message_is_an_error() {
    let (mut server, mut client) = connected(&[]).await;
    for (body, says) in [
        ("<html>login</html>", "expected a JSON-RPC message"),
        ("{\"ok\":true}", "jsonrpc"),
        (r#"{"jsonrpc":"2.0","id":"other","result":{}}"#, "another request"),
    ] {
        client.request(1, "tools/call", json!({})).await;
        server.expect("tools/call").await.answer(200, &[("content-type", "text/html")], body).await;
        let answer = client.message().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{answer}");
    }
    finish(client, server).await;
}

#[tokio::test]
async fn a_failed_notification_is_a_log_line_only() {
    let (mut server, mut client) = connected(&[]).await;
    client.notify("notifications/x").await;
    server.expect("notifications/x").await.refuse(500, "no").await;
    client.logged("[WARN] [bridge] notification notifications/x").await;
    finish(client, server).await;
}

#[tokio::test]
async fn a_silent_server_is_given_up_if_asked_to() {
    let (mut server, mut client) = connected(&["--timeout", "300ms"]).await;
    client.request(1, "tools/call", json!({})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    // Progress counts as a sign of life.
    for _ in 0..5 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        stream.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})).await;
        assert_eq!(client.message().await["method"], "notifications/progress");
    }
    let answer = client.message().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("timed out"), "{answer}");
    let cancelled = server.expect("notifications/cancelled").await;
    assert_eq!(cancelled.message()["params"]["requestId"], 1);
    cancelled.accept().await;
    finish(client, server).await;
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_origin_only() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({"a": 1})).await;
    server.expect("tools/call").await.answer(307, &[("location", "/mcp/")], "").await;
    let moved = server.expect("tools/call").await;
    assert_eq!((moved.target.as_str(), &moved.message()["params"]), ("/mcp/", &json!({"a": 1})));
    moved.result(json!({})).await;
    client.message().await;
    let mut elsewhere = Script::start().await;
    client.request(2, "tools/call", json!({})).await;
    server.expect("tools/call").await.answer(307, &[("location", &elsewhere.url())], "").await;
    let answer = client.message().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("redirects to"), "{answer}");
    elsewhere.assert_idle();
    finish(client, server).await;
}

#[tokio::test]
async fn a_bad_command_line_is_one_line_and_a_code() {
    for (args, says) in [
        (&["connect"][..], "TARGET"),
        (&["connect", "ftp://example.com"], "http:// or https://"),
        (&["connect", "not a url"], "http:// or https://"),
        (&["connect", "http://localhost:1/", "--no-such-flag"], "--no-such-flag"),
        (&["connect", "http://localhost:1/", "--timeout", "soon"], "30s"),
        (&["connect", "http://localhost:1/", "--client-cert", "x"], "--client-key"),
        (&["no-such-command"], "no-such-command"),
        (&[], "subcommand"),
    ] {
        let mut client = Mcpwire::start(args);
        let status = client.wait().await;
        assert_eq!(client.line().await, None, "{args:?}");
        assert_eq!(status.code(), Some(2), "{args:?}");
        client.logged("mcpwire").await;
        let said = client.stderr();
        assert!(said.lines().count() == 1 && said.contains(says), "{args:?}: {said}");
    }
}

#[tokio::test]
async fn a_bad_command_line_is_told_without_the_secrets_in_it() {
    for args in [
        &["connect", "http://user:s3cret@ho st/"][..],
        &["connect", "http://user:s3cret@host:port/?key=s3cret"],
        &["connect", "https://user:s3/s3cret@[::1"],
        &["connect", "ftp://user:s3cret@host/?key=s3cret"],
        &["connect", "quic://user:s3cret@host"],
        &["tools", "http://user:s3cret@host:port/"],
        &["expose", "http://user:s3cret@host:port/"],
        &["status", "http://user:s3cret@host:port/"],
        &["http://user:s3cret@host/"],
        &["connect", "http://localhost:1/", "http://user:s3cret@host:port/"],
        &["connect", "--env", "=s3cret", "--", "true"],
        &["connect", "http://localhost:1/", "-H", "Bearer s3cret: x"],
        &["connect", "http://localhost:1/", "-H", "Authorization Bearer s3cret"],
        &["connect", "http://localhost:1/", "-H", "Authorization: Bearer s3cret\u{1}"],
    ] {
        let mut client = Mcpwire::start(args);
        assert_ne!(client.wait().await.code(), Some(0), "{args:?}");
        client.logged("mcpwire:").await;
        assert!(!client.stderr().contains("s3cret"), "{args:?}: {}", client.stderr());
    }
}

#[tokio::test]
async fn what_cannot_start_says_why_and_exits_1() {
    for (args, says) in [
        (&["connect", "http://localhost:1/", "-H", "no colon"][..], "NAME: VALUE"),
        (&["connect", "http://localhost:1/", "-H", "A: ${NO_SUCH_VARIABLE}"], "NO_SUCH_VARIABLE is not set"),
        (&["connect", "https://localhost:1/", "--ca", "/no/such/file"], "/no/such/file"),
        (&["connect", "https://localhost:1/", "--ca", "/dev/null"], "certificates"),
    ] {
        let mut client = Mcpwire::start(args);
        assert_eq!(client.wait().await.code(), Some(1), "{args:?}");
        client.logged(says).await;
    }
}

#[tokio::test]
async fn an_error_whose_body_never_ends_is_told_all_the_same() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    let mut exchange = server.expect("tools/call").await;
    exchange.write("HTTP/1.1 500 X\r\ncontent-length: 1000\r\n\r\nhalf a").await;
    let answer = client.message().await;
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("HTTP 500 Internal Server Error: half a"),
        "{answer}"
    );
    finish(client, server).await;
}

#[tokio::test]
async fn an_event_that_is_no_message_in_the_place_of_the_answer_is_an_error() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    stream.event("id: 1\ndata: <html>oops</html>\n\n").await;
    stream.end().await;
    let answer = client.message().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("no message"), "{answer}");
    finish(client, server).await;
}

#[tokio::test]
async fn an_answer_of_the_client_that_is_too_large_is_told_to_the_server() {
    let (mut server, mut client) = connected(&["--max-message", "10kB"]).await;
    client.request(1, "tools/call", json!({})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    stream.send(json!({"jsonrpc": "2.0", "id": "ask", "method": "sampling/createMessage"})).await;
    assert_eq!(client.message().await["id"], "ask");
    client.send(json!({"jsonrpc": "2.0", "id": "ask", "result": {"text": "x".repeat(20_000)}})).await;
    let told = server.expect("response").await;
    assert_eq!((&told.message()["id"], &told.message()["error"]["code"]), (&json!("ask"), &json!(-32600)));
    told.accept().await;
    stream.send(json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
    assert_eq!(client.message().await["id"], 1);
    stream.end().await;
    finish(client, server).await;
}
