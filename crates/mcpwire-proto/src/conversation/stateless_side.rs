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

use super::{Conversation, Effect, Upstream};
use crate::era::{self, Era, OldServer, OldServerConfig, Seat, Sort};
use crate::session::legacy::{self, Effect as RelayEffect, Phase, Session as Relay};
use crate::{Failure, Fault, Id, Kind, Lane, Message, Packet, method};

/// The most messages that wait for the server's era to be found out.
const MOST_HELD: usize = 10_000;

#[derive(Debug)]
pub(super) enum StatelessSide {
    None,
    Asking(Box<Asking>),
    Direct(Box<Relay>),
    Translated(Box<OldServer>),
}

/// `server/discover` is with a server of which nothing is known.
#[derive(Debug)]
pub(super) struct Asking {
    relay: Relay,
    question: Id,
    /// The question is the client's own, so the answer is, too.
    asked_by_client: Option<Message>,
    held: VecDeque<Message>,
    /// When the silence has been long enough: to try `initialize` as well, or to give up.
    silent_at: Option<Instant>,
    /// Our `initialize`, if it was sent.
    opening: Option<Id>,
    /// The server's refusal of it.
    refusal: Option<Message>,
    /// `server/discover` was answered with an error while `initialize` was under way.
    declined: bool,
    /// For whom a session would be opened.
    sort: Sort,
    /// The server went away while it had the question.
    lost: bool,
}

impl StatelessSide {
    pub(super) fn is_some(&self) -> bool {
        !matches!(self, StatelessSide::None)
    }

    pub(super) fn has(&self, upstream: Upstream) -> bool {
        matches!(self, StatelessSide::Translated(server) if server.has(upstream))
    }

    fn relay(&self) -> Option<&Relay> {
        match self {
            StatelessSide::Asking(asking) => Some(&asking.relay),
            StatelessSide::Direct(relay) => Some(relay),
            _ => None,
        }
    }

