//! HTTP with SSE: one stream that opens the session, carries all answers, and ends it.

use http::Method;
use mcpwire_proto::Lane;

use super::super::Options;
use super::harness::{Client, INITIALIZE, Reply, Rig, Server, call, within};

async fn connect(rig: &mut Rig) -> (Reply, String, Server) {
    let accept = [("accept", "text/event-stream")];
    let mut stream = rig.client().send(Method::GET, "/sse", &accept, bytes::Bytes::new()).await;
    let (_, endpoint) = stream.event().await.unwrap();
    let server = Server(within(rig.links.recv()).await.unwrap());
    (stream, endpoint, server)
}

async fn post(client: Client, endpoint: &str, text: &str) -> Reply {
    let json = [("content-type", "application/json")];
    client.send(Method::POST, endpoint, &json, text.to_owned().into()).await
}

fn options() -> Options {
    Options { http_with_sse: true, ..Options::default() }
}

#[tokio::test]
async fn everything_comes_on_the_one_stream() {
    let mut rig = Rig::start(options()).await;
    let (mut stream, endpoint, mut server) = connect(&mut rig).await;
    assert!(endpoint.starts_with("/messages?sessionId="), "{endpoint}");
    let reply = post(rig.client(), &endpoint, INITIALIZE).await;
    assert_eq!((reply.status.as_u16(), reply.text().await), (202, String::new()));
    let id = server.request().await;
    server.answer(&id, r#"{"protocolVersion":"2024-11-05"}"#).await;
    assert_eq!(stream.message().await.1["result"]["protocolVersion"], "2024-11-05");

    assert_eq!(post(rig.client(), &endpoint, &call(2)).await.status, 202);
    let id = server.request().await;
    server.notify(Lane::Request(id.clone()), "notifications/progress").await;
    server.notify(Lane::Main, "notifications/main").await;
    server.answer(&id, "{}").await;
    assert_eq!(stream.message().await.1["method"], "notifications/progress");
    assert_eq!(stream.message().await.1["method"], "notifications/main");
    assert_eq!(stream.message().await.1["id"], 2);
}

#[tokio::test]
async fn a_cancelled_request_gets_no_answer() {
    let mut rig = Rig::start(options()).await;
    let (mut stream, endpoint, mut server) = connect(&mut rig).await;
    assert_eq!(post(rig.client(), &endpoint, &call(1)).await.status, 202);
    let id = server.request().await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(post(rig.client(), &endpoint, cancel).await.status, 202);
    assert!(server.message().await.is("notifications/cancelled"));
    server.answer(&id, "{}").await;
    server.notify(Lane::Main, "notifications/main").await;
    assert_eq!(stream.message().await.1["method"], "notifications/main");
}

#[tokio::test]
async fn the_session_ends_with_its_stream() {
    let mut rig = Rig::start(options()).await;
    let (stream, endpoint, mut server) = connect(&mut rig).await;
    drop(stream);
    server.ended().await;
    post(rig.client(), &endpoint, INITIALIZE).await.refused(404).await;
}

#[tokio::test]
async fn two_clients_with_the_same_request_id_never_meet() {
    let mut rig = Rig::start(options()).await;
    let (mut stream_a, endpoint_a, mut server_a) = connect(&mut rig).await;
    let (mut stream_b, endpoint_b, mut server_b) = connect(&mut rig).await;
    for endpoint in [endpoint_a, endpoint_b] {
        assert_eq!(post(rig.client(), &endpoint, &call(1)).await.status, 202);
    }
    let (id_a, id_b) = (server_a.request().await, server_b.request().await);
    server_b.answer(&id_b, r#"{"for":"b"}"#).await;
    server_a.answer(&id_a, r#"{"for":"a"}"#).await;
    assert_eq!(stream_a.message().await.1["result"]["for"], "a");
    assert_eq!(stream_b.message().await.1["result"]["for"], "b");
}

#[tokio::test]
async fn what_is_wrong_is_refused() {
    let mut rig = Rig::start(options()).await;
    let (_stream, endpoint, _server) = connect(&mut rig).await;
    assert_eq!(post(rig.client(), &endpoint, "{").await.status, 400);
    post(rig.client(), "/messages", INITIALIZE).await.refused(400).await;
    post(rig.client(), "/messages?sessionId=x", INITIALIZE).await.refused(404).await;
    post(rig.client().with("host", "evil.example"), &endpoint, INITIALIZE).await.refused(403).await;
    post(rig.client(), "/sse", INITIALIZE).await.refused(405).await;
}

#[tokio::test]
async fn stopping_gives_what_is_owed_before_the_stream_ends() {
    let mut rig = Rig::start(options()).await;
    let (mut stream, endpoint, mut server) = connect(&mut rig).await;
    assert_eq!(post(rig.client(), &endpoint, &call(1)).await.status, 202);
    let id = server.request().await;
    rig.ask_to_stop();
    server.answer(&id, "{}").await;
    assert_eq!(stream.message().await.1["id"], 1);
    assert!(stream.event().await.is_none());
    rig.stopped().await;
    server.ended().await;
}

#[tokio::test]
async fn it_is_served_only_when_asked_for() {
    let rig = Rig::start(Options::default()).await;
    rig.client().send(Method::GET, "/sse", &[], bytes::Bytes::new()).await.refused(404).await;
}
