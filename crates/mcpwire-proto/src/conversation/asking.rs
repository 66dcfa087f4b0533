//! Finding out whether a server takes requests that stand for themselves: `server/discover`, and `initialize` if it is
//! silent.
//!
//! The two go over separate connections, because a silent server may only be slow to start: a dual-era program that finds
//! both in its stdin answers both, and serves the era of the last from then on (TypeScript SDK 2.x). The connection
//! whose opening is not used is closed. An opening that the server has *refused* leaves its era undecided (2026-07-28,
//! stdio, Backward Compatibility), so the other one may follow on the same connection.

use std::collections::VecDeque;
use std::time::Instant;

use super::stateless_side::StatelessSide;
use super::{Conversation, Effect, Upstream};
use crate::era::{self, Era, Seat, Sort};
use crate::session::legacy::{Config as RelayConfig, Effect as RelayEffect, Phase, Session as Relay};
use crate::{Fault, Id, Kind, Lane, Message, Packet, method};

/// `server/discover` is with a server of which nothing is known.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) relay: Relay,
    pub(super) question: Id,
    /// The client's own `server/discover`.
    pub(super) asked_by_client: Option<Message>,
    /// The answer to it, if that did not tell the server's era: then the question is one of our own.
    objection: Option<Message>,
    pub(super) held: VecDeque<Message>,
    /// When the silence has been long enough: to try `initialize` as well, or to give up.
    pub(super) silent_at: Option<Instant>,
    /// The `initialize` that is tried as well, on another connection.
    opening: Option<Opening>,
    /// The server's refusal of it.
    refusal: Option<Packet>,
    /// No second connection could be used: the server may not run twice at a time.
    is_exclusive: bool,
    /// For whom a session would be opened.
    sort: Sort,
    /// The server went away while it had the question.
    pub(super) lost: bool,
    /// It did so too often, and only `initialize` may still be answered.
    declined: bool,
}

#[derive(Debug)]
struct Opening {
    relay: Relay,
    id: Id,
    /// The server refused it and was asked on the same connection, where it is up by now, for the other era.
    probe: Option<Id>,
}

impl Asking {
    pub(super) fn opening_relay(&self) -> Option<&Relay> {
        self.opening.as_ref().map(|opening| &opening.relay)
    }

    /// Whether `initialize` is tried on another connection.
    pub(super) fn has_opening(&self) -> bool {
        self.opening.is_some()
    }

    /// Whether this is the id of a request on the other connection.
    fn is_tried(&self, id: Option<&Id>) -> bool {
        self.is_opening(id) || self.is_probe(id)
    }

    fn is_probe(&self, id: Option<&Id>) -> bool {
        id.is_some() && self.opening.as_ref().and_then(|opening| opening.probe.as_ref()) == id
    }

    fn is_opening(&self, id: Option<&Id>) -> bool {
        id.is_some() && self.opening.as_ref().map(|opening| &opening.id) == id
    }

    /// The relay of a connection.
    pub(super) fn relay_of(&mut self, upstream: Upstream) -> Option<&mut Relay> {
        match upstream {
            Upstream::SPARE => self.opening.as_mut().map(|opening| &mut opening.relay),
            _ => Some(&mut self.relay),
        }
    }

    pub(super) fn for_each_relay(&mut self, mut act: impl FnMut(&mut Relay)) {
        act(&mut self.relay);
        self.opening.iter_mut().for_each(|opening| act(&mut opening.relay));
    }
}

impl Conversation {
    pub(super) fn ask_stateless(&mut self, message: Message, now: Instant) {
        self.open(self.stateless_upstream);
        let sort = Sort::of(&message);
        // A silent server may be one that does not know the question: silence is not for the relay to judge.
        let relay = Relay::new(RelayConfig { timeout: None, ..self.config.relay.clone() });
        let (discover, asked_by_client, held) = if message.is(method::DISCOVER) {
            (message.clone(), Some(message), VecDeque::new())
        } else {
            (self.probe(), None, VecDeque::from([message]))
        };
        let Some(question) = discover.id().cloned() else { return };
        self.stateless = StatelessSide::Asking(Box::new(Asking {
            relay,
            question,
            asked_by_client,
            objection: None,
            held,
            silent_at: Some(now + self.config.probe_for),
            opening: None,
            refusal: None,
            is_exclusive: false,
            sort,
            lost: false,
            declined: false,
        }));
        self.on_asking(now, |asking| asking.relay.handle_client(discover, now));
    }

    /// A question of our own.
    fn probe(&mut self) -> Message {
        era::probe(&self.question_id("discover"), self.config.stateless_version())
    }

