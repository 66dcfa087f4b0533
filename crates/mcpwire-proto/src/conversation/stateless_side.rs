//! The side of a client whose requests stand for themselves.
//!
//! ```text
//!            first request             a result, or a modern error
//!   None ──────────────────► Asking ─────────────────────────────► Direct
//!                              │ any other error; or silence, and `initialize` is answered
//!                              └──────────────────────────────────► Translated
//! ```

use std::collections::VecDeque;
use std::time::Instant;

use super::asking::Asking;
use super::{Conversation, Effect, Upstream, answer_by};
use crate::era::{self, Era, OldServer, OldServerConfig, Sort};
use crate::session::legacy::{self, Effect as RelayEffect, Phase, Session as Relay};
use crate::{Cause, Failure, Fault, Id, Kind, Message, Packet, method};

/// The most messages that wait for the server's era to be found out.
const MOST_HELD: usize = 10_000;

#[derive(Debug)]
pub(super) enum StatelessSide {
    None,
    Asking(Box<Asking>),
    Direct {
        relay: Box<Relay>,
        /// That it is of this era was only remembered, and nothing has shown it yet.
        on_trust: bool,
    },
    Translated(Box<OldServer>),
}

impl StatelessSide {
    pub(super) fn is_some(&self) -> bool {
        !matches!(self, StatelessSide::None)
    }

    pub(super) fn has(&self, upstream: Upstream) -> bool {
        match self {
            StatelessSide::Translated(server) => server.has(upstream),
            StatelessSide::Asking(asking) => upstream == Upstream::SPARE && asking.has_opening(),
            _ => false,
        }
    }

