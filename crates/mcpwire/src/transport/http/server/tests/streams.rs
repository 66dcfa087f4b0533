//! GET: listening, resuming, and streams that end before they grow.

use std::time::Duration;

use mcpwire_proto::{Lane, Message};

use super::super::Options;
use super::harness::{Rig, call, within};

#[tokio::test]
async fn messages_of_no_request_wait_for_a_listener() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, server) = rig.session("2025-06-18").await;
    server.notify(Lane::Main, "notifications/early").await;
    let mut listener = client.get().await;
    assert_eq!(listener.message().await.1["method"], "notifications/early");
    server.notify(Lane::Main, "notifications/late").await;
    assert_eq!(listener.message().await.1["method"], "notifications/late");
}

#[tokio::test]
async fn one_listener_at_a_time() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, server) = rig.session("2025-11-25").await;
    let mut listener = client.clone().get().await;
    let (position, data) = listener.event().await.unwrap();
    assert_eq!((position.as_str(), data.as_str()), ("0-0", ""));
    assert!(client.clone().get().await.refused(409).await.contains("one at a time"));

    // One that resumes is the same client again: it takes over.
    let mut resumed = client.resume(&position).await;
    assert!(listener.event().await.is_none());
    server.notify(Lane::Main, "notifications/x").await;
    assert_eq!(resumed.message().await.1["method"], "notifications/x");
}

#[tokio::test]
async fn a_listener_that_was_cut_misses_nothing() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, server) = rig.session("2025-06-18").await;
    let mut listener = client.clone().get().await;
    server.notify(Lane::Main, "notifications/a").await;
    let (last, _) = listener.message().await;
    drop(listener);
    server.notify(Lane::Main, "notifications/b").await;
    server.notify(Lane::Main, "notifications/c").await;
    let mut resumed = client.resume(&last).await;
    assert_eq!(resumed.message().await.1["method"], "notifications/b");
    assert_eq!(resumed.message().await.1["method"], "notifications/c");
}

#[tokio::test]
async fn a_call_is_resumed_with_its_own_events_only() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-11-25").await;
    let first = tokio::spawn(client.clone().post(call(1)));
    let one = server.request().await;
    let second = tokio::spawn(client.clone().post(call(2)));
    let two = server.request().await;
    server.notify(Lane::Request(one.clone()), "notifications/one").await;
    server.notify(Lane::Request(two.clone()), "notifications/two").await;
    let mut cut = within(first).await.unwrap();
    cut.event().await.unwrap();
    let (last, _) = cut.message().await;
    drop(cut);

    server.notify(Lane::Main, "notifications/main").await;
    server.notify(Lane::Request(two.clone()), "notifications/two").await;
    server.notify(Lane::Request(one.clone()), "notifications/more").await;
    let mut resumed = client.resume(&last).await;
    assert_eq!(resumed.message().await.1["method"], "notifications/more");
    server.answer(&one, "{}").await;
    let (end, answer) = resumed.message().await;
    assert_eq!(answer["id"], 1);
    assert!(resumed.event().await.is_none());

    // The whole call can be read again while it is kept, and there is nothing after its end.
    let mut again = client.resume(&last).await;
    assert_eq!(again.message().await.1["method"], "notifications/more");
    assert_eq!(again.message().await.1["id"], 1);
    assert!(again.event().await.is_none());
    assert_eq!(client.resume(&end).await.status, 204);
    drop(second);
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_cancel_its_call() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-11-25").await;
    let posted = tokio::spawn(client.clone().post(call(1)));
    let id = server.request().await;
    server.notify(Lane::Request(id.clone()), "notifications/progress").await;
    let mut cut = within(posted).await.unwrap();
    let (last, _) = cut.event().await.unwrap();
    drop(cut);
    server.answer(&id, r#"{"done":true}"#).await;
    let mut resumed = client.resume(&last).await;
    assert_eq!(resumed.message().await.1["method"], "notifications/progress");
    assert_eq!(resumed.message().await.1["result"]["done"], true);
    assert!(resumed.event().await.is_none());
}

