//! HTTP/2 servers that refuse requests and close connections (RFC 9113), frame by frame.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use super::initialize_params;
use super::network::Authority;
use crate::support::process::Mcpwire;
use crate::support::within;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

const MAX_CONCURRENT_STREAMS: u16 = 3;

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;

struct Server {
    listener: TcpListener,
    authority: Authority,
}

impl Server {
    async fn start(name: &str) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Server { listener, authority: Authority::new(name) }
    }

    fn client(&self) -> Mcpwire {
        let url = format!("https://localhost:{}/mcp", self.listener.local_addr().unwrap().port());
        Mcpwire::start(&["connect", &url, "--ca", &self.authority.file("ca.pem"), "--protocol", "2025-11-25", "-v"])
    }

    /// The next connection, after the preface.
    async fn accept(&self) -> Connection {
        let (stream, _) = within("a connection", self.listener.accept()).await.unwrap();
        let mut stream = self.authority.http2_acceptor("localhost").accept(stream).await.unwrap();
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut connection = Connection { stream, bodies: HashMap::new() };
        connection.write(SETTINGS, 0, 0, &[]).await;
        connection
    }

    /// A client that has done the handshake, and the connection that it uses.
    async fn connected(&self) -> (Connection, Mcpwire) {
        let mut client = self.client();
        client.request(0, "initialize", initialize_params("2025-11-25")).await;
        let mut connection = self.accept().await;
        let (stream, initialize) = connection.next().await.unwrap();
        assert_eq!(initialize["method"], "initialize");
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}});
        connection.answer(stream, &initialize, &result).await;
        client.message().await;
        client.notify("notifications/initialized").await;
        for _ in 0..2 {
            let (stream, message) = connection.next().await.unwrap();
            connection.status(stream, if message.is_null() { "405" } else { "202" }).await;
        }
        (connection, client)
    }
}

/// One connection, on which nothing is done but what a test says.
struct Connection {
    stream: TlsStream<TcpStream>,
    bodies: HashMap<u32, Vec<u8>>,
}

impl Connection {
    /// The next whole request: its stream, and the message in it, null for GET and DELETE. `None` at the end.
    async fn next(&mut self) -> Option<(u32, Value)> {
        loop {
            let mut head = [0; 9];
            within("a frame", self.stream.read_exact(&mut head)).await.ok()?;
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let (kind, flags) = (head[3], head[4]);
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).await.ok()?;
            match kind {
                SETTINGS if flags & ACK == 0 => self.write(SETTINGS, ACK, 0, &[]).await,
                PING if flags & ACK == 0 => self.write(PING, ACK, 0, &payload).await,
                GOAWAY => return None,
                DATA => self.bodies.entry(stream).or_default().extend(payload),
                _ => {}
            }
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                let body = self.bodies.remove(&stream).unwrap_or_default();
                return Some((stream, serde_json::from_slice(&body).unwrap_or_default()));
            }
        }
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        let _ = self.stream.write_all(&frame).await;
        let _ = self.stream.flush().await;
    }

    /// Answers with a result, in JSON and in the session `s1`.
    async fn answer(&mut self, stream: u32, request: &Value, result: &Value) {
        let mut headers = vec![0x88]; // :status 200
        for (name, value) in [("content-type", "application/json"), ("mcp-session-id", "s1")] {
            headers.push(0);
            headers.push(u8::try_from(name.len()).unwrap());
            headers.extend(name.as_bytes());
            headers.push(u8::try_from(value.len()).unwrap());
            headers.extend(value.as_bytes());
        }
        self.write(HEADERS, END_HEADERS, stream, &headers).await;
        let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
        self.write(DATA, END_STREAM, stream, body.as_bytes()).await;
    }

    async fn status(&mut self, stream: u32, status: &str) {
        let headers = [&[0x08, 3], status.as_bytes()].concat();
        self.write(HEADERS, END_HEADERS | END_STREAM, stream, &headers).await;
    }

    async fn go_away(&mut self, last: u32, reason: u32) {
        self.write(GOAWAY, 0, 0, &[last.to_be_bytes(), reason.to_be_bytes()].concat()).await;
    }

    async fn reset(&mut self, stream: u32, reason: u32) {
        self.write(RST_STREAM, 0, stream, &reason.to_be_bytes()).await;
    }

    /// Receives so many calls.
    async fn calls(&mut self, count: usize) -> Vec<(u32, Value)> {
        let mut calls = Vec::new();
        while calls.len() < count {
            let (stream, call) = self.next().await.expect("a call");
            assert_eq!(call["method"], "tools/call", "{call}");
            calls.push((stream, call));
        }
        calls
    }

    /// Answers what follows, until the client is done.
    async fn serve(mut self) {
        while let Some((stream, message)) = self.next().await {
            match message.get("id") {
                Some(_) => self.answer(stream, &message, &json!({})).await,
                None => self.status(stream, if message.is_null() { "405" } else { "202" }).await,
            }
        }
    }
}

