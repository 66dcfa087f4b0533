//! Sessions with the server that are kept for requests which stand for themselves: those of stateless clients if the server
//! needs sessions, and those of session-era clients that arrive one by one, as they do behind a hub.
//!
//! A server of both eras is asked in the era of the client. Only in a session can it ask a session-era client something
//! the way that client, and often the server's own code, knows.

use std::collections::VecDeque;
use std::time::Instant;

use super::stateless_side::StatelessSide;
use super::{Conversation, Effect, Upstream};
use crate::era::{OldServer, OldServerConfig, Sort};
use crate::session::legacy;
use crate::{Failure, Id, Kind, Message, Packet, meta, method};

impl Conversation {
    /// Whether the pool serves a message of the client's.
    pub(super) fn is_for_pool(&self, message: &Message) -> bool {
        if matches!(self.stateless, StatelessSide::Translated) {
            return true;
        }
        if message.is_request() {
            return message.sender().is_some() && self.known.session != Some(false);
        }
        let cancelled = message.is(method::CANCELLED).then(|| meta::cancelled_request(message)).flatten();
        cancelled.is_some_and(|id| self.pool_knows(&id))
    }

    pub(super) fn pool_knows(&self, id: &Id) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.knows(id))
    }

    pub(super) fn pool_has(&self, upstream: Upstream) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.has(upstream))
    }

    pub(super) fn pool_client(&mut self, message: Message, now: Instant) {
        if self.pool.is_none() {
            let sort = Sort::of(&message);
            self.begin_pool(sort, now);
        }
        self.on_pool(now, |pool| match message.kind() {
            Kind::Request { .. } => pool.handle_request(message, now),
            _ => pool.handle_notification(&message, now),
        });
    }

    /// The first session is opened on the connection that was opened early, if no other side has it.
    fn begin_pool(&mut self, sort: Sort, now: Instant) {
        let mut pool = self.new_pool(self.config.protocol.is_none(), now);
        let in_use = self.session.is_some() && self.session_upstream == Upstream::FIRST
            || self.stateless.holds(self.stateless_upstream, Upstream::FIRST);
        if self.opened.contains(&Upstream::FIRST) && !in_use {
            let seat = pool.opening_seat(Upstream::FIRST, sort, now);
            pool.adopt(seat, None, now);
        }
        self.pool = Some(Box::new(pool));
    }

    /// The pool, to which a session is added that was opened elsewhere.
    pub(super) fn pool_to_join(&mut self, now: Instant) -> &mut OldServer {
        let fresh = self.new_pool(false, now);
        self.pool.get_or_insert_with(|| Box::new(fresh))
    }

    fn new_pool(&self, on_trust: bool, now: Instant) -> OldServer {
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

    pub(super) fn pool_server(&mut self, upstream: Upstream, packet: Packet, now: Instant) {
        self.on_pool(now, |pool| pool.handle_server(upstream, packet, now));
    }

    pub(super) fn pool_failed(&mut self, upstream: Upstream, message: Message, failure: Failure, now: Instant) {
        self.on_pool(now, |pool| pool.handle_failed(upstream, message, failure, now));
    }

    pub(super) fn pool_session_lost(&mut self, upstream: Upstream, why: &str, now: Instant) {
        self.on_pool(now, |pool| pool.handle_session_lost(upstream, why, now));
    }

    pub(super) fn pool_gone(&mut self, upstream: Upstream, why: &str, now: Instant) {
        self.on_pool(now, |pool| pool.handle_server_gone(upstream, why, now));
    }

    /// The pool can do without one of its connections.
    pub(super) fn pool_closed(&mut self, upstream: Upstream, why: &str, now: Instant) {
        self.on_pool(now, |pool| pool.handle_closed(upstream, why, now));
    }

    pub(super) fn pool_timeout(&mut self, now: Instant) {
        self.on_pool(now, |pool| pool.handle_timeout(now));
    }

    pub(super) fn abandon_pool(&mut self, why: &str, now: Instant) {
        self.on_pool(now, |pool| pool.abandon(why, now));
    }

    fn on_pool(&mut self, now: Instant, act: impl FnOnce(&mut OldServer)) {
        if let Some(pool) = &mut self.pool {
            act(pool);
            self.pump_pool(now);
        }
    }

    pub(super) fn pump_pool(&mut self, now: Instant) {
        let Some(pool) = &mut self.pool else { return };
        let over = pool.is_refused() && pool.is_unused();
        let unserved = if over { pool.dissolve() } else { VecDeque::new() };
        while let Some(effect) = pool.poll() {
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
            let is_declined = pool.is_declined();
            self.dissolve_pool(is_declined, unserved, now);
        }
    }

    /// The server opens no session. It may have become another server, or it is of the stateless era only.
    fn dissolve_pool(&mut self, is_declined: bool, unserved: VecDeque<Message>, now: Instant) {
        self.pool = None;
        let served_all = matches!(self.stateless, StatelessSide::Translated);
        if served_all {
            self.stateless = StatelessSide::None;
        }
        self.learn(|known| match served_all {
            true => known.stateless = None,
            false if is_declined => known.session = Some(false),
            false => {}
        });
        unserved.into_iter().for_each(|message| self.stateless_client(message, now));
    }
}
