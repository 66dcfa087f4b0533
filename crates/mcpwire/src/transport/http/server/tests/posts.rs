//! POST: answers as JSON or as a stream, batches, and what is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Method;
use mcpwire_proto::{Lane, Message};
use serde_json::json;

use super::super::Options;
use super::harness::{INITIALIZE, Rig, call, within};

const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[tokio::test]
async fn an_answer_that_comes_first_is_json_byte_for_byte() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-11-25").await;
    let posted = tokio::spawn(client.post(call(7)));
    let id = server.request().await;
    server.answer(&id, r#"{"big":123456789012345678901234567890,  "n":1.10}"#).await;
    let reply = within(posted).await.unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["content-type"], "application/json");
    let expected = r#"{"jsonrpc":"2.0","id":7,"result":{"big":123456789012345678901234567890,  "n":1.10}}"#;
    assert_eq!(reply.text().await, expected);
}

#[tokio::test]
async fn progress_turns_the_answer_into_a_stream_that_ends_with_it() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(client.post(call(7)));
    let id = server.request().await;
    server.notify(Lane::Request(id.clone()), "notifications/progress").await;
    let mut reply = within(posted).await.unwrap();
    assert_eq!(reply.headers["cache-control"], "no-cache, no-transform");
    assert_eq!(reply.headers["x-accel-buffering"], "no");
    assert_eq!(reply.message().await.1["method"], "notifications/progress");
    server.answer(&id, "{}").await;
    assert_eq!(reply.message().await.1["id"], 7);
    assert!(reply.event().await.is_none());
}

#[tokio::test]
async fn a_stream_of_2025_11_25_begins_with_a_priming_event() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-11-25").await;
    let posted = tokio::spawn(client.post(call(7)));
    let id = server.request().await;
    server.notify(Lane::Request(id.clone()), "notifications/progress").await;
    let mut reply = within(posted).await.unwrap();
    let (first, data) = reply.event().await.unwrap();
    assert_eq!((first.as_str(), data.as_str()), ("2-0", ""));
    assert_eq!(reply.retry(), Some(Options::default().retry));
    assert_eq!(reply.message().await.0, "2-1");
}

#[tokio::test]
async fn two_sessions_with_the_same_request_id_never_meet() {
    let mut rig = Rig::start(Options::default()).await;
    let (a, mut server_a) = rig.session("2025-06-18").await;
    let (b, mut server_b) = rig.session("2025-06-18").await;
    let (posted_a, posted_b) = (tokio::spawn(a.post(call(5))), tokio::spawn(b.post(call(5))));
    let (id_a, id_b) = (server_a.request().await, server_b.request().await);
    server_b.answer(&id_b, r#"{"for":"b"}"#).await;
    server_a.answer(&id_a, r#"{"for":"a"}"#).await;
    assert_eq!(within(posted_a).await.unwrap().json().await["result"]["for"], "a");
    assert_eq!(within(posted_b).await.unwrap().json().await["result"]["for"], "b");
}

#[tokio::test]
async fn concurrent_requests_of_a_session_keep_their_own_streams() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let first = tokio::spawn(client.clone().post(call(1)));
    let one = server.request().await;
    let second = tokio::spawn(client.clone().post(call(2)));
    let two = server.request().await;
    server.notify(Lane::Request(two.clone()), "notifications/two").await;
    server.notify(Lane::Request(one.clone()), "notifications/one").await;
    server.answer(&one, "{}").await;
    server.answer(&two, "{}").await;
    for (posted, method, id) in [(first, "notifications/one", 1), (second, "notifications/two", 2)] {
        let mut reply = within(posted).await.unwrap();
        assert_eq!(reply.message().await.1["method"], method);
        assert_eq!(reply.message().await.1["id"], id);
        assert!(reply.event().await.is_none());
    }
}

#[tokio::test]
async fn notifications_and_responses_are_accepted_and_passed_on() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    for text in [NOTIFICATION, r#"{"jsonrpc":"2.0","id":"s1","result":{}}"#] {
        let reply = client.clone().post(text).await;
        assert_eq!(reply.status, 202);
        assert_eq!(reply.text().await, "");
        assert_eq!(server.message().await.as_bytes(), text);
    }
}

#[tokio::test]
async fn a_client_that_takes_only_events_gets_only_events() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(client.with("accept", "text/event-stream").post(call(3)));
    let id = server.request().await;
    server.answer(&id, "{}").await;
    let mut reply = within(posted).await.unwrap();
    assert_eq!(reply.message().await.1["id"], 3);
    assert!(reply.event().await.is_none());
}

