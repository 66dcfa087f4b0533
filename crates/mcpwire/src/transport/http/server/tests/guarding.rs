//! Who is let in, and what a hostile or careless client cannot do.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use mcpwire_proto::{Lane, Message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::{Options, Token};
use super::harness::{INITIALIZE, Rig, within};

const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[tokio::test]
async fn strangers_are_refused_with_the_name_of_the_flag() {
    let options = Options {
        allowed_hosts: vec!["mcp.example".into()],
        allowed_origins: vec!["https://app.example".into()],
        ..Options::default()
    };
    let mut rig = Rig::start(options).await;
    let (client, _server) = rig.session("2025-06-18").await;
    let post = async |name, value| client.with(name, value).post(NOTIFICATION).await;
    assert!(post("host", "evil.example.com").await.refused(403).await.contains("--allow-host"));
    assert!(post("origin", "http://evil.example.com").await.refused(403).await.contains("--allow-origin"));
    assert!(post("origin", "null").await.refused(403).await.contains("--allow-origin"));
    for (name, value) in [
        ("host", "mcp.example:8080"),
        ("host", "localhost"),
        ("origin", "https://app.example"),
        ("origin", "http://localhost:6274"),
    ] {
        assert_eq!(post(name, value).await.status, 202, "{name}: {value}");
    }
}

/// The status that a head gets, sent as it is written.
async fn status_of(rig: &Rig, head: &str) -> String {
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    let body = NOTIFICATION.len();
    let usual = format!("Content-Type: application/json\r\nContent-Length: {body}\r\nConnection: close\r\n");
    stream.write_all(format!("{head}\r\n{usual}\r\n{NOTIFICATION}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    answer.lines().next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_request_that_can_be_understood_in_two_ways_is_refused() {
    let mut rig = Rig::start(Options { token: None, ..Options::default() }).await;
    let (client, _server) = rig.session("2025-06-18").await;
    let session = format!("Mcp-Session-Id: {}", client.session.as_ref().unwrap());
    let twice = |header: &str| format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{session}\r\n{header}\r\n{header}");
    for (head, status) in [
        (format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{session}"), "202"),
        (format!("POST http://localhost/mcp HTTP/1.1\r\nHost: localhost\r\n{session}"), "202"),
        (twice("Accept: application/json, text/event-stream"), "202"),
        (format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n{session}"), "400"),
        (format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n{session}"), "400"),
        (format!("POST /mcp HTTP/1.1\r\nHost: localhost, evil.example\r\n{session}"), "400"),
        (format!("POST /mcp HTTP/1.1\r\nHost: user@localhost\r\n{session}"), "400"),
        (format!("POST /mcp HTTP/1.1\r\n{session}"), "400"),
        (format!("POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\n{session}"), "400"),
        (format!("POST http://localhost/mcp HTTP/1.1\r\nHost: evil.example\r\n{session}"), "400"),
        (format!("POST http://evil.example/mcp HTTP/1.1\r\nHost: evil.example\r\n{session}"), "403"),
        (format!("POST http://evil@localhost/mcp HTTP/1.1\r\nHost: localhost\r\n{session}"), "400"),
        (format!("POST evil://localhost/mcp HTTP/1.1\r\nHost: localhost\r\n{session}"), "400"),
        (format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: evil://localhost\r\n{session}"), "403"),
        (twice("Origin: http://localhost"), "400"),
        (twice("Authorization: Bearer t"), "400"),
        (twice("Content-Type: text/plain"), "400"),
        (twice("MCP-Protocol-Version: 2025-06-18"), "400"),
        (twice(&session), "400"),
        (twice("Mcp-Method: notifications/initialized"), "400"),
        (twice("Last-Event-ID: 1"), "400"),
        (twice("Content-Length: 5"), "400"),
        (
            format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{session}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked"
            ),
            "400",
        ),
    ] {
        assert_eq!(status_of(&rig, &head).await, status, "{head}");
    }
}

#[tokio::test]
async fn without_the_token_nothing_is_served() {
    let rig = Rig::start(Options { token: Token::new("open-sesame"), ..Options::default() }).await;
    for authorization in ["", "Bearer", "Bearer open", "Bearer open-sesame-x", "Basic open-sesame", "open-sesame"] {
        let reply = rig.client().with("authorization", authorization).post(INITIALIZE).await;
        assert_eq!(reply.headers["www-authenticate"], "Bearer", "{authorization}");
        assert!(!reply.refused(401).await.contains("sesame"));
    }
    for authorization in ["Bearer open-sesame", "bearer open-sesame"] {
        let reply = rig.client().with("authorization", authorization).post(NOTIFICATION).await;
        assert!(reply.refused(400).await.contains("Mcp-Session-Id"));
    }
    assert_eq!(format!("{:?}", Token::new("open-sesame")), "Some(Token(…))");
    assert!(Token::new("").is_none() && Token::new("a b").is_none());
}

#[tokio::test]
async fn browsers_of_allowed_origins_may_ask_and_read() {
    let rig = Rig::start(Options { token: Token::new("t"), ..Options::default() }).await;
    let asks = rig.client().with("access-control-request-method", "POST");
    let preflight = async |origin| {
        let client = asks.with("origin", origin).with("access-control-request-headers", "content-type,mcp-session-id");
        client.send(Method::OPTIONS, "/mcp", &[], Bytes::new()).await
    };
    let reply = preflight("http://localhost:6274").await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.headers["access-control-allow-origin"], "http://localhost:6274");
    assert_eq!(reply.headers["access-control-allow-headers"], "content-type,mcp-session-id");
    assert_eq!(reply.headers["access-control-allow-methods"], "POST, GET, DELETE");

    let reply = rig.client().with("origin", "http://localhost:6274").post(INITIALIZE).await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.headers["access-control-allow-origin"], "http://localhost:6274");
    assert!(reply.headers["access-control-expose-headers"].to_str().unwrap().contains("Mcp-Session-Id"));

    let reply = preflight("http://evil.example.com").await;
    assert!(!reply.headers.contains_key("access-control-allow-origin"));
    reply.refused(403).await;
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let rig = Rig::start(Options { header_timeout: Duration::from_millis(50), ..Options::default() }).await;
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: local").await.unwrap();
    within(stream.read_to_end(&mut Vec::new())).await.unwrap();
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let rig = Rig::start(Options::default()).await;
    let reply = rig.client().with("x-filler", &"x".repeat(100_000)).post(INITIALIZE).await;
    assert_eq!(reply.status, 431);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_refused() {
    let rig = Rig::start(Options { body_timeout: Duration::from_millis(50), ..Options::default() }).await;
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_never_reads_loses_its_connection() {
    let options = Options { max_connections: 1, write_timeout: Duration::from_millis(50), ..Options::default() };
    let mut rig = Rig::start(options).await;
    let (client, server) = rig.session("2025-06-18").await;
    let mut stuck = TcpStream::connect(rig.address).await.unwrap();
    let session = client.session.as_ref().unwrap();
    let head = format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {session}\r\n\r\n");
    stuck.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 8];
    within(stuck.read_exact(&mut first)).await.unwrap();
    let params = format!(r#"{{"data":"{}"}}"#, "x".repeat(1 << 20));
    for _ in 0..30 {
        server.send(Lane::Main, Message::notification("notifications/message", Some(&params))).await;
    }
    // There is room for one connection only, so this one waits until the stuck one is given up.
    assert_eq!(client.post(NOTIFICATION).await.status, 202);
}
