//! Sessions come and go: opening, ending, idling, limits, and the end of the front itself.

use std::time::Duration;

use mcpwire_proto::{Lane, Message};

use super::super::Options;
use super::harness::{INITIALIZE, Rig, Server, call, within};

#[tokio::test]
async fn session_ids_are_long_and_differ() {
    let mut rig = Rig::start(Options::default()).await;
    let (a, _server_a) = rig.session("2025-06-18").await;
    let (b, _server_b) = rig.session("2025-06-18").await;
    let (a, b) = (a.session.unwrap(), b.session.unwrap());
    assert_ne!(a, b);
    assert!(a.len() >= 32 && a.bytes().all(|byte| byte.is_ascii_hexdigit()), "{a}");
}

#[tokio::test]
async fn delete_ends_the_session_and_answers_who_waits() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let mut listener = client.clone().get().await;
    let posted = tokio::spawn(client.clone().post(call(4)));
    server.request().await;
    assert_eq!(client.clone().delete().await.status, 204);
    server.ended().await;
    assert!(listener.event().await.is_none());
    let answer = within(posted).await.unwrap().json().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&4.into(), &(-32603).into()));
    for reply in [client.clone().post(call(5)).await, client.clone().get().await, client.clone().delete().await] {
        assert!(reply.refused(404).await.contains("session not found"));
    }
}

#[tokio::test]
async fn a_server_that_ends_takes_its_session_with_it() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(client.clone().post(call(4)));
    server.request().await;
    drop(server);
    let answer = within(posted).await.unwrap().json().await;
    assert_eq!(answer["error"]["message"], "the server ended the session");
    client.post(call(5)).await.refused(404).await;
}

#[tokio::test]
async fn an_initialize_that_fails_opens_no_session() {
    let mut rig = Rig::start(Options { max_sessions: 1, ..Options::default() }).await;
    let posted = tokio::spawn(rig.client().post(INITIALIZE));
    let mut server = Server(within(rig.links.recv()).await.unwrap());
    let id = server.request().await;
    server.send(Lane::Main, Message::error(Some(&id), -32602, "no")).await;
    let reply = within(posted).await.unwrap();
    assert!(!reply.headers.contains_key("mcp-session-id"));
    assert_eq!(reply.json().await["error"]["message"], "no");
    server.ended().await;
}

#[tokio::test]
async fn an_initialize_nobody_waits_for_opens_no_session() {
    let mut rig = Rig::start(Options { max_connections: 1, ..Options::default() }).await;
    let posted = tokio::spawn(rig.client().post(INITIALIZE));
    let mut server = Server(within(rig.links.recv()).await.unwrap());
    let id = server.request().await;
    posted.abort();
    assert!(within(posted).await.is_err());
    // With one connection at a time, the next one shows that the front has seen the first one end.
    rig.client().get().await.refused(400).await;
    server.answer(&id, r#"{"protocolVersion":"2025-06-18"}"#).await;
    server.ended().await;
}

#[tokio::test]
async fn idle_sessions_are_reaped() {
    let mut rig = Rig::start(Options { session_idle: Duration::from_millis(50), ..Options::default() }).await;
    let mut servers = Vec::new();
    for _ in 0..20 {
        servers.push(rig.session("2025-06-18").await);
    }
    for (client, mut server) in servers {
        server.ended().await;
        client.post(call(1)).await.refused(404).await;
    }
}

#[tokio::test]
async fn a_session_with_a_listener_is_not_idle() {
    let idle = Duration::from_millis(50);
    let keep_alive = Duration::from_millis(200);
    let mut rig = Rig::start(Options { session_idle: idle, keep_alive, ..Options::default() }).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let mut listener = client.get().await;
    assert_eq!(listener.comment().await, ":\n\n");
    server.notify(Lane::Main, "notifications/x").await;
    assert_eq!(listener.message().await.1["method"], "notifications/x");
    drop(listener);
    server.ended().await;
}

#[tokio::test]
async fn too_many_connected_sessions_are_refused_until_one_ends() {
    let mut rig = Rig::start(Options { max_sessions: 1, ..Options::default() }).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let listener = client.clone().get().await;
    assert!(rig.client().post(INITIALIZE).await.refused(503).await.contains("--max-sessions"));
    client.delete().await;
    server.ended().await;
    drop(listener);
    rig.session("2025-06-18").await;
}

#[tokio::test]
async fn abandoned_sessions_make_room_for_new_ones_the_longest_idle_first() {
    let mut rig = Rig::start(Options { max_sessions: 4, ..Options::default() }).await;
    let (listening, _listening) = rig.session("2025-06-18").await;
    let _listener = listening.clone().get().await;
    let (busy, mut busy_server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(busy.clone().post(call(1)));
    let under_way = busy_server.request().await;
    let (used, _used) = rig.session("2025-06-18").await;
    let (abandoned, mut abandoned_server) = rig.session("2025-06-18").await;
    const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(used.clone().post(NOTIFICATION).await.status, 202);

    let (_next, _next_server) = rig.session("2025-06-18").await;
    abandoned_server.ended().await;
    abandoned.post(NOTIFICATION).await.refused(404).await;
    for client in [&used, &listening, &busy] {
        assert_eq!(client.clone().post(NOTIFICATION).await.status, 202);
    }
    busy_server.answer(&under_way, "{}").await;
    assert_eq!(within(posted).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_session_that_is_being_opened_does_not_make_room() {
    let mut rig = Rig::start(Options { max_sessions: 1, ..Options::default() }).await;
    let posted = tokio::spawn(rig.client().post(INITIALIZE));
    let mut server = Server(within(rig.links.recv()).await.unwrap());
    let id = server.request().await;
    rig.client().post(INITIALIZE).await.refused(503).await;
    server.answer(&id, r#"{"protocolVersion":"2025-06-18"}"#).await;
    assert_eq!(within(posted).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_session_is_idle_from_the_end_of_its_last_connection() {
    let idle = Duration::from_millis(400);
    let mut rig = Rig::start(Options { session_idle: idle, ..Options::default() }).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let listener = client.get().await;
    // Longer than half of the time, so that the alarm that was set at the beginning rings too early.
    tokio::time::sleep(idle * 3 / 4).await;
    let left = tokio::time::Instant::now();
    drop(listener);
    server.ended().await;
    assert!(left.elapsed() >= idle, "{:?}", left.elapsed());
}

#[tokio::test]
async fn stopping_finishes_what_is_under_way() {
    let mut rig = Rig::start(Options::default()).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let mut listener = client.clone().get().await;
    let posted = tokio::spawn(client.clone().post(call(1)));
    let id = server.request().await;
    rig.ask_to_stop();
    assert!(listener.event().await.is_none(), "open streams are told");
    assert!(tokio::net::TcpStream::connect(rig.address).await.is_err(), "nothing new is accepted");
    server.answer(&id, r#"{"done":true}"#).await;
    assert_eq!(within(posted).await.unwrap().json().await["result"]["done"], true);
    rig.stopped().await;
    server.ended().await;
}

#[tokio::test]
async fn stopping_waits_no_longer_than_its_grace_and_answers_everyone() {
    let mut rig = Rig::start(Options { grace: Duration::from_millis(20), ..Options::default() }).await;
    let (client, mut server) = rig.session("2025-06-18").await;
    let posted = tokio::spawn(client.post(call(1)));
    server.request().await;
    rig.ask_to_stop();
    let answer = within(posted).await.unwrap().json().await;
    assert_eq!(answer["error"]["message"], "the server is shutting down");
    rig.stopped().await;
    server.ended().await;
}