#[tokio::test]
async fn a_client_that_takes_only_json_gets_the_rest_where_it_listens() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(client.with("accept", "application/json").post(call(3)));
    let id = server.request().await;
    server.notify(Lane::Request(id.clone()), "notifications/progress").await;
    server.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().json().await["id"], 3);
    assert_eq!(client.get().await.message().await.1["method"], "notifications/progress");
}

#[tokio::test]
async fn a_long_call_gets_a_stream_before_anything_is_said() {
    let options = Options { stream_after: std::time::Duration::from_millis(20), ..Options::default() };
    let mut rig = Rig::start(options).await;
    let (client, mut server) = rig.session("2025-11-25").await;
    let posted = tokio::spawn(client.post(call(3)));
    let id = server.request().await;
    let mut reply = within(posted).await.unwrap();
    assert_eq!(reply.event().await.unwrap().1, "");
    server.answer(&id, "{}").await;
    assert_eq!(reply.message().await.1["id"], 3);
}

#[tokio::test]
async fn a_server_request_rides_on_the_stream_of_its_call() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(client.clone().post(call(3)));
    let id = server.request().await;
    let asks = Message::request(&"s1".into(), "sampling/createMessage", Some("{}"));
    server.send(Lane::Request(id.clone()), asks).await;
    let mut reply = within(posted).await.unwrap();
    assert_eq!(reply.message().await.1["id"], "s1");
    assert_eq!(client.post(r#"{"jsonrpc":"2.0","id":"s1","result":{"ok":1}}"#).await.status, 202);
    assert_eq!(server.message().await.payload(), Some(r#"{"ok":1}"#));
    server.answer(&id, "{}").await;
    assert_eq!(reply.message().await.1["id"], 3);
}

#[tokio::test]
async fn a_batch_is_answered_with_an_array_in_2025_03_26() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-03-26").await;
    let batch = format!("[{},{NOTIFICATION},{},7]", call(1), call(2));
    let posted = tokio::spawn(client.clone().post(batch));
    let one = server.request().await;
    assert!(server.message().await.is("notifications/initialized"));
    let two = server.request().await;
    server.answer(&two, "{}").await;
    server.answer(&one, "{}").await;
    let answers = within(posted).await.unwrap().json().await;
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(null), json!(2), json!(1)]);
    assert_eq!(answers[0]["error"]["code"], -32600);

    assert_eq!(client.clone().post(format!("[{NOTIFICATION}]")).await.status, 202);
    assert!(client.clone().post("[]").await.refused(400).await.contains("batch"));
}

#[tokio::test]
async fn a_batch_with_progress_is_answered_on_one_stream() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-03-26").await;
    let posted = tokio::spawn(client.post(format!("[{},{}]", call(1), call(2))));
    let (one, two) = (server.request().await, server.request().await);
    server.answer(&one, "{}").await;
    server.notify(Lane::Request(two.clone()), "notifications/progress").await;
    server.answer(&two, "{}").await;
    let mut reply = within(posted).await.unwrap();
    assert_eq!(reply.message().await.1["id"], 1);
    assert_eq!(reply.message().await.1["method"], "notifications/progress");
    assert_eq!(reply.message().await.1["id"], 2);
    assert!(reply.event().await.is_none());
}

#[tokio::test]
async fn other_versions_have_no_batches() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, _server) = rig.session("2025-06-18").await;
    let reply = client.post(format!("[{}]", call(1))).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json().await["error"]["code"], -32600);
}

#[tokio::test]
async fn a_request_id_that_is_in_use_is_refused() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(client.clone().post(call(9)));
    let id = server.request().await;
    assert!(client.clone().post(call(9)).await.refused(400).await.contains("still in use"));
    server.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200);
}

#[tokio::test]
async fn too_many_requests_in_flight_are_refused() {
    let mut rig = Rig::start(Options { max_in_flight: 1, ..Options::default() }).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let _posted = tokio::spawn(client.clone().post(call(1)));
    server.request().await;
    assert!(client.post(call(2)).await.refused(429).await.contains("limit is 1"));
}

#[tokio::test]
async fn a_cancelled_request_ends_and_is_no_internal_error() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(client.clone().post(call(1)));
    server.request().await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(client.post(cancel).await.status, 202);
    assert!(server.message().await.is("notifications/cancelled"));
    assert_eq!(within(posted).await.unwrap().json().await["error"]["code"], -32800);
}

