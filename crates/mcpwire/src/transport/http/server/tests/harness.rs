//! What the tests share: a front on a free port, a client, and the server's end of a session.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use mcpwire_proto::frame::sse::{SseDecoder, SseEvent};
use mcpwire_proto::{Id, Lane, Message, Packet};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::super::{Options, serve};
use crate::link::{Event, Link};

/// Every wait of a test has an end.
pub(super) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("took too long")
}

pub(super) struct Rig {
    pub(super) address: SocketAddr,
    pub(super) links: mpsc::Receiver<Link>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl Rig {
    pub(super) async fn start(options: Options) -> Rig {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (links_tx, links) = mpsc::channel(16);
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(serve(listener, options, links_tx, async { drop(stopped.await) }));
        Rig { address, links, stop: Some(stop), served }
    }

    pub(super) fn client(&self) -> Client {
        Client { address: self.address, session: None, headers: Vec::new() }
    }

    /// Opens a session of that version.
    pub(super) async fn session(&mut self, version: &str) -> (Client, Server) {
        let mut client = self.client();
        let opening = tokio::spawn(client.clone().post(INITIALIZE));
        let mut server = Server(within(self.links.recv()).await.unwrap());
        let request = server.request().await;
        server.answer(&request, &format!(r#"{{"protocolVersion":"{version}"}}"#)).await;
        let reply = within(opening).await.unwrap();
        assert_eq!(reply.status, StatusCode::OK);
        client.session = Some(reply.headers["mcp-session-id"].to_str().unwrap().to_owned());
        (client, server)
    }

    pub(super) fn ask_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub(super) async fn stopped(self) {
        within(self.served).await.unwrap();
    }
}

pub(super) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;

pub(super) fn call(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#)
}

/// The server's end of a session.
pub(super) struct Server(pub(super) Link);

impl Server {
    pub(super) async fn message(&mut self) -> Message {
        match within(self.0.rx.recv()).await.expect("the session ended") {
            Event::Packet(packet) => packet.message,
            other => panic!("unexpected {other:?}"),
        }
    }

    pub(super) async fn request(&mut self) -> Id {
        let message = self.message().await;
        assert!(message.is_request(), "{message}");
        message.id().unwrap().clone()
    }

    pub(super) async fn answer(&self, id: &Id, result: &str) {
        self.send(Lane::Request(id.clone()), Message::result(id, result)).await;
    }

    pub(super) async fn notify(&self, lane: Lane, method: &str) {
        self.send(lane, Message::notification(method, None)).await;
    }

    pub(super) async fn send(&self, lane: Lane, message: Message) {
        within(self.0.tx.send(Packet::new(lane, message))).await.unwrap();
    }

    pub(super) async fn ended(&mut self) {
        assert!(within(self.0.rx.recv()).await.is_none());
    }
}

#[derive(Clone)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    pub(super) session: Option<String>,
    /// Set beside, or instead of, the usual ones.
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Client {
    pub(super) fn with(&self, name: &'static str, value: &str) -> Client {
        let mut client = self.clone();
        client.headers.push((name, value.to_owned()));
        client
    }

    pub(super) async fn post(self, body: impl Into<Bytes>) -> Reply {
        let usual = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        self.send(Method::POST, "/mcp", &usual, body.into()).await
    }

    pub(super) async fn get(self) -> Reply {
        self.send(Method::GET, "/mcp", &[("accept", "text/event-stream")], Bytes::new()).await
    }

    pub(super) async fn resume(&self, event: &str) -> Reply {
        self.with("last-event-id", event).get().await
    }

    pub(super) async fn delete(self) -> Reply {
        self.send(Method::DELETE, "/mcp", &[], Bytes::new()).await
    }

    pub(super) async fn send(self, method: Method, path: &str, usual: &[(&str, &str)], body: Bytes) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        let headers = request.headers_mut().unwrap();
        headers.insert("host", self.address.to_string().parse().unwrap());
        for (name, value) in usual {
            headers.insert(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        if let Some(session) = &self.session {
            headers.insert("mcp-session-id", session.parse().unwrap());
        }
        for (name, value) in &self.headers {
            headers.insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = Connection(tokio::spawn(async { drop(connection.await) }));
        let response = within(sender.send_request(request.body(Full::new(body)).unwrap())).await.unwrap();
        let (head, body) = response.into_parts();
        let decoder = SseDecoder::new(1 << 30);
        Reply { status: head.status, headers: head.headers, body, decoder, _connection: connection }
    }
}

/// A connection that is cut when it is dropped.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Incoming,
    decoder: SseDecoder,
    _connection: Connection,
}

impl Reply {
    pub(super) fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|t| t == "text/event-stream")
    }

    pub(super) async fn text(self) -> String {
        let bytes = within(self.body.collect()).await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    pub(super) async fn json(self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// Checks the status of a refusal and gives its text.
    pub(super) async fn refused(self, status: u16) -> String {
        assert_eq!(self.status, status);
        let error = self.json().await;
        assert_eq!(error["jsonrpc"], "2.0");
        error["error"]["message"].as_str().unwrap().to_owned()
    }

    /// The next event's id and data; `None` at the end of the stream.
    pub(super) async fn event(&mut self) -> Option<(String, String)> {
        assert!(self.is_stream());
        loop {
            if let Some(event) = self.decoder.next_event() {
                let SseEvent::Event { data, .. } = event else { panic!("{event:?}") };
                let id = self.decoder.last_event_id().cloned().unwrap_or_default();
                return Some((String::from_utf8(id.to_vec()).unwrap(), String::from_utf8(data.to_vec()).unwrap()));
            }
            let frame = within(self.body.frame()).await?.unwrap();
            self.decoder.push(&frame.into_data().unwrap());
        }
    }

    /// The next event's id and message.
    pub(super) async fn message(&mut self) -> (String, Value) {
        let (id, data) = self.event().await.expect("the stream ended");
        (id, serde_json::from_str(&data).unwrap())
    }

    /// The next piece of the stream, which is to be a comment.
    pub(super) async fn comment(&mut self) -> String {
        let frame = within(self.body.frame()).await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }

    pub(super) fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }
}