#[tokio::test]
async fn a_stream_closed_early_is_picked_up_by_polling() {
    let short = Duration::from_millis(20);
    let options = Options { stream_after: short, close_stream_after: Some(short), retry: short, ..Options::default() };
    let mut rig = Rig::start(Options { keep_alive: 4 * short, ..options }).await;
    let (client, mut server) = rig.session("2025-11-25").await;
    let _listener = client.clone().get().await;
    let posted = tokio::spawn(client.clone().post(call(1)));
    let id = server.request().await;
    let mut reply = within(posted).await.unwrap();
    let (position, data) = reply.event().await.unwrap();
    assert_eq!((data.as_str(), reply.retry()), ("", Some(short)));
    assert!(reply.event().await.is_none());
    let mut resumed = client.resume(&position).await;
    assert_eq!(resumed.comment().await, ":\n\n", "this one stays");
    server.answer(&id, "{}").await;
    assert_eq!(resumed.message().await.1["id"], 1);
    assert!(resumed.event().await.is_none());
}

#[tokio::test]
async fn streams_of_older_clients_are_not_closed_early() {
    let short = Duration::from_millis(5);
    let options = Options { stream_after: short, close_stream_after: Some(short), ..Options::default() };
    let mut rig = Rig::start(Options { keep_alive: Duration::from_millis(20), ..options }).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(client.clone().post(call(1)));
    let id = server.request().await;
    let mut reply = within(posted).await.unwrap();
    assert_eq!(reply.comment().await, ":\n\n");
    server.answer(&id, "{}").await;
    assert_eq!(reply.message().await.1["id"], 1);
}

#[tokio::test]
async fn the_stream_of_a_cancelled_request_ends_so_that_nobody_resumes_it() {
    let mut rig = Rig::start(Options { stream_after: Duration::from_millis(20), ..Options::default() }).await;
    let (client, mut server) = rig.session("2025-11-25").await;
    let posted = tokio::spawn(client.clone().post(call(1)));
    let id = server.request().await;
    let mut reply = within(posted).await.unwrap();
    let (position, _) = reply.event().await.expect("a place to resume from");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(client.clone().post(cancel).await.status, 202);
    let (_, answer) = reply.message().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&1.into(), &(-32800).into()));
    assert!(reply.event().await.is_none());
    assert!(server.message().await.is("notifications/cancelled"));

    // What the server still says of it reaches nobody.
    server.answer(&id, "{}").await;
    let mut resumed = client.resume(&position).await;
    assert_eq!(resumed.message().await.1["error"]["code"], -32800);
    assert!(resumed.event().await.is_none());
}

#[tokio::test]
async fn unknown_events_are_refused() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, _server) = rig.session("2025-06-18").await;
    for event in ["0-9", "1-0", "77-1", "nonsense", "0"] {
        assert!(client.resume(event).await.refused(400).await.contains("Last-Event-ID"), "{event}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_costs_bounded_memory_and_may_resume() {
    let options = Options {
        stream_bytes: 100_000,
        stream_events: 10,
        log_events: 1000,
        log_bytes: 1 << 30,
        ..Options::default()
    };
    let mut rig = Rig::start(options).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let mut listener = client.clone().get().await;
    // More than the sockets' own buffers hold, so that the queue must fill up.
    let events = 600;
    let params = format!(r#"{{"data":"{}"}}"#, "x".repeat(100_000));
    for _ in 0..events {
        server.send(Lane::Main, Message::notification("notifications/message", Some(&params))).await;
    }
    // Another request of the session is served while that stream is stuck.
    let posted = tokio::spawn(client.clone().post(call(1)));
    let id = server.request().await;
    server.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200);

    let mut read = 0;
    let mut last = String::new();
    while let Some((id, _)) = listener.event().await {
        read += 1;
        last = id;
    }
    assert!(read < events, "the stream was to be closed");
    while read < events {
        let mut resumed = client.resume(&last).await;
        while read < events
            && let Some((id, _)) = resumed.event().await
        {
            read += 1;
            last = id;
        }
    }
    assert_eq!(last, format!("0-{events}"));
}
