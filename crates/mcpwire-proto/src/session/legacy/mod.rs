//! One conversation through a bridge, and its recovery: a session of 2024-11-05 to 2025-11-25, or, with no handshake to
//! replay, the requests of 2026-07-28.
//!
//! Messages, failures and `now` go in through `handle_*`; what is to be sent comes out of [`Session::poll_effect`].
//! The client keeps one session for as long as it lives; the server's may be lost and made anew underneath it:
//!
//! ```text
//!                 initialize                    answered
//!   Open ──────────────────────────► Opening ─────────────► Open
//!    │ session lost: replay initialize ▲  │                  │
//!    ├─────────────────────────────────┘  ├─ refused ──► Closed (the next request tries again)
//!    │ unreachable                        │ unreachable
//!    └──────────────► Waiting ◄───────────┘
//!                        └── after a backoff: back to Open, or to Opening if a handshake is due
//! ```
//!
//! Outside `Open`, messages are held, in order. A request is given up when the server cannot be reached for
//! [`Config::wait`]. What may have been executed is never sent again, unless its method only reads.

mod attribution;
mod listening;
mod memory;
mod recovery;
mod server;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::Deserialize;

use self::attribution::Tokens;
use self::memory::Memory;
use super::backoff::Backoff;
use crate::method::{self, Method};
use crate::pending::Pending;
use crate::{Cause, Fault, Id, IdMap, Kind, Message, Packet, meta};

pub use self::memory::protocol_version;

/// The most notifications held while there is no session; they are small and few, or something is wrong.
const MOST_HELD: usize = 1024;

#[derive(Debug, Clone)]
pub struct Config {
    /// How long a request waits for a server that cannot be reached.
    pub wait: Duration,
    /// How long a request may stay without an answer or a sign of progress; `None` is for ever.
    pub timeout: Option<Duration>,
    /// The most requests owed to the client at once.
    pub max_in_flight: usize,
    /// Whether to find out to which request a message of the server belongs where its transport cannot tell.
    pub attribute: bool,
    /// For the jitter between tries, and to tell our requests from those of other bridges on the way.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config { wait: Duration::from_secs(20), timeout: None, max_in_flight: 10_000, attribute: false, seed: 0 }
    }
}

/// The most questions of the server that are with the client at once.
const MOST_ASKED: usize = 1000;

/// What is to be done with a message.
#[derive(Debug)]
pub enum Effect {
    ToClient(Packet),
    ToServer(Packet),
}

/// Where a conversation stands, for those who watch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The client has not opened it yet.
    Idle,
    Opening,
    Open,
    /// The server cannot be reached.
    Waiting,
    /// The server refuses a session.
    Closed,
}

/// The bridge's side of one conversation.
#[derive(Debug)]
pub struct Session {
    config: Config,
    state: State,
    memory: Memory,
    backoff: Backoff,
    /// Requests under way towards the server: the client's, and our own.
    owed: Pending<Owed>,
    /// Requests of the server's under way towards the client, by the id the client sees.
    asked: IdMap<Asked>,
    /// Whose progress is whose.
    tokens: Tokens,
    held: VecDeque<Message>,
    effects: VecDeque<Effect>,
    /// Counts server sessions: tells a failure of the present one from a late one of an earlier.
    generation: u32,
    next_id: u64,
    /// A session was opened anew, and no request was answered since.
    fruitless: bool,
    /// What was last wrong with the server.
    trouble: String,
    /// No deadline of any request is earlier than this.
    alarm: Option<Instant>,
}

#[derive(Debug)]
enum State {
    Open,
    Opening,
    Waiting { until: Instant, then: Then },
    Closed,
}

/// What follows a wait for an unreachable server.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Then {
    /// Send what is held.
    Flush,
    /// Send the client's `initialize` again, which never got through.
    Initialize(Id),
    /// Replay `initialize` for a session that was lost.
    Reopen,
}

#[derive(Debug)]
struct Owed {
    message: Message,
    to: Creditor,
    /// The server session it was last sent in.
    generation: u32,
    /// It is not with the server, but waits for it.
    held: bool,
    /// It was sent a second time because its first answer was lost.
    repeated: bool,
    /// It was sent a second time because its session was lost.
    reopened: bool,
    /// The client has heard that it is listening.
    acknowledged: bool,
    /// When it was last handed to the transport.
    sent: Option<Instant>,
    /// When to give up waiting for an unreachable server.
    give_up: Option<Instant>,
    /// When to give up on a silent server.
    deadline: Option<Instant>,
}

/// Who gets the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Creditor {
    Client,
    /// Us: the replayed `initialize`.
    Reopening,
    /// Us: a setting of the lost session.
    Restoring,
    /// Us: a list to be compared with what the client knows.
    Comparing(Method),
}

#[derive(Debug)]
struct Asked {
    /// The id the server knows it by.
    id: Id,
    generation: u32,
}

