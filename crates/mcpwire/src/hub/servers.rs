//! The servers of a hub: each behind a bridge of its own, which sees to eras, recovery and time limits.

use std::task::{Context, Poll};
use std::time::Duration;

use mcpwire_proto::hub::Server;
use mcpwire_proto::{Message, Packet};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Spec;
use super::outlet::Outlet;
use crate::bridge::{self, Upstreams};
use crate::channel::Receiver;
use crate::link::{Event, Link, Port};

/// What a client has before servers are started that are known from before: what is known of them is enough to welcome it,
/// and to start many programs takes longer.
const HEAD_START: Duration = Duration::from_millis(5);

pub(super) struct Servers {
    servers: Vec<Running>,
    bridges: JoinSet<()>,
    /// Who is looked at first: everybody in turn.
    first: usize,
}

struct Running {
    server: Server,
    spec: Spec,
    bridge: Option<Bridge>,
}

/// Our end of a bridge, of which we are the client.
struct Bridge {
    outlet: Outlet<Event>,
    rx: Receiver<Packet>,
}

/// What happened.
pub(super) enum News {
    /// A bridge took something.
    Sent,
    Came(Server, Packet),
    /// A bridge has ended.
    Closed(Server),
}

impl Servers {
    pub(super) fn new() -> Servers {
        Servers { servers: Vec::new(), bridges: JoinSet::new(), first: 0 }
    }

    pub(super) fn insert(&mut self, server: Server, spec: Spec) {
        if !self.servers.iter().any(|running| running.server == server) {
            self.servers.push(Running { server, spec, bridge: None });
        }
    }

    pub(super) fn spec(&self, server: Server) -> Option<&Spec> {
        self.servers.iter().find(|running| running.server == server).map(|running| &running.spec)
    }

    /// Builds the bridge to a server.
    pub(super) fn open(&mut self, server: Server) {
        while self.bridges.try_join_next().is_some() {}
        let Some(running) = self.servers.iter_mut().find(|running| running.server == server) else { return };
        let (downstream, port) = client_of_a_bridge();
        let (reach, config) = (running.spec.reach.clone(), running.spec.config.clone());
        let watch = Some(running.spec.health.watch());
        let known = running.spec.cached.is_some();
        self.bridges.spawn(async move {
            if known {
                sleep(HEAD_START).await;
            }
            // If it cannot be had now, the bridge finds out and says so.
            let upstreams = Upstreams::opened(reach.clone()).unwrap_or_else(|_| Upstreams::new(reach));
            let never = std::future::pending::<()>();
            let (_, upstreams) = bridge::carry(downstream, upstreams, config, never, Duration::ZERO, watch).await;
            upstreams.gone().await;
        });
        running.bridge = Some(port);
    }

    /// Ends the bridge to a server that is no more.
    pub(super) fn remove(&mut self, server: Server) {
        self.servers.retain(|running| running.server != server);
    }

    pub(super) fn send(&mut self, server: Server, message: Message) {
        let running = self.servers.iter_mut().find(|running| running.server == server);
        if let Some(bridge) = running.and_then(|running| running.bridge.as_mut()) {
            bridge.outlet.push(Event::Packet(message.into()));
        }
    }

    pub(super) fn flush(&mut self) {
        for bridge in self.servers.iter_mut().filter_map(|running| running.bridge.as_mut()) {
            bridge.outlet.flush();
        }
    }

    /// What has come already.
    pub(super) fn take(&mut self) -> Option<(Server, Packet)> {
        let count = self.servers.len();
        for at in 0..count {
            let running = &mut self.servers[(self.first + at) % count];
            if let Some(packet) = running.bridge.as_mut().and_then(|bridge| bridge.rx.try_recv().ok()) {
                let server = running.server;
                self.first = (self.first + at + 1) % count;
                return Some((server, packet));
            }
        }
        None
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<News> {
        for running in &mut self.servers {
            let Some(bridge) = &mut running.bridge else { continue };
            if bridge.outlet.poll_room(cx).is_ready() {
                return Poll::Ready(News::Sent);
            }
            match bridge.rx.poll_recv(cx) {
                Poll::Ready(Some(packet)) => return Poll::Ready(News::Came(running.server, packet)),
                Poll::Ready(None) => {
                    running.bridge = None;
                    return Poll::Ready(News::Closed(running.server));
                }
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }

    /// Ends all bridges, and waits until everything behind them is gone.
    pub(super) async fn gone(mut self) {
        self.servers.clear();
        while self.bridges.join_next().await.is_some() {}
    }
}

fn client_of_a_bridge() -> (Link, Bridge) {
    let (downstream, Port { tx, rx }) = Link::pair();
    (downstream, Bridge { outlet: Outlet::new(tx), rx })
}
