//! The side of a client whose requests stand for themselves.
//!
//! ```text
//!            first request             a result, or a modern error
//!   None ──────────────────► Asking ─────────────────────────────► Direct
//!                              │ any other error; or silence, and `initialize` is answered
//!                              └──────────────────────────────────► Translated
//! ```

use std::time::Instant;

use super::asking::Asking;
use super::{Conversation, Effect, Upstream, answer_by};
use crate::era::{self, Era};
use crate::session::legacy::{Effect as RelayEffect, Phase, Session as Relay};
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
    /// The server needs sessions: the pool has them.
    Translated,
}

impl StatelessSide {
    /// Whether a connection is in use on this side, which has or would have the `own` one.
    pub(super) fn holds(&self, own: Upstream, upstream: Upstream) -> bool {
        match self {
            StatelessSide::Asking(asking) => own == upstream || upstream == Upstream::SPARE && asking.has_opening(),
            StatelessSide::Direct { .. } => own == upstream,
            StatelessSide::None | StatelessSide::Translated => false,
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
            _ => None,
        };
        own.into_iter().chain(self.relay().and_then(Relay::poll_timeout)).min()
    }

    pub(super) fn owed_to_client(&self) -> usize {
        match self {
            StatelessSide::None | StatelessSide::Translated => 0,
            StatelessSide::Asking(asking) => {
                let held = asking.held.iter().filter(|message| message.is_request() && !message.is(method::LISTEN));
                held.count() + usize::from(asking.asked_by_client.is_some())
            }
            StatelessSide::Direct { relay, .. } => relay.owed_to_client(),
        }
    }

    pub(super) fn load(&self) -> usize {
        match self {
            StatelessSide::None | StatelessSide::Translated => 0,
            StatelessSide::Asking(asking) => asking.held.len() + 1,
            StatelessSide::Direct { relay, .. } => relay.load(),
        }
    }

    /// Whether the server waits for the client's answer to a request under this id.
    pub(super) fn asks(&self, id: &Id) -> bool {
        matches!(self, StatelessSide::Direct { relay, .. } if relay.asks(id))
    }

    pub(super) fn knows(&self, id: &Id) -> bool {
        match self {
            StatelessSide::None | StatelessSide::Translated => false,
            StatelessSide::Asking(asking) => {
                let asked = asking.asked_by_client.as_ref().and_then(Message::id);
                asked == Some(id) || asking.held.iter().any(|message| message.id() == Some(id))
            }
            StatelessSide::Direct { relay, .. } => relay.knows(id),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match self {
            StatelessSide::None | StatelessSide::Translated => Phase::Idle,
            StatelessSide::Asking(_) => Phase::Opening,
            StatelessSide::Direct { relay, .. } => match relay.phase() {
                // There is nothing to open.
                Phase::Idle => Phase::Open,
                phase => phase,
            },
        }
    }

    pub(super) fn trouble(&self) -> &str {
        self.relay().map_or("", Relay::trouble)
    }
}

impl Conversation {
    pub(super) fn stateless_client(&mut self, message: Message, now: Instant) {
        // The pool knows what to do with a sender beside a text; others are to find it in there.
        if self.is_for_pool(&message) {
            return self.pool_client(message, now);
        }
        let message = message.written_down();
        match &mut self.stateless {
            StatelessSide::None if message.is_request() => self.begin_stateless(message, now),
            StatelessSide::None | StatelessSide::Translated => {}
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
        }
    }

    fn begin_stateless(&mut self, message: Message, now: Instant) {
        self.close(Upstream::SPARE);
        let in_session = self.session.is_some() && self.session_upstream == Upstream::FIRST;
        let taken = in_session || self.pool_has(Upstream::FIRST);
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
                self.stateless = StatelessSide::Translated;
                self.pool_client(message, now);
            }
            None => self.ask_stateless(message, now),
        }
    }

    pub(super) fn stateless_server(&mut self, upstream: Upstream, packet: Packet, now: Instant) {
        match &mut self.stateless {
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
            self.learn(|known| (known.session, known.stateless) = (None, None));
        }
    }

    pub(super) fn stateless_failed(&mut self, upstream: Upstream, message: Message, failure: Failure, now: Instant) {
        if let StatelessSide::Asking(asking) = &mut self.stateless {
            let asked = upstream != Upstream::SPARE && message.id() == Some(&asking.question);
            let tried = upstream == Upstream::SPARE;
            if let Some(answer) = answer_by(&message, &failure).filter(|_| asked || tried) {
                return self.server_told(upstream, answer.into(), now);
            }
            asking.lost |= asked && matches!(failure, Failure::Interrupted(_));
            return self.on_asking_relay(upstream, now, |relay| relay.handle_failed(message, failure, now));
        }
        let answer = answer_by(&message, &failure);
        self.on_stateless_relay(|relay| relay.handle_failed(message, failure, now));
        answer.iter().for_each(|answer| self.prove(answer));
    }

    pub(super) fn stateless_gone(&mut self, upstream: Upstream, why: &str, now: Instant) {
        match &mut self.stateless {
            StatelessSide::Asking(asking) => {
                asking.lost |= upstream != Upstream::SPARE;
                self.on_asking_relay(upstream, now, |relay| relay.handle_server_gone(why, now));
            }
            _ => self.on_stateless_relay(|relay| relay.handle_server_gone(why, now)),
        }
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

    pub(super) fn stateless_timeout(&mut self, now: Instant) {
        match &mut self.stateless {
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

    pub(super) fn abandon_stateless(&mut self, why: &str) {
        match &mut self.stateless {
            StatelessSide::Asking(_) => {
                self.found_nothing(&Fault::NoAnswer(Cause::Interrupted, why.to_owned()).to_packet(None))
            }
            _ => self.on_stateless_relay(|relay| relay.abandon(why)),
        }
    }
}
