//! Sessions of fronts, each bridged to a server: one of its own, or one that all share.

use std::time::Duration;

use mcpwire_proto::session::legacy::{Config, Session};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::bridge;
use crate::health::Health;
use crate::link::Link;
use crate::share::Entrance;

/// How a link to the target is made; its handle completes when everything behind it is gone.
pub type Connect = Box<dyn Fn() -> anyhow::Result<(Link, JoinHandle<()>)> + Send>;

/// Where sessions find their server.
pub enum Servers {
    /// A server for each session.
    Each(Connect),
    /// One server for all.
    Shared(Entrance),
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Servers::Each(_) => "Each",
            Servers::Shared(_) => "Shared",
        })
    }
}

/// Bridges every session that comes until the fronts have ended, and waits until the last server is gone.
///
/// When `stop` turns true, bridges take no more requests and answer what is under way for up to `drain`.
pub async fn run(
    mut sessions: mpsc::Receiver<Link>,
    servers: Servers,
    config: Config,
    health: Health,
    stop: watch::Receiver<bool>,
    drain: Duration,
) {
    let mut bridges = JoinSet::new();
    while let Some(front) = sessions.recv().await {
        while bridges.try_join_next().is_some() {}
        let (server, goodbye) = match &servers {
            Servers::Shared(entrance) => (entrance.link().await, None),
            Servers::Each(connect) => match connect() {
                Ok((link, goodbye)) => (link, Some(goodbye)),
                Err(error) => {
                    tracing::error!(target: "expose", "cannot reach for the server: {error:#}");
                    continue;
                }
            },
        };
        let session = Session::new(Config { seed: fastrand::u64(..), ..config.clone() });
        let (watch, stop) = (health.watch(), stopped(stop.clone()));
        bridges.spawn(async move {
            bridge::run_watched(front, server, session, stop, drain, Some(watch)).await;
            if let Some(goodbye) = goodbye {
                let _ = goodbye.await;
            }
        });
    }
    while bridges.join_next().await.is_some() {}
}

/// Completes when `stop` turns true.
pub async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
