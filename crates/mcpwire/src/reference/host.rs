//! The reference server on the network: each link of a front gets a server loop of its own.

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Shared, serve_front};
use crate::link::Link;
use crate::transport::http::server::{self, Options};
use crate::transport::{quic, unix};

/// How many new links wait to be taken.
const BACKLOG: usize = 16;

/// Serves HTTP on the listener until `stop` is ready.
pub async fn host(listener: TcpListener, options: Options, shared: Shared, stop: impl Future<Output = ()>) {
    let (links, opened) = mpsc::channel(BACKLOG);
    let stop = close(stop, shared.clone());
    tokio::join!(server::serve(listener, options, links, stop), take(opened, shared));
}

/// Serves a Unix socket until `stop` is ready.
pub async fn host_unix(
    listener: unix::Listener,
    options: unix::Options,
    shared: Shared,
    stop: impl Future<Output = ()>,
) {
    let (links, opened) = mpsc::channel(BACKLOG);
    let stop = close(stop, shared.clone());
    tokio::join!(unix::serve(listener, options, links, stop), take(opened, shared));
}

/// Serves a QUIC port until `stop` is ready.
pub async fn host_quic(
    listener: quic::Listener,
    options: quic::FrontOptions,
    shared: Shared,
    stop: impl Future<Output = ()>,
) {
    let (links, opened) = mpsc::channel(BACKLOG);
    let stop = close(stop, shared.clone());
    tokio::join!(quic::serve(listener, options, links, stop), take(opened, shared));
}

/// Lets subscriptions end before the front does.
async fn close(stop: impl Future<Output = ()>, shared: Shared) {
    stop.await;
    shared.close().await;
}

/// Serves every link that comes, until the front has ended.
async fn take(mut opened: mpsc::Receiver<Link>, shared: Shared) {
    let mut clients = JoinSet::new();
    while let Some(front) = opened.recv().await {
        while clients.try_join_next().is_some() {}
        clients.spawn(serve_front(front, shared.clone()));
    }
}
