//! A session-era client, so that a stateless server takes it for one of its own.
//!
//! The client's requests leave as stateless ones; the answers come back as the client's version has them. Whether and
//! when they get through is left to the [`Relay`](crate::session::legacy::Session) behind this machine, which answers
//! every request exactly once.
//!
//! ```text
//!   initialize ──► server/discover           request ──► + _meta ──► answer ──► plain answer
//!   ping, setLevel ──► answered here                      ▲             │ input_required
//!   subscribe ──► another listen                          └── client ◄──┘ asks the client, then sends it again
//! ```

mod asking;
mod listening;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::asking::{Asked, Round};
use self::listening::Listening;
use super::translate;
use crate::identity::{Identity, Logs, Sender};
use crate::method;
use crate::version::STATELESS_ERA;
use crate::{Cause, Fault, Id, IdMap, Kind, Lane, Message, Packet, meta};

/// How long a client may take to answer a question: a person may be behind it.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) enum Out {
    Client(Packet),
    Server(Message),
}

#[derive(Debug)]
pub(crate) struct OldClient {
    identity: Arc<Identity>,
    /// The server is in this process, and need not find in a text who sends it.
    is_inside: bool,
    initialize: Message,
    /// The server's word on itself, once it is known.
    discovered: Option<String>,
    /// Whether the server declares `logging`, once it is known.
    has_logging: Option<bool>,
    /// The level that the client set.
    log_level: Option<&'static str>,
    listening: Listening,
    /// The client's requests that are owed an answer, by its ids.
    calls: IdMap<Call>,
    /// Under which of our ids which of the client's requests is with the server.
    routes: IdMap<Id>,
    /// Questions that are with the client, by the ids we gave them.
    asked: IdMap<Asked>,
    /// Tells our ids from those of other bridges.
    tag: u64,
    next_id: u64,
    out: VecDeque<Out>,
}

#[derive(Debug)]
struct Call {
    /// As the client sent it.
    message: Message,
    /// The id it has with the server at the moment.
    upstream: Id,
    /// How often the server asked for input.
    rounds: u32,
    /// What the server wants to know before it goes on.
    round: Option<Round>,
    /// It was sent again in another version.
    renegotiated: bool,
}

impl OldClient {
    /// `discovered` is the result of `server/discover`, if it is known already.
    /// A server that `is_inside` this process takes what requests say of their sender beside their text.
    pub(crate) fn new(
        initialize: Message,
        discovered: Option<String>,
        version: &'static str,
        tag: u64,
        is_inside: bool,
    ) -> OldClient {
        let mut client = OldClient {
            identity: Arc::new(translate::identity(&initialize, version)),
            is_inside,
            initialize: initialize.clone(),
            discovered,
            has_logging: None,
            log_level: None,
            listening: Listening::default(),
            calls: IdMap::default(),
            routes: IdMap::default(),
            asked: IdMap::default(),
            tag,
            next_id: 0,
            out: VecDeque::new(),
        };
        client.open(initialize);
        client
    }

    pub(crate) fn poll(&mut self) -> Option<Out> {
        self.out.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        // While a call waits for its client, a question is with that client.
        let waiting = (!self.asked.is_empty()).then(|| self.calls.values()).into_iter().flatten();
        let rounds = waiting.filter_map(|call| call.round.as_ref()).map(|round| round.until);
        rounds.chain(self.listening.due_at()).min()
    }

    /// Whether this answers a question of ours, or is about a request that came through here.
    pub(crate) fn knows(&self, id: &Id) -> bool {
        self.calls.contains_key(id) || self.asked.contains_key(id) || self.listening.owes(id)
    }

    pub(crate) fn owed_to_client(&self) -> usize {
        self.calls.len() + self.listening.owed()
    }

    /// How much is remembered of what is under way; the listen is not counted.
    pub(crate) fn load(&self) -> usize {
        self.calls.len() + self.routes.len() + self.asked.len() + self.listening.owed()
    }

    /// The id of the `server/discover` whose answer will be the answer to `initialize`.
    pub(crate) fn opening(&self) -> Option<&Id> {
        self.calls.values().find(|call| call.message.is(method::INITIALIZE)).map(|call| &call.upstream)
    }

