//! What the client sends, and what it learns for it.

use mcpwire::transport::http::client::Transport;
use mcpwire_proto::{Id, Message};
use serde_json::{Value, json};

use super::{call, connect, event, message, modern, send};
use crate::support::script::{Exchange, Script};

fn tools(tools: Value) -> Value {
    json!({"tools": tools, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"})
}

fn tool(name: &str, properties: Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

fn region() -> Value {
    json!({"region": {"type": "string", "x-mcp-header": "Region"}})
}

fn mismatch(exchange: &Exchange) -> String {
    json!({"jsonrpc": "2.0", "id": exchange.id(), "error": {"code": -32020, "message": "header mismatch"}}).to_string()
}

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[tokio::test]
async fn a_request_stands_for_itself() {
    let mut server = Script::start().await;
    let (mut link, done) = connect(&server.url(), Transport::Auto);
    let request = modern(json!("a"), "resources/read", json!({"uri": "file:///é", "n": 1.10}));
    send(&link, request.clone()).await;
    let exchange = server.next().await;
    assert_eq!(exchange.body.as_bytes(), request.as_bytes());
    let sent = ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"].map(|name| exchange.header(name));
    assert_eq!(sent, [Some("2026-07-28"), Some("resources/read"), Some("=?base64?ZmlsZTovLy/DqQ==?="), None]);
    let answer = r#"{"jsonrpc":"2.0","id":"a","result":{"n":1.10,  "resultType":"complete"}}"#;
    // A session that is offered is not wanted.
    exchange.answer(200, &[("content-type", "application/json"), ("mcp-session-id", "s")], answer).await;
    let mcpwire::link::Event::Packet(packet) = event(&mut link).await else { panic!("no packet") };
    assert_eq!(packet.message.as_bytes(), answer);

    // A notification says by its headers which version it is of.
    send(&link, Message::notification("notifications/vendor", None)).await;
    let exchange = server.next().await;
    let sent = ["mcp-protocol-version", "mcp-method", "mcp-session-id"].map(|name| exchange.header(name));
    assert_eq!(sent, [Some("2026-07-28"), Some("notifications/vendor"), None]);
    exchange.accept().await;
    drop(link);
    done.await.unwrap();
    server.assert_idle();
}

#[tokio::test]
async fn both_eras_go_side_by_side() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    let initialize = json!({"protocolVersion": "2025-11-25"}).to_string();
    send(&link, Message::request(&Id::from(1), "initialize", Some(&initialize))).await;
    server.expect("initialize").await.initialized("s-1").await;
    message(&mut link, &Id::from(1)).await;
    send(&link, call(2, json!({}))).await;
    let exchange = server.expect("tools/call").await;
    assert_eq!((exchange.header("mcp-session-id"), exchange.header("mcp-name")), (None, Some("t")));
    exchange.result(json!({})).await;
    message(&mut link, &Id::from(2)).await;
    send(&link, Message::request(&Id::from(3), "tools/list", None)).await;
    let exchange = server.expect("tools/list").await;
    let sent = ["mcp-protocol-version", "mcp-session-id", "mcp-method"].map(|name| exchange.header(name));
    assert_eq!(sent, [Some("2025-11-25"), Some("s-1"), None]);
}

#[tokio::test]
async fn headers_for_parameters_are_learned_from_lists_that_pass_by() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    send(&link, call(1, json!({"region": "eu"}))).await;
    let exchange = server.expect("tools/call").await;
    assert_eq!(exchange.header("mcp-param-region"), None, "nothing is known, and nothing is asked");
    exchange.result(json!({})).await;
    message(&mut link, &Id::from(1)).await;

    send(&link, modern(json!(2), "tools/list", json!({}))).await;
    let broken = tool("broken", json!({"n": {"type": "number", "x-mcp-header": "N"}}));
    let fine = [tool("t", region()), tool("plain", json!({}))];
    server.expect("tools/list").await.result(tools(json!([fine[0], broken, fine[1]]))).await;
    let list = message(&mut link, &Id::from(2)).await;
    assert_eq!(list["result"], tools(json!(fine)));

    for (value, header) in [(json!("eu"), Some("eu")), (json!("世"), Some("=?base64?5LiW?=")), (json!(null), None)] {
        send(&link, call(3, json!({"region": value}))).await;
        let exchange = server.expect("tools/call").await;
        assert_eq!(exchange.header("mcp-param-region"), header);
        exchange.result(json!({})).await;
        message(&mut link, &Id::from(3)).await;
    }
}

#[tokio::test]
async fn a_list_without_faults_passes_as_it_is() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    send(&link, modern(json!(1), "tools/list", json!({}))).await;
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[ {"name":"t","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}, "n":1.10} ]}}"#;
    server.expect("tools/list").await.json(list).await;
    let mcpwire::link::Event::Packet(packet) = event(&mut link).await else { panic!("no packet") };
    assert_eq!(packet.message.as_bytes(), list);
}

#[tokio::test]
async fn a_call_whose_headers_are_refused_is_sent_again_once_with_the_right_ones() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    let request = modern(
        json!(1),
        "tools/call",
        json!({"name": "t", "arguments": {"region": "eu"}, "_meta": {"progressToken": "p"}}),
    );
    send(&link, request.clone()).await;
    let exchange = server.expect("tools/call").await;
    let error = mismatch(&exchange);
    exchange.answer(400, &JSON, &error).await;
    // The list is asked for as the sender of the call would, page by page.
    let exchange = server.expect("tools/list").await;
    let asked = exchange.message();
    assert_eq!(asked["params"]["_meta"][super::VERSION], "2026-07-28");
    assert!(asked["params"]["_meta"].get("progressToken").is_none() && asked["params"].get("cursor").is_none());
    let mut first = tools(json!([]));
    first["nextCursor"] = json!("more");
    exchange.result(first).await;
    let exchange = server.expect("tools/list").await;
    assert_eq!(exchange.message()["params"]["cursor"], "more");
    exchange.result(tools(json!([tool("t", region())]))).await;

    let exchange = server.expect("tools/call").await;
    assert_eq!(exchange.body.as_bytes(), request.as_bytes());
    assert_eq!(exchange.header("mcp-param-region"), Some("eu"));
    let error = mismatch(&exchange);
    exchange.answer(400, &JSON, &error).await;
    assert_eq!(message(&mut link, &Id::from(1)).await["error"]["code"], -32020, "once is enough");

    // A list that tells nothing new is no reason to try again.
    send(&link, call(2, json!({"region": "eu"}))).await;
    let exchange = server.expect("tools/call").await;
    let error = mismatch(&exchange);
    exchange.answer(400, &JSON, &error).await;
    server.expect("tools/list").await.result(tools(json!([tool("t", region())]))).await;
    assert_eq!(message(&mut link, &Id::from(2)).await["error"]["code"], -32020);
    server.assert_idle();
}
