//! Peers by hand: an orchestrator that answers as the test says, a caller of single calls, and what they need.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use mcpwire_proto::conversation::Config;
use mcpwire_proto::session::legacy;
use mcpwire_proto::{Message, Packet};
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::bridge::{self, Upstreams};
use crate::link::{Event, Link};
use crate::reference::{self, Shared};
use crate::transport::quic::certs::Certs;
use crate::transport::quic::frame::{self, Budget, LONGEST};
use crate::transport::quic::proto::{PluginRequest, PluginResponse, Request, Response, ToolResponse};
use crate::transport::quic::{Address, FrontOptions, Listener, ORCHESTRA_ALPN, TargetOptions, connect, tls};

/// A limit, not a measure.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

pub(super) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("waited for {what}"))
}

/// A folder of certificates of a test's own, removed with it.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Folder {
        Folder(std::env::temp_dir().join(format!("mcpwire-certs-{:016x}", fastrand::u64(..))))
    }

    pub(super) fn certs(&self) -> Certs {
        Certs::new(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

pub(super) fn address(of: SocketAddr) -> Address {
    Address { host: of.ip().to_string(), port: of.port() }
}

pub(super) fn budget() -> Budget {
    Budget::new(4 * LONGEST)
}

/// What an orchestrator does with one stream.
pub(super) type Script = dyn Fn(PluginRequest) -> Vec<Response> + Send + Sync;

/// Whether an orchestrator closes the stream of a request instead of answering it.
pub(super) type Closes = fn(&PluginRequest) -> bool;

/// An orchestrator that answers each request with what the script says; with nothing, it holds the stream open.
pub(super) struct Orchestrator {
    pub(super) at: SocketAddr,
    pub(super) seen: Arc<Mutex<Vec<PluginRequest>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Orchestrator {
    /// Starts it in a thread of its own, which can be ended without a word to anybody.
    pub(super) fn start(folder: &Folder, at: SocketAddr, script: Arc<Script>) -> Orchestrator {
        Orchestrator::start_closing(folder, at, script, |_| false)
    }

    /// The same; it closes the streams of some requests without an answer.
    pub(super) fn start_closing(folder: &Folder, at: SocketAddr, script: Arc<Script>, closes: Closes) -> Orchestrator {
        let identity = folder.certs().identity("orchestrator").unwrap();
        let config = tls::server(&identity, &[ORCHESTRA_ALPN], false).unwrap();
        let socket = UdpSocket::bind(at).unwrap();
        let at = socket.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<PluginRequest>>> = Arc::default();
        let (stop, stopped) = oneshot::channel();
        let noted = Arc::clone(&seen);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let runtime = Arc::new(quinn::TokioRuntime);
                let endpoint = Endpoint::new(tls::endpoint(&identity), Some(config), socket, runtime).unwrap();
                tokio::select! {
                    () = Orchestrator::serve(endpoint, script, closes, noted) => {}
                    _ = stopped => {}
                }
            });
        });
        Orchestrator { at, seen, stop: Some(stop), thread: Some(thread) }
    }

    async fn serve(endpoint: Endpoint, script: Arc<Script>, closes: Closes, seen: Arc<Mutex<Vec<PluginRequest>>>) {
        while let Some(incoming) = endpoint.accept().await {
            let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else { return };
                while let Ok((output, input)) = connection.accept_bi().await {
                    let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                    tokio::spawn(Orchestrator::answer(output, input, script, closes, seen));
                }
            });
        }
    }

    async fn answer(
        mut output: SendStream,
        mut input: RecvStream,
        script: Arc<Script>,
        closes: Closes,
        seen: Arc<Mutex<Vec<PluginRequest>>>,
    ) {
        let Ok(request) = frame::read::<PluginRequest>(&mut input, &budget()).await else { return };
        seen.lock().unwrap().push(request.clone());
        if closes(&request) {
            let _ = output.finish();
            let _ = output.stopped().await;
            return;
        }
        let request_id = request.request_id.clone();
        let answers = script(request);
        if answers.is_empty() {
            return pending().await;
        }
        for response in answers {
            let response = PluginResponse { request_id: request_id.clone(), response: Some(response) };
            output.write_all(&frame::encode(&response).unwrap()).await.unwrap();
        }
        let _ = output.finish();
        let _ = output.stopped().await;
    }

    /// Goes without a word, as a process that is killed; its port is free then.
    pub(super) fn vanish(mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

pub(super) fn refused(code: &str, message: &str) -> Response {
    Response::ToolCall(ToolResponse { error_code: code.into(), error_message: message.into(), ..Default::default() })
}

/// A client of MCP in front of an orchestrator, with the bridge between them.
pub(super) struct Client {
    link: Link,
    next: u64,
    _bridge: JoinHandle<()>,
}

impl Client {
    pub(super) fn new(folder: &Folder, at: SocketAddr) -> Client {
        let identity = folder.certs().identity("transport.stdio-client").unwrap();
        let wait = Duration::from_secs(8);
        let options = TargetOptions { address: address(at), identity, wait, max_message: LONGEST };
        let (server, _) = connect(options).unwrap();
        let (link, port) = Link::pair();
        // The client's side of the bridge is the other end of our link.
        let (downstream, mut far) = Link::pair();
        let bridge = tokio::spawn(async move {
            let relay = legacy::Config { wait, ..legacy::Config::default() };
            let config = Config { relay, sorted: true, ..Config::default() };
            let server = Upstreams::only(server);
            bridge::run(downstream, server, config, pending::<()>(), Duration::from_secs(5)).await;
        });
        let crate::link::Port { tx, mut rx } = port;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    packet = rx.recv() => match packet {
                        Some(packet) => drop(far.tx.send(Event::Packet(packet)).await),
                        None => return,
                    },
                    packet = far.rx.recv() => match packet {
                        Some(packet) => drop(tx.send(Event::Packet(packet)).await),
                        None => return,
                    },
                }
            }
        });
        Client { link, next: 0, _bridge: bridge }
    }

    pub(super) async fn send(&mut self, message: Value) {
        let message = Message::parse(message.to_string().into()).unwrap();
        self.link.tx.send(Packet::from(message)).await.unwrap();
    }

    pub(super) async fn start(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})).await;
        self.next
    }

    pub(super) async fn message(&mut self) -> Value {
        match within("a message", self.link.rx.recv()).await {
            Some(Event::Packet(packet)) => serde_json::from_slice(packet.message.as_bytes()).unwrap(),
            other => panic!("expected a message, came {other:?}"),
        }
    }

    /// Asks, and gives the next message, which must be the answer.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        let answer = self.message().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(super) async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    pub(super) async fn open(&mut self) -> Value {
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let result = self.result("initialize", params).await;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        result
    }
}

