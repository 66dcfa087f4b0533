//! The side of a client that opened a session.
//!
//! ```text
//!            initialize                  refused               not stateless either
//!   None ──────────────────► Direct ───────────────► Asking ───────────────────────► Direct (refused)
//!    │ known to be stateless                            │ it is stateless
//!    └────────────────────────────► Translated ◄────────┘
//! ```

use std::collections::VecDeque;
use std::time::Instant;

use super::refused::{Asking, Refusal};
use super::{Conversation, Effect, Upstream, answer_by};
use crate::era::{self, Era, OldClient, Out};
use crate::object::quoted;
use crate::session::legacy::{Effect as RelayEffect, Phase, Session as Relay};
use crate::{Cause, Failure, Fault, Id, Kind, Message, Packet, meta, method};

/// The most messages that wait for the server's era to be known.
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
        /// The server is only remembered to be of the stateless era. Until its first answer confirms that, messages are
        /// kept here: they may have to be sent in the other era.
        on_trust: Option<VecDeque<Message>>,
    },
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
            SessionSide::Asking(asking) => asking.owed_to_client(),
            SessionSide::Translated { client, on_trust, .. } => {
                let held = on_trust.iter().flatten().filter(|message| message.is_request());
                client.owed_to_client() + held.count()
            }
        }
    }

    pub(super) fn load(&self) -> usize {
        match self {
            SessionSide::None => 0,
            SessionSide::Direct { relay, .. } => relay.load(),
            SessionSide::Asking(asking) => asking.load(),
            SessionSide::Translated { client, relay, on_trust } => {
                client.load() + relay.load() + on_trust.as_ref().map_or(0, VecDeque::len)
            }
        }
    }

    /// Whether the server waits for the client's answer to a request under this id.
    pub(super) fn asks(&self, id: &Id) -> bool {
        match self {
            SessionSide::None => false,
            SessionSide::Direct { relay, .. } => relay.asks(id),
            SessionSide::Asking(asking) => asking.asks(id),
            SessionSide::Translated { client, .. } => client.knows(id),
        }
    }

    pub(super) fn knows(&self, id: &Id) -> bool {
        match self {
            SessionSide::None => false,
            SessionSide::Direct { relay, .. } => relay.knows(id),
            SessionSide::Asking(asking) => asking.knows(id),
            SessionSide::Translated { client, on_trust, .. } => {
                client.knows(id) || on_trust.iter().flatten().any(|message| message.id() == Some(id))
            }
        }
    }

    /// Whether this answers the `server/discover` that shows if a server is still of the stateless era.
    fn is_proof(&self, answer: &Message) -> bool {
        match self {
            SessionSide::Translated { client, on_trust: Some(_), .. } => {
                answer.is_response() && client.opening().is_some() && client.opening() == answer.id()
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
            SessionSide::Asking(asking) if asking.is_about_earlier(&message) => {
                self.on_refused_relay(|relay| relay.handle_client(message, now));
            }
            SessionSide::Asking(asking) => {
                let refusal = hold(&mut asking.held, message);
                refusal.into_iter().for_each(|refusal| self.tell_client(refusal));
            }
            SessionSide::Translated { on_trust: Some(held), .. } if !opens => {
                let refusal = hold(held, message);
                refusal.into_iter().for_each(|refusal| self.tell_client(refusal));
                self.refuse_held();
            }
            SessionSide::Translated { client, .. } => {
                client.handle_client(message, now);
                self.pump_translated(now);
            }
        }
    }

    fn begin_session(&mut self, message: Message, now: Instant) {
        let taken = self.stateless.holds(self.stateless_upstream, Upstream::FIRST) || self.pool_has(Upstream::FIRST);
        self.session_upstream = if taken { Upstream::SECOND } else { Upstream::FIRST };
        self.open(self.session_upstream);
        let relay = Box::new(Relay::new(self.config.relay.clone()));
        let opens = message.is_request() && message.is(method::INITIALIZE);
        if opens && self.known.session == Some(false) && self.known.stateless != Some(false) {
            let (version, seed) = (self.config.stateless_version(), self.config.relay.seed);
            let client = Box::new(OldClient::new(message, None, version, seed, self.known.is_inside));
            let on_trust = self.config.protocol.is_none().then(VecDeque::new);
            self.session = SessionSide::Translated { client, relay, on_trust };
            return self.pump_translated(now);
        }
        self.session = SessionSide::Direct { relay, initialize: None };
        self.session_client(message, now);
    }

    pub(super) fn session_server(&mut self, packet: Packet, now: Instant) {
        if self.session.is_proof(&packet.message) {
            let still_stateless = era::era_by(&packet.message) == Era::Stateless;
            if !still_stateless {
                return self.begin_anew(now);
            }
            return self.trust(now, |relay| relay.handle_server(packet, now));
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
            // Everything else belongs to what was sent before the refusal.
            SessionSide::Asking(_) => return self.on_refused_relay(|relay| relay.handle_server(packet, now)),
            _ => {}
        }
        self.on_session_relay(now, |relay| relay.handle_server(packet, now));
    }

    pub(super) fn session_failed(&mut self, message: Message, failure: Failure, now: Instant) {
        let answer = answer_by(&message, &failure);
        let proof = answer.as_ref().filter(|answer| self.session.is_proof(answer));
        if let Some(still_stateless) = proof.map(|answer| era::era_by(answer) == Era::Stateless) {
            if !still_stateless {
                return self.begin_anew(now);
            }
            return self.trust(now, |relay| relay.handle_failed(message, failure, now));
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
            (SessionSide::Asking(asking), _) if message.id() != Some(&asking.question) => {
                return self.on_refused_relay(|relay| relay.handle_failed(message, failure, now));
            }
            _ => {}
        }
        self.on_session_relay(now, |relay| relay.handle_failed(message, failure, now));
    }

    /// The server is what we remember, as the answer shows that `act` is about: everything that waited for it is served.
    fn trust(&mut self, now: Instant, act: impl FnOnce(&mut Relay)) {
        let SessionSide::Translated { on_trust, .. } = &mut self.session else { return };
        let held = on_trust.take().unwrap_or_default();
        self.on_session_relay(now, act);
        held.into_iter().for_each(|message| self.session_client(message, now));
    }

    /// The server is not what we remember: the client's `initialize` is tried as it is.
    fn begin_anew(&mut self, now: Instant) {
        let SessionSide::Translated { mut client, on_trust, .. } =
            std::mem::replace(&mut self.session, SessionSide::None)
        else {
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
        on_trust.into_iter().flatten().for_each(|message| self.session_client(message, now));
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

    pub(super) fn pump_translated(&mut self, now: Instant) {
        while let SessionSide::Translated { client, relay, .. } = &mut self.session {
            match client.poll() {
                Some(Out::Client(packet)) => self.effects.push_back(Effect::ToClient(packet)),
                Some(Out::Server(message)) => {
                    relay.handle_client(message, now);
                    self.drain_session_relay(now);
                }
                None => break,
            }
        }
        self.refuse_held();
    }

    /// Refuses what waits for the answer to `initialize`, if that failed and the server's era is still not confirmed.
    fn refuse_held(&mut self) {
        let SessionSide::Translated { client, on_trust: Some(held), .. } = &mut self.session else { return };
        if client.opening().is_some() {
            return;
        }
        let text = "there is no session with the server: initialize failed";
        let fault = Fault::NoAnswer(Cause::SessionLost, text.to_owned());
        for request in std::mem::take(held).into_iter().filter(Message::is_request) {
            self.tell_client(fault.to_packet(request.id()));
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

/// Keeps a message until the server's era is known; gives the refusal if too many wait already.
fn hold(held: &mut VecDeque<Message>, message: Message) -> Option<Packet> {
    let cancelled = message.is(method::CANCELLED).then(|| meta::cancelled_request(&message)).flatten();
    if let Some(at) = cancelled.and_then(|id| held.iter().position(|held| held.is_request() && held.id() == Some(&id)))
    {
        held.remove(at);
        return None;
    }
    if held.len() < MOST_HELD {
        held.push_back(message);
        return None;
    }
    let fault = Fault::Upstream("too many messages wait for the server already".into());
    message.id().filter(|_| message.is_request()).map(|id| fault.to_packet(Some(id)))
}

/// The user may lay down the version that is spoken with the server.
fn lay_down_version(initialize: Message, version: Option<&str>) -> Message {
    let (Some(version), Some(mut params)) = (version, initialize.members()) else {
        return initialize;
    };
    params.set("protocolVersion", quoted(version));
    initialize.with_members(&params)
}