    fn relay(&self) -> Option<&Relay> {
        match self {
            StatelessSide::Asking(asking) => Some(&asking.relay),
            StatelessSide::Direct { relay, .. } => Some(relay),
            _ => None,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let own = match self {
            StatelessSide::Asking(asking) => {
                asking.opening_relay().and_then(Relay::poll_timeout).into_iter().chain(asking.silent_at).min()
            }
            StatelessSide::Translated(server) => server.poll_timeout(),
            _ => None,
        };
        own.into_iter().chain(self.relay().and_then(Relay::poll_timeout)).min()
    }

    pub(super) fn owed_to_client(&self) -> usize {
        match self {
            StatelessSide::None => 0,
            StatelessSide::Asking(asking) => {
                let held = asking.held.iter().filter(|message| message.is_request() && !message.is(method::LISTEN));
                held.count() + usize::from(asking.asked_by_client.is_some())
            }
            StatelessSide::Direct { relay, .. } => relay.owed_to_client(),
            StatelessSide::Translated(server) => server.owed_to_client(),
        }
    }

    pub(super) fn load(&self) -> usize {
        match self {
            StatelessSide::None => 0,
            StatelessSide::Asking(asking) => asking.held.len() + 1,
            StatelessSide::Direct { relay, .. } => relay.load(),
            StatelessSide::Translated(server) => server.load(),
        }
    }

    /// Whether the server waits for the client's answer to a request under this id.
    pub(super) fn asks(&self, id: &Id) -> bool {
        matches!(self, StatelessSide::Direct { relay, .. } if relay.asks(id))
    }

    pub(super) fn knows(&self, id: &Id) -> bool {
        match self {
            StatelessSide::None => false,
            StatelessSide::Asking(asking) => {
                let asked = asking.asked_by_client.as_ref().and_then(Message::id);
                asked == Some(id) || asking.held.iter().any(|message| message.id() == Some(id))
            }
            StatelessSide::Direct { relay, .. } => relay.knows(id),
            StatelessSide::Translated(server) => server.knows(id),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match self {
            StatelessSide::None => Phase::Idle,
            StatelessSide::Asking(_) => Phase::Opening,
            StatelessSide::Direct { relay, .. } => match relay.phase() {
                // There is nothing to open.
                Phase::Idle => Phase::Open,
                phase => phase,
            },
            StatelessSide::Translated(server) => server.phase(),
        }
    }

    pub(super) fn trouble(&self) -> &str {
        match self {
            StatelessSide::Translated(server) => server.trouble(),
            side => side.relay().map_or("", Relay::trouble),
        }
    }
}

impl Conversation {
    pub(super) fn stateless_client(&mut self, message: Message, now: Instant) {
        let message = match self.stateless {
            // Whoever serves it here knows what to do with a sender beside a text; others are to find it in there.
            StatelessSide::Translated(_) => message,
            _ => message.written_down(),
        };
        match &mut self.stateless {
            StatelessSide::None if message.is_request() => self.begin_stateless(message, now),
            StatelessSide::None => {}
            StatelessSide::Asking(asking) => {
                let cancelled =
                    message.is(method::CANCELLED).then(|| crate::meta::cancelled_request(&message)).flatten();
                if let Some(id) = cancelled {
                    // What was asked is of use to others all the same.
                    asking.asked_by_client.take_if(|asked| asked.id() == Some(&id));
                    return asking.held.retain(|held| held.id() != Some(&id));
                }
                if asking.held.len() < MOST_HELD {
                    asking.held.push_back(message);
                } else if let Some(id) = message.id() {
                    let fault = Fault::Upstream("too much waits for the server already".into());
                    let refusal = fault.to_packet(Some(id));
                    self.tell_client(refusal);
                }
            }
            StatelessSide::Direct { .. } => self.on_stateless_relay(|relay| relay.handle_client(message, now)),
            StatelessSide::Translated(server) => {
                match message.kind() {
                    Kind::Request { .. } => server.handle_request(message, now),
                    _ => server.handle_notification(&message, now),
                }
                self.pump_pool(now);
            }
        }
    }

    fn begin_stateless(&mut self, message: Message, now: Instant) {
        self.close(Upstream::SPARE);
        let taken = self.session.is_some() && self.session_upstream == Upstream::FIRST;
        self.stateless_upstream = if taken { Upstream::SECOND } else { Upstream::FIRST };
        match self.known.stateless {
            Some(true) => {
                self.open(self.stateless_upstream);
                let on_trust = self.config.protocol.is_none();
                let relay = Box::new(Relay::new(self.config.relay.clone()));
                self.stateless = StatelessSide::Direct { relay, on_trust };
                self.stateless_client(message, now);
            }
            Some(false) => {
                let first = (self.opened.contains(&self.stateless_upstream)).then_some(self.stateless_upstream);
                let mut server = self.pool(self.config.protocol.is_none(), now);
                if let Some(upstream) = first {
                    let seat = server.opening_seat(upstream, Sort::of(&message), now);
                    server.adopt(seat, None, now);
                }
                self.stateless = StatelessSide::Translated(Box::new(server));
                self.stateless_client(message, now);
            }
            None => self.ask_stateless(message, now),
        }
    }

    pub(super) fn pool(&self, on_trust: bool, now: Instant) -> OldServer {
        let config = OldServerConfig {
            on_trust,
            relay: legacy::Config { attribute: !self.config.sorted, ..self.config.relay.clone() },
            version: self.config.session_version(),
            most_sessions: self.config.most_sessions,
            most_parked: self.config.most_parked,
            park_for: self.config.park_for,
            key: self.config.key,
        };
        OldServer::new(config, Upstream::POOL, now)
    }

    pub(super) fn stateless_server(&mut self, upstream: Upstream, packet: Packet, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.handle_server(upstream, packet, now);
                self.pump_pool(now);
            }
            StatelessSide::Asking(_) if packet.message.is_response() => self.server_told(upstream, packet, now),
            StatelessSide::Asking(_) => {
                self.on_asking_relay(upstream, now, |relay| relay.handle_server(packet, now));
            }
            StatelessSide::Direct { on_trust: true, .. } if packet.message.is_response() => {
                let answer = packet.message.clone();
                self.on_stateless_relay(|relay| relay.handle_server(packet, now));
                self.prove(&answer);
            }
            _ => self.on_stateless_relay(|relay| relay.handle_server(packet, now)),
        }
    }

    /// The first answer of a server shows whether it still is what it was.
    fn prove(&mut self, answer: &Message) {
        let StatelessSide::Direct { relay, on_trust: on_trust @ true } = &mut self.stateless else { return };
        if matches!(answer.kind(), Kind::Result { .. }) || era::era_by(answer) == Era::Stateless {
            *on_trust = false;
        } else if relay.is_idle() {
            // It may have become another server: the next request asks.
            self.stateless = StatelessSide::None;
            self.learn(|known| known.stateless = None);
        }
    }

