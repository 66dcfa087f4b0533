//! Clients without sessions: subscriptions, going away, and how everything ends.

use std::time::Duration;

use mcpwire_proto::{Id, Lane, Message, meta};
use serde_json::{Value, json};

use super::super::Options;
use super::harness::{Rig, Server, within};
use super::stateless::{SUBSCRIPTION, link, modern, send, spawn};

fn listen(id: Value) -> Message {
    modern(id, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
}

fn tagged(method: &str, id: &Id) -> Message {
    Message::notification(method, Some(&format!(r#"{{"_meta":{{"{SUBSCRIPTION}":{id}}}}}"#)))
}

async fn cancelled(server: &mut Server) -> Id {
    let message = server.message().await;
    assert!(message.is("notifications/cancelled"), "{message}");
    meta::cancelled_request(&message).unwrap()
}

#[tokio::test]
async fn subscriptions_of_two_clients_have_the_ids_they_chose() {
    let mut rig = Rig::start(Options::default()).await;
    let posted_a = spawn(&rig, listen(json!("listen:0")));
    let mut server = link(&mut rig).await;
    let a = server.request().await;
    let posted_b = spawn(&rig, listen(json!("listen:0")));
    let b = server.request().await;
    assert_ne!(a, b);
    for (lane, id) in [(Lane::Request(a.clone()), &a), (Lane::Unsorted, &b)] {
        server.send(lane, tagged("notifications/subscriptions/acknowledged", id)).await;
    }
    server.send(Lane::Unsorted, tagged("notifications/b", &b)).await;
    server.send(Lane::Unsorted, tagged("notifications/a", &a)).await;
    let end = format!(r#"{{"resultType":"complete","_meta":{{"{SUBSCRIPTION}":{b}}}}}"#);
    server.answer(&b, &end).await;
    let mut streams = Vec::new();
    for (posted, name) in [(posted_a, "notifications/a"), (posted_b, "notifications/b")] {
        let mut reply = within(posted).await.unwrap();
        assert_eq!(reply.headers["x-accel-buffering"], "no");
        for method in ["notifications/subscriptions/acknowledged", name] {
            let (event, told) = reply.message().await;
            assert_eq!((event.as_str(), &told["method"]), ("", &json!(method)));
            assert_eq!(told["params"]["_meta"][SUBSCRIPTION], "listen:0");
        }
        streams.push(reply);
    }
    let answer = streams[1].message().await.1;
    assert_eq!((&answer["id"], &answer["result"]["_meta"][SUBSCRIPTION]), (&json!("listen:0"), &json!("listen:0")));
    assert!(streams[1].event().await.is_none());
}

#[tokio::test]
async fn a_listening_stream_begins_and_is_kept_alive_while_there_is_nothing_to_say() {
    let mut rig = Rig::start(Options { keep_alive: Duration::from_millis(20), ..Options::default() }).await;
    let posted = spawn(&rig, listen(json!(1)));
    let mut server = link(&mut rig).await;
    server.request().await;
    assert_eq!(within(posted).await.unwrap().comment().await, ":\n\n");
}

#[tokio::test]
async fn a_subscription_that_cannot_be_had_is_an_error_with_its_status() {
    let mut rig = Rig::start(Options::default()).await;
    let posted = spawn(&rig, listen(json!(1)));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    server.send(Lane::Request(id.clone()), Message::error(Some(&id), -32601, "no")).await;
    assert_eq!(within(posted).await.unwrap().status, 404);
}

#[tokio::test]
async fn a_subscription_that_the_server_cancels_ends() {
    let mut rig = Rig::start(Options::default()).await;
    let posted = spawn(&rig, listen(json!(1)));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    let call = spawn(&rig, modern(json!(2), "tools/call", json!({"name": "t"})));
    let of_call = server.request().await;
    for id in [&of_call, &id] {
        let params = format!(r#"{{"requestId":{id}}}"#);
        server.send(Lane::Main, Message::notification("notifications/cancelled", Some(&params))).await;
    }
    let mut reply = within(posted).await.unwrap();
    assert_eq!(reply.message().await.1["params"]["requestId"], 1);
    assert_eq!(reply.message().await.1["result"]["resultType"], "complete");
    assert!(reply.event().await.is_none());
    // Nothing else can be cancelled by a server.
    server.answer(&of_call, "{}").await;
    assert_eq!(within(call).await.unwrap().status, 200);
}

#[tokio::test]
async fn closing_a_stream_cancels_its_request_and_nothing_more_is_sent() {
    let mut rig = Rig::start(Options::default()).await;
    let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    server.notify(Lane::Request(id.clone()), "notifications/progress").await;
    let mut reply = within(posted).await.unwrap();
    reply.message().await;
    drop(reply);
    assert_eq!(cancelled(&mut server).await, id);

    // The same id by another client is another request: a late answer to the first one is not for it.
    let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
    let second = server.request().await;
    assert_ne!(second, id);
    server.answer(&id, r#"{"of":"first"}"#).await;
    server.answer(&second, r#"{"of":"second"}"#).await;
    assert_eq!(within(posted).await.unwrap().json().await["result"]["of"], "second");

    let posted = spawn(&rig, listen(json!("l")));
    let id = server.request().await;
    server.send(Lane::Request(id.clone()), tagged("notifications/subscriptions/acknowledged", &id)).await;
    drop(within(posted).await.unwrap());
    assert_eq!(cancelled(&mut server).await, id);
}

#[tokio::test]
async fn a_client_that_goes_before_its_answer_cancels() {
    let mut rig = Rig::start(Options::default()).await;
    let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    posted.abort();
    assert_eq!(cancelled(&mut server).await, id);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_gone() {
    let options = Options { stream_events: 4, stream_bytes: 1000, ..Options::default() };
    let mut rig = Rig::start(options).await;
    let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    let params = format!(r#"{{"data":"{}"}}"#, "x".repeat(100_000));
    server.notify(Lane::Request(id.clone()), "notifications/x").await;
    let _stuck = within(posted).await.unwrap();
    let flood = async {
        loop {
            server.send(Lane::Request(id.clone()), Message::notification("notifications/x", Some(&params))).await;
            if let Ok(event) = server.0.rx.try_recv() {
                break event;
            }
        }
    };
    let crate::link::Event::Packet(packet) = within(flood).await else { panic!("no packet") };
    assert_eq!(meta::cancelled_request(&packet.message), Some(id.clone()));
}

#[tokio::test]
async fn an_idle_link_ends_and_another_begins() {
    let mut rig = Rig::start(Options { session_idle: Duration::from_millis(50), ..Options::default() }).await;
    for _ in 0..2 {
        let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
        let mut server = link(&mut rig).await;
        let id = server.request().await;
        // What is open is not idle, however long it takes.
        tokio::time::sleep(Duration::from_millis(150)).await;
        server.answer(&id, "{}").await;
        assert_eq!(within(posted).await.unwrap().status, 200);
        server.ended().await;
    }
}

#[tokio::test]
async fn a_server_that_ends_answers_everyone_and_the_next_request_finds_another() {
    let mut rig = Rig::start(Options::default()).await;
    let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
    let mut server = link(&mut rig).await;
    server.request().await;
    drop(server);
    let answer = within(posted).await.unwrap().json().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
    let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    server.answer(&id, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_front_whose_links_nobody_takes_says_so() {
    let mut rig = Rig::start(Options::default()).await;
    rig.links.close();
    let reply = send(&rig.client(), &modern(json!(1), "tools/list", json!({}))).await;
    reply.refused(503).await;
}

#[tokio::test]
async fn stopping_ends_subscriptions_gracefully_and_finishes_what_is_under_way() {
    let mut rig = Rig::start(Options::default()).await;
    let posted = spawn(&rig, listen(json!("l")));
    let mut server = link(&mut rig).await;
    let id = server.request().await;
    server.send(Lane::Request(id.clone()), tagged("notifications/subscriptions/acknowledged", &id)).await;
    let mut listener = within(posted).await.unwrap();
    listener.message().await;
    let call = spawn(&rig, modern(json!(2), "tools/call", json!({"name": "t"})));
    let of_call = server.request().await;
    rig.ask_to_stop();
    let end = listener.message().await.1;
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("l"), &json!("complete")));
    assert_eq!(end["result"]["_meta"][SUBSCRIPTION], "l");
    assert!(listener.event().await.is_none());
    assert_eq!(cancelled(&mut server).await, id);
    server.answer(&of_call, "{}").await;
    assert_eq!(within(call).await.unwrap().status, 200);
    rig.stopped().await;
    server.ended().await;
}

#[tokio::test]
async fn stopping_waits_no_longer_than_its_grace() {
    let mut rig = Rig::start(Options { grace: Duration::from_millis(20), ..Options::default() }).await;
    let posted = spawn(&rig, modern(json!(1), "tools/call", json!({"name": "t"})));
    let mut server = link(&mut rig).await;
    server.request().await;
    rig.ask_to_stop();
    assert_eq!(within(posted).await.unwrap().json().await["error"]["message"], "the server is shutting down");
    rig.stopped().await;
    server.ended().await;
}
