//! Everything one client says through a bridge, whatever its era and its server's.
//!
//! A client speaks the session era from `initialize` on, or the stateless era with requests that say so themselves; some
//! do both on one connection, so there is a side for each. What the server speaks is found out by the first message
//! of a side, in the way that costs a pair of equals nothing: the client's own words are tried first.

mod asking;
mod pool;
mod refused;
mod session_side;
mod stateless_side;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;

use self::session_side::SessionSide;
use self::stateless_side::StatelessSide;
use crate::era::{self, OldServer};
use crate::message::split_batch;
use crate::session::legacy::{self, Phase};
use crate::version::{self, SESSION_ERA, STATELESS_ERA, V2025_11_25, V2026_07_28};
use crate::{Failure, Fault, Id, Kind, Message, Packet, Policy, Rejected, code, meta, method};

/// One connection to the server; a conversation may need several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Upstream(pub u32);

impl Upstream {
    /// The one that is needed first. Who wants to save time opens it before it is asked for.
    pub const FIRST: Upstream = Upstream(0);
    const SECOND: Upstream = Upstream(1);
    /// Where `initialize` is tried while `server/discover` is without an answer.
    pub const SPARE: Upstream = Upstream(u32::MAX);
    /// Numbers from here on are for the pool of sessions.
    const POOL: u32 = 2;
}

/// What is to be done.
#[derive(Debug)]
pub enum Effect {
    ToClient(Packet),
    /// Connect to the server once more.
    Open(Upstream),
    ToServer(Upstream, Packet),
    Close(Upstream),
    /// Something was found out about the server that other conversations with it may use.
    Learned(Known),
}

/// What is known of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// Whether it opens sessions.
    pub session: Option<bool>,
    /// Whether it serves requests that stand for themselves.
    pub stateless: Option<bool>,
    /// Whether it is a hub in this process, which takes what requests say of their sender beside their text.
    pub is_inside: bool,
}

/// The secret behind what clients are handed and bring back. It is not shown.
#[derive(Clone, Copy, Default)]
pub struct Key(pub [u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

#[derive(Debug, Clone)]
pub struct Config {
    pub relay: legacy::Config,
    /// Whether the server's transport tells to which request a message belongs.
    pub sorted: bool,
    /// The version to speak with the server; otherwise it is found out.
    pub protocol: Option<&'static str>,
    pub known: Known,
    /// The most sessions at once with a server that needs sessions, for clients that have none.
    pub most_sessions: usize,
    /// The most calls that wait for input at once, across the eras.
    pub most_parked: usize,
    /// How long they wait.
    pub park_for: Duration,
    /// How long a server may be silent to `server/discover` before `initialize` is tried, too.
    pub probe_for: Duration,
    /// Must be random where clients are not to be trusted.
    pub key: Key,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            relay: legacy::Config::default(),
            sorted: false,
            protocol: None,
            known: Known::default(),
            most_sessions: 16,
            most_parked: 256,
            park_for: Duration::from_secs(300),
            probe_for: Duration::from_secs(3),
            key: Key::default(),
        }
    }
}

impl Config {
    /// The version to speak with a server of the session era on our own account.
    fn session_version(&self) -> &'static str {
        self.protocol.filter(|version| SESSION_ERA.contains(version)).unwrap_or(V2025_11_25)
    }

    fn stateless_version(&self) -> &'static str {
        self.protocol.filter(|version| STATELESS_ERA.contains(version)).unwrap_or(V2026_07_28)
    }
}

/// One client's conversation with one server.
#[derive(Debug)]
pub struct Conversation {
    config: Config,
    policy: Policy,
    known: Known,
    session: SessionSide,
    stateless: StatelessSide,
    /// Sessions for requests that stand for themselves.
    pool: Option<Box<OldServer>>,
    session_upstream: Upstream,
    stateless_upstream: Upstream,
    opened: BTreeSet<Upstream>,
    effects: VecDeque<Effect>,
    /// How many questions of our own were sent to find out the era.
    questions: u32,
    /// The client has sent requests that stand for themselves.
    spoke_stateless: bool,
    /// The server cannot be had any more.
    over: bool,
}

impl Conversation {
    pub fn new(config: Config) -> Conversation {
        let known = match config.protocol {
            Some(version) => {
                let stateless = STATELESS_ERA.contains(&version);
                Known { session: Some(!stateless), stateless: Some(stateless), is_inside: false }
            }
            None => config.known,
        };
        Conversation {
            config,
            policy: Policy::default(),
            known,
            session: SessionSide::None,
            stateless: StatelessSide::None,
            pool: None,
            session_upstream: Upstream::FIRST,
            stateless_upstream: Upstream::FIRST,
            opened: BTreeSet::new(),
            effects: VecDeque::new(),
            questions: 0,
            spoke_stateless: false,
            over: false,
        }
    }

    /// The first upstream is open already.
    pub fn opened_first(mut self) -> Conversation {
        self.opened.insert(Upstream::FIRST);
        self
    }