    pub(super) fn stateless_failed(&mut self, upstream: Upstream, message: Message, failure: Failure, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.handle_failed(upstream, message, failure, now);
                return self.pump_pool(now);
            }
            StatelessSide::Asking(asking) => {
                let asked = upstream != Upstream::SPARE && message.id() == Some(&asking.question);
                let tried = upstream == Upstream::SPARE;
                if let Some(answer) = answer_by(&message, &failure).filter(|_| asked || tried) {
                    return self.server_told(upstream, answer.into(), now);
                }
                asking.lost |= asked && matches!(failure, Failure::Interrupted(_));
                return self.on_asking_relay(upstream, now, |relay| relay.handle_failed(message, failure, now));
            }
            _ => {}
        }
        let answer = answer_by(&message, &failure);
        self.on_stateless_relay(|relay| relay.handle_failed(message, failure, now));
        answer.iter().for_each(|answer| self.prove(answer));
    }

    pub(super) fn stateless_session_lost(&mut self, upstream: Upstream, why: &str, now: Instant) {
        if let StatelessSide::Translated(server) = &mut self.stateless {
            server.handle_session_lost(upstream, why, now);
            self.pump_pool(now);
        }
    }

    pub(super) fn stateless_gone(&mut self, upstream: Upstream, why: &str, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.handle_server_gone(upstream, why, now);
                self.pump_pool(now);
            }
            StatelessSide::Asking(asking) => {
                asking.lost |= upstream != Upstream::SPARE;
                self.on_asking_relay(upstream, now, |relay| relay.handle_server_gone(why, now));
            }
            _ => self.on_stateless_relay(|relay| relay.handle_server_gone(why, now)),
        }
    }

    /// Whether a closed connection was one of the pool's, which can do without it.
    pub(super) fn close_pooled(&mut self, upstream: Upstream, why: &str, now: Instant) -> bool {
        let StatelessSide::Translated(server) = &mut self.stateless else { return false };
        server.handle_closed(upstream, why, now);
        self.pump_pool(now);
        true
    }

    /// Whether a closed connection was the one on which `initialize` was tried.
    pub(super) fn close_spare(&mut self, upstream: Upstream, why: &str, now: Instant) -> bool {
        let tried = matches!(self.stateless, StatelessSide::Asking(_)) && upstream == Upstream::SPARE;
        if tried {
            self.opening_failed(&Fault::NoAnswer(Cause::Unreachable, why.to_owned()).to_packet(None), now);
        }
        tried
    }

    fn on_asking_relay(&mut self, upstream: Upstream, now: Instant, act: impl FnOnce(&mut Relay)) {
        self.on_asking(now, |asking| {
            if let Some(relay) = asking.relay_of(upstream) {
                act(relay);
            }
        });
    }

    /// Lets the relay to a stateless server do something, and sees to what comes of it.
    fn on_stateless_relay(&mut self, act: impl FnOnce(&mut Relay)) {
        let StatelessSide::Direct { relay, .. } = &mut self.stateless else { return };
        act(relay);
        while let Some(effect) = relay.poll_effect() {
            self.effects.push_back(match effect {
                RelayEffect::ToServer(packet) => Effect::ToServer(self.stateless_upstream, packet),
                RelayEffect::ToClient(packet) => Effect::ToClient(packet),
            });
        }
    }

    pub(super) fn pump_pool(&mut self, now: Instant) {
        let StatelessSide::Translated(server) = &mut self.stateless else { return };
        let over = server.is_refused() && server.is_unused();
        let unserved = if over { server.dissolve() } else { VecDeque::new() };
        while let Some(effect) = server.poll() {
            let news = match &effect {
                Effect::Open(upstream) => self.opened.insert(*upstream),
                Effect::Close(upstream) => self.opened.remove(upstream),
                _ => true,
            };
            if news {
                self.effects.push_back(effect);
            }
        }
        if over {
            // It may have become another server: the next request asks again.
            self.stateless = StatelessSide::None;
            self.learn(|known| known.stateless = None);
            unserved.into_iter().for_each(|message| self.stateless_client(message, now));
        }
    }

    pub(super) fn stateless_timeout(&mut self, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.handle_timeout(now);
                self.pump_pool(now);
            }
            StatelessSide::Asking(asking) => {
                if asking.silent_at.is_some_and(|at| at <= now) {
                    asking.silent_at = None;
                    self.silent_for_long(now);
                }
                self.on_asking(now, |asking| asking.for_each_relay(|relay| relay.handle_timeout(now)));
            }
            _ => self.on_stateless_relay(|relay| relay.handle_timeout(now)),
        }
    }

    pub(super) fn abandon_stateless(&mut self, why: &str, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.abandon(why, now);
                self.pump_pool(now);
            }
            StatelessSide::Asking(_) => {
                self.found_nothing(&Fault::NoAnswer(Cause::Interrupted, why.to_owned()).to_packet(None))
            }
            _ => self.on_stateless_relay(|relay| relay.abandon(why)),
        }
    }
}
