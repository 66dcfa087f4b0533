//! Clients without sessions: what is asked, checked, answered and attributed.

use std::time::Duration;

use mcpwire_proto::headers::{Tools, derive};
use mcpwire_proto::{Id, Lane, Message};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::super::Options;
use super::harness::{Client, Reply, Rig, Server, call, within};

pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A request of 2026-07-28; what is in `params._meta` is added to what must be there.
pub(super) fn modern(id: Value, method: &str, mut params: Value) -> Message {
    let mut meta = json!({VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    for (name, value) in params["_meta"].as_object().into_iter().flatten() {
        meta[name] = value.clone();
    }
    params["_meta"] = meta;
    Message::request(&Id::from_json(&id.to_string()).unwrap(), method, Some(&params.to_string()))
}

/// The client with the headers that the request must have.
pub(super) fn dressed(client: &Client, request: &Message) -> Client {
    let mut client = client.clone();
    for (name, value) in derive(request, &Tools::default()) {
        client.headers.push((Box::leak(name.into_owned().into_boxed_str()), value));
    }
    client
}

pub(super) async fn send(client: &Client, request: &Message) -> Reply {
    dressed(client, request).post(request.as_bytes().clone()).await
}

pub(super) fn spawn(rig: &Rig, request: Message) -> JoinHandle<Reply> {
    let client = rig.client();
    tokio::spawn(async move { send(&client, &request).await })
}

/// Sends a request that the front answers by itself: its status, and the error's code and id.
async fn refused(client: &Client, body: impl Into<bytes::Bytes>) -> (u16, Value, Value) {
    let reply = client.clone().post(body).await;
    let status = reply.status.as_u16();
    let error = reply.json().await;
    (status, error["error"]["code"].clone(), error["id"].clone())
}

pub(super) async fn link(rig: &mut Rig) -> Server {
    Server(within(rig.links.recv()).await.unwrap())
}

#[tokio::test]
async fn all_requests_go_over_one_link_and_are_answered_byte_for_byte() {
    let mut rig = Rig::start(Options { max_sessions: 1, ..Options::default() }).await;
    let first = modern(json!("a"), "tools/call", json!({"name": "t"}));
    let posted = spawn(&rig, first.clone());
    let mut server = link(&mut rig).await;
    let got = server.message().await;
    assert_eq!(got.as_bytes(), first.as_bytes());
    server.answer(got.id().unwrap(), r#"{"n":1.10,  "resultType":"complete"}"#).await;
    let reply = within(posted).await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.headers.contains_key("mcp-session-id")), (200, false));
    assert_eq!(reply.text().await, r#"{"jsonrpc":"2.0","id":"a","result":{"n":1.10,  "resultType":"complete"}}"#);

    // A session has a link of its own, and neither counts for the other.
    let (session, mut of_session) = rig.session("2025-11-25").await;
    let posted = spawn(&rig, modern(json!(2), "tools/list", json!({})));
    let id = server.request().await;
    server.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200);
    let posted = tokio::spawn(session.with("mcp-method", "tools/call").post(call(2)));
    let id = of_session.request().await;
    of_session.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200);
    assert!(rig.links.try_recv().is_err());
}

#[tokio::test]
async fn a_session_that_is_named_is_ignored() {
    let mut rig = Rig::start(Options::default()).await;
    let request = modern(json!(1), "tools/list", json!({}));
    let client = rig.client().with("mcp-session-id", "never opened");
    let posted = tokio::spawn(async move { send(&client, &request).await });
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    server.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200);
    // An old request with such a session is what it was.
    rig.client().with("mcp-session-id", "never opened").post(call(1)).await.refused(404).await;
}

