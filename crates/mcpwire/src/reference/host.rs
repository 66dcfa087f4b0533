//! The reference server on the network: each session of a front is bridged to a server of its own.

use std::future::pending;
use std::time::Duration;

use mcpwire_proto::session::legacy::{Config, Session};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Shared, serve};
use crate::bridge;
use crate::link::Link;
use crate::transport::http::server::{self, Options};
use crate::transport::{quic, unix};

/// How many new sessions wait to be taken.
const BACKLOG: usize = 16;

/// Serves HTTP on the listener until `stop` is ready.
pub async fn host(listener: TcpListener, options: Options, shared: Shared, stop: impl Future<Output = ()>) {
    let (links, opened) = mpsc::channel(BACKLOG);
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
    tokio::join!(quic::serve(listener, options, links, stop), take(opened, shared));
}

/// Serves every session that comes, until the front has ended.
async fn take(mut opened: mpsc::Receiver<Link>, shared: Shared) {
    let mut sessions = JoinSet::new();
    while let Some(front) = opened.recv().await {
        while sessions.try_join_next().is_some() {}
        let (link, port) = Link::pair();
        sessions.spawn(serve(port, shared.clone()));
        let session = Session::new(Config::default());
        sessions.spawn(async {
            bridge::run(front, link, session, pending::<()>(), Duration::ZERO).await;
        });
    }
}