    /// An answer to one of the questions by which the server's era is found out.
    pub(super) fn server_told(&mut self, upstream: Upstream, packet: Packet, now: Instant) {
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        let id = packet.message.id();
        if upstream == Upstream::SPARE && asking.is_opening(id) {
            match packet.message.kind() {
                Kind::Result { .. } => self.found_open_session(packet, now),
                _ => self.opening_refused(packet, now),
            }
        } else if upstream == Upstream::SPARE && asking.is_probe(id) {
            match (era::era_by(&packet.message), asking.refusal.take()) {
                (Era::Session, Some(refusal)) => self.found_nothing(&refusal),
                _ => self.found_stateless(upstream, &packet.message, now),
            }
        } else if upstream != Upstream::SPARE && id == Some(&asking.question) {
            let own = asking.objection.is_some() || asking.asked_by_client.is_none();
            match era::era_by(&packet.message) {
                Era::Stateless => self.found_stateless(upstream, &packet.message, now),
                Era::Session if !own && era::is_inconclusive(&packet.message) => self.ask_again(packet, now),
                Era::Session => self.declined(!era::is_inconclusive(&packet.message), now),
            }
        }
    }

    /// The client's own question was answered in a way that may be about that client: ours follows.
    fn ask_again(&mut self, objection: Packet, now: Instant) {
        let probe = self.probe();
        self.on_asking(now, |asking| {
            asking.question = probe.id().cloned().unwrap_or_else(|| asking.question.clone());
            asking.objection = Some(objection.message.clone());
            asking.relay.handle_server(objection, now);
            while asking.relay.poll_effect().is_some() {}
            asking.relay.handle_client(probe, now);
        });
    }

    /// The server does not serve `server/discover`.
    fn declined(&mut self, for_sure: bool, now: Instant) {
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        match asking.refusal.take() {
            Some(refusal) => self.found_nothing(&refusal),
            None => self.found_session(for_sure, now),
        }
    }

    /// The server goes away whenever it is asked. It may still open a session.
    fn lost_for_good(&mut self, now: Instant) {
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        asking.declined = true;
        if asking.opening.is_none() {
            self.declined(true, now);
        }
    }

    /// The server does not open sessions, at least not this one.
    fn opening_refused(&mut self, error: Packet, now: Instant) {
        let probe = self.probe();
        let relay = Relay::new(RelayConfig { timeout: None, ..self.config.relay.clone() });
        let until = now + self.config.probe_for;
        self.on_asking(now, |asking| {
            let Some(opening) = &mut asking.opening else { return };
            asking.refusal = Some(error);
            asking.silent_at = Some(until);
            opening.probe = probe.id().cloned();
            opening.relay = relay;
            opening.relay.handle_client(probe, now);
        });
    }

    /// Nothing came of the second connection: perhaps the server can run only once at a time.
    pub(super) fn opening_failed(&mut self, error: &Packet, now: Instant) {
        self.close(Upstream::SPARE);
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        asking.opening = None;
        if let Some(refusal) = asking.refusal.take() {
            return self.found_nothing(&refusal);
        }
        if asking.declined {
            return self.found_nothing(error);
        }
        asking.is_exclusive = true;
        asking.silent_at = Some(now + self.config.probe_for);
    }