#[tokio::test]
async fn clients_with_equal_ids_and_tokens_never_meet() {
    let mut rig = Rig::start(Options::default()).await;
    let request = |name: &str| modern(json!(1), "tools/call", json!({"name": name, "_meta": {"progressToken": "p"}}));
    let posted_a = spawn(&rig, request("a"));
    let mut server = link(&mut rig).await;
    let a = server.message().await;
    let posted_b = spawn(&rig, request("b"));
    let b = server.message().await;
    assert_eq!(a.id(), Some(&Id::from(1)), "ids are kept when they can be");
    assert_ne!(a.id(), b.id());
    let token = |message: &Message| mcpwire_proto::meta::progress_token(message).unwrap();
    assert_eq!(token(&a), Id::from("p"));
    assert_ne!(token(&a), token(&b));
    // A transport that cannot tell leaves it to the token; one that can is believed.
    let progress = |message: &Message, n| {
        let params = format!(r#"{{"progressToken":{},"progress":{n}}}"#, token(message));
        Message::notification("notifications/progress", Some(&params))
    };
    server.send(Lane::Unsorted, progress(&b, 2)).await;
    server.send(Lane::Request(a.id().unwrap().clone()), progress(&a, 1)).await;
    server.answer(b.id().unwrap(), r#"{"of":"b"}"#).await;
    server.answer(a.id().unwrap(), r#"{"of":"a"}"#).await;
    for (posted, n, of) in [(posted_a, 1, "a"), (posted_b, 2, "b")] {
        let mut reply = within(posted).await.unwrap();
        let (event, told) = reply.message().await;
        assert_eq!((event.as_str(), &told["params"]), ("", &json!({"progressToken": "p", "progress": n})));
        let answer = reply.message().await.1;
        assert_eq!((&answer["id"], &answer["result"]["of"]), (&json!(1), &json!(of)));
        assert!(reply.event().await.is_none());
    }
}

#[tokio::test]
async fn what_belongs_to_nobody_reaches_nobody() {
    let mut rig = Rig::start(Options { stream_after: Duration::from_secs(60), ..Options::default() }).await;
    let logging = json!({"name": "t", "_meta": {"io.modelcontextprotocol/logLevel": "info"}});
    let logs = spawn(&rig, modern(json!(1), "tools/call", logging));
    let mut server = link(&mut rig).await;
    server.request().await;
    let plain = spawn(&rig, modern(json!(2), "tools/call", json!({"name": "t"})));
    server.request().await;
    server.notify(Lane::Unsorted, "notifications/tools/list_changed").await;
    server.notify(Lane::Unsorted, "notifications/vendor").await;
    server.notify(Lane::Request(Id::from(99)), "notifications/vendor").await;
    server.send(Lane::Main, Message::error(None, -32600, "whose?")).await;
    // Only one asked for log messages.
    server.notify(Lane::Unsorted, "notifications/message").await;
    server.answer(&Id::from(2), "{}").await;
    server.notify(Lane::Unsorted, "notifications/only-one-left").await;
    server.answer(&Id::from(1), "{}").await;
    assert!(!within(plain).await.unwrap().is_stream());
    let mut logs = within(logs).await.unwrap();
    assert_eq!(logs.message().await.1["method"], "notifications/message");
    assert_eq!(logs.message().await.1["method"], "notifications/only-one-left");
    assert_eq!(logs.message().await.1["id"], 1);
    // A server of this era asks nothing, and is told so.
    server.send(Lane::Main, Message::request(&Id::from(7), "roots/list", None)).await;
    let answer = server.message().await;
    assert!(answer.is_response() && answer.id() == Some(&Id::from(7)));
}

#[tokio::test]
async fn errors_of_the_protocol_have_a_status() {
    let mut rig = Rig::start(Options::default()).await;
    let mut server = None;
    for (code, status) in [(-32601, 404), (-32020, 400), (-32021, 400), (-32022, 400), (-32602, 200), (-32603, 200)] {
        let posted = spawn(&rig, modern(json!(code), "tools/call", json!({"name": "t"})));
        if server.is_none() {
            server = Some(link(&mut rig).await);
        }
        let server = server.as_mut().unwrap();
        let id = server.request().await;
        server.send(Lane::Request(id.clone()), Message::error(Some(&id), code, "no")).await;
        let reply = within(posted).await.unwrap();
        assert_eq!(reply.status, status, "{code}");
        assert_eq!(reply.json().await["error"]["code"], code);
    }
}

#[tokio::test]
async fn requests_that_break_the_rules_are_refused_before_the_server_sees_them() {
    let mut rig = Rig::start(Options::default()).await;
    let client = rig.client();
    let call = modern(json!("c"), "tools/call", json!({"name": "t"}));
    let right = dressed(&client, &call);
    let text = call.as_bytes().clone();
    let without = |name: &str| {
        let mut client = right.clone();
        client.headers.retain(|(other, _)| *other != name);
        client
    };
    for name in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        assert_eq!(refused(&without(name), text.clone()).await, (400, json!(-32020), json!("c")), "{name}");
        let other = without(name).with(Box::leak(name.to_owned().into_boxed_str()), "other");
        assert_eq!(refused(&other, text.clone()).await, (400, json!(-32020), json!("c")), "{name}");
    }
    let bare = r#"{"jsonrpc":"2.0","id":5,"method":"server/discover","params":{}}"#;
    let named = client.with("mcp-protocol-version", "2026-07-28").with("mcp-method", "server/discover");
    assert_eq!(refused(&named, bare).await, (400, json!(-32602), json!(5)));
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let request = modern(json!(500), method, json!({}));
        let refused = refused(&dressed(&client, &request), request.as_bytes().clone()).await;
        assert_eq!(refused, (404, json!(-32601), json!(500)), "{method}");
    }
    assert_eq!(refused(&named, "{").await, (400, json!(-32700), Value::Null));
    assert_eq!(refused(&named, r#"{"id":4,"method":"x"}"#).await, (400, json!(-32600), json!(4)));
    assert_eq!(refused(&named, format!("[{bare}]")).await, (400, json!(-32600), Value::Null));
    assert_eq!(refused(&named, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#).await, (400, json!(-32600), json!(4)));
    let listen = modern(json!(6), "subscriptions/listen", json!({"notifications": {}}));
    let reply = dressed(&client, &listen).with("accept", "application/json").post(listen.as_bytes().clone()).await;
    reply.refused(406).await;
    assert!(rig.links.try_recv().is_err());
}

#[tokio::test]
async fn an_unknown_version_is_told_which_are_served() {
    let mut rig = Rig::start(Options::default()).await;
    let told = async |client: Client| {
        let of = json!({"_meta": {VERSION: "v999"}});
        let reply = send(&client, &modern(json!(1), "server/discover", of)).await;
        assert_eq!(reply.status, 400);
        let error = reply.json().await["error"].clone();
        assert_eq!((&error["code"], &error["data"]["requested"]), (&json!(-32022), &json!("v999")));
        error["data"]["supported"].clone()
    };
    assert_eq!(told(rig.client()).await.as_array().unwrap().len(), 5);
    // Once the server has said what it serves, no more than that is told.
    let posted = spawn(&rig, modern(json!(1), "server/discover", json!({})));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    server.answer(&id, r#"{"supportedVersions":["2026-07-28"]}"#).await;
    within(posted).await.unwrap();
    assert_eq!(told(rig.client()).await, json!(["2026-07-28"]));
}

#[tokio::test]
async fn an_initialize_opens_a_session_whatever_its_headers_name() {
    let mut rig = Rig::start(Options::default()).await;
    let client = rig.client().with("mcp-protocol-version", "2026-07-28").with("mcp-method", "initialize");
    let posted = tokio::spawn(client.post(super::harness::INITIALIZE));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    server.answer(&id, r#"{"protocolVersion":"2025-11-25"}"#).await;
    assert!(within(posted).await.unwrap().headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn parameters_are_checked_against_the_lists_that_passed_by() {
    let mut rig = Rig::start(Options::default()).await;
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let number = json!({"type": "integer", "x-mcp-header": "N"});
    let schema = json!({"type": "object", "properties": {"region": region, "n": number}});
    let list = json!({"tools": [{"name": "t", "inputSchema": schema}]}).to_string();
    let call = modern(json!(3), "tools/call", json!({"name": "t", "arguments": {"region": "eu", "n": 42}}));
    let text = call.as_bytes().clone();

    let posted = spawn(&rig, call.clone());
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    server.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200, "nothing is known yet, and nothing is asked");
    let posted = spawn(&rig, modern(json!(4), "tools/list", json!({})));
    let id = server.request().await;
    server.answer(&id, &list).await;
    within(posted).await.unwrap();

    let client = dressed(&rig.client(), &call);
    for (region, n) in [(None, Some("42")), (Some("us"), Some("42")), (Some("eu"), Some("43")), (Some("eu"), None)] {
        let mut client = client.clone();
        client.headers.extend(region.map(|value| ("mcp-param-region", value.to_owned())));
        client.headers.extend(n.map(|value| ("mcp-param-n", value.to_owned())));
        assert_eq!(refused(&client, text.clone()).await, (400, json!(-32020), json!(3)), "{region:?} {n:?}");
    }
    let client = client.with("mcp-param-region", "=?base64?ZXU=?=").with("mcp-param-n", "42.0");
    let posted = tokio::spawn(client.post(text));
    let id = server.request().await;
    server.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200);
}

#[tokio::test]
async fn notifications_are_taken_and_an_id_alone_cancels_nothing() {
    let mut rig = Rig::start(Options::default()).await;
    let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    let client = rig.client().with("mcp-protocol-version", "2026-07-28");
    for text in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#,
    ] {
        assert_eq!(client.clone().post(text).await.status, 202);
    }
    assert!(server.message().await.is("notifications/vendor"));
    server.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200);
}

#[tokio::test]
async fn ten_megabytes_pass_both_ways() {
    let mut rig = Rig::start(Options { max_message: 11 << 20, ..Options::default() }).await;
    let payload = "x".repeat(10 << 20);
    let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t", "arguments": {"a": payload}})));
    let mut server = link(&mut rig).await;
    let request = server.message().await;
    assert!(request.as_bytes().len() > payload.len());
    let id = request.id().unwrap();
    server.notify(Lane::Request(id.clone()), "notifications/progress").await;
    server.answer(id, &json!({"a": payload}).to_string()).await;
    let mut reply = within(posted).await.unwrap();
    reply.message().await;
    assert_eq!(reply.message().await.1["result"]["a"], payload);
    let large = modern(json!(1), "x", json!({"a": "x".repeat(12 << 20)}));
    assert_eq!(dressed(&rig.client(), &large).post(large.as_bytes().clone()).await.status, 413);
}

#[tokio::test]
async fn too_many_requests_are_refused() {
    let mut rig = Rig::start(Options { max_in_flight: 1, max_sessions: 1, ..Options::default() }).await;
    let _call = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
    let mut server = link(&mut rig).await;
    server.request().await;
    let _listen = spawn(&rig, modern(json!(2), "subscriptions/listen", json!({"notifications": {}})));
    server.request().await;
    for method in ["tools/list", "subscriptions/listen"] {
        let reply = send(&rig.client(), &modern(json!(3), method, json!({}))).await;
        assert!(reply.refused(429).await.contains("limit is 1"), "{method}");
    }
}