#[tokio::test]
async fn a_batch_may_cancel_a_request_of_its_own() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-03-26").await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let reply = within(client.post(format!("[{},{cancel}]", call(1)))).await;
    assert_eq!(reply.json().await[0]["error"]["code"], -32800);
    server.request().await;
    assert!(server.message().await.is("notifications/cancelled"));
}

#[tokio::test]
async fn malformed_bodies_are_answered_and_the_session_goes_on() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let cases = [
        ("{", -32700, json!(null)),
        ("", -32700, json!(null)),
        ("7", -32600, json!(null)),
        (r#"{"id":4,"method":"x"}"#, -32600, json!(4)),
        ("\u{0}", -32700, json!(null)),
    ];
    for (text, code, id) in cases {
        let reply = client.clone().post(text).await;
        assert_eq!(reply.status, 400, "{text}");
        let error = reply.json().await;
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), &id), "{text}");
    }
    assert_eq!(client.post(NOTIFICATION).await.status, 202);
    server.message().await;
}

#[tokio::test]
async fn headers_are_checked() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, _server) = rig.session("2025-06-18").await;
    let refuse = async |name, value, status| client.with(name, value).post(NOTIFICATION).await.refused(status).await;
    assert!(refuse("accept", "text/html", 406).await.contains("text/event-stream"));
    assert!(refuse("content-type", "text/plain", 415).await.contains("application/json"));
    assert!(refuse("mcp-protocol-version", "1999-01-01", 400).await.contains("2025-11-25"));
    assert!(refuse("mcp-session-id", "nonsense", 404).await.contains("session"));
    assert!(rig.client().post(NOTIFICATION).await.refused(400).await.contains("Mcp-Session-Id"));
    assert!(client.clone().post(INITIALIZE).await.refused(400).await.contains("initialize"));
    let charset = client.with("content-type", "Application/JSON; charset=utf-8").with("accept", "*/*");
    assert_eq!(charset.with("mcp-protocol-version", "2025-06-18").post(NOTIFICATION).await.status, 202);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let mut rig = Rig::start(Options { max_message: 100, ..Options::default() }).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let sized = |size: usize| NOTIFICATION.to_owned() + &" ".repeat(size - NOTIFICATION.len());
    assert_eq!(client.clone().post(sized(100)).await.status, 202);
    server.message().await;
    assert!(client.clone().post(sized(101)).await.refused(413).await.contains("limit is 100 bytes"));
    assert!(client.post(sized(10_000_000)).await.refused(413).await.contains("limit is 100 bytes"));
}

#[tokio::test]
async fn ten_megabytes_pass_both_ways() {
    let mut rig = Rig::start(Options { max_message: 11 << 20, ..Options::default() }).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let payload = "x".repeat(10 << 20);
    let asked = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"{payload}"}}"#);
    let posted = tokio::spawn(client.post(asked));
    let request = server.message().await;
    assert_eq!(request.payload().unwrap().len(), payload.len() + 2);
    let id = request.id().unwrap();
    server.notify(Lane::Request(id.clone()), "notifications/progress").await;
    server.answer(id, request.payload().unwrap()).await;
    let mut reply = within(posted).await.unwrap();
    reply.message().await;
    assert_eq!(reply.message().await.1["result"], payload);
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let rig = Rig::start(Options::default()).await;
    let send = async |method, path| rig.client().send(method, path, &[], Bytes::new()).await;
    assert!(send(Method::POST, "/").await.refused(404).await.contains("/mcp"));
    assert!(send(Method::GET, "/mcp/x").await.refused(404).await.contains("/mcp"));
    let reply = send(Method::PUT, "/mcp").await;
    assert_eq!(reply.headers["allow"], "POST, GET, DELETE");
    reply.refused(405).await;
}

#[tokio::test]
async fn a_server_that_is_slow_to_take_holds_posts_back_and_gets_all_of_them_in_order() {
    /// What its link holds, and one message that the session keeps.
    const ROOM: usize = 257;
    const ALL: usize = 300;
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = accepted.clone();
    let posting = tokio::spawn(async move {
        for number in 0..ALL {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"n/{number}"}}"#);
            assert_eq!(client.clone().post(text).await.status, 202);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    within(async {
        while accepted.load(Ordering::SeqCst) < ROOM {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(accepted.load(Ordering::SeqCst), ROOM);
    for number in 0..ALL {
        assert!(server.message().await.is(&format!("n/{number}")), "{number} comes in its turn");
    }
    within(posting).await.unwrap();
}
