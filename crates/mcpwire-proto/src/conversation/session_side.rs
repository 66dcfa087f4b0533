//! The side of a client that opened a session.
//!
//! ```text
//!            initialize                  refused               not stateless either
//!   None ──────────────────► Direct ───────────────► Asking ───────────────────────► Direct (refused)
//!    │ known to be stateless                            │ it is stateless
//!    └────────────────────────────► Translated ◄────────┘
//! ```

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Conversation, Effect, Upstream, answer_by};
use crate::era::{self, Era, OldClient, Out};
use crate::object::quoted;
use crate::session::legacy::{Effect as RelayEffect, Phase, Session as Relay};
use crate::{Failure, Fault, Id, Kind, Message, Packet, method};

/// How long a server that refused `initialize` may take to say whether it is of the other era.
const ASK_WITHIN: Duration = Duration::from_secs(10);
/// The most messages that wait for that.
const MOST_HELD: usize = 1000;

#[derive(Debug)]
pub(super) enum SessionSide {
    None,
    /// The server opens sessions, or is about to say that it does not.
    Direct {
        relay: Box<Relay>,
        initialize: Option<Message>,
    },
    /// It does not: is it of the stateless era?
    Asking(Box<Asking>),
    Translated {
        client: Box<OldClient>,
        relay: Box<Relay>,
        /// That the server is of the stateless era was only remembered, and nothing has shown it yet.
        on_trust: bool,
    },
}

#[derive(Debug)]
pub(super) struct Asking {
    /// Where the question is.
    relay: Relay,
    question: Id,
    until: Instant,
    /// What goes on if the answer is no: the relay, and what it has yet to hear.
    refused: Relay,
    refusal: Refusal,
    initialize: Message,
    held: VecDeque<Message>,
}

#[derive(Debug)]
enum Refusal {
    Answer(Packet),
    Failed(Message, Failure),
}

impl SessionSide {
    pub(super) fn is_some(&self) -> bool {
        !matches!(self, SessionSide::None)
    }

    fn relay(&self) -> Option<&Relay> {
        match self {
            SessionSide::None => None,
            SessionSide::Direct { relay, .. } | SessionSide::Translated { relay, .. } => Some(relay),
            SessionSide::Asking(asking) => Some(&asking.relay),
        }
    }

