//! Many clients on one server session: ids and progress tokens are made unique, and everything finds its way back.
//!
//! The rule above all: a message never reaches a client it was not meant for. Answers and progress are known by their
//! ids; what the server says about itself (list changes) is for all who are in its session; updates are for those who
//! subscribed. A question or a log line belongs to the one client that has requests under way. If there are several,
//! nobody can tell: the question is answered with an error, and the log line is dropped.

mod opened;

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde::Deserialize;

use self::opened::Opened;
use crate::era::Era;
use crate::pending::Pending;
use crate::{Fault, Id, IdMap, Kind, Lane, Message, Packet, meta, method};

/// Names a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Member(pub u64);

/// What is to be done with a message.
#[derive(Debug)]
pub enum Effect {
    ToClient(Member, Packet),
    ToServer(Message),
    /// Connect to the server once more and drop the connection so far, with all that was sent and received on it. Its clients
    /// are told that it is gone, except for the one whose opening is for the new one.
    Replace(Member),
}

/// The books of a shared server session.
#[derive(Debug, Default)]
pub struct Share {
    members: BTreeSet<Member>,
    /// Those that asked for the session. Others have none (2026-07-28): what is said in it is not for them.
    in_session: BTreeSet<Member>,
    handshake: Handshake,
    opened: Opened,
    /// Requests that stand for themselves, while an `initialize` is with a server whose era is not known.
    held: Vec<(Member, Id, Message)>,
    owed: Pending<Owed>,
    /// Progress tokens of ours, with their owner and the token the owner knows.
    tokens: IdMap<(Member, Id)>,
    /// Questions of the server that are with a client.
    asked: IdMap<Member>,
    subscribers: HashMap<String, BTreeSet<Member>>,
    effects: VecDeque<Effect>,
    /// Counts server sessions: tells a failure of the present one from a late one of an earlier.
    generation: u32,
    next: u64,
}

#[derive(Debug, Default)]
enum Handshake {
    #[default]
    None,
    /// The first client's `initialize` is under way; others wait for its answer.
    Opening(Vec<(Member, Id)>),
    Open {
        answer: Message,
        initialized: bool,
    },
}

#[derive(Debug)]
struct Owed {
    member: Member,
    id: Id,
    token: Option<Id>,
    opens: bool,
    /// It stands for itself (2026-07-28).
    stateless: bool,
    discovers: bool,
    /// It stays open, and says by itself what belongs to it (2026-07-28).
    listens: bool,
    /// The server session it was sent in.
    generation: u32,
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
}

impl Share {
    /// A server that must not get the openings of both eras, as a program of both eras on one pipe.
    pub fn of_one_era() -> Share {
        Share { opened: Opened::limited(), ..Share::default() }
    }

    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    pub fn handle_join(&mut self, member: Member) {
        self.members.insert(member);
    }