async fn results(client: &mut Mcpwire, count: usize) -> Vec<i64> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let answer = client.message().await;
        assert!(answer.get("result").is_some(), "{answer}");
        ids.push(answer["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn calls_that_a_closing_connection_leaves_behind_go_to_the_next_one() {
    let server = Server::start("goaway").await;
    let (mut first, mut client) = server.connected().await;
    for id in 1..=20 {
        client.call(id, "work", json!({})).await;
    }
    client.notify("notifications/x").await;
    let mut calls = Vec::new();
    let mut notified = None;
    while calls.len() < 20 || notified.is_none() {
        let (stream, message) = first.next().await.unwrap();
        if message["method"] == "tools/call" { calls.push((stream, message)) } else { notified = Some(stream) }
    }
    calls.sort_by_key(|(stream, _)| *stream);
    let last = calls[4].0;
    assert!(notified.unwrap() > last);
    first.go_away(last, NO_ERROR).await;
    let mut executed = Vec::new();
    for (stream, call) in calls.iter().take(5) {
        executed.push(call["id"].as_i64().unwrap());
        first.answer(*stream, call, &json!({})).await;
    }
    drop(first);
    let mut second = server.accept().await;
    let mut notified = false;
    while executed.len() < 20 || !notified {
        let (stream, message) = second.next().await.unwrap();
        if message["method"] == "tools/call" {
            executed.push(message["id"].as_i64().unwrap());
            second.answer(stream, &message, &json!({})).await;
        } else {
            assert_eq!(message["method"], "notifications/x");
            second.status(stream, "202").await;
            notified = true;
        }
    }
    executed.sort_unstable();
    assert_eq!(executed, (1..=20).collect::<Vec<_>>(), "each call is executed once");
    assert_eq!(results(&mut client, 20).await, executed);
    let rest = tokio::spawn(second.serve());
    client.finish().await;
    rest.abort();
}

#[tokio::test]
async fn calls_that_wait_for_a_free_stream_go_to_the_next_connection() {
    let server = Server::start("waiting").await;
    let (mut first, mut client) = server.connected().await;
    first.write(SETTINGS, 0, 0, &[MAX_CONCURRENT_STREAMS.to_be_bytes().as_slice(), &1u32.to_be_bytes()].concat()).await;
    client.call(1, "work", json!({})).await;
    let (stream, call) = first.calls(1).await.remove(0);
    for id in 2..=5 {
        client.call(id, "work", json!({})).await;
    }
    client.logged("client -> server request tools/call id=5").await;
    first.go_away(stream, NO_ERROR).await;
    first.answer(stream, &call, &json!({})).await;
    let mut second = server.accept().await;
    let mut executed = vec![1];
    for (stream, call) in second.calls(4).await {
        executed.push(call["id"].as_i64().unwrap());
        second.answer(stream, &call, &json!({})).await;
    }
    executed.sort_unstable();
    assert_eq!(results(&mut client, 5).await, executed);
    let rest = tokio::spawn(second.serve());
    client.finish().await;
    rest.abort();
}

#[tokio::test]
async fn a_refused_stream_is_sent_again() {
    let server = Server::start("refused").await;
    let (mut connection, mut client) = server.connected().await;
    client.call(1, "work", json!({})).await;
    // More often than the transport tries by itself: then the session waits a little.
    for _ in 0..6 {
        let (stream, _) = connection.calls(1).await.remove(0);
        connection.reset(stream, REFUSED_STREAM).await;
    }
    let (stream, call) = connection.calls(1).await.remove(0);
    connection.answer(stream, &call, &json!({})).await;
    assert_eq!(results(&mut client, 1).await, [1]);
    let rest = tokio::spawn(connection.serve());
    client.finish().await;
    rest.abort();
}

#[tokio::test]
async fn a_call_that_may_have_been_processed_is_not_sent_again() {
    let server = Server::start("processed").await;
    let (mut connection, mut client) = server.connected().await;
    client.call(1, "work", json!({})).await;
    let (stream, _) = connection.calls(1).await.remove(0);
    connection.reset(stream, INTERNAL_ERROR).await;
    let answer = client.message().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("may have been executed"), "{answer}");

    client.call(2, "work", json!({})).await;
    let (stream, _) = connection.calls(1).await.remove(0);
    connection.go_away(stream, NO_ERROR).await;
    drop(connection);
    let answer = client.message().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("may have been executed"), "{answer}");
    let rest = tokio::spawn(async move { server.accept().await.serve().await });
    client.finish().await;
    rest.abort();
}
