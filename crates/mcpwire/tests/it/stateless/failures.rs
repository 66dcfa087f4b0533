//! What becomes of a request that is not answered with a result.

use mcpwire::transport::http::client::Transport;
use mcpwire_proto::{Failure, Id, Refusal};
use serde_json::{Value, json};

use super::{call, connect, failure, message, modern, send};
use crate::support::script::Script;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[tokio::test]
async fn an_error_is_the_answer_whatever_its_status_and_its_id() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    for (status, id, code) in [
        (404, json!(7), -32601),
        (400, json!(7), -32022),
        (200, json!(7), -32602),
        (500, json!(7), -32603),
        (503, json!(7), -32603),
        // What older servers say to a request that they do not understand.
        (400, Value::Null, -32000),
        (200, Value::Null, -32000),
        (400, json!("server-error"), -32600),
    ] {
        send(&link, call(7, json!({}))).await;
        let error = json!({"code": code, "message": "no", "data": {"n": 1}});
        let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
        server.expect("tools/call").await.answer(status, &JSON, &body).await;
        let answer = message(&mut link, &Id::from(7)).await;
        assert_eq!((&answer["id"], &answer["error"]), (&json!(7), &error), "{status} {id}");
    }
    server.assert_idle();
}

#[tokio::test]
async fn other_refusals_name_their_status() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    for (status, body) in [
        (400, "no"),
        (404, "<h1>Cannot POST /mcp</h1>"),
        (405, ""),
        (401, ""),
        (500, "oops"),
        (202, ""),
        (200, "<h1>Welcome</h1>"),
        (200, r#"{"jsonrpc":"2.0","id":8,"result":{}}"#),
    ] {
        send(&link, call(7, json!({}))).await;
        server.expect("tools/call").await.refuse(status, body).await;
        let Failure::Refused(Refusal { error, .. }) = failure(&mut link).await else { panic!("{status}: not refused") };
        let error: Value = serde_json::from_str(&error).unwrap();
        assert_eq!(error["data"]["status"], status, "{error}");
    }
    // None of this is a reason to look for HTTP+SSE: whoever keeps the books says so with `initialize`.
    server.assert_idle();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_from_one_that_may_have_executed_it() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    // Gateways give each of these also when the server's connection broke under them.
    for status in [503, 502, 504] {
        send(&link, call(7, json!({}))).await;
        server.expect("tools/call").await.refuse(status, "gateway").await;
        let failed = failure(&mut link).await;
        assert!(matches!(failed, Failure::Interrupted(_)), "{status}: {failed:?}");
        send(&link, modern(json!(7), "tools/list", json!({}))).await;
        server.expect("tools/list").await.refuse(status, "gateway").await;
        let failed = failure(&mut link).await;
        assert!(matches!(failed, Failure::Unreachable(_)), "{status}: {failed:?}");
    }
    send(&link, call(7, json!({}))).await;
    server.expect("tools/call").await.answer(503, &[("retry-after", "1")], "").await;
    assert!(matches!(failure(&mut link).await, Failure::Unreachable(_)));
    send(&link, call(7, json!({}))).await;
    server.expect("tools/call").await.cut();
    assert!(matches!(failure(&mut link).await, Failure::Interrupted(_)));
    server.stop().await;
    send(&link, call(7, json!({}))).await;
    assert!(matches!(failure(&mut link).await, Failure::NotConnected(_)));
}

#[tokio::test]
async fn a_stream_that_ends_without_the_answer_is_not_resumed() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    for cut in [true, false] {
        send(&link, call(7, json!({}))).await;
        let mut stream = server.expect("tools/call").await.stream().await;
        let told = json!({"jsonrpc": "2.0", "method": "notifications/progress"});
        stream.event(&format!("id: 1\nretry: 1\ndata: {told}\n\n")).await;
        assert_eq!(message(&mut link, &Id::from(7)).await, told);
        // A server of this era asks nothing.
        stream.send(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).await;
        if cut {
            stream.cut()
        } else {
            stream.end().await
        }
        assert!(matches!(failure(&mut link).await, Failure::Interrupted(_)));
    }
    send(&link, call(7, json!({}))).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    stream.event("data: {garbage\n\n").await;
    stream.end().await;
    assert!(matches!(failure(&mut link).await, Failure::Refused(_)));
    server.assert_idle();
}

#[tokio::test]
async fn http_with_sse_has_no_such_requests() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Sse);
    send(&link, call(7, json!({}))).await;
    assert!(matches!(failure(&mut link).await, Failure::Refused(_)));
    server.assert_idle();
}
