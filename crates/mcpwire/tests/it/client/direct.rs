//! Direct calls: one request, without a handshake and without a session.

use std::time::Duration;

use mcpwire::client::{Cancel, Error, RequestOptions, direct};
use mcpwire::folder::Folder;
use mcpwire::target::Target;
use mcpwire_proto::Policy;
use serde_json::{Value, json};

use crate::support::reach::MCPWIRE;
use crate::support::script::Script;

#[tokio::test]
async fn one_post_is_all_that_is_sent_and_the_envelope_comes_back() {
    let mut server = Script::start().await;
    let url = server.url();
    let serve = async {
        let call = server.expect("tools/call").await;
        assert_eq!(call.message()["params"], json!({"name": "search", "arguments": {"query": "x"}}));
        assert_eq!(call.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(call.header("mcp-session-id"), None);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"n":1.10}},"extra":1}}"#, call.id());
        call.json(&answer).await;
    };
    let params = json!({"name": "search", "arguments": {"query": "x"}});
    let (envelope, ()) = tokio::join!(direct::call_mcp(url.parse().unwrap(), "tools/call", params), serve);
    let envelope = envelope.unwrap();
    assert_eq!(envelope.result().unwrap(), r#"{"n":1.10}"#);
    assert!(
        envelope.raw().starts_with(r#"{"jsonrpc""#) && envelope.raw().ends_with(r#""extra":1}"#),
        "{}",
        envelope.raw()
    );
    server.assert_idle();
}

#[tokio::test]
async fn a_session_that_nobody_asked_for_is_not_left_behind() {
    let mut server = Script::start().await;
    let url = server.url();
    let serve = async {
        server.expect("x").await.initialized("unwanted").await;
        let deleted = server.expect("DELETE").await;
        assert_eq!(deleted.header("mcp-session-id"), Some("unwanted"));
        deleted.accept().await;
    };
    let (envelope, ()) = tokio::join!(direct::call_mcp(url.parse().unwrap(), "x", ()), serve);
    envelope.unwrap();
    server.assert_idle();
}

#[tokio::test]
async fn an_event_with_the_answer_is_enough_whatever_comes_before_and_after_it() {
    let mut server = Script::start().await;
    let url = server.url();
    let serve = async {
        let call = server.expect("tools/list").await;
        let id = call.id();
        let mut stream = call.stream().await;
        stream.event("id: 1\ndata:\n\n").await;
        stream.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}})).await;
        stream.send(json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}})).await;
        // The stream goes on, and nobody waits for its end.
        stream.closed().await;
    };
    let (envelope, ()) = tokio::join!(direct::call_mcp(url.parse().unwrap(), "tools/list", ()), serve);
    assert_eq!(envelope.unwrap().read::<Value>().unwrap(), json!({"tools": []}));
}

#[tokio::test]
async fn errors_are_told_apart_by_who_gave_them() {
    let mut server = Script::start().await;
    let url = server.url();
    let ask = || direct::call_mcp(url.parse().unwrap(), "x", json!({}));
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    let json = [("content-type", "application/json")];
    // A JSON-RPC error is an envelope, with whichever HTTP status it comes.
    for status in [200, 400] {
        let (said, ()) = tokio::join!(ask(), async { server.expect("x").await.answer(status, &json, error).await });
        let envelope = said.unwrap();
        assert_eq!(envelope.result().unwrap_err().to_string(), "MCP error -32601: no");
    }
    let (said, ()) = tokio::join!(ask(), async { server.expect("x").await.refuse(403, "go away").await });
    assert!(matches!(said, Err(Error::Http(http)) if http.status == 403 && http.body == "go away"));
    let (said, ()) = tokio::join!(ask(), async { server.expect("x").await.json("<html>").await });
    assert!(said.is_err());
    let (said, ()) = tokio::join!(ask(), async { server.expect("x").await.cut() });
    assert!(matches!(said, Err(Error::NoResponse { .. })), "{said:?}");
    server.assert_idle();
    server.stop().await;
    assert!(matches!(ask().await, Err(Error::Unreachable(_))));
    let short = RequestOptions::within(Duration::from_millis(50));
    let silent = Target::command("sleep", ["60"]);
    let said = direct::request(silent, "x", (), None, short).await;
    assert!(matches!(said, Err(Error::Timeout(_))), "{said:?}");
    let cancel = Cancel::new();
    let options = RequestOptions::default().cancelled_by(&cancel);
    let asking = direct::request(Target::command("sleep", ["60"]), "x", (), None, options);
    let (said, ()) = tokio::join!(asking, async { cancel.cancel_because("enough") });
    assert!(matches!(said, Err(Error::Aborted(reason)) if reason == "enough"));
    let gone = direct::request(Target::command("true", [""; 0]), "x", (), None, RequestOptions::default()).await;
    assert!(gone.is_err(), "{gone:?}");
}

#[tokio::test]
async fn a_server_that_needs_no_handshake_is_asked_in_its_version() {
    let target = || Target::command(MCPWIRE, ["reference", "--stdio", "--era", "stateless"]);
    let options = RequestOptions::default;
    let asked = direct::request(target(), "tools/list", (), Some("2026-07-28"), options()).await.unwrap();
    assert!(asked.result().unwrap().contains(r#""resultType":"complete""#), "{}", asked.raw());
    let plain = direct::request(target(), "tools/list", (), None, options()).await.unwrap();
    assert!(plain.result().is_err(), "{}", plain.raw());
}

#[tokio::test]
async fn a_policy_holds_without_a_handshake_too() {
    let limited = || {
        let folder = Target::Folder(Folder::sample());
        folder.limited(Policy::new(&[], &["relevant-data.ask".to_owned()]))
    };
    let listed = direct::request(limited(), "tools/list", (), None, RequestOptions::default()).await.unwrap();
    assert!(listed.raw().contains("relevant-data.searchRecords") && !listed.raw().contains("relevant-data.ask"));
    let params = json!({"name": "relevant-data.ask", "arguments": {}});
    let called = direct::request(limited(), "tools/call", params, None, RequestOptions::default()).await;
    assert!(called.is_err_and(|error| error.code() == Some(-32602)));
}
