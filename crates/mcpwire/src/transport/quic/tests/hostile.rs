//! Peers that misbehave: each costs itself an answer or its connection, and others nothing.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use quinn::{Endpoint, VarInt};
use serde_json::json;

use super::front::tool;
use super::peers::{Caller, Client, Folder, Front, Orchestrator, loopback, read, refused, text, within};
use crate::transport::quic::dial::lost;
use crate::transport::quic::frame::{self, LONGEST};
use crate::transport::quic::proto::{ListToolsRequest, PluginRequest, Request, Response, ToolResponse};
use crate::transport::quic::{ORCHESTRA_ALPN, certs::Identity, tls};

/// Connects, and makes a call if that works; tells why not.
async fn try_call(front: &Front, config: quinn::ClientConfig, host: &str) -> Result<String, String> {
    let endpoint = Endpoint::client(loopback()).unwrap();
    let connecting = endpoint.connect_with(config, front.at, host).unwrap();
    let connection = within("a handshake", connecting).await.map_err(|error| lost(&error))?;
    let request = PluginRequest { request_id: "x".into(), request: Some(tool("echo", json!({"message": "in"}))) };
    // A client learns only after its own handshake that the server does not want its certificate.
    let exchange = async {
        let (mut output, mut input) = connection.open_bi().await.map_err(|error| lost(&error))?;
        let _ = output.write_all(&frame::encode(&request).unwrap()).await;
        let _ = output.finish();
        let answer = frame::read(&mut input, &super::peers::budget()).await;
        let answer = answer.map_err(|error| connection.close_reason().map_or(error.to_string(), |why| lost(&why)))?;
        let crate::transport::quic::proto::PluginResponse { response, .. } = answer;
        Ok(text(response.unwrap()))
    };
    within("an answer or its refusal", exchange).await
}

fn anonymous(identity: &Identity) -> quinn::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.authority.clone()).unwrap();
    let mut config = rustls::ClientConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ORCHESTRA_ALPN.to_vec()];
    let config = quinn::crypto::rustls::QuicClientConfig::try_from(config).unwrap();
    quinn::ClientConfig::new(Arc::new(config))
}