    fn relay_mut(&mut self) -> Option<&mut Relay> {
        match self {
            SessionSide::None => None,
            SessionSide::Direct { relay, .. } | SessionSide::Translated { relay, .. } => Some(relay),
            SessionSide::Asking(asking) => Some(&mut asking.relay),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let own = match self {
            SessionSide::Asking(asking) => Some(asking.until),
            SessionSide::Translated { client, .. } => client.poll_timeout(),
            _ => None,
        };
        own.into_iter().chain(self.relay().and_then(Relay::poll_timeout)).min()
    }

    pub(super) fn owed_to_client(&self) -> usize {
        match self {
            SessionSide::None => 0,
            SessionSide::Direct { relay, .. } => relay.owed_to_client(),
            SessionSide::Asking(asking) => 1 + asking.held.iter().filter(|message| message.is_request()).count(),
            SessionSide::Translated { client, .. } => client.owed_to_client(),
        }
    }

    pub(super) fn load(&self) -> usize {
        match self {
            SessionSide::None => 0,
            SessionSide::Direct { relay, .. } => relay.load(),
            SessionSide::Asking(asking) => asking.held.len() + 1,
            SessionSide::Translated { client, relay, .. } => client.load() + relay.load(),
        }
    }

    pub(super) fn knows(&self, id: &Id) -> bool {
        match self {
            SessionSide::None => false,
            SessionSide::Direct { relay, .. } => relay.knows(id),
            SessionSide::Asking(asking) => asking.refused.knows(id),
            SessionSide::Translated { client, .. } => client.knows(id),
        }
    }

    /// Whether a server that we remember as one of the stateless era shows by its first answer that it is not.
    fn disproves(&mut self, answer: &Message) -> bool {
        match self {
            SessionSide::Translated { client, on_trust, .. }
                if *on_trust && answer.is_response() && client.opening() == answer.id() =>
            {
                *on_trust = era::era_by(answer) == Era::Session;
                *on_trust
            }
            _ => false,
        }
    }

    pub(super) fn version(&self) -> Option<&str> {
        match self {
            SessionSide::Direct { relay, .. } => relay.version(),
            _ => None,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.relay().map_or(Phase::Idle, Relay::phase)
    }

    pub(super) fn trouble(&self) -> &str {
        self.relay().map_or("", Relay::trouble)
    }
}

impl Conversation {
    pub(super) fn session_client(&mut self, message: Message, now: Instant) {
        let opens = message.is_request() && message.is(method::INITIALIZE);
        match &mut self.session {
            SessionSide::None => self.begin_session(message, now),
            SessionSide::Direct { initialize, .. } => {
                let message = if opens { lay_down_version(message, self.config.protocol) } else { message };
                if opens {
                    *initialize = Some(message.clone());
                }
                self.on_session_relay(now, |relay| relay.handle_client(message, now));
            }
            SessionSide::Asking(asking) if asking.held.len() < MOST_HELD => asking.held.push_back(message),
            SessionSide::Asking(_) => {
                let fault = Fault::Upstream("too much waits for the server already".into());
                if message.is_request() {
                    self.tell_client(fault.to_packet(message.id()));
                }
            }
            SessionSide::Translated { client, .. } => {
                client.handle_client(message, now);
                self.pump_translated(now);
            }
        }
    }

    fn begin_session(&mut self, message: Message, now: Instant) {
        let taken = self.stateless.is_some() && self.stateless_upstream == Upstream::FIRST;
        self.session_upstream = if taken { Upstream::SECOND } else { Upstream::FIRST };
        self.open(self.session_upstream);
        let relay = Box::new(Relay::new(self.config.relay.clone()));
        let opens = message.is_request() && message.is(method::INITIALIZE);
        if opens && self.known.session == Some(false) && self.known.stateless != Some(false) {
            let client = OldClient::new(message, None, self.config.stateless_version(), self.config.relay.seed);
            let client = Box::new(client.for_the_inside(self.known.is_inside));
            self.session = SessionSide::Translated { client, relay, on_trust: self.config.protocol.is_none() };
            return self.pump_translated(now);
        }
        self.session = SessionSide::Direct { relay, initialize: None };
        self.session_client(message, now);
    }

    pub(super) fn session_server(&mut self, packet: Packet, now: Instant) {
        if self.session.disproves(&packet.message) {
            return self.begin_anew(now);
        }
        match &mut self.session {
            SessionSide::Direct { initialize, .. } => {
                let answers = initialize.as_ref().is_some_and(|opener| opener.id() == packet.message.id());
                match packet.message.kind() {
                    Kind::Error { .. } if answers => return self.ask_era(Refusal::Answer(packet), now),
                    Kind::Result { .. } if answers => {
                        *initialize = None;
                        self.learn(|known| known.session = Some(true));
                    }
                    _ => {}
                }
            }
            SessionSide::Asking(asking) if packet.message.id() == Some(&asking.question) => {
                return self.era_answered(&packet.message, now);
            }
            _ => {}
        }
        self.on_session_relay(now, |relay| relay.handle_server(packet, now));
    }

    pub(super) fn session_failed(&mut self, message: Message, failure: Failure, now: Instant) {
        let answer = answer_by(&message, &failure);
        if answer.as_ref().is_some_and(|answer| self.session.disproves(answer)) {
            return self.begin_anew(now);
        }
        match (&mut self.session, answer) {
            (SessionSide::Direct { initialize, .. }, Some(_))
                if initialize.as_ref().is_some_and(|opener| opener.id() == message.id()) =>
            {
                return self.ask_era(Refusal::Failed(message, failure), now);
            }
            (SessionSide::Asking(asking), Some(answer)) if message.id() == Some(&asking.question) => {
                return self.era_answered(&answer, now);
            }
            _ => {}
        }
        self.on_session_relay(now, |relay| relay.handle_failed(message, failure, now));
    }

    /// The server refuses `initialize`: it may be of the stateless era only.
    fn ask_era(&mut self, refusal: Refusal, now: Instant) {
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

    fn era_answered(&mut self, answer: &Message, now: Instant) {
        if era::era_by(answer) == Era::Session {
            return self.resign(now);
        }
        let SessionSide::Asking(asking) = std::mem::replace(&mut self.session, SessionSide::None) else { return };
        tracing::info!(target: "era", "the server opens no sessions: its requests stand for themselves");
        self.learn(|known| (known.session, known.stateless) = (Some(false), Some(true)));
        let Asking { initialize, held, .. } = *asking;
        let discovered = matches!(answer.kind(), Kind::Result { .. }).then(|| answer.payload()).flatten();
        let version = self.config.stateless_version();
        let seed = self.config.relay.seed;
        let client = Box::new(OldClient::new(initialize, discovered.map(str::to_owned), version, seed));
        let relay = Box::new(Relay::new(self.config.relay.clone()));
        self.session = SessionSide::Translated { client, relay, on_trust: false };
        self.pump_translated(now);
        held.into_iter().for_each(|message| self.session_client(message, now));
    }

    /// The server is not what we remember: the client's `initialize` is tried as it is.
    fn begin_anew(&mut self, now: Instant) {
        let SessionSide::Translated { mut client, .. } = std::mem::replace(&mut self.session, SessionSide::None) else {
            return;
        };
        self.learn(|known| *known = super::Known::default());
        let initialize = client.take_initialize();
        client.abandon("the server is of another era than it was");
        while let Some(out) = client.poll() {
            if let Out::Client(packet) = out {
                self.effects.push_back(Effect::ToClient(packet));
            }
        }
        self.session_client(initialize, now);
    }

    /// It is of no era that we know: the client hears why it was refused.
    fn resign(&mut self, now: Instant) {
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

    /// Lets the relay of this side do something, and sees to what comes of it.
    pub(super) fn on_session_relay(&mut self, now: Instant, act: impl FnOnce(&mut Relay)) {
        let Some(relay) = self.session.relay_mut() else { return };
        act(relay);
        self.drain_session_relay(now);
        self.pump_translated(now);
    }

    fn drain_session_relay(&mut self, now: Instant) {
        let upstream = self.session_upstream;
        while let Some(effect) = self.session.relay_mut().and_then(Relay::poll_effect) {
            let packet = match effect {
                RelayEffect::ToServer(packet) => {
                    self.effects.push_back(Effect::ToServer(upstream, packet));
                    continue;
                }
                RelayEffect::ToClient(packet) => packet,
            };
            match &mut self.session {
                SessionSide::Translated { client, .. } => client.handle_server(packet, now),
                // The question got no answer from the server.
                SessionSide::Asking(asking) if packet.message.id() == Some(&asking.question) => self.resign(now),
                SessionSide::Asking(_) | SessionSide::None => {}
                SessionSide::Direct { .. } => self.effects.push_back(Effect::ToClient(packet)),
            }
        }
    }

    fn pump_translated(&mut self, now: Instant) {
        while let SessionSide::Translated { client, relay, .. } = &mut self.session {
            match client.poll() {
                Some(Out::Client(packet)) => self.effects.push_back(Effect::ToClient(packet)),
                Some(Out::Server(message)) => {
                    relay.handle_client(message, now);
                    self.drain_session_relay(now);
                }
                None => return,
            }
        }
    }

    pub(super) fn session_timeout(&mut self, now: Instant) {
        match &mut self.session {
            SessionSide::Asking(asking) if asking.until <= now => return self.resign(now),
            SessionSide::Translated { client, .. } => client.handle_timeout(now),
            _ => {}
        }
        self.on_session_relay(now, |relay| relay.handle_timeout(now));
    }

    pub(super) fn abandon_session(&mut self, why: &str, now: Instant) {
        if let SessionSide::Asking(_) = self.session {
            self.resign(now);
        }
        self.on_session_relay(now, |relay| relay.abandon(why));
        if let SessionSide::Translated { client, .. } = &mut self.session {
            client.abandon(why);
        }
        self.pump_translated(now);
    }
}

/// The user may lay down the version that is spoken with the server.
fn lay_down_version(initialize: Message, version: Option<&str>) -> Message {
    let (Some(version), Some(mut params)) = (version, initialize.members()) else {
        return initialize;
    };
    params.set("protocolVersion", quoted(version));
    initialize.with_members(&params)
}