    /// The client gets to see and call only the tools that the policy allows.
    pub fn limited(mut self, policy: Policy) -> Conversation {
        self.policy = policy;
        self
    }

    /// The next thing to do, if any.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        Some(match self.effects.pop_front()? {
            Effect::ToClient(packet) => {
                Effect::ToClient(Packet { message: self.policy.filter(packet.message), ..packet })
            }
            effect => effect,
        })
    }

    /// When [`Conversation::handle_timeout`] wants to be called. Calling it early does no harm.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pool = self.pool.as_ref().and_then(|pool| pool.poll_timeout());
        self.session.poll_timeout().into_iter().chain(self.stateless.poll_timeout()).chain(pool).min()
    }

    /// How many answers the client still waits for.
    pub fn owed_to_client(&self) -> usize {
        let pool = self.pool.as_ref().map_or(0, |pool| pool.owed_to_client());
        self.session.owed_to_client() + self.stateless.owed_to_client() + pool
    }

    /// How much is remembered of what is under way, on both sides, questions and their answers included; listens that
    /// are in force are not. It comes to nothing when everybody has been answered.
    pub fn load(&self) -> usize {
        self.session.load() + self.stateless.load() + self.pool.as_ref().map_or(0, |pool| pool.load())
    }

    /// Whether the server cannot be had any more: nothing will be answered from now on.
    pub fn is_over(&self) -> bool {
        self.over
    }

    pub fn phase(&self) -> Phase {
        let pool = self.pool.as_ref().map_or(Phase::Idle, |pool| pool.phase());
        let phases = [self.session.phase(), self.stateless.phase(), pool];
        phases.into_iter().find(|phase| *phase != Phase::Idle).unwrap_or(Phase::Idle)
    }

    /// What was last wrong with the server.
    pub fn trouble(&self) -> &str {
        let pool = self.pool.as_ref().map_or("", |pool| pool.trouble());
        let troubles = [self.session.trouble(), self.stateless.trouble(), pool];
        troubles.into_iter().find(|trouble| !trouble.is_empty()).unwrap_or_default()
    }

    pub fn handle_client(&mut self, message: Message, now: Instant) {
        if let Err(fault) = self.policy.check(&message) {
            return self.refuse(&message, &fault);
        }
        match message.kind() {
            Kind::Request { method, .. } if meta::declared(&message).is_some() => {
                if method.is_gone() {
                    let fault = Fault::UnknownMethod(method.to_string());
                    return self.tell_client(fault.to_packet(message.id()));
                }
                self.spoke_stateless = true;
                self.stateless_client(message, now);
            }
            Kind::Notification { method } if self.spoke_stateless => {
                let cancels = *method == method::CANCELLED;
                let cancelled = cancels.then(|| meta::cancelled_request(&message)).flatten();
                let stateless = cancelled.is_some_and(|id| self.stateless.knows(&id) || self.pool_knows(&id));
                if stateless || !self.session.is_some() {
                    self.stateless_client(message, now)
                } else {
                    self.session_client(message, now)
                }
            }
            // Some servers of the stateless era ask all the same (rmcp 3.x on stdio), and wait for what their client says.
            Kind::Result { id } | Kind::Error { id: Some(id) } if self.stateless.asks(id) && !self.session.asks(id) => {
                self.stateless_client(message, now);
            }
            Kind::Result { .. } | Kind::Error { .. } if !self.session.is_some() => {
                tracing::debug!(target: "bridge", "dropped the client's {message}: nobody waits for it");
            }
            _ => self.session_client(message, now),
        }
    }

    /// Several messages in one array: version 2025-03-26 has this, the others do not.
    pub fn handle_client_batch(&mut self, text: &Bytes, now: Instant) {
        let allowed = self.session.version().is_some_and(version::allows_batches);
        match split_batch(text).filter(|parts| allowed && !parts.is_empty()) {
            Some(parts) => {
                for part in parts {
                    match Message::parse(part) {
                        Ok(message) => self.handle_client(message, now),
                        Err(rejected) => self.handle_garbage(rejected),
                    }
                }
            }
            None => match Message::parse(text.clone()) {
                Err(rejected) => self.handle_garbage(rejected),
                Ok(message) => self.handle_client(message, now),
            },
        }
    }

    /// The client sent something that is no message.
    pub fn handle_garbage(&mut self, Rejected { id, fault }: Rejected) {
        tracing::warn!(target: "bridge", "the client sent no message: {fault}");
        self.answer_fault(id.as_ref(), &fault);
    }

    /// The client sent something that the policy does not allow.
    fn refuse(&mut self, message: &Message, fault: &Fault) {
        tracing::info!(target: "bridge", "refused the client's {message}: {fault}");
        if message.is_request() {
            self.answer_fault(message.id(), fault);
        }
    }

    fn answer_fault(&mut self, id: Option<&Id>, fault: &Fault) {
        // An id that is under way belongs to the request that came first.
        let id = id.filter(|id| !self.session.knows(id) && !self.stateless.knows(id) && !self.pool_knows(id));
        self.tell_client(fault.to_packet(id));
    }

    pub fn handle_server(&mut self, upstream: Upstream, packet: Packet, now: Instant) {
        match self.side_of(upstream) {
            Side::Session => self.session_server(packet, now),
            Side::Stateless => self.stateless_server(upstream, packet, now),
            Side::Pool => self.pool_server(upstream, packet, now),
            Side::None => {}
        }
    }

    /// A message did not get through.
    pub fn handle_failed(&mut self, upstream: Upstream, message: Message, failure: Failure, now: Instant) {
        match self.side_of(upstream) {
            Side::Session => self.session_failed(message, failure, now),
            Side::Stateless => self.stateless_failed(upstream, message, failure, now),
            Side::Pool => self.pool_failed(upstream, message, failure, now),
            Side::None => {}
        }
    }

    /// The server has forgotten our session, as a stream of it showed.
    pub fn handle_session_lost(&mut self, upstream: Upstream, why: &str, now: Instant) {
        match self.side_of(upstream) {
            Side::Session => self.on_session_relay(now, |relay| relay.handle_session_lost(why, now)),
            Side::Pool => self.pool_session_lost(upstream, why, now),
            Side::Stateless | Side::None => {}
        }
    }

    /// The server is gone, and everything it was working on with it.
    pub fn handle_server_gone(&mut self, upstream: Upstream, why: &str, now: Instant) {
        match self.side_of(upstream) {
            Side::Session => {
                self.refused_relay_gone(why, now);
                self.on_session_relay(now, |relay| relay.handle_server_gone(why, now));
            }
            Side::Stateless => self.stateless_gone(upstream, why, now),
            Side::Pool => self.pool_gone(upstream, why, now),
            Side::None => {}
        }
    }

    /// A connection to the server is over for good.
    pub fn handle_closed(&mut self, upstream: Upstream, why: &str, now: Instant) {
        self.opened.remove(&upstream);
        match self.side_of(upstream) {
            Side::Pool => self.pool_closed(upstream, why, now),
            Side::Stateless if self.close_spare(upstream, why, now) => {}
            Side::None => {}
            Side::Session | Side::Stateless => {
                self.abandon(why, now);
                self.over = true;
            }
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.session_timeout(now);
        self.stateless_timeout(now);
        self.pool_timeout(now);
    }

    /// Answers everything that is still owed: nothing more will come from the server.
    pub fn abandon(&mut self, why: &str, now: Instant) {
        self.abandon_session(why, now);
        self.abandon_stateless(why);
        self.abandon_pool(why, now);
    }

    fn side_of(&self, upstream: Upstream) -> Side {
        if self.session.is_some() && self.session_upstream == upstream {
            Side::Session
        } else if self.pool_has(upstream) {
            Side::Pool
        } else if self.stateless.holds(self.stateless_upstream, upstream) {
            Side::Stateless
        } else {
            Side::None
        }
    }

    /// Sees to it that a side has a connection of its own.
    fn open(&mut self, upstream: Upstream) {
        if self.opened.insert(upstream) {
            self.effects.push_back(Effect::Open(upstream));
        }
    }

    /// Ends a connection, if it is there.
    fn close(&mut self, upstream: Upstream) {
        if self.opened.remove(&upstream) {
            self.effects.push_back(Effect::Close(upstream));
        }
    }

    fn learn(&mut self, change: impl FnOnce(&mut Known)) {
        if self.config.protocol.is_some() {
            return; // what was laid down is not to be found out
        }
        let before = self.known;
        change(&mut self.known);
        if self.known != before {
            self.effects.push_back(Effect::Learned(self.known));
        }
    }

    /// An id for a question of our own, which an earlier one may still be without an answer.
    fn question_id(&mut self, name: &str) -> Id {
        self.questions += 1;
        match self.questions {
            1 => Id::from(format!("mcpwire-{name}").as_str()),
            number => Id::from(format!("mcpwire-{name}-{number}").as_str()),
        }
    }

    fn tell_client(&mut self, packet: impl Into<Packet>) {
        self.effects.push_back(Effect::ToClient(packet.into()));
    }
}

enum Side {
    Session,
    Stateless,
    Pool,
    None,
}

/// What a failure says of the server's era, as the answer it stands for. A server that misses a session has them.
fn answer_by(request: &Message, failure: &Failure) -> Option<Message> {
    match failure {
        Failure::Refused(refusal) if era::refuses_everything(refusal) => None,
        Failure::Refused(refusal) => Some(Message::error_object(request.id(), &refusal.error)),
        Failure::SessionLost(why) => Some(Message::error(request.id(), code::INVALID_REQUEST, why)),
        Failure::Unreachable(_) | Failure::NotConnected(_) | Failure::Interrupted(_) => None,
    }
}