    fn relay_mut(&mut self) -> Option<&mut Relay> {
        match self {
            StatelessSide::Asking(asking) => Some(&mut asking.relay),
            StatelessSide::Direct(relay) => Some(relay),
            _ => None,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let own = match self {
            StatelessSide::Asking(asking) => asking.silent_at,
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
            StatelessSide::Direct(relay) => relay.owed_to_client(),
            StatelessSide::Translated(server) => server.owed_to_client(),
        }
    }

    pub(super) fn knows(&self, id: &Id) -> bool {
        match self {
            StatelessSide::None => false,
            StatelessSide::Asking(asking) => {
                let asked = asking.asked_by_client.as_ref().and_then(Message::id);
                asked == Some(id) || asking.held.iter().any(|message| message.id() == Some(id))
            }
            StatelessSide::Direct(relay) => relay.knows(id),
            StatelessSide::Translated(server) => server.knows(id),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match self {
            StatelessSide::None => Phase::Idle,
            StatelessSide::Asking(_) => Phase::Opening,
            StatelessSide::Direct(relay) => match relay.phase() {
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
        match &mut self.stateless {
            StatelessSide::None if message.is_request() => self.begin_stateless(message, now),
            StatelessSide::None => {}
            StatelessSide::Asking(asking) => {
                let cancelled =
                    message.is(method::CANCELLED).then(|| crate::meta::cancelled_request(&message)).flatten();
                if let Some(id) = cancelled {
                    return asking.held.retain(|held| held.id() != Some(&id));
                }
                if asking.held.len() < MOST_HELD {
                    asking.held.push_back(message);
                } else if let Some(id) = message.id() {
                    let fault = Fault::Upstream("too much waits for the server already".into());
                    let refusal = fault.to_message(Some(id));
                    self.tell_client(refusal);
                }
            }
            StatelessSide::Direct(_) => self.on_stateless_relay(now, |relay| relay.handle_client(message, now)),
            StatelessSide::Translated(server) => {
                match message.kind() {
                    Kind::Request { .. } => server.handle_request(message, now),
                    _ => server.handle_notification(&message, now),
                }
                self.pump_pool();
            }
        }
    }

    fn begin_stateless(&mut self, message: Message, now: Instant) {
        let taken = self.session.is_some() && self.session_upstream == Upstream::FIRST;
        self.stateless_upstream = if taken { Upstream::SECOND } else { Upstream::FIRST };
        match self.known.stateless {
            Some(true) => {
                self.open(self.stateless_upstream);
                self.stateless = StatelessSide::Direct(Box::new(Relay::new(self.config.relay.clone())));
                self.stateless_client(message, now);
            }
            Some(false) => {
                let first = (self.opened.contains(&self.stateless_upstream)).then_some(self.stateless_upstream);
                let mut server = self.pool(now);
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

    fn pool(&self, now: Instant) -> OldServer {
        let config = OldServerConfig {
            relay: legacy::Config { attribute: !self.config.sorted, ..self.config.relay.clone() },
            version: self.config.session_version(),
            most_sessions: self.config.most_sessions,
            most_parked: self.config.most_parked,
            park_for: self.config.park_for,
            key: self.config.key,
        };
        OldServer::new(config, Upstream::POOL, now)
    }

    fn ask_stateless(&mut self, message: Message, now: Instant) {
        self.open(self.stateless_upstream);
        let own = message.is(method::DISCOVER);
        let question = match message.id() {
            Some(id) if own => id.clone(),
            _ => Id::from("mcpwire-discover"),
        };
        let discover = if own { message.clone() } else { era::discover_like(&question, &message) };
        let sort = Sort::of(&message);
        let (asked_by_client, held) =
            if own { (Some(message), VecDeque::new()) } else { (None, VecDeque::from([message])) };
        self.stateless = StatelessSide::Asking(Box::new(Asking {
            relay: Relay::new(self.config.relay.clone()),
            question,
            asked_by_client,
            held,
            silent_at: Some(now + self.config.probe_for),
            opening: None,
            refusal: None,
            declined: false,
            sort,
            lost: false,
        }));
        self.on_stateless_relay(now, |relay| relay.handle_client(discover, now));
    }

    pub(super) fn stateless_server(&mut self, upstream: Upstream, packet: Packet, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.handle_server(upstream, packet, now);
                return self.pump_pool();
            }
            StatelessSide::Asking(_) if packet.message.is_response() => return self.server_told(packet, now),
            _ => {}
        }
        self.on_stateless_relay(now, |relay| relay.handle_server(packet, now));
    }

    /// An answer to one of the questions by which the server's era is found out.
    fn server_told(&mut self, packet: Packet, now: Instant) {
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        let (id, succeeded) = (packet.message.id(), matches!(packet.message.kind(), Kind::Result { .. }));
        if id == Some(&asking.question) {
            match (era::era_by(&packet.message), asking.refusal.take()) {
                (Era::Stateless, _) => self.found_stateless(&packet.message, now),
                (Era::Session, _) if asking.opening.is_none() => self.found_session(now),
                (Era::Session, None) => asking.declined = true,
                (Era::Session, Some(refusal)) => self.found_nothing(&refusal),
            }
        } else if id.is_some() && id == asking.opening.as_ref() {
            if succeeded {
                self.found_open_session(packet, now);
            } else if asking.declined {
                self.found_nothing(&packet.message);
            } else {
                asking.refusal = Some(packet.message);
                asking.silent_at = Some(now + self.config.probe_for);
            }
        }
    }

    fn found_stateless(&mut self, answer: &Message, now: Instant) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        self.learn(|known| known.stateless = Some(true));
        if let Some(id) = asking.asked_by_client.as_ref().and_then(Message::id) {
            self.effects
                .push_back(Effect::ToClient(Packet { lane: Lane::Request(id.clone()), message: answer.with_id(id) }));
        }
        self.stateless = StatelessSide::Direct(Box::new(Relay::new(self.config.relay.clone())));
        asking.held.into_iter().for_each(|message| self.stateless_client(message, now));
    }

    /// The server is of the session era: a session is opened where it was asked.
    fn found_session(&mut self, now: Instant) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        tracing::info!(target: "era", "the server needs sessions: they are kept for clients that have none");
        self.learn(|known| known.stateless = Some(false));
        let mut server = self.pool(now);
        let seat = server.opening_seat(self.stateless_upstream, asking.sort, now);
        server.adopt(seat, None, now);
        self.serve_from_pool(server, asking.asked_by_client, asking.held, now);
    }

    /// It was silent to `server/discover` and has answered `initialize`.
    fn found_open_session(&mut self, answer: Packet, now: Instant) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        let Asking { mut relay, asked_by_client, held, opening, sort, .. } = *asking;
        let Some(opening) = opening else { return };
        self.learn(|known| known.stateless = Some(false));
        let result = answer.message.clone();
        relay.handle_server(answer, now);
        while relay.poll_effect().is_some() {}
        let mut server = self.pool(now);
        server.adopt(Seat::new(self.stateless_upstream, relay, sort, opening, now), Some(&result), now);
        self.serve_from_pool(server, asked_by_client, held, now);
    }

    fn serve_from_pool(&mut self, server: OldServer, first: Option<Message>, held: VecDeque<Message>, now: Instant) {
        self.stateless = StatelessSide::Translated(Box::new(server));
        self.pump_pool();
        first.into_iter().chain(held).for_each(|message| self.stateless_client(message, now));
    }

    /// Nothing could be found out: everybody who waits hears why, and the next request tries again.
    fn found_nothing(&mut self, error: &Message) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        for message in asking.asked_by_client.iter().chain(&asking.held) {
            if let Some(id) = message.id() {
                self.tell_client(error.with_id(id));
            }
        }
    }

    pub(super) fn stateless_failed(&mut self, upstream: Upstream, message: Message, failure: Failure, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.handle_failed(upstream, message, failure, now);
                return self.pump_pool();
            }
            StatelessSide::Asking(asking) if message.id() == Some(&asking.question) => match &failure {
                Failure::Refused(_) if asking.opening.is_none() => return self.found_session(now),
                Failure::Refused(_) => return asking.declined = true,
                Failure::Interrupted(_) => asking.lost = true,
                _ => {}
            },
            _ => {}
        }
        self.on_stateless_relay(now, |relay| relay.handle_failed(message, failure, now));
    }

    pub(super) fn stateless_session_lost(&mut self, upstream: Upstream, why: &str, now: Instant) {
        if let StatelessSide::Translated(server) = &mut self.stateless {
            server.handle_session_lost(upstream, why, now);
            self.pump_pool();
        }
    }

    pub(super) fn stateless_gone(&mut self, upstream: Upstream, why: &str, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.handle_server_gone(upstream, why, now);
                return self.pump_pool();
            }
            StatelessSide::Asking(asking) => asking.lost = true,
            _ => {}
        }
        self.on_stateless_relay(now, |relay| relay.handle_server_gone(why, now));
    }

    /// Whether a closed connection was one of the pool's, which can do without it.
    pub(super) fn close_pooled(&mut self, upstream: Upstream, why: &str, now: Instant) -> bool {
        let StatelessSide::Translated(server) = &mut self.stateless else { return false };
        server.handle_closed(upstream, why, now);
        self.pump_pool();
        true
    }

    fn on_stateless_relay(&mut self, now: Instant, act: impl FnOnce(&mut Relay)) {
        let Some(relay) = self.stateless.relay_mut() else { return };
        act(relay);
        let upstream = self.stateless_upstream;
        while let Some(effect) = self.stateless.relay_mut().and_then(Relay::poll_effect) {
            match (effect, &self.stateless) {
                (RelayEffect::ToServer(packet), _) => self.effects.push_back(Effect::ToServer(upstream, packet)),
                (RelayEffect::ToClient(packet), StatelessSide::Asking(asking)) => {
                    if packet.message.id() != Some(&asking.question) {
                        continue;
                    }
                    // The relay gave up. A server that goes away when it is asked may still open a session.
                    if asking.lost { self.found_session(now) } else { self.found_nothing(&packet.message) }
                }
                (RelayEffect::ToClient(packet), _) => self.effects.push_back(Effect::ToClient(packet)),
            }
        }
    }

    fn pump_pool(&mut self) {
        let StatelessSide::Translated(server) = &mut self.stateless else { return };
        while let Some(effect) = server.poll() {
            match &effect {
                Effect::Open(upstream) => drop(self.opened.insert(*upstream)),
                Effect::Close(upstream) => drop(self.opened.remove(upstream)),
                _ => {}
            }
            self.effects.push_back(effect);
        }
        if server.take_refused() && server.is_unused() {
            // It may have become another server: the next request asks again.
            self.stateless = StatelessSide::None;
            self.learn(|known| known.stateless = None);
        }
    }

    pub(super) fn stateless_timeout(&mut self, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.handle_timeout(now);
                return self.pump_pool();
            }
            StatelessSide::Asking(asking) if asking.silent_at.is_some_and(|at| at <= now) => {
                asking.silent_at = None;
                if let Some(refusal) = asking.refusal.take() {
                    return self.found_nothing(&refusal);
                }
                let opening = Id::from("mcpwire-initialize");
                let initialize = era::opener(self.config.session_version(), &asking.sort, &opening);
                asking.opening = Some(opening);
                self.on_stateless_relay(now, |relay| relay.handle_client(initialize, now));
            }
            _ => {}
        }
        self.on_stateless_relay(now, |relay| relay.handle_timeout(now));
    }

    pub(super) fn abandon_stateless(&mut self, why: &str, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Translated(server) => {
                server.abandon(why, now);
                self.pump_pool();
            }
            StatelessSide::Asking(_) => self.found_nothing(&Fault::Upstream(why.to_owned()).to_message(None)),
            _ => self.on_stateless_relay(now, |relay| relay.abandon(why)),
        }
    }
}
