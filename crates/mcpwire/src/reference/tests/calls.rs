//! Calls: side by side, cancelled, with progress and logs, counted.

use super::*;
use crate::reference::Settings;

#[tokio::test]
async fn plain_tools_answer() {
    let mut client = Client::open(&Shared::default()).await;
    assert_eq!(client.say("echo", json!({ "message": "grüß 🦀" })).await, "grüß 🦀");
    let sum = client.call("add", json!({ "a": 2, "b": 40 })).await;
    assert_eq!(sum["structuredContent"], json!({ "sum": 42 }));
    assert_eq!(text_of(&sum), r#"{"sum":42}"#);
    assert_eq!(client.call("add", json!({ "a": 0.5, "b": 1 })).await["structuredContent"]["sum"], 1.5);
    assert!(failed(&client.call("add", json!({ "a": 1e308, "b": 1e308 })).await));
    let big = client.say("big", json!({ "bytes": 1_000_003 })).await;
    assert_eq!((big.len(), &big[..11]), (1_000_003, "01234567890"));
    assert_eq!(client.call("resource_link", json!({})).await["content"][0]["type"], "resource_link");
    client.close().await;
}

#[tokio::test]
async fn a_slow_call_holds_nothing_up() {
    let mut client = Client::open(&Shared::default()).await;
    client.start_call("slow", json!({ "ms": 3_600_000 })).await;
    assert_eq!(client.request("ping", json!({})).await, json!({}));
    assert_eq!(client.say("echo", json!({ "message": "first" })).await, "first");
    assert_eq!(client.say("slow", json!({ "ms": 2 })).await, "Waited 2 ms.");
    client.close().await;
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered() {
    let mut client = Client::open(&Shared::default()).await;
    let slow = client.start_call("slow", json!({ "ms": 3_600_000 })).await;
    let asking = client.start_call("roots", json!({})).await;
    assert_eq!(client.next_of(&asking).await["method"], "roots/list");
    for id in [&slow, &asking] {
        let params = format!(r#"{{"requestId":{id},"reason":"test"}}"#);
        client.send(Message::notification("notifications/cancelled", Some(&params))).await;
    }
    // Too late, and about a call that is gone: nobody minds.
    client.send(Message::result(&Id::from(1), r#"{"roots":[]}"#)).await;
    client.notify("notifications/cancelled", json!({ "requestId": "unknown" })).await;
    client.notify("notifications/cancelled", json!({})).await;
    client.request("ping", json!({})).await;
    client.close().await;
}

#[tokio::test]
async fn ids_of_any_kind_are_answered_and_cancelled() {
    let mut client = Client::open(&Shared::default()).await;
    for raw in [r#""one""#, "123456789012345678901234567890", r#""\u00e9""#, "-7"] {
        let id = Id::from_json(raw).unwrap();
        let slow = r#"{"name":"slow","arguments":{"ms":3600000}}"#;
        client.send(Message::request(&id, "tools/call", Some(slow))).await;
        let params = format!(r#"{{"requestId":{raw}}}"#);
        client.send(Message::notification("notifications/cancelled", Some(&params))).await;
        let echo = r#"{"name":"echo","arguments":{"message":"again"}}"#;
        client.send(Message::request(&id, "tools/call", Some(echo))).await;
        let answer = client.next_of(&id).await;
        assert_eq!(text_of(&answer["result"]), "again");
    }
    client.close().await;
}

#[tokio::test]
async fn calls_end_with_their_session() {
    let mut client = Client::open(&Shared::default()).await;
    client.start_call("slow", json!({ "ms": 3_600_000 })).await;
    client.request("ping", json!({})).await;
    client.close().await;
}

#[tokio::test]
async fn a_client_that_goes_without_reading_ends_its_session() {
    let mut client = Client::open(&Shared::default()).await;
    let params = json!({ "name": "progress", "arguments": { "steps": 100_000 }, "_meta": { "progressToken": 1 } });
    let id = client.start("tools/call", params).await;
    client.next_of(&id).await;
    drop(client.link);
    timeout(PATIENCE, client.server).await.expect("an end in time").expect("no panic");
}

#[tokio::test]
async fn a_slow_reader_loses_nothing() {
    let mut client = Client::open(&Shared::default()).await;
    let params = json!({ "name": "progress", "arguments": { "steps": 2000 }, "_meta": { "progressToken": 1 } });
    let id = client.start("tools/call", params).await;
    for step in 1..=2000 {
        assert_eq!(client.next_of(&id).await["params"]["progress"], step);
    }
    client.answer(&id).await;
    client.close().await;
}

#[tokio::test]
async fn progress_comes_before_the_answer_and_only_if_asked_for() {
    let mut client = Client::open(&Shared::default()).await;
    for token in [json!("steps"), json!(7)] {
        let params = json!({
            "name": "progress", "arguments": { "steps": 3 }, "_meta": { "progressToken": token },
        });
        let id = client.start("tools/call", params).await;
        for step in 1..=3 {
            let progress = client.next_of(&id).await;
            assert_eq!(progress["method"], "notifications/progress");
            let params = &progress["params"];
            assert_eq!(
                (&params["progressToken"], &params["progress"], &params["total"]),
                (&token, &json!(step), &json!(3))
            );
        }
        client.answer(&id).await;
    }
    assert_eq!(client.say("progress", json!({ "steps": 2 })).await, "Took 2 steps.");

    let params = json!({ "name": "slow", "arguments": { "ms": 3 }, "_meta": { "progressToken": 1 } });
    let id = client.start("tools/call", params).await;
    for waited in 1..=3 {
        assert_eq!(client.next_of(&id).await["params"]["progress"], waited);
    }
    client.answer(&id).await;
    client.close().await;
}

#[tokio::test]
async fn logs_follow_the_level() {
    let mut client = Client::open(&Shared::default()).await;
    let log = |level: &str| json!({ "level": level, "message": "hello", "logger": "test" });
    assert_eq!(client.say("log", log("debug")).await, "Logged as debug.");
    let id = client.start_call("log", log("warning")).await;
    let message = client.next_of(&id).await;
    assert_eq!(message["method"], "notifications/message");
    assert_eq!(message["params"], json!({ "level": "warning", "logger": "test", "data": "hello" }));
    client.answer(&id).await;
    assert_eq!(client.request("logging/setLevel", json!({ "level": "error" })).await, json!({}));
    assert_eq!(client.say("log", log("warning")).await, "Logged as warning.");
    client.close().await;
}

#[tokio::test]
async fn counters_and_info_span_sessions() {
    let shared = Shared::new(Settings { starts: 3, ..Settings::default() });
    let mut one = Client::open(&shared).await;
    let mut two = Client::open_as(&shared, "2025-06-18", json!({})).await;
    assert_eq!(one.call("count", json!({ "name": "a" })).await["structuredContent"]["value"], 1);
    assert_eq!(two.call("count", json!({ "name": "a" })).await["structuredContent"]["value"], 2);
    assert_eq!(two.call("count", json!({})).await["structuredContent"]["value"], 1);
    assert_eq!((shared.counter("a"), shared.counter("none")), (2, 0));
    let expected = json!({
        "instance": shared.instance(), "starts": 3, "process": std::process::id(),
        "calls": 4, "running": 1, "sessions": 2, "session": 2,
        "client": "test", "protocolVersion": "2025-06-18",
    });
    assert_eq!(two.call("info", json!({})).await["structuredContent"], expected);
    assert_ne!(shared.instance(), Shared::default().instance());
    one.close().await;
    two.close().await;
}