#[tokio::test]
async fn only_certificates_of_our_authority_come_in() {
    let front = Front::start(false);
    let ours = front.folder.certs().identity("test-client").unwrap();
    let config = |identity: &Identity, alpn: &[u8]| tls::client(identity, alpn).unwrap();
    for host in ["localhost", "127.0.0.1", "orchestrator"] {
        assert_eq!(try_call(&front, config(&ours, ORCHESTRA_ALPN), host).await.unwrap(), "in", "{host}");
    }
    let foreign_folder = Folder::new();
    let foreign = foreign_folder.certs().identity("test-client").unwrap();
    // It trusts us, and we do not trust it.
    let disguised = Identity { authority: ours.authority.clone(), ..foreign.clone() };
    for (config, host, why) in [
        // It does not trust us.
        (config(&foreign, ORCHESTRA_ALPN), "localhost", "invalid peer certificate"),
        (config(&disguised, ORCHESTRA_ALPN), "localhost", "it does not take our certificate"),
        (anonymous(&ours), "localhost", "it wants a certificate"),
        (config(&ours, ORCHESTRA_ALPN), "elsewhere", "invalid peer certificate"),
        (config(&ours, b"h3"), "localhost", "it does not speak this protocol"),
    ] {
        let said = try_call(&front, config, host).await.unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(try_call(&front, config(&ours, ORCHESTRA_ALPN), "localhost").await.unwrap(), "in");
}

#[tokio::test]
async fn clients_without_a_certificate_come_in_only_if_they_may() {
    let front = Front::start(true);
    let ours = front.folder.certs().identity("test-client").unwrap();
    assert_eq!(try_call(&front, anonymous(&ours), "localhost").await.unwrap(), "in");
    // One of a foreign authority is still refused.
    let folder = Folder::new();
    let foreign = Identity { authority: ours.authority.clone(), ..folder.certs().identity("x").unwrap() };
    try_call(&front, tls::client(&foreign, ORCHESTRA_ALPN).unwrap(), "localhost").await.unwrap_err();
}

/// What a caller is told that sends these bytes.
async fn told(caller: &Caller, bytes: &[u8]) -> (String, String) {
    match read(&mut caller.write(bytes).await).await {
        Response::ToolCall(ToolResponse { success: false, error_code, error_message, .. }) => {
            (error_code, error_message)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn frames_that_are_none_are_told_and_the_connection_lives_on() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let whole = frame::encode(&PluginRequest {
        request_id: "id".into(),
        request: Some(Request::ListTools(ListToolsRequest {})),
    })
    .unwrap();
    for cut in 0..whole.len() {
        let (code, message) = told(&caller, &whole[..cut]).await;
        assert_eq!(code, "invalid_request");
        assert!(message.contains("ended"), "{message}");
    }
    let mut long = BytesMut::new();
    long.put_u32(u32::try_from(LONGEST).unwrap() + 1);
    assert!(told(&caller, &long).await.1.contains("16777217"));
    assert!(told(&caller, &[0xff; 100]).await.1.contains("4294967295"));
    assert!(told(&caller, b"\x00\x00\x00\x03abc").await.1.contains("Protobuf"));
    assert_eq!(told(&caller, &[0, 0, 0, 0]).await.0, "unknown_request");
    assert_eq!(text(caller.call(tool("echo", json!({"message": "hi"}))).await), "hi");
    front.stop().await;
}

#[tokio::test]
async fn a_thousand_streams_at_once_and_those_left_open_hold_nobody_up() {
    let front = Front::start(false);
    let (busy, other) = (front.caller().await, front.caller().await);
    let mut open = Vec::new();
    for n in 0..500_u32 {
        let (mut output, input) = within("a stream", busy.connection.open_bi()).await.unwrap();
        // Nothing, half a header, or a frame that never comes whole.
        let bytes: &[u8] = [&[][..], &[0, 0], &[0, 0xff, 0, 0, 1]][n as usize % 3];
        output.write_all(bytes).await.unwrap();
        open.push((output, input));
    }
    let mut calls = tokio::task::JoinSet::new();
    let busy = Arc::new(busy);
    for n in 0..1000 {
        let busy = Arc::clone(&busy);
        calls.spawn(async move { (n, text(busy.call(tool("echo", json!({"message": format!("{n}")}))).await)) });
    }
    assert_eq!(text(other.call(tool("echo", json!({"message": "other"}))).await), "other");
    while let Some(answered) = within("an answer", calls.join_next()).await {
        let (n, answer) = answered.unwrap();
        assert_eq!(answer, format!("{n}"));
    }
    drop(open);
    busy.connection.close(VarInt::from_u32(7), b"rude");
    assert_eq!(text(other.call(tool("echo", json!({"message": "still"}))).await), "still");
}

#[tokio::test]
async fn a_frame_of_the_largest_size_passes_both_ways() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let large = "x".repeat(LONGEST - 200);
    assert!(text(caller.call(tool("echo", json!({"message": large}))).await) == large);
}

/// What a client is told whose orchestrator answers a list with these bytes.
async fn list_through(bytes: &'static [u8]) -> (i64, String) {
    let folder = Folder::new();
    let identity = folder.certs().identity("orchestrator").unwrap();
    let config = tls::server(&identity, &[ORCHESTRA_ALPN], false).unwrap();
    let endpoint = Endpoint::server(config, loopback()).unwrap();
    let at = endpoint.local_addr().unwrap();
    tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        while let Ok((mut output, _input)) = connection.accept_bi().await {
            let _ = output.write_all(bytes).await;
            let _ = output.finish();
        }
    });
    let mut client = Client::new(&folder, at);
    client.open().await;
    let answer = client.ask("tools/list", json!({})).await;
    (answer["error"]["code"].as_i64().unwrap(), answer["error"]["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_orchestrator_that_answers_nonsense_costs_only_the_request() {
    for (bytes, expected) in [
        (&b"\x00\x00\x00\x03abc"[..], "expected a Protobuf message"),
        (b"\xff\xff\xff\xff", "16777216 bytes, came one of 4294967295"),
        (b"\x00\x00\x00\x00", "unexpected response type from orchestrator"),
        (b"\x00\x00\x00\x09ab", "in the middle of a frame"),
        (b"", "without an answer"),
    ] {
        let (code, message) = list_through(bytes).await;
        assert_eq!(code, -32603);
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn a_foreign_orchestrator_gets_no_call() {
    let (ours, theirs) = (Folder::new(), Folder::new());
    let orchestrator = Orchestrator::start(&theirs, loopback(), Arc::new(|_| vec![refused("x", "y")]));
    let mut client = Client::new(&ours, orchestrator.at);
    let answer = client.ask("initialize", json!({"protocolVersion": "2025-06-18"})).await;
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("certificate"), "{said}");
    assert!(orchestrator.seen.lock().unwrap().is_empty());
}