impl Session {
    pub fn new(config: Config) -> Session {
        let backoff = Backoff::new(config.seed);
        Session {
            config,
            state: State::Open,
            memory: Memory::default(),
            backoff,
            owed: Pending::default(),
            asked: IdMap::default(),
            tokens: Tokens::default(),
            held: VecDeque::new(),
            effects: VecDeque::new(),
            generation: 0,
            next_id: 0,
            fruitless: false,
            trouble: String::new(),
            alarm: None,
        }
    }

    /// The next thing to do, if any.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Session::handle_timeout`] wants to be called. Calling it early does no harm.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waiting = match self.state {
            State::Waiting { until, .. } => Some(until),
            _ => None,
        };
        waiting.into_iter().chain(self.alarm).min()
    }

    pub fn phase(&self) -> Phase {
        match self.state {
            State::Open if self.memory.initialize.is_none() => Phase::Idle,
            State::Open => Phase::Open,
            State::Opening => Phase::Opening,
            State::Waiting { .. } => Phase::Waiting,
            State::Closed => Phase::Closed,
        }
    }

    /// The version that the server answered `initialize` with.
    pub fn version(&self) -> Option<&str> {
        self.memory.version.as_deref()
    }

    /// Whether a request under this id is owed an answer.
    pub fn knows(&self, id: &Id) -> bool {
        self.owed.contains(id)
    }

    /// Whether a request of the server's under this id waits for the client's answer.
    pub fn asks(&self, id: &Id) -> bool {
        self.asked.contains_key(id)
    }

    /// What was last wrong with the server.
    pub fn trouble(&self) -> &str {
        &self.trouble
    }

    /// How many answers the client still waits for.
    pub fn owed_to_client(&self) -> usize {
        self.owed.iter().filter(|(_, owed)| owed.to == Creditor::Client && !owed.listens()).count()
    }

    /// How much is remembered of what is under way; listens are not counted.
    pub fn load(&self) -> usize {
        let lost = self.asked.values().filter(|asked| asked.generation != self.generation).count();
        let owed = self.owed.iter().filter(|(_, owed)| !owed.listens()).count();
        owed + self.asked.len() - lost + self.held.iter().filter(|held| !held.is(method::LISTEN)).count()
    }

    /// Whether nothing is under way, not even a listen.
    pub fn is_idle(&self) -> bool {
        self.owed.is_empty()
    }

    pub fn handle_client(&mut self, message: Message, now: Instant) {
        match message.kind() {
            Kind::Request { id, method } => {
                let (id, opens) = (id.clone(), *method == method::INITIALIZE);
                if let Err(refusal) = self.admit(&id, &message) {
                    return self.effects.push_back(Effect::ToClient(refusal));
                }
                if self.config.attribute {
                    self.tokens.note(&id, &message);
                }
                if opens { self.initialize(&id, message, now) } else { self.forward(message, now) }
            }
            Kind::Notification { method } if *method == method::CANCELLED => self.cancel(message, now),
            Kind::Notification { method } => {
                self.memory.initialized |= *method == method::INITIALIZED;
                self.forward(message, now);
            }
            Kind::Result { id } | Kind::Error { id: Some(id) } => match self.asked.remove(id) {
                Some(asked) if self.is_current(&asked) => self.tell_server(message.with_id(&asked.id)),
                _ => tracing::debug!(target: "bridge", "dropped the client's {message}: nobody waits for it"),
            },
            Kind::Error { id: None } => tracing::warn!(target: "bridge", "the client reports an error of no request"),
        }
    }

    /// Whether the server that asked is still there.
    fn is_current(&self, asked: &Asked) -> bool {
        let is_lost = matches!(self.state, State::Waiting { then: Then::Reopen, .. });
        asked.generation == self.generation && !is_lost
    }

    /// Takes a request in, or says why not. An id in use stays with the request that came first.
    fn admit(&mut self, id: &Id, message: &Message) -> Result<(), Packet> {
        let most = self.config.max_in_flight;
        if self.owed.len() >= most {
            return Err(Fault::Upstream(format!("too many requests: {most} are under way already")).to_packet(Some(id)));
        }
        self.owed.open(id.clone(), Owed::new(message.clone(), Creditor::Client)).map_err(|_| {
            Fault::Shape(format!("expected a new request id, came {id}, which is still in use")).to_packet(None)
        })
    }

    fn initialize(&mut self, id: &Id, message: Message, now: Instant) {
        let opens = |owed: &Owed| owed.to == Creditor::Client && owed.message.is(method::INITIALIZE);
        for earlier in self.owed.ids_where(opens).iter().filter(|earlier| *earlier != id) {
            self.fail(earlier, Fault::Upstream("another initialize took its place".into()));
        }
        self.generation += 1;
        self.memory = Memory::of(&message);
        self.state = State::Opening;
        self.send_again(id, now);
    }

    /// A cancelled request is owed nothing any more: servers need not answer it (2025-11-25, Cancellation), and an answer
    /// that comes nevertheless is one that the client does not expect.
    fn cancel(&mut self, notification: Message, now: Instant) {
        let id = meta::cancelled_request(&notification);
        let owed = id.as_ref().and_then(|id| self.owed.entry(id));
        if owed.is_some_and(|owed| owed.to != Creditor::Client || owed.message.is(method::INITIALIZE)) {
            return tracing::debug!(target: "bridge", "dropped {notification}: this cannot be cancelled");
        }
        if let Some((id, owed)) = id.and_then(|id| self.owed.settle(&id)) {
            self.tokens.forget(&owed.message);
            if owed.held {
                // The server never saw the request: there is nothing to cancel.
                return self.held.retain(|held| !(held.is_request() && held.id() == Some(&id)));
            }
        }
        self.forward(notification, now);
    }

    fn forward(&mut self, message: Message, now: Instant) {
        match self.state {
            State::Open => self.send(message, now),
            State::Opening | State::Waiting { .. } => self.hold(message, now),
            State::Closed => {
                self.hold(message, now);
                self.reopen(now);
            }
        }
    }

    fn hold(&mut self, message: Message, now: Instant) {
        if !message.is_request() && self.held.len() >= MOST_HELD {
            return tracing::warn!(target: "bridge", "dropped {message}: too much waits for the server already");
        }
        if let Some(owed) = message.id().and_then(|id| self.owed.entry(id)) {
            owed.held = true;
            owed.deadline = None;
        }
        self.held.push_back(message);
        // While a lost session is opened again, too: it may be that nobody can be reached.
        let reopening = matches!(self.state, State::Opening) && self.generation > 0;
        if reopening || matches!(self.state, State::Waiting { .. }) {
            self.limit_waits(now);
        }
    }

    fn send(&mut self, message: Message, now: Instant) {
        match message.kind() {
            Kind::Request { id, .. } => self.send_again(&id.clone(), now),
            _ => self.tell_server(message),
        }
    }

    /// Sends a request that is owed, for the first time or once more.
    fn send_again(&mut self, id: &Id, now: Instant) {
        let mut deadline = self.config.timeout.map(|timeout| now + timeout);
        let Some(owed) = self.owed.entry(id) else { return };
        if owed.listens() {
            deadline = None;
        }
        if owed.to == Creditor::Reopening {
            // Others wait for it.
            deadline = Some(now + self.config.wait);
        }
        owed.generation = self.generation;
        owed.held = false;
        owed.sent = Some(now);
        owed.deadline = deadline;
        let message = owed.message.clone();
        self.alarm_at(deadline);
        self.tell_server(message);
    }

    /// Answers everything that is still owed: nothing more will come from the server.
    pub fn abandon(&mut self, why: &str) {
        self.held.clear();
        for id in self.owed.ids_where(Owed::listens) {
            self.end_listen(&id);
        }
        for id in self.owed.ids_where(|_| true) {
            self.fail(&id, Fault::NoAnswer(Cause::Interrupted, why.to_owned()));
        }
    }

    /// Sends a request of our own.
    fn request(&mut self, message: &Message, to: Creditor, now: Instant) {
        let id = self.fresh_id();
        let _ = self.owed.open(id.clone(), Owed::new(message.with_id(&id), to));
        self.send_again(&id, now);
    }

    fn fresh_id(&mut self) -> Id {
        loop {
            self.next_id += 1;
            let id = Id::of_our_own("", self.config.seed, self.next_id);
            if !self.owed.contains(&id) && !self.asked.contains_key(&id) {
                return id;
            }
        }
    }

    fn fail(&mut self, id: &Id, fault: Fault) {
        self.fail_with(id, fault.to_packet(Some(id)));
    }

    /// Answers a request with an error, if it is owed an answer at all.
    fn fail_with(&mut self, id: &Id, error: Packet) {
        let Some((id, owed)) = self.owed.settle(id) else { return };
        self.tokens.forget(&owed.message);
        if owed.to == Creditor::Client {
            let answer = Packet { message: error.message.with_id(&id), ..error.clone() };
            self.effects.push_back(Effect::ToClient(answer));
        }
        if owed.held {
            self.held.retain(|held| !(held.is_request() && held.id() == Some(&id)));
        }
        if owed.to == Creditor::Client && owed.message.is(method::INITIALIZE) {
            self.close(error_text(&error.message).as_deref().unwrap_or("initialize failed"));
        }
    }

    fn tell_client(&mut self, message: Message) {
        self.effects.push_back(Effect::ToClient(message.into()));
    }

    fn tell_server(&mut self, message: Message) {
        self.effects.push_back(Effect::ToServer(message.into()));
    }
}

/// What an error response says.
fn error_text(response: &Message) -> Option<String> {
    #[derive(Deserialize)]
    struct Error {
        message: String,
    }
    response.read().map(|error: Error| error.message)
}

impl Owed {
    /// Whether this is a request that stays open for as long as both sides like.
    fn listens(&self) -> bool {
        self.message.is(method::LISTEN)
    }

    fn new(message: Message, to: Creditor) -> Owed {
        Owed {
            message,
            to,
            generation: 0,
            held: false,
            repeated: false,
            reopened: false,
            acknowledged: false,
            sent: None,
            give_up: None,
            deadline: None,
        }
    }
}

#[cfg(test)]
mod tests;