    /// A client is gone: what it asked for is cancelled, what it watched is let go.
    pub fn handle_leave(&mut self, member: Member) {
        self.members.remove(&member);
        self.in_session.remove(&member);
        self.held.retain(|(holder, ..)| *holder != member);
        for id in self.owed.ids_where(|owed| owed.member == member && !owed.opens) {
            let Some((id, owed)) = self.owed.settle(&id) else { continue };
            owed.token.iter().for_each(|token| drop(self.tokens.remove(token)));
            let params = format!(r#"{{"requestId":{id},"reason":"the client is gone"}}"#);
            self.tell_server(Message::notification(method::CANCELLED, Some(&params)));
        }
        if let Handshake::Opening(waiting) = &mut self.handshake {
            waiting.retain(|(waiter, _)| *waiter != member);
        }
        let questions: Vec<Id> = self.asked.iter().filter(|(_, m)| **m == member).map(|(id, _)| id.clone()).collect();
        for id in questions {
            self.asked.remove(&id);
            self.tell_server(Fault::Upstream("the client is gone".into()).to_message(Some(&id)));
        }
        let watched: Vec<String> =
            self.subscribers.iter().filter(|(_, m)| m.contains(&member)).map(|(u, _)| u.clone()).collect();
        for uri in watched {
            if self.unsubscribe(member, &uri) {
                let params = serde_json::json!({ "uri": uri }).to_string();
                let id = self.fresh_id();
                self.tell_server(Message::request(&id, method::RESOURCES_UNSUBSCRIBE, Some(&params)));
            }
        }
    }

    pub fn handle_client(&mut self, member: Member, message: Message) {
        match message.kind() {
            Kind::Request { id, method } => match &**method {
                method::INITIALIZE => self.initialize(member, id.clone(), &message),
                method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => self.watch(member, id.clone(), &message),
                _ if opened::is_stateless(&message) => self.stateless(member, id.clone(), &message),
                _ => self.forward(member, id.clone(), &message, false),
            },
            Kind::Notification { method } => match &**method {
                method::INITIALIZED => self.initialized(message),
                method::CANCELLED => self.cancel(member, &message),
                _ => self.tell_server(message),
            },
            Kind::Result { id } | Kind::Error { id: Some(id) } => {
                if self.asked.get(id) == Some(&member) {
                    self.asked.remove(id);
                    self.tell_server(message);
                }
            }
            Kind::Error { id: None } => {}
        }
    }

    pub fn handle_server(&mut self, message: Message) {
        match message.kind() {
            Kind::Request { id, .. } => match self.only_busy_member(&self.in_session) {
                Some(member) => {
                    self.asked.insert(id.clone(), member);
                    self.tell_client(member, Lane::Unsorted, message);
                }
                None => {
                    let why = "several clients share this server, and whose request this belongs to cannot be told";
                    self.tell_server(Fault::Upstream(why.into()).to_message(Some(id)));
                }
            },
            Kind::Notification { method } => self.tell(&method.clone(), message),
            Kind::Result { id } | Kind::Error { id: Some(id) } => {
                if let Some((_, owed)) = self.owed.settle(&id.clone()) {
                    self.answer(owed, message);
                }
            }
            Kind::Error { id: None } => {}
        }
    }

    /// The server is gone: its successor knows nothing. Every client is told by whoever drives us, and starts over.
    pub fn handle_server_gone(&mut self) {
        let members = std::mem::take(&mut self.members);
        let (next, generation, opened) = (self.next, self.generation + 1, self.opened.after_loss());
        let effects = std::mem::take(&mut self.effects);
        *self = Share { members, next, generation, opened, effects, ..Share::default() };
    }

    /// The server has forgotten our session; what is under way may still be answered. Gives whether this is news: then
    /// whoever drives us tells every client, and they start over.
    pub fn handle_session_lost(&mut self) -> bool {
        if !matches!(self.handshake, Handshake::Open { .. }) {
            return false;
        }
        self.handshake = Handshake::None;
        self.generation += 1;
        self.asked.clear();
        self.subscribers.clear();
        true
    }

    /// Whether a message to the server belongs to its present session, as far as can be told.
    pub fn is_present(&mut self, message: &Message) -> bool {
        let Some(id) = message.id().filter(|_| message.is_request()) else { return true };
        self.owed.entry(id).is_some_and(|owed| owed.generation == self.generation)
    }

    pub fn members(&self) -> impl Iterator<Item = Member> {
        self.members.iter().copied()
    }

    /// A message to the server did not get through; gives the clients that wait for it, and the message as each sent it.
    pub fn handle_failed(&mut self, message: &Message) -> Vec<(Member, Message)> {
        // An answer to the server bears an id of the server's.
        let request = message.id().filter(|_| message.is_request());
        let Some((_, owed)) = request.and_then(|id| self.owed.settle(id)) else { return Vec::new() };
        owed.token.iter().for_each(|token| drop(self.tokens.remove(token)));
        let mut waiting = match std::mem::take(&mut self.handshake) {
            Handshake::Opening(waiting) if owed.opens => waiting,
            handshake => {
                self.handshake = handshake;
                Vec::new()
            }
        };
        waiting.push((owed.member, owed.id));
        self.release();
        waiting.into_iter().map(|(member, id)| (member, message.with_id(&id))).collect()
    }

    fn initialize(&mut self, member: Member, id: Id, message: &Message) {
        if !self.may_open(Era::Session, member, &id, message) {
            return;
        }
        self.in_session.insert(member);
        match &mut self.handshake {
            Handshake::None => {
                self.handshake = Handshake::Opening(Vec::new());
                self.forward(member, id, message, true);
            }
            Handshake::Opening(waiting) => waiting.push((member, id)),
            Handshake::Open { answer, .. } => {
                let answer = answer.with_id(&id);
                self.tell_client(member, Lane::Request(id), answer);
            }
        }
    }

    /// The server needs to hear it once.
    fn initialized(&mut self, message: Message) {
        if let Handshake::Open { initialized, .. } = &mut self.handshake
            && !std::mem::replace(initialized, true)
        {
            self.tell_server(message);
        }
    }

    fn forward(&mut self, member: Member, id: Id, message: &Message, opens: bool) {
        let ours = self.fresh_id();
        let mut message = message.with_id(&ours);
        let token = meta::progress_token(&message).map(|theirs| {
            message = meta::with_progress_token(&message, &ours);
            self.tokens.insert(ours.clone(), (member, theirs));
            ours.clone()
        });
        let (listens, discovers) = (message.is(method::LISTEN), message.is(method::DISCOVER));
        let (stateless, generation) = (opened::is_stateless(&message), self.generation);
        let owed = Owed { member, id, token, opens, stateless, discovers, listens, generation };
        let _ = self.owed.open(ours, owed);
        self.tell_server(message);
    }

    fn cancel(&mut self, member: Member, notification: &Message) {
        let Some(theirs) = meta::cancelled_request(notification) else { return };
        self.held.retain(|(holder, id, _)| *holder != member || *id != theirs);
        let ours = self.owed.iter().find(|(_, owed)| owed.member == member && owed.id == theirs && !owed.opens);
        // It keeps its client busy no longer, whether the server answers or not.
        if let Some((ours, owed)) = ours.map(|(ours, _)| ours.clone()).and_then(|ours| self.owed.settle(&ours)) {
            owed.token.iter().for_each(|token| drop(self.tokens.remove(token)));
            self.tell_server(meta::with_cancelled_request(notification, &ours));
        }
    }

    /// The server is asked to watch a resource for the first client that wants it, and to stop for the last.
    fn watch(&mut self, member: Member, id: Id, message: &Message) {
        let Some(Resource { uri }) = message.read() else { return self.forward(member, id, message, false) };
        let changes = if message.is(method::RESOURCES_SUBSCRIBE) {
            let subscribers = self.subscribers.entry(uri).or_default();
            subscribers.insert(member);
            subscribers.len() == 1
        } else {
            self.unsubscribe(member, &uri)
        };
        if changes {
            self.forward(member, id, message, false);
        } else {
            let done = Message::result(&id, "{}");
            self.tell_client(member, Lane::Request(id), done);
        }
    }

    /// Whether nobody else watches it.
    fn unsubscribe(&mut self, member: Member, uri: &str) -> bool {
        let Some(subscribers) = self.subscribers.get_mut(uri) else { return true };
        subscribers.remove(&member);
        let last = subscribers.is_empty();
        if last {
            self.subscribers.remove(uri);
        }
        last
    }

    fn answer(&mut self, owed: Owed, message: Message) {
        if owed.opens {
            self.opened.saw_session(&message);
        } else if owed.stateless {
            self.opened.saw_stateless(owed.discovers, &message);
        }
        owed.token.iter().for_each(|token| drop(self.tokens.remove(token)));
        let waiting = match std::mem::take(&mut self.handshake) {
            Handshake::Opening(waiting) if owed.opens => {
                if matches!(message.kind(), Kind::Result { .. }) {
                    self.handshake = Handshake::Open { answer: message.detached(), initialized: false };
                }
                waiting
            }
            handshake => {
                self.handshake = handshake;
                Vec::new()
            }
        };
        for (member, id) in waiting.into_iter().chain([(owed.member, owed.id)]) {
            if self.members.contains(&member) {
                let message = message.with_id(&id);
                let message = if owed.listens { meta::with_subscription_id(&message, &id) } else { message };
                self.tell_client(member, Lane::Request(id), message);
            }
        }
        self.release();
    }

    /// Whether a notification belongs to a listen; then its client is told.
    fn tell_listener(&mut self, message: &Message) -> bool {
        if !self.owed.iter().any(|(_, owed)| owed.listens) {
            return false;
        }
        let cancels = message.is(method::CANCELLED);
        let ours = if cancels { meta::cancelled_request(message) } else { meta::subscription_id(message) };
        let Some(Owed { member, id, .. }) = ours.and_then(|ours| self.owed.entry(&ours)).filter(|owed| owed.listens)
        else {
            return false;
        };
        let (member, id) = (*member, id.clone());
        let message = meta::with_subscription_id(message, &id);
        let message = if cancels { meta::with_cancelled_request(&message, &id) } else { message };
        self.tell_client(member, Lane::Request(id), message);
        true
    }

    fn tell(&mut self, method: &method::Method, message: Message) {
        if self.tell_listener(&message) {
            return;
        }
        let to: Vec<Member> = match &**method {
            method::PROGRESS => {
                let token = meta::progress_token(&message);
                let Some((member, theirs)) = token.and_then(|token| self.tokens.get(&token).cloned()) else { return };
                let message = meta::with_progress_token(&message, &theirs);
                return self.tell_client(member, Lane::Unsorted, message);
            }
            method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED => {
                self.in_session.iter().copied().collect()
            }
            method::RESOURCES_UPDATED => {
                let uri = message.read::<Resource>().map(|resource| resource.uri).unwrap_or_default();
                self.subscribers.get(&uri).into_iter().flatten().copied().collect()
            }
            method::CANCELLED => {
                let question = meta::cancelled_request(&message);
                question.and_then(|id| self.asked.remove(&id)).into_iter().collect()
            }
            _ => self.only_busy_member(&self.members).into_iter().collect(),
        };
        if to.is_empty() {
            tracing::debug!(target: "share", "dropped the server's {message}: it cannot be told whose it is");
        }
        for member in to {
            self.tell_client(member, Lane::Unsorted, message.clone());
        }
    }

    /// The one of these clients that has requests under way, or that is there at all.
    fn only_busy_member(&self, among: &BTreeSet<Member>) -> Option<Member> {
        if among.len() == 1 {
            return among.first().copied();
        }
        let mut busy = self.owed.iter().filter(|(_, owed)| !owed.listens).map(|(_, owed)| owed.member);
        let first = busy.find(|member| among.contains(member))?;
        busy.all(|other| other == first || !among.contains(&other)).then_some(first)
    }

    fn fresh_id(&mut self) -> Id {
        self.next += 1;
        Id::from(self.next)
    }

    fn tell_client(&mut self, member: Member, lane: Lane, message: Message) {
        self.effects.push_back(Effect::ToClient(member, Packet::new(lane, message)));
    }

    fn tell_server(&mut self, message: Message) {
        self.effects.push_back(Effect::ToServer(message));
    }
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
