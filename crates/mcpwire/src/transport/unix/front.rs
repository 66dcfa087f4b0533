//! The front on a socket file: each connection is a client, and is given away as a [`Link`].

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcpwire_proto::frame::DEFAULT_LIMIT;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Listener;
use crate::link::{Link, Port};
use crate::transport::lines;

/// How long to wait when no connection can be accepted, for instance for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits and times of the front.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The largest message taken from a client, in bytes.
    pub max_message: usize,
    /// How many connections are open at once; more wait to be accepted.
    pub max_connections: usize,
    /// How long the taker of the links may take to accept a new one.
    pub session_timeout: Duration,
    /// How long what is under way may take when the front is stopped.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_message: DEFAULT_LIMIT,
            max_connections: 1024,
            session_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(10),
        }
    }
}

/// Serves clients until `stop` is ready. Then the socket file is removed, nothing more is read, and what is under way
/// may finish for `options.grace`.
///
/// Every connection is sent to `links`. When it returns, all connections are closed.
pub async fn serve(listener: Listener, options: Options, links: mpsc::Sender<Link>, stop: impl Future<Output = ()>) {
    let (running, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    let room = Arc::new(Semaphore::new(options.max_connections));
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let permit = room.clone().acquire_owned().await.ok();
            (listener.socket.accept().await, permit)
        };
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            accepted = accepted => match accepted {
                (Ok((stream, _)), permit) => {
                    let (links, stopped) = (links.clone(), stopped.clone());
                    connections.spawn(async move {
                        connect(stream, options, links, stopped).await;
                        drop(permit);
                    });
                }
                (Err(error), _) => {
                    tracing::warn!(target: "unix", "cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    drop((running, links));
    let finished = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(options.grace, finished).await;
    connections.shutdown().await;
}

/// Serves one connection: until the link's user drops it, which it should do when nothing more can come.
async fn connect(stream: UnixStream, options: Options, links: mpsc::Sender<Link>, mut stopped: watch::Receiver<()>) {
    let (link, Port { tx, mut rx }) = Link::pair();
    if !matches!(timeout(options.session_timeout, links.send(link)).await, Ok(Ok(()))) {
        tracing::warn!(target: "unix", "nobody takes a new connection");
        return;
    }
    drop(links);
    let (input, output) = stream.into_split();
    let reading = async move {
        tokio::select! {
            read = lines::read(input, tx, options.max_message) => if let Err(error) = read {
                tracing::debug!(target: "unix", "a connection broke: {error}");
            },
            // The sender is dropped when the front is stopped; it never sends.
            _ = stopped.changed() => {}
        }
    };
    let mut writing = pin!(lines::write(output, &mut rx));
    tokio::select! {
        // A client that sends no more may still read.
        () = reading => drop(writing.await),
        _ = &mut writing => {}
    }
}
