//! Finding out whether a server takes requests that stand for themselves: `server/discover`, and `initialize` if it is
//! silent.

use std::collections::VecDeque;
use std::time::Instant;

use super::stateless_side::StatelessSide;
use super::{Conversation, Effect};
use crate::era::{self, Era, OldServer, Seat, Sort};
use crate::session::legacy::{Config as RelayConfig, Effect as RelayEffect, Phase, Session as Relay};
use crate::{Id, Kind, Lane, Message, Packet, method};

/// `server/discover` is with a server of which nothing is known.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) relay: Relay,
    pub(super) question: Id,
    /// The question is the client's own, so the answer is, too.
    pub(super) asked_by_client: Option<Message>,
    pub(super) held: VecDeque<Message>,
    /// When the silence has been long enough: to try `initialize` as well, or to give up.
    pub(super) silent_at: Option<Instant>,
    /// The `initialize` that is tried as well.
    pub(super) opening: Option<Opening>,
    /// The server's refusal of it.
    refusal: Option<Packet>,
    /// `server/discover` was answered with an error while `initialize` was under way.
    declined: bool,
    /// For whom a session would be opened.
    sort: Sort,
    /// The server went away while it had the question.
    pub(super) lost: bool,
}

#[derive(Debug)]
pub(super) struct Opening {
    relay: Relay,
    id: Id,
}

impl Asking {
    pub(super) fn opening_relay(&self) -> Option<&Relay> {
        self.opening.as_ref().map(|opening| &opening.relay)
    }

    fn is_opening(&self, id: Option<&Id>) -> bool {
        id.is_some() && self.opening.as_ref().map(|opening| &opening.id) == id
    }

    /// The relay that a message of the server's, or the failure of one of ours, is for.
    pub(super) fn relay_for(&mut self, message: &Message) -> &mut Relay {
        let opens = self.is_opening(message.id());
        match &mut self.opening {
            Some(opening) if opens => &mut opening.relay,
            _ => &mut self.relay,
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
        let own = message.is(method::DISCOVER);
        let question = match message.id() {
            Some(id) if own => id.clone(),
            _ => self.question_id("discover"),
        };
        let discover = if own { message.clone() } else { era::discover_like(&question, &message) };
        let sort = Sort::of(&message);
        // A silent server may be one that does not know the question: silence is not for the relay to judge.
        let relay = Relay::new(RelayConfig { timeout: None, ..self.config.relay.clone() });
        let (asked_by_client, held) =
            if own { (Some(message), VecDeque::new()) } else { (None, VecDeque::from([message])) };
        self.stateless = StatelessSide::Asking(Box::new(Asking {
            relay,
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
        self.on_asking(now, |asking| asking.relay.handle_client(discover, now));
    }

    /// An answer to one of the questions by which the server's era is found out.
    pub(super) fn server_told(&mut self, packet: Packet, now: Instant) {
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        if packet.message.id() == Some(&asking.question) {
            match era::era_by(&packet.message) {
                Era::Stateless => self.found_stateless(&packet.message, now),
                Era::Session => self.declined(now),
            }
        } else if asking.is_opening(packet.message.id()) {
            match packet.message.kind() {
                Kind::Result { .. } => self.found_open_session(packet, now),
                _ => self.opening_refused(packet, now),
            }
        }
    }

    /// The server did not understand `server/discover`, or cannot be asked.
    fn declined(&mut self, now: Instant) {
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        match (&asking.opening, asking.refusal.take()) {
            (None, _) => self.found_session(now),
            (Some(_), None) => asking.declined = true,
            (Some(_), Some(refusal)) => self.found_nothing(&refusal),
        }
    }

    fn opening_refused(&mut self, error: Packet, now: Instant) {
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        if asking.declined {
            return self.found_nothing(&error);
        }
        asking.refusal = Some(error);
        asking.silent_at = Some(now + self.config.probe_for);
    }

    fn found_stateless(&mut self, answer: &Message, now: Instant) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        self.learn(|known| known.stateless = Some(true));
        if let Some(id) = asking.asked_by_client.as_ref().and_then(Message::id) {
            self.effects.push_back(Effect::ToClient(Packet::new(Lane::Request(id.clone()), answer.with_id(id))));
        }
        let relay = Box::new(Relay::new(self.config.relay.clone()));
        self.stateless = StatelessSide::Direct { relay, on_trust: false };
        asking.held.into_iter().for_each(|message| self.stateless_client(message, now));
    }

    /// The server is of the session era: a session is opened where it was asked.
    fn found_session(&mut self, now: Instant) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        tracing::info!(target: "era", "the server needs sessions: they are kept for clients that have none");
        self.learn(|known| known.stateless = Some(false));
        let mut server = self.pool(false, now);
        let seat = server.opening_seat(self.stateless_upstream, asking.sort, now);
        server.adopt(seat, None, now);
        self.serve_from_pool(server, asking.asked_by_client, asking.held, now);
    }

    /// It was silent to `server/discover` and has answered `initialize`.
    fn found_open_session(&mut self, answer: Packet, now: Instant) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
        let Asking { asked_by_client, held, opening, sort, .. } = *asking;
        let Some(Opening { mut relay, id: opening }) = opening else { return };
        self.learn(|known| known.stateless = Some(false));
        let result = answer.message.clone();
        relay.handle_server(answer, now);
        while relay.poll_effect().is_some() {}
        let mut server = self.pool(false, now);
        server.adopt(Seat::new(self.stateless_upstream, relay, sort, opening, now), Some(&result), now);
        self.serve_from_pool(server, asked_by_client, held, now);
    }

    fn serve_from_pool(&mut self, server: OldServer, first: Option<Message>, held: VecDeque<Message>, now: Instant) {
        self.stateless = StatelessSide::Translated(Box::new(server));
        self.pump_pool(now);
        first.into_iter().chain(held).for_each(|message| self.stateless_client(message, now));
    }

    /// Nothing could be found out: everybody who waits hears why, and the next request tries again.
    pub(super) fn found_nothing(&mut self, error: &Packet) {
        let StatelessSide::Asking(asking) = std::mem::replace(&mut self.stateless, StatelessSide::None) else { return };
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
        let (effects, upstream) = (&mut self.effects, self.stateless_upstream);
        let (question, mut asked) = (asking.question.clone(), false);
        asking.for_each_relay(|relay| {
            while let Some(effect) = relay.poll_effect() {
                match effect {
                    RelayEffect::ToServer(packet) => {
                        asked |= packet.message.id() == Some(&question);
                        effects.push_back(Effect::ToServer(upstream, packet));
                    }
                    RelayEffect::ToClient(packet) if packet.message.is_response() => given_up.push(packet),
                    RelayEffect::ToClient(_) => {}
                }
            }
        });
        if asked && asking.opening.is_none() {
            // Silence begins when the question is put.
            asking.silent_at = Some(now + self.config.probe_for);
        }
        for error in given_up {
            match &self.stateless {
                StatelessSide::Asking(asking) if asking.is_opening(error.message.id()) => {
                    self.opening_refused(error, now)
                }
                // A server that goes away when it is asked may still open a session.
                StatelessSide::Asking(asking) if asking.lost || asking.opening.is_some() => self.declined(now),
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
        let id = self.question_id("initialize");
        let StatelessSide::Asking(asking) = &mut self.stateless else { return };
        let initialize = era::opener(self.config.session_version(), &asking.sort, &id);
        let mut relay = Relay::new(self.config.relay.clone());
        relay.handle_client(initialize, now);
        asking.opening = Some(Opening { relay, id });
    }
}
