//! Sessions of fronts, each bridged to a server: one of its own, or one that all share.

use std::sync::Arc;
use std::time::Duration;

use mcpwire_proto::conversation::Config;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::bridge::{self, Reach, Upstreams};
use crate::health::Health;
use crate::link::Link;

/// Bridges every session that comes until the fronts have ended, and waits until the last server is gone.
///
/// When `stop` turns true, bridges take no more requests and answer what is under way for up to `drain`.
pub async fn run(
    mut sessions: mpsc::Receiver<Link>,
    server: Reach,
    config: Arc<Config>,
    health: Health,
    stop: watch::Receiver<bool>,
    drain: Duration,
) {
    let mut bridges = JoinSet::new();
    while let Some(front) = sessions.recv().await {
        while bridges.try_join_next().is_some() {}
        let upstreams = match Upstreams::opened(server.clone()) {
            Ok(upstreams) => upstreams,
            Err(error) => {
                tracing::error!(target: "expose", "cannot reach for the server: {error:#}");
                continue;
            }
        };
        let mut config = Config::clone(&config);
        config.relay.seed = fastrand::u64(..);
        let bridge = bridge::carry(front, upstreams, config, stopped(stop.clone()), drain, Some(health.watch()));
        bridges.spawn(async {
            let (_, upstreams) = bridge.await;
            upstreams.gone().await;
        });
    }
    while bridges.join_next().await.is_some() {}
}

/// Completes when `stop` turns true.
pub async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
