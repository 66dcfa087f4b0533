//! The Streamable HTTP front for all versions since 2025-03-26: each session it opens is given away as a [`Link`], and so
//! is one more for all clients that have no sessions (2026-07-28); who serves them is left to the caller.

mod answer;
mod cors;
mod exchange;
mod feed;
mod guard;
mod legacy;
mod log;
mod options;
mod patience;
mod post;
mod router;
mod session;
mod stateless;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod timer;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::link::Link;
use crate::rarely::Rarely;
pub use guard::Token;
pub use options::Options;
use patience::Patience;
use stateless::Stateless;
use table::Table;
use timer::HeadTimer;

/// The largest head of a request, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;
/// How long to wait when no connection can be accepted, for instance for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long connections may take to write their last answers when the grace is over.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How far the front is on its way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// Nothing new begins; what is under way may finish.
    Draining,
    /// What is still under way is answered with an error.
    Ending,
}

/// What all connections share.
#[derive(Debug)]
struct Front {
    options: Arc<Options>,
    table: Arc<Table>,
    stateless: Stateless,
    sessions: mpsc::Sender<Link>,
    stage: watch::Receiver<Stage>,
    /// Held by every session, so that the front can wait for the last of them.
    alive: mpsc::Sender<Infallible>,
}

/// Serves HTTP on the listener until `stop` is ready, then lets what is under way finish for `options.grace`.
///
/// Every session that a client opens is sent to `sessions`. When it returns, all connections and sessions are gone.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    sessions: mpsc::Sender<Link>,
    stop: impl Future<Output = ()>,
) {
    let (stage_tx, stage) = watch::channel(Stage::Running);
    let (alive, mut last_alive) = mpsc::channel(1);
    let options = Arc::new(options);
    let table = Arc::new(Table::new(options.max_sessions));
    let front =
        Arc::new(Front { options: options.clone(), table, stateless: Stateless::default(), sessions, stage, alive });
    let mut connections = JoinSet::new();

    accept(listener, &front, &mut connections, stop).await;

    tracing::debug!(target: "http", connections = connections.len(), "draining");
    stage_tx.send_replace(Stage::Draining);
    let _ = timeout(options.grace, finish(&mut connections)).await;
    stage_tx.send_replace(Stage::Ending);
    let _ = timeout(LAST_WORDS, finish(&mut connections)).await;
    connections.shutdown().await;
    drop(front);
    last_alive.recv().await;
}

/// Takes connections until `stop` is ready. Dropping the listener refuses those that come later.
async fn accept(
    listener: TcpListener,
    front: &Arc<Front>,
    connections: &mut JoinSet<()>,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let room = Arc::new(Semaphore::new(front.options.max_connections));
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let permit = room.clone().acquire_owned().await.ok();
            (listener.accept().await, permit)
        };
        tokio::select! {
            () = &mut stop => return,
            Some(_) = connections.join_next() => {}
            accepted = accepted => match accepted {
                (Ok((stream, _)), permit) => {
                    let front = front.clone();
                    connections.spawn(async move {
                        connect(stream, front).await;
                        drop(permit);
                    });
                }
                (Err(error), _) => {
                    tracing::warn!(target: "http", %error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn finish(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Takes a connection in, with a TLS handshake if there is to be one.
async fn connect(stream: TcpStream, front: Arc<Front>) {
    // Small answers must not wait for more.
    let _ = stream.set_nodelay(true);
    match front.options.tls.clone() {
        None => serve_connection(stream, front).await,
        // TLS takes some kilobytes, which others need not pay for.
        Some(tls) => Box::pin(connect_tls(stream, tls, front)).await,
    }
}

async fn connect_tls(stream: TcpStream, tls: Arc<rustls::ServerConfig>, front: Arc<Front>) {
    let handshake = TlsAcceptor::from(tls).accept(stream);
    match timeout(front.options.header_timeout, handshake).await {
        Ok(Ok(stream)) => serve_connection(stream, front).await,
        Ok(Err(error)) => tracing::debug!(target: "http", %error, "a TLS handshake failed"),
        Err(_) => tracing::debug!(target: "http", "a TLS handshake took too long"),
    }
}

/// Serves one connection until it ends; when the front drains, until its request is answered.
async fn serve_connection(stream: impl AsyncRead + AsyncWrite + Unpin, front: Arc<Front>) {
    let mut stage = front.stage.clone();
    let mut builder = http1::Builder::new();
    builder.timer(HeadTimer::default()).header_read_timeout(front.options.header_timeout).max_header_size(LARGEST_HEAD);
    let stream = Patience::new(stream, front.options.write_timeout);
    let service = service_fn(move |request| {
        let front = front.clone();
        async move { Ok::<_, Infallible>(router::route(front, request).await) }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let drained = pin!(async { drop(stage.wait_for(|stage| *stage != Stage::Running).await) });
    let result = tokio::select! {
        biased;
        () = Rarely::new(drained) => None,
        result = connection.as_mut() => Some(result),
    };
    let result = match result {
        Some(result) => result,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(target: "http", %error, "a connection failed");
    }
}