/// Our front, with reference servers behind it.
pub(super) struct Front {
    pub(super) at: SocketAddr,
    pub(super) folder: Folder,
    stop: Option<oneshot::Sender<()>>,
    done: JoinHandle<()>,
}

impl Front {
    pub(super) fn start(anonymous: bool) -> Front {
        Front::start_with(anonymous, FrontOptions::default())
    }

    pub(super) fn start_with(anonymous: bool, options: FrontOptions) -> Front {
        let folder = Folder::new();
        let identity = folder.certs().identity("orchestrator").unwrap();
        let listener = Listener::bind(loopback(), &identity, anonymous).unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let done = tokio::spawn(reference::host_quic(listener, options, Shared::default(), async {
            let _ = stopped.await;
        }));
        Front { at, folder, stop: Some(stop), done }
    }

    pub(super) async fn caller(&self) -> Caller {
        let identity = self.folder.certs().identity("test-client").unwrap();
        let config = tls::client(&identity, ORCHESTRA_ALPN).unwrap();
        let endpoint = Endpoint::client(loopback()).unwrap();
        let connection = endpoint.connect_with(config, self.at, "localhost").unwrap();
        Caller { connection: within("a connection", connection).await.unwrap(), _endpoint: endpoint }
    }

    pub(super) async fn stop(mut self) {
        drop(self.stop.take());
        within("the front to end", &mut self.done).await.unwrap();
    }
}

/// A client of the Orchestra protocol, stream by stream.
pub(super) struct Caller {
    pub(super) connection: Connection,
    pub(super) _endpoint: Endpoint,
}

impl Caller {
    /// Writes bytes as they are, and ends the stream.
    pub(super) async fn write(&self, bytes: &[u8]) -> RecvStream {
        let (mut output, input) = within("a stream", self.connection.open_bi()).await.unwrap();
        // The front may stop reading before the end.
        let _ = output.write_all(bytes).await;
        let _ = output.finish();
        input
    }

    pub(super) async fn start(&self, request: Request) -> RecvStream {
        let request = PluginRequest { request_id: "id".into(), request: Some(request) };
        self.write(&frame::encode(&request).unwrap()).await
    }

    pub(super) async fn call(&self, request: Request) -> Response {
        read(&mut self.start(request).await).await
    }
}

pub(super) async fn read(input: &mut RecvStream) -> Response {
    let answer: PluginResponse = within("an answer", frame::read(input, &budget())).await.unwrap();
    answer.response.expect("a response")
}

/// The text of a tool's answer.
pub(super) fn text(response: Response) -> String {
    let Response::ToolCall(ToolResponse { success: true, result, .. }) = response else { panic!("{response:?}") };
    let object = crate::transport::quic::value::to_object(result.unwrap());
    object["text"].as_str().unwrap().to_owned()
}

/// A channel that somebody asks through to end.
pub(super) fn shutdown() -> (mpsc::Sender<()>, mpsc::Receiver<()>) {
    mpsc::channel(1)
}
