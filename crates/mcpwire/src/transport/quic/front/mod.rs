//! The front on a UDP port: connections are served by the protocol that they have agreed on. Each is a client with a session
//! of its own, which is given away as a [`Link`].

mod answers;
mod caller;
mod content;
mod orchestra;
mod storage;
mod stream;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcpwire_proto::frame::DEFAULT_LIMIT;
use quinn::crypto::rustls::HandshakeData;
use quinn::{Connection, Endpoint, Incoming, TokioRuntime, VarInt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::certs::Identity;
use super::frame::{Budget, LONGEST};
use super::{MCP_ALPN, ORCHESTRA_ALPN, mcp, tls};
use crate::link::Link;

/// How long a client may take for the handshake.
const GREETING: Duration = Duration::from_secs(10);
/// How long the last packets may take.
const FAREWELL: Duration = Duration::from_millis(500);
/// Memory for requests that are still arriving, of all clients.
const ARRIVING: usize = 8 * LONGEST;

/// Limits and times of the front.
#[derive(Debug, Clone)]
pub struct Options {
    /// The largest message of MCP taken from a client, in bytes; Orchestra has a limit of its own.
    pub max_message: usize,
    /// How many connections are open at once; more are refused.
    pub max_connections: usize,
    /// How long the taker of the links may take to accept a new one.
    pub session_timeout: Duration,
    /// How long what is under way may take when the front is stopped.
    pub grace: Duration,
    /// A client may ask us to end, as orchestrators ask their plugins: it is told here.
    pub shutdown: Option<mpsc::Sender<()>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_message: DEFAULT_LIMIT,
            max_connections: 1024,
            session_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(10),
            shutdown: None,
        }
    }
}

/// A port that clients can come to.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
}

impl Listener {
    /// Clients must show a certificate of our authority; if `anonymous`, they may as well show none.
    pub fn bind(address: SocketAddr, identity: &Identity, anonymous: bool) -> io::Result<Listener> {
        let config = tls::server(identity, &[ORCHESTRA_ALPN, MCP_ALPN], anonymous).map_err(io::Error::other)?;
        let socket = UdpSocket::bind(address)?;
        let endpoint = Endpoint::new(tls::endpoint(identity), Some(config), socket, Arc::new(TokioRuntime))?;
        Ok(Listener { endpoint })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }
}

/// What connections are served with.
#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) options: Arc<Options>,
    pub(super) links: mpsc::Sender<Link>,
    budget: Budget,
    /// Closed when the front is stopped; nothing is ever sent.
    pub(super) stopped: watch::Receiver<()>,
}

/// Serves clients until `stop` is ready. Then nothing more is taken, and what is under way may finish for
/// `options.grace`. When it returns, all connections are closed.
pub async fn serve(listener: Listener, options: Options, links: mpsc::Sender<Link>, stop: impl Future<Output = ()>) {
    let (running, stopped) = watch::channel(());
    let grace = options.grace;
    let service = Service { options: Arc::new(options), links, budget: Budget::new(ARRIVING), stopped };
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            incoming = listener.endpoint.accept() => match incoming {
                Some(incoming) if connections.len() >= service.options.max_connections => {
                    tracing::warn!(target: "quic", "refused a connection: there are too many");
                    incoming.refuse();
                }
                Some(incoming) => {
                    connections.spawn(greet(incoming, service.clone()));
                }
                None => break,
            },
        }
    }
    drop((running, service));
    let finished = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(grace, finished).await;
    connections.shutdown().await;
    listener.endpoint.close(VarInt::from_u32(0), b"");
    let _ = timeout(FAREWELL, listener.endpoint.wait_idle()).await;
}

async fn greet(incoming: Incoming, service: Service) {
    let from = incoming.remote_address();
    let connecting = async { incoming.accept()?.await };
    let connection = match timeout(GREETING, connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return tracing::info!(target: "quic", "no connection with {from}: {error}"),
        Err(_) => return tracing::info!(target: "quic", "no connection with {from}: it takes too long"),
    };
    match alpn(&connection).as_deref() {
        Some(ORCHESTRA_ALPN) => orchestra::serve(connection, service).await,
        Some(MCP_ALPN) => mcp::serve(connection, service).await,
        // The handshake agrees on one of these or fails.
        _ => connection.close(VarInt::from_u32(0), b"no protocol"),
    }
}

fn alpn(connection: &Connection) -> Option<Vec<u8>> {
    connection.handshake_data()?.downcast::<HandshakeData>().ok()?.protocol
}
