//! Closing the stream of a request cancels it.

use mcpwire::transport::http::client::Transport;
use mcpwire_proto::{Id, Message};
use serde_json::json;

use super::{call, cancel, connect, message, modern, send};
use crate::support::script::Script;

#[tokio::test]
async fn a_cancelled_request_is_closed_and_heard_of_no_more() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    send(&link, call(1, json!({}))).await;
    let waiting = server.expect("tools/call").await;
    send(&link, modern(json!("l"), "subscriptions/listen", json!({"notifications": {}}))).await;
    let mut listening = server.expect("subscriptions/listen").await.stream().await;
    let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}});
    listening.send(acknowledged.clone()).await;
    assert_eq!(message(&mut link, &Id::from("l")).await, acknowledged);

    cancel(&link, &Id::from(1)).await;
    waiting.closed().await;
    cancel(&link, &Id::from("l")).await;
    listening.closed().await;

    // The next thing that is heard is the answer to what is asked next; a cancel that comes too late goes nowhere.
    send(&link, call(2, json!({}))).await;
    server.expect("tools/call").await.result(json!({})).await;
    message(&mut link, &Id::from(2)).await;
    cancel(&link, &Id::from(2)).await;
    cancel(&link, &Id::from(99)).await;
    send(&link, call(3, json!({}))).await;
    server.expect("tools/call").await.result(json!({})).await;
    message(&mut link, &Id::from(3)).await;
    server.assert_idle();
}

#[tokio::test]
async fn a_cancelled_request_of_a_session_is_still_told() {
    let mut server = Script::start().await;
    let (mut link, _done) = connect(&server.url(), Transport::Auto);
    let initialize = json!({"protocolVersion": "2025-11-25"}).to_string();
    send(&link, Message::request(&Id::from(1), "initialize", Some(&initialize))).await;
    server.expect("initialize").await.initialized("s-1").await;
    message(&mut link, &Id::from(1)).await;
    send(&link, call(2, json!({}))).await;
    server.expect("tools/call").await.result(json!({})).await;
    message(&mut link, &Id::from(2)).await;
    send(&link, Message::request(&Id::from(3), "tools/call", None)).await;
    let _under_way = server.expect("tools/call").await;
    cancel(&link, &Id::from(3)).await;
    let told = server.expect("notifications/cancelled").await;
    assert_eq!(told.header("mcp-session-id"), Some("s-1"));
}

#[tokio::test]
async fn everything_ends_with_the_link() {
    let mut server = Script::start().await;
    let (link, done) = connect(&server.url(), Transport::Auto);
    send(&link, call(1, json!({}))).await;
    let waiting = server.expect("tools/call").await;
    drop(link);
    waiting.closed().await;
    done.await.unwrap();
    server.assert_idle();
}
