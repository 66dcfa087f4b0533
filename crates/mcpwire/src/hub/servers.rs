//! The servers of a hub: each has a side of a bridge of its own, which sees to eras, recovery and time limits.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::{Duration, Instant};

use mcpwire_proto::hub::Server;
use mcpwire_proto::{Message, Packet};
use tokio::task::JoinSet;

use super::{BURST, Key, Spec};
use crate::bells::{Bell, Bells};
use crate::bridge::{Side, Upstreams};
use crate::link::Event;

/// What a client has before servers are started that are known from before: what is known of them is enough to welcome it,
/// and to start many programs takes longer.
const HEAD_START: Duration = Duration::from_millis(5);

pub(super) struct Servers {
    servers: Vec<Running>,
    told: VecDeque<Told>,
    /// Connections that are being ended.
    goodbyes: JoinSet<()>,
}

struct Running {
    server: Server,
    spec: Spec,
    bell: Bell<Key>,
    door: Door,
    /// When the side wants to be looked at.
    alarm: Option<Instant>,
}

enum Door {
    Shut,
    /// It is to be opened at that time, and then sent these.
    Opening {
        at: Instant,
        held: Vec<Message>,
    },
    Open(Box<Side>),
}

/// What a server has told.
pub(super) enum Told {
    Packet(Server, Packet),
    /// The connection to it is over.
    Closed(Server),
}

impl Servers {
    pub(super) fn new() -> Servers {
        Servers { servers: Vec::new(), told: VecDeque::new(), goodbyes: JoinSet::new() }
    }

    pub(super) fn insert(&mut self, server: Server, spec: Spec, bells: &Bells<Key>) {
        if self.at(server).is_none() {
            let bell = bells.add(Key::Server(server));
            self.servers.push(Running { server, spec, bell, door: Door::Shut, alarm: None });
        }
    }

    pub(super) fn spec(&self, server: Server) -> Option<&Spec> {
        self.servers.iter().find(|running| running.server == server).map(|running| &running.spec)
    }

    /// The connection to a server is to be opened. To start a program takes its time, so it is done when that is looked for.
    pub(super) fn open(&mut self, server: Server, now: Instant) {
        let Some(at) = self.at(server) else { return };
        let running = &mut self.servers[at];
        let wait = if running.spec.cached.is_some() { HEAD_START } else { Duration::ZERO };
        running.door = Door::Opening { at: now + wait, held: Vec::new() };
    }

    /// Opens a connection that is due, if there is one; then there may be others.
    pub(super) fn open_next(&mut self, now: Instant) -> bool {
        let due = |running: &Running| matches!(running.door, Door::Opening { at, .. } if at <= now);
        let Some(at) = self.servers.iter().position(due) else { return false };
        let running = &mut self.servers[at];
        let reach = running.spec.reach.clone();
        // If it cannot be had now, the side finds out and says so.
        let upstreams = Upstreams::opened(reach.clone()).unwrap_or_else(|_| Upstreams::new(reach));
        let mut side = Box::new(Side::new(upstreams, running.spec.config.clone(), Some(running.spec.health.watch())));
        if let Door::Opening { held, .. } = std::mem::replace(&mut running.door, Door::Shut) {
            held.into_iter().for_each(|message| side.on_client(Event::Packet(message.into()), now));
        }
        running.door = Door::Open(side);
        self.settle(at, now);
        true
    }

    /// Ends the connection to a server that is no more.
    pub(super) fn remove(&mut self, server: Server, now: Instant) {
        let Some(at) = self.at(server) else { return };
        if let Door::Open(side) = self.servers.remove(at).door {
            self.end(*side, "the server was taken out", now);
        }
    }

    pub(super) fn send(&mut self, server: Server, message: Message, now: Instant) {
        let Some(at) = self.at(server) else { return };
        match &mut self.servers[at].door {
            Door::Shut => return,
            Door::Opening { held, .. } => return held.push(message),
            Door::Open(side) => side.on_client(Event::Packet(message.into()), now),
        }
        self.settle(at, now);
    }

    /// A server may have something to say.
    pub(super) fn hear(&mut self, server: Server, now: Instant) {
        let Some(at) = self.at(server) else { return };
        let Running { door: Door::Open(side), bell, .. } = &mut self.servers[at] else { return };
        let mut left = BURST;
        while left > 0
            && let Poll::Ready(news) = bell.poll(|cx| side.poll_news(true, cx))
        {
            side.on_news(news, now);
            left -= 1;
        }
        if left == 0 {
            bell.ring();
        }
        self.settle(at, now);
    }

    /// What servers have told.
    pub(super) fn told(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// When [`Servers::on_alarm`] wants to be called.
    pub(super) fn alarm(&self) -> Option<Instant> {
        let of = |running: &Running| match running.door {
            Door::Opening { at, .. } => Some(at),
            _ => running.alarm,
        };
        self.servers.iter().filter_map(of).min()
    }

    pub(super) fn on_alarm(&mut self, now: Instant) {
        for at in 0..self.servers.len() {
            let running = &mut self.servers[at];
            if running.alarm.is_some_and(|alarm| alarm <= now)
                && let Door::Open(side) = &mut running.door
            {
                side.on_alarm(now);
                self.settle(at, now);
            }
        }
    }

    /// Ends all connections, and waits until everything behind them is gone.
    pub(super) async fn gone(mut self, now: Instant) {
        for running in std::mem::take(&mut self.servers) {
            if let Door::Open(side) = running.door {
                self.end(*side, "the hub has ended", now);
            }
        }
        while self.goodbyes.join_next().await.is_some() {}
    }

    fn at(&self, server: Server) -> Option<usize> {
        self.servers.iter().position(|running| running.server == server)
    }

    /// Sees to what came of something that happened to a side.
    fn settle(&mut self, at: usize, now: Instant) {
        let Servers { servers, told, .. } = self;
        let Running { server, door, bell, alarm, .. } = &mut servers[at];
        let Door::Open(side) = door else { return };
        side.pump(now, |packet| told.push_back(Told::Packet(*server, packet)));
        *alarm = side.alarm();
        if side.wants_to_be_polled() {
            bell.ring();
        }
        if side.is_over()
            && let Door::Open(side) = std::mem::replace(door, Door::Shut)
        {
            *alarm = None;
            let server = *server;
            let last = self.end(*side, "the connection to the server ended", now);
            self.told.extend(last.into_iter().map(|packet| Told::Packet(server, packet)));
            self.told.push_back(Told::Closed(server));
        }
    }

    /// Gives what is still to be told.
    fn end(&mut self, mut side: Side, why: &str, now: Instant) -> Vec<Packet> {
        while self.goodbyes.try_join_next().is_some() {}
        let mut last = Vec::new();
        side.abandon(why, now);
        side.pump(now, |packet| last.push(packet));
        self.goodbyes.spawn(side.into_upstreams().gone());
        last
    }
}