    /// Takes the client's `initialize` back: it will be answered elsewhere.
    pub(crate) fn take_initialize(&mut self) -> Message {
        let opens = |call: &Call| call.message.is(method::INITIALIZE);
        let open: Vec<Id> = self.calls.iter().filter(|(_, call)| opens(call)).map(|(id, _)| id.clone()).collect();
        open.iter().for_each(|id| drop(self.calls.remove(id)));
        self.initialize.clone()
    }

    pub(crate) fn handle_client(&mut self, message: Message, now: Instant) {
        match message.kind() {
            Kind::Request { id, method } => {
                if self.calls.contains_key(id) || self.listening.owes(id) {
                    let fault = Fault::Shape(format!("expected a new request id, came {id}, which is still in use"));
                    return self.tell_client(fault.to_message(None));
                }
                match &**method {
                    method::INITIALIZE => {
                        self.forget_subscriptions();
                        self.log_level = None;
                        self.open(message);
                    }
                    method::PING => self.tell_client(Message::result(id, "{}")),
                    method::LOGGING_SET_LEVEL => self.set_level(id, &message),
                    method::RESOURCES_SUBSCRIBE => self.subscribe(&message, now),
                    method::RESOURCES_UNSUBSCRIBE => self.unsubscribe(&message),
                    _ => self.call(message, now),
                }
            }
            Kind::Notification { method } => match &**method {
                method::INITIALIZED => self.listen(),
                method::CANCELLED => self.cancel(&message),
                // The stateless era has no words for these; who wants roots asks for them.
                method::ROOTS_LIST_CHANGED | method::PROGRESS => {}
                _ => self.tell_server(message),
            },
            Kind::Result { id } | Kind::Error { id: Some(id) } => self.answered(&id.clone(), &message),
            Kind::Error { id: None } => tracing::warn!(target: "era", "the client reports an error of no request"),
        }
    }