    /// The server takes requests that stand for themselves: they go where it said so.
    fn found_stateless(&mut self, upstream: Upstream, answer: &Message, now: Instant) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        let other = if upstream == Upstream::SPARE { self.stateless_upstream } else { Upstream::SPARE };
        self.close(other);
        self.stateless_upstream = upstream;
        self.learn(|known| known.stateless = Some(true));
        if let Some(id) = asking.asked_by_client.as_ref().and_then(Message::id) {
            let answer = asking.objection.as_ref().unwrap_or(answer);
            self.effects.push_back(Effect::ToClient(Packet::new(Lane::Request(id.clone()), answer.with_id(id))));
        }
        let relay = Box::new(Relay::new(self.config.relay.clone()));
        self.stateless = StatelessSide::Direct { relay, on_trust: false };
        asking.held.into_iter().for_each(|message| self.stateless_client(message, now));
    }

    /// The server is of the session era: a session is opened where it was asked. What others may rely on is learned only if
    /// it is `for_sure`.
    fn found_session(&mut self, for_sure: bool, now: Instant) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        tracing::info!(target: "era", "the server needs sessions: they are kept for clients that have none");
        self.close(Upstream::SPARE);
        if for_sure {
            self.learn_of_sessions();
        }
        let upstream = self.stateless_upstream;
        let pool = self.pool_to_join(now);
        let seat = pool.opening_seat(upstream, asking.sort, now);
        pool.adopt(seat, None, now);
        self.serve_from_pool(asking.asked_by_client, asking.held, now);
    }

    /// It was silent to `server/discover` on one connection and has answered `initialize` on the other, which is kept.
    fn found_open_session(&mut self, answer: Packet, now: Instant) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        let Asking { asked_by_client, held, opening, sort, .. } = *asking;
        let Some(Opening { mut relay, id: opening, .. }) = opening else { return };
        self.close(self.stateless_upstream);
        self.stateless_upstream = Upstream::SPARE;
        self.learn_of_sessions();
        let result = answer.message.clone();
        relay.handle_server(answer, now);
        while relay.poll_effect().is_some() {}
        self.pool_to_join(now).adopt(Seat::new(Upstream::SPARE, relay, sort, opening, now), Some(&result), now);
        self.serve_from_pool(asked_by_client, held, now);
    }

    /// The server is of the session era, whatever was found out before.
    fn learn_of_sessions(&mut self) {
        self.learn(|known| {
            known.stateless = Some(false);
            known.session = known.session.filter(|opens| *opens);
        });
    }

    fn serve_from_pool(&mut self, first: Option<Message>, held: VecDeque<Message>, now: Instant) {
        self.stateless = StatelessSide::Translated;
        self.pump_pool(now);
        first.into_iter().chain(held).for_each(|message| self.stateless_client(message, now));
    }

    /// Nothing could be found out: everybody who waits hears why, and the next request tries again.
    pub(super) fn found_nothing(&mut self, error: &Packet) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        self.close(Upstream::SPARE);
        for message in asking.asked_by_client.iter().chain(&asking.held) {
            if let Some(id) = message.id() {
                self.tell_client(Packet { message: error.message.with_id(id), ..error.clone() });
            }
        }
    }

    /// Lets the relays of the questions do something. What they have for their client is that they gave up.
    pub(super) fn on_asking(&mut self, now: Instant, act: impl FnOnce(&mut Asking)) {
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        act(asking);
        let mut given_up = Vec::new();
        let (effects, first) = (&mut self.effects, self.stateless_upstream);
        let (question, mut asked) = (asking.question.clone(), false);
        for upstream in [first, Upstream::SPARE] {
            while let Some(effect) = asking.relay_of(upstream).and_then(Relay::poll_effect) {
                match effect {
                    RelayEffect::ToServer(packet) => {
                        asked |= packet.message.id() == Some(&question);
                        effects.push_back(Effect::ToServer(upstream, packet));
                    }
                    RelayEffect::ToClient(packet) if packet.message.is_response() => given_up.push(packet),
                    RelayEffect::ToClient(packet) => {
                        let refusal = too_early(&packet.message);
                        let relay = asking.relay_of(upstream);
                        relay.into_iter().zip(refusal).for_each(|(relay, refusal)| relay.handle_client(refusal, now));
                    }
                }
            }
        }
        if asked && asking.opening.is_none() {
            // Silence begins when the question is put.
            asking.silent_at = Some(now + self.config.probe_for);
        }
        for error in given_up {
            match &self.stateless {
                StatelessSide::Asking(asking) if asking.is_tried(error.message.id()) => {
                    self.opening_failed(&error, now)
                }
                StatelessSide::Asking(asking) if asking.lost || asking.opening.is_some() => self.lost_for_good(now),
                _ => self.found_nothing(&error),
            }
        }
    }

    pub(super) fn silent_for_long(&mut self, now: Instant) {
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        if let Some(refusal) = asking.refusal.take() {
            return self.found_nothing(&refusal);
        }
        if asking.relay.phase() == Phase::Waiting {
            // Who cannot be reached is not silent.
            asking.silent_at = Some(now + self.config.probe_for);
            return;
        }
        if asking.is_exclusive {
            // What the server would do with `initialize` behind an unanswered question is not known: it starts afresh.
            self.close(self.stateless_upstream);
            self.open(self.stateless_upstream);
            return self.found_session(false, now);
        }
        self.open(Upstream::SPARE);
        let id = self.question_id("initialize");
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        let initialize = era::opener(self.config.session_version(), &asking.sort, &id);
        let mut relay = Relay::new(self.config.relay.clone());
        relay.handle_client(initialize, now);
        asking.opening = Some(Opening { relay, id, probe: None });
    }
}

/// The answer to a request of a server whose era is not known yet: there is nobody whom it could be for.
fn too_early(message: &Message) -> Option<Message> {
    let id = message.id().filter(|_| message.is_request())?;
    Some(match message.is(method::PING) {
        true => Message::result(id, "{}"),
        false => Fault::UnknownMethod("the server asks before it was asked anything".into()).to_message(Some(id)),
    })
}
