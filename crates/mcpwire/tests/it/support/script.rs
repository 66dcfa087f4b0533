//! An HTTP server that does just what a test tells it, request by request.

use std::net::SocketAddr;
use std::pin::Pin;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::within;

/// Listens on a port of 127.0.0.1 and hands every request to the test.
pub struct Script {
    address: SocketAddr,
    requests: mpsc::Receiver<Exchange>,
    listening: JoinSet<()>,
    /// Held by every idle connection.
    idle: mpsc::Receiver<()>,
}

/// A connection, plain or not.
pub type Stream = Pin<Box<dyn Io>>;
pub trait Io: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Io for T {}

/// A request, and the connection to answer it on.
pub struct Exchange {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub stream: Stream,
    again: Again,
}

/// What it takes to wait for the next request on a connection.
#[derive(Clone)]
struct Again {
    requests: mpsc::Sender<Exchange>,
    _idle: mpsc::Sender<()>,
}

impl Script {
    pub async fn start() -> Script {
        Script::start_at("127.0.0.1:0".parse().unwrap()).await
    }

    pub async fn start_tls(acceptor: TlsAcceptor) -> Script {
        Script::listen("127.0.0.1:0".parse().unwrap(), Some(acceptor)).await
    }

    /// Starts at an address where another one was before.
    pub async fn start_at(address: SocketAddr) -> Script {
        Script::listen(address, None).await
    }

    async fn listen(address: SocketAddr, tls: Option<TlsAcceptor>) -> Script {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).expect("the address is free");
        let listener: TcpListener = socket.listen(1024).unwrap();
        let address = listener.local_addr().unwrap();
        let (requests_tx, requests) = mpsc::channel(1024);
        let (idle_tx, idle) = mpsc::channel(1);
        let again = Again { requests: requests_tx, _idle: idle_tx };
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, again) = (tls.clone(), again.clone());
                tokio::spawn(async move {
                    match tls {
                        None => receive(Box::pin(stream), again).await,
                        // A handshake that fails is for the other side to tell.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                receive(Box::pin(stream), again).await;
                            }
                        }
                    }
                });
            }
        });
        Script { address, requests, listening, idle }
    }

    /// Stops listening and closes every idle connection.
    pub async fn stop(mut self) {
        self.listening.shutdown().await;
        drop(self.requests);
        within("the connections to close", self.idle.recv()).await;
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub async fn next(&mut self) -> Exchange {
        within("a request to the server", self.requests.recv()).await.expect("the server is listening")
    }

    /// The next request, which must be this one.
    pub async fn expect(&mut self, method: &str) -> Exchange {
        let exchange = self.next().await;
        assert_eq!(exchange.rpc_method(), method, "{} {}", exchange.method, exchange.body);
        exchange
    }

    /// Asserts that nothing was asked that the test has not seen.
    pub fn assert_idle(&mut self) {
        if let Ok(exchange) = self.requests.try_recv() {
            panic!("unexpected request: {} {}", exchange.method, exchange.body);
        }
    }

    /// Serves what follows the answer to `initialize`: the notification, and a GET that is refused.
    pub async fn rest_of_handshake(&mut self) {
        self.expect("notifications/initialized").await.accept().await;
        self.expect("GET").await.refuse(405, "").await;
    }
}

async fn receive(mut stream: Stream, again: Again) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        tokio::select! {
            byte = stream.read_u8() => match byte {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            },
            // A server that was dropped closes its idle connections.
            () = again.requests.closed() => return,
        }
    }
    let head = String::from_utf8(head).expect("headers are text");
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (first.next().unwrap_or_default().to_owned(), first.next().unwrap_or_default().to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
    let mut body = vec![0; length];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let body = String::from_utf8(body).expect("bodies are text");
    let requests = again.requests.clone();
    let _ = requests.send(Exchange { method, target, headers, body, stream, again }).await;
}

impl Exchange {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC method, `response` for an answer, or the HTTP method where there is no body.
    pub fn rpc_method(&self) -> String {
        match self.body.is_empty() {
            true => self.method.clone(),
            false => self.message()["method"].as_str().unwrap_or("response").to_owned(),
        }
    }

    pub fn message(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }

    pub fn id(&self) -> Value {
        self.message()["id"].clone()
    }

    /// Answers `initialize`.
    pub async fn initialized(self, session: &str) {
        let version = self.message()["params"]["protocolVersion"].clone();
        let result = json!({"protocolVersion": version, "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "script", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": self.id(), "result": result}).to_string();
        self.answer(200, &[("content-type", "application/json"), ("mcp-session-id", session)], &body).await;
    }

    pub async fn result(self, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": self.id(), "result": result}).to_string();
        self.json(&body).await;
    }

    pub async fn json(self, body: &str) {
        self.answer(200, &[("content-type", "application/json")], body).await;
    }

    pub async fn accept(self) {
        self.answer(202, &[], "").await;
    }

    pub async fn refuse(self, status: u16, body: &str) {
        self.answer(status, &[("content-type", "text/plain")], body).await;
    }

    /// Answers with a whole body; the connection serves further requests.
    pub async fn answer(mut self, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.write(&format!("{head}\r\n{body}")).await;
        tokio::spawn(receive(self.stream, self.again));
    }

    /// Begins an event stream that lasts until [`Exchange::end`] or [`Exchange::cut`].
    pub async fn stream(mut self) -> Exchange {
        self.write("HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").await;
        self
    }

    pub async fn event(&mut self, text: &str) {
        self.write(&format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    pub async fn send(&mut self, message: Value) {
        self.event(&format!("event: message\ndata: {message}\n\n")).await;
    }

    pub async fn end(mut self) {
        self.write("0\r\n\r\n").await;
        tokio::spawn(receive(self.stream, self.again));
    }

    /// Breaks the connection.
    pub fn cut(self) {}

    /// Waits until the other side has closed the connection.
    pub async fn closed(mut self) {
        let mut rest = Vec::new();
        let _ = within("the connection to be closed", self.stream.read_to_end(&mut rest)).await;
    }

    /// Writes anything at all.
    pub async fn write(&mut self, text: &str) {
        // A peer that has gone is for the test to notice where it matters.
        let _ = within("the peer to read", self.stream.write_all(text.as_bytes())).await;
    }
}