    /// What the server sent: answers to what we asked it, and notifications.
    pub(crate) fn handle_server(&mut self, packet: Packet, now: Instant) {
        let Packet { lane, message, cause, .. } = packet;
        match message.kind() {
            Kind::Result { id } | Kind::Error { id: Some(id) } => {
                let id = id.clone();
                if self.listening.is(&id) {
                    return self.listen_ended(&id, &message, now);
                }
                match self.routes.remove(&id) {
                    Some(client_id) => self.settle(&client_id, message, cause, now),
                    None => tracing::debug!(target: "era", "dropped the server's {message}: nobody waits for it"),
                }
            }
            Kind::Notification { .. } => self.notified(lane, &message, now),
            Kind::Request { id, .. } => {
                tracing::warn!(target: "era", "the server sent {message}, which its version has not");
                let fault = Fault::UnknownMethod("a server of this version sends no requests".into());
                self.tell_server(fault.to_message(Some(&id.clone())));
            }
            Kind::Error { id: None } => tracing::warn!(target: "era", "the server reports an error of no request"),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.give_up_rounds(now);
        self.listening_due(now);
    }

    /// Answers everything that is still owed: nothing more will come from the server.
    pub(crate) fn abandon(&mut self, why: &str) {
        self.refuse_subscriptions(&Fault::Upstream(why.to_owned()).to_message(None));
        for id in self.calls.keys().cloned().collect::<Vec<_>>() {
            self.fail(&id, &Fault::Upstream(why.to_owned()).to_message(Some(&id)));
        }
    }

    fn open(&mut self, initialize: Message) {
        let Some(id) = initialize.id().cloned() else { return };
        self.identity = Arc::new(translate::identity(&initialize, self.identity.version));
        self.initialize = initialize.clone();
        self.has_logging = self.discovered.as_deref().map(|discovered| translate::declares(discovered, "logging"));
        match self.discovered.as_deref().map(|discovered| translate::initialize_result(&initialize, discovered)) {
            Some(Some(result)) => self.tell_client(result),
            Some(None) => {
                let fault = Fault::Upstream("the server's answer to server/discover is not understood".into());
                self.tell_client(fault.to_message(Some(&id)));
            }
            None => {
                let upstream = self.enter(initialize);
                let discover = Message::request(&upstream, method::DISCOVER, None);
                self.tell_server(self.introduce(discover));
            }
        }
    }

    /// Takes a request in, and says under which id the server will know it: the client's, if that is free.
    fn enter(&mut self, message: Message) -> Id {
        let id = message.id().cloned().unwrap_or_else(|| Id::from(0));
        let taken = self.routes.contains_key(&id) || self.listening.is(&id);
        let upstream = if taken { self.fresh_id() } else { id.clone() };
        self.routes.insert(upstream.clone(), id.clone());
        let call = Call { message, upstream: upstream.clone(), rounds: 0, round: None, renegotiated: false };
        self.calls.insert(id, call);
        upstream
    }

    fn call(&mut self, message: Message, now: Instant) {
        let upstream = self.enter(message.clone());
        let message = if message.id() == Some(&upstream) { message } else { message.with_id(&upstream) };
        let holds = message.is(method::TOOLS_CALL) && self.listening.holds();
        let signed = self.sign(message, false);
        if holds { self.listening.hold(signed, now) } else { self.tell_server(signed) }
    }

    /// The server has answered a request of the client's.
    fn settle(&mut self, id: &Id, answer: Message, cause: Option<Arc<Cause>>, now: Instant) {
        let Some(call) = self.calls.get_mut(id) else { return };
        if let Kind::Error { .. } = answer.kind() {
            let versions = translate::supported_versions(&answer).unwrap_or_default();
            let other = STATELESS_ERA.iter().rev().find(|known| versions.iter().any(|version| version == *known));
            if let Some(version) = other.filter(|version| **version != self.identity.version && !call.renegotiated) {
                call.renegotiated = true;
                Arc::make_mut(&mut self.identity).version = version;
                return self.send_again(id, None);
            }
            let error = translate::session_error(&answer, &call.message);
            return self.fail_with(id, Packet::from(error).because(cause));
        }
        if call.message.is(method::INITIALIZE) {
            self.calls.remove(id);
            self.discovered = answer.payload().map(str::to_owned);
            return self.open(self.initialize.clone());
        }
        if answer.is_plain() {
            self.calls.remove(id);
            return self.tell(id, answer.with_id(id));
        }
        let members = answer.members();
        let kind = members.as_ref().and_then(|members| members.string("resultType"));
        match (kind.as_deref(), members) {
            (Some("input_required"), Some(members)) => self.ask(id, &members, now),
            (None | Some("complete"), Some(members)) => {
                self.calls.remove(id);
                self.tell(id, translate::plain(&answer, members).with_id(id));
            }
            (kind, _) => {
                let kind = kind.unwrap_or("something that is no object");
                let fault = Fault::Upstream(format!("expected a complete result from the server, came {kind}"));
                self.fail(id, &fault.to_message(Some(id)));
            }
        }
    }

    /// Sends a request once more, under another id and with what the server asked for.
    fn send_again(&mut self, id: &Id, input: Option<(Option<String>, Option<String>)>) {
        let upstream = self.fresh_id();
        let Some(call) = self.calls.get_mut(id) else { return };
        call.upstream = upstream.clone();
        self.routes.insert(upstream.clone(), id.clone());
        let message = if call.message.is(method::INITIALIZE) {
            Message::request(&upstream, method::DISCOVER, None)
        } else {
            call.message.with_id(&upstream)
        };
        let message = match &input {
            None => message,
            Some((responses, state)) => {
                let mut params = message.members().unwrap_or_default();
                if let Some(responses) = responses {
                    params.set("inputResponses", responses.clone());
                }
                if let Some(state) = state {
                    params.set("requestState", state.clone());
                }
                message.with_members(&params)
            }
        };
        let is_retry = input.is_some();
        self.tell_server(self.sign(message, is_retry));
    }

    /// A request of our own in the client's name.
    fn introduce(&self, request: Message) -> Message {
        if self.is_inside { self.sign(request, false) } else { self.identity.sign(&request, None) }
    }

    fn sign(&self, message: Message, is_retry: bool) -> Message {
        match self.is_inside {
            true => {
                let sender = Sender { identity: Arc::clone(&self.identity), logs: self.logs(), is_retry };
                message.signed_beside(sender)
            }
            false => self.identity.sign(&message, self.logs().level()),
        }
    }

    fn logs(&self) -> Logs {
        match (self.has_logging, self.log_level) {
            (Some(false), _) | (None, None) => Logs::Off,
            (Some(true), None) => Logs::Default,
            (_, Some(level)) => Logs::From(level),
        }
    }

    fn set_level(&mut self, id: &Id, request: &Message) {
        if self.has_logging == Some(false) {
            let fault = Fault::UnknownMethod(format!("{}: the server declares no logging", method::LOGGING_SET_LEVEL));
            return self.tell_client(fault.to_message(Some(id)));
        }
        let level = request.members().and_then(|params| params.string("level"));
        match level.and_then(|level| method::LOG_LEVELS.into_iter().find(|known| *known == level)) {
            Some(level) => {
                self.log_level = Some(level);
                self.tell_client(Message::result(id, "{}"));
            }
            None => {
                let fault = Fault::Params(format!("expected level to be one of {}", method::LOG_LEVELS.join(", ")));
                self.tell_client(fault.to_message(Some(id)));
            }
        }
    }

    /// No answer is sent afterwards, whatever the server does.
    fn cancel(&mut self, notification: &Message) {
        let id = meta::cancelled_request(notification);
        let Some(id) = id.filter(|id| !self.forget_subscriber(id)) else { return };
        let Some((id, call)) = self.calls.remove_entry(&id) else { return };
        if call.message.is(method::INITIALIZE) {
            self.calls.insert(id, call);
            return tracing::debug!(target: "era", "dropped {notification}: this cannot be cancelled");
        }
        match call.round {
            // The server has had its say: it waits for nothing.
            Some(_) => self.withdraw_questions(&id),
            None => {
                self.routes.remove(&call.upstream);
                if !self.listening.take_back(&call.upstream) {
                    self.tell_server(meta::with_cancelled_request(notification, &call.upstream));
                }
            }
        }
    }

    fn notified(&mut self, lane: Lane, message: &Message, now: Instant) {
        let subscription = match &lane {
            Lane::Request(id) if self.listening.is(id) => Some(id.clone()),
            _ => meta::subscription_id(message).filter(|id| self.listening.is(id)),
        };
        if let Some(subscription) = subscription {
            return self.heard(&subscription, message, now);
        }
        if message.is(method::CANCELLED) {
            if let Some(ended) = meta::cancelled_request(message).filter(|id| self.listening.is(id)) {
                self.listen_again(&ended, now);
            }
            return;
        }
        if meta::subscription_id(message).is_some() {
            return tracing::debug!(target: "era", "dropped {message}: its subscription is over");
        }
        let lane = match lane {
            Lane::Request(id) => self.routes.get(&id).map_or(Lane::Main, |id| Lane::Request(id.clone())),
            other => other,
        };
        self.out.push_back(Out::Client(Packet::new(lane, message.clone())));
    }

    /// Answers a request with an error.
    fn fail(&mut self, id: &Id, error: &Message) {
        self.fail_with(id, error.clone().into());
    }

    fn fail_with(&mut self, id: &Id, error: Packet) {
        let Some(call) = self.calls.remove(id) else { return };
        self.routes.remove(&call.upstream);
        if call.round.is_some() {
            self.withdraw_questions(id);
        }
        let (lane, message) = (Lane::Request(id.clone()), error.message.with_id(id));
        self.out.push_back(Out::Client(Packet { lane, message, ..error }));
    }

    fn tell(&mut self, id: &Id, message: Message) {
        self.out.push_back(Out::Client(Packet::new(Lane::Request(id.clone()), message)));
    }

    fn tell_client(&mut self, message: Message) {
        self.out.push_back(Out::Client(message.into()));
    }

    fn tell_server(&mut self, message: Message) {
        self.out.push_back(Out::Server(message));
    }

    fn fresh_id(&mut self) -> Id {
        loop {
            self.next_id += 1;
            let id = Id::of_our_own("", self.tag, self.next_id);
            if !self.routes.contains_key(&id) && !self.knows(&id) && !self.listening.is(&id) {
                return id;
            }
        }
    }
}
