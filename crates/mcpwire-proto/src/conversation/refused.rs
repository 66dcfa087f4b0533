//! A server that refuses a session-era client's `initialize`: it may be of the stateless era only, and is asked.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::session_side::SessionSide;
use super::{Conversation, Effect};
use crate::era::{self, Era, OldClient};
use crate::session::legacy::{Effect as RelayEffect, Session as Relay};
use crate::{Failure, Id, Kind, Message, Packet, meta, method};

/// How long a server that refused `initialize` may take to say whether it is of the other era.
const ASK_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Asking {
    /// Where the question is.
    pub(super) relay: Relay,
    pub(super) question: Id,
    pub(super) until: Instant,
    /// The client's requests up to the refusal: `initialize`, those sent before it, and those pipelined behind it.
    refused: Relay,
    /// What `refused` has yet to hear, if the server is of neither era.
    refusal: Refusal,
    initialize: Message,
    /// The client's messages since the refusal.
    pub(super) held: VecDeque<Message>,
}

#[derive(Debug)]
pub(super) enum Refusal {
    Answer(Packet),
    Failed(Message, Failure),
}

impl Refusal {
    fn is_about_params(&self) -> bool {
        match self {
            Refusal::Answer(packet) => era::is_inconclusive(&packet.message),
            Refusal::Failed(message, failure) => {
                super::answer_by(message, failure).is_some_and(|answer| era::is_inconclusive(&answer))
            }
        }
    }
}

impl Asking {
    pub(super) fn owed_to_client(&self) -> usize {
        self.refused.owed_to_client() + self.held.iter().filter(|message| message.is_request()).count()
    }

    pub(super) fn load(&self) -> usize {
        self.refused.load() + self.held.len()
    }

    pub(super) fn asks(&self, id: &Id) -> bool {
        self.refused.asks(id)
    }

    /// Whether this cancels a request from before the refusal, or answers one of the server's.
    pub(super) fn is_about_earlier(&self, message: &Message) -> bool {
        if message.is_response() {
            return message.id().is_some_and(|id| self.asks(id));
        }
        let cancelled = message.is(method::CANCELLED).then(|| meta::cancelled_request(message)).flatten();
        cancelled.is_some_and(|id| self.refused.knows(&id))
    }

    pub(super) fn knows(&self, id: &Id) -> bool {
        self.refused.knows(id) || self.held.iter().any(|message| message.id() == Some(id))
    }
}

impl Conversation {
    /// The server refuses `initialize`: it may be of the stateless era only.
    pub(super) fn ask_era(&mut self, refusal: Refusal, now: Instant) {
        let SessionSide::Direct { relay, initialize } = std::mem::replace(&mut self.session, SessionSide::None) else {
            return;
        };
        let Some(opener) = initialize.clone().filter(|_| self.known.stateless != Some(false)) else {
            self.session = SessionSide::Direct { relay, initialize: None };
            return self.tell_relay(refusal, now);
        };
        let question = self.question_id("discover");
        let discover = era::discover_for(&question, &opener, self.config.stateless_version());
        self.session = SessionSide::Asking(Box::new(Asking {
            relay: Relay::new(self.config.relay.clone()),
            question,
            until: now + ASK_WITHIN,
            refused: *relay,
            refusal,
            initialize: opener,
            held: VecDeque::new(),
        }));
        self.on_session_relay(now, |relay| relay.handle_client(discover, now));
    }

    pub(super) fn era_answered(&mut self, answer: &Message, now: Instant) {
        if era::era_by(answer) == Era::Session {
            return self.resign(now);
        }
        let SessionSide::Asking(mut asking) = std::mem::replace(&mut self.session, SessionSide::None) else { return };
        tracing::info!(target: "era", "the server opens no sessions: its requests stand for themselves");
        // An `initialize` with invalid params is its client's mistake: others may still get a session.
        let for_sure = !asking.refusal.is_about_params();
        self.learn(|known| {
            known.stateless = Some(true);
            known.session = if for_sure { Some(false) } else { known.session };
        });
        let pipelined = asking.refused.take_unserved();
        self.drain_refused(&mut asking.refused);
        let Asking { initialize, held, .. } = *asking;
        let discovered = matches!(answer.kind(), Kind::Result { .. }).then(|| answer.payload()).flatten();
        let version = self.config.stateless_version();
        let seed = self.config.relay.seed;
        let client = Box::new(OldClient::new(initialize, discovered.map(str::to_owned), version, seed, false));
        let relay = Box::new(Relay::new(self.config.relay.clone()));
        self.session = SessionSide::Translated { client, relay, on_trust: None };
        self.pump_translated(now);
        pipelined.into_iter().chain(held).for_each(|message| self.session_client(message, now));
    }

    /// It is of no era that we know: the client hears why it was refused.
    pub(super) fn resign(&mut self, now: Instant) {
        let SessionSide::Asking(asking) = std::mem::replace(&mut self.session, SessionSide::None) else { return };
        self.session = SessionSide::Direct { relay: Box::new(asking.refused), initialize: None };
        self.tell_relay(asking.refusal, now);
        asking.held.into_iter().for_each(|message| self.session_client(message, now));
    }

    fn tell_relay(&mut self, refusal: Refusal, now: Instant) {
        self.on_session_relay(now, |relay| match refusal {
            Refusal::Answer(packet) => relay.handle_server(packet, now),
            Refusal::Failed(message, failure) => relay.handle_failed(message, failure, now),
        });
    }

    /// Lets the relay of the refused session do something about the requests that the server still has.
    pub(super) fn on_refused_relay(&mut self, act: impl FnOnce(&mut Relay)) {
        let SessionSide::Asking(asking) = &mut self.session else { return };
        act(&mut asking.refused);
        let SessionSide::Asking(mut asking) = std::mem::replace(&mut self.session, SessionSide::None) else { return };
        self.drain_refused(&mut asking.refused);
        self.session = SessionSide::Asking(asking);
    }

    /// The server is gone while it has the question, and with it the requests sent before `initialize`.
    pub(super) fn refused_relay_gone(&mut self, why: &str, now: Instant) {
        self.on_refused_relay(|relay| {
            for message in relay.sent() {
                relay.handle_failed(message, Failure::Interrupted(why.to_owned()), now);
            }
        });
    }

    fn drain_refused(&mut self, relay: &mut Relay) {
        while let Some(effect) = relay.poll_effect() {
            self.effects.push_back(match effect {
                RelayEffect::ToServer(packet) => Effect::ToServer(self.session_upstream, packet),
                RelayEffect::ToClient(packet) => Effect::ToClient(packet),
            });
        }
    }
}
