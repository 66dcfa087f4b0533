//! A session-era server, so that stateless clients take it for one of their own.
//!
//! Requests are served in sessions from a pool: one for each sort of client, and, where the server's transport cannot tell
//! to which call a question belongs, one for each call that may be asked something. A question of the server's cannot
//! be sent to a stateless client: its call is *parked*, answered with `input_required`, and goes on when it is retried.
//!
//! ```text
//!                  ┌───────────────── answered ◄────────────────────┐
//!   request ──► Call (active) ──► the server asks ──► Parked ──► retried
//!                  ▲                                    │ too late: question and call are cancelled
//!                  └────────── Call (active) ◄──────────┘
//! ```

mod calls;
mod listens;
mod parked;
mod room;
mod seal;
mod seats;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

pub(crate) use self::seats::{Seat, Sort, opener};

use self::calls::Call;
use self::listens::Listen;
use self::parked::Parked;
use self::room::Waiting;
use self::seal::Seal;
use crate::conversation::{Effect, Key, Upstream};
use crate::meta::Level;
use crate::method::{self, Method};
use crate::session::legacy::{Config as RelayConfig, Phase};
use crate::version::{ALL, STATELESS_ERA};
use crate::{Cause, Failure, Fault, Id, IdMap, Lane, Message, Object, Packet, meta};

/// The most characters of a peer's value that an error repeats.
const MOST_QUOTED: usize = 100;

#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub relay: RelayConfig,
    /// The version offered to the server.
    pub version: &'static str,
    /// The most sessions with the server at once.
    pub most_sessions: usize,
    /// The most calls that wait for input at once.
    pub most_parked: usize,
    /// How long a call waits for its retry.
    pub park_for: Duration,
    /// For the seal on what clients bring back.
    pub key: Key,
    /// That the server needs sessions was only remembered: if it refuses the first, its requests are to be asked for.
    pub on_trust: bool,
}

#[derive(Debug)]
pub(crate) struct OldServer {
    config: Config,
    seats: Vec<Seat>,
    /// Requests that are with the server, by the client's ids.
    calls: IdMap<Call>,
    parked: HashMap<u64, Parked>,
    listens: IdMap<Listen>,
    waiting: VecDeque<Waiting>,
    /// When a call that waits for input may be made to give way to those that wait for a session.
    room_at: Option<Instant>,
    seal: Seal,
    next_upstream: u32,
    next_id: u64,
    /// The server refused a session: it may not be of this era any more.
    refused: bool,
    /// And it said so itself: it could be reached.
    declined: bool,
    /// It has opened one.
    proven: bool,
    /// Requests that it refused together with the first session.
    unserved: VecDeque<Message>,
    out: VecDeque<Effect>,
}

impl OldServer {
    /// `first_upstream` and those after it are ours to open.
    pub(crate) fn new(config: Config, first_upstream: u32, now: Instant) -> OldServer {
        let seal = Seal::new(&config.key.0, now);
        OldServer {
            config,
            seats: Vec::new(),
            calls: IdMap::default(),
            parked: HashMap::new(),
            listens: IdMap::default(),
            waiting: VecDeque::new(),
            room_at: None,
            seal,
            next_upstream: first_upstream,
            next_id: 0,
            refused: false,
            declined: false,
            proven: false,
            unserved: VecDeque::new(),
            out: VecDeque::new(),
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Effect> {
        self.out.pop_front()
    }

    /// Whether the server refused a session and has opened none since.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Whether it answered that it opens none.
    pub(crate) fn is_declined(&self) -> bool {
        self.declined
    }

    /// Ends all sessions. Gives back the requests that somebody else has to serve.
    pub(crate) fn dissolve(&mut self) -> VecDeque<Message> {
        for upstream in self.seats.iter().map(|seat| seat.upstream).collect::<Vec<_>>() {
            self.drop_seat(upstream, "the server refused a session");
        }
        std::mem::take(&mut self.unserved)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let relays = self.seats.iter().filter_map(|seat| seat.relay.poll_timeout());
        let parked = self.parked.values().map(|parked| parked.until);
        let waiting = self.waiting.iter().map(|waiting| waiting.until);
        let idle = self.seats.iter().filter_map(|seat| self.retires_at(seat));
        relays.chain(parked).chain(waiting).chain(self.room_at).chain(idle).min()
    }

    pub(crate) fn owed_to_client(&self) -> usize {
        self.calls.len() + self.waiting.len() + self.seats.iter().map(Seat::backlog).sum::<usize>()
    }

    /// How much is remembered of what is under way; listens are not counted.
    pub(crate) fn load(&self) -> usize {
        let seats = self.seats.iter().map(|seat| seat.under_way.len() + seat.relay.load());
        self.owed_to_client() + self.parked.len() + seats.sum::<usize>()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.seats.first().map_or(Phase::Idle, |seat| seat.relay.phase())
    }

    pub(crate) fn trouble(&self) -> &str {
        self.seats.first().map_or("", |seat| seat.relay.trouble())
    }

    pub(crate) fn knows(&self, id: &Id) -> bool {
        self.calls.contains_key(id)
            || self.listens.contains_key(id)
            || self.waiting.iter().any(|waiting| waiting.request.id() == Some(id))
            || self.seats.iter().any(|seat| seat.awaits(id))
    }

    /// Whether nobody waits for anything.
    pub(crate) fn is_unused(&self) -> bool {
        self.owed_to_client() == 0 && self.listens.is_empty() && self.parked.is_empty()
    }

    pub(crate) fn has(&self, upstream: Upstream) -> bool {
        self.seats.iter().any(|seat| seat.upstream == upstream)
    }

    pub(crate) fn handle_request(&mut self, request: Message, now: Instant) {
        let Some(id) = request.id().cloned() else { return };
        if let Err(fault) = self.check(&id, &request) {
            let id = Some(&id).filter(|_| !matches!(fault, Fault::Shape(_)));
            return self.tell_client(fault.to_packet(id));
        }
        let may_be_retry = match request.sender() {
            Some(sender) => sender.is_retry,
            None => request.method().is_some_and(Method::may_ask),
        };
        let params = if may_be_retry { request.members().unwrap_or_default() } else { Object::new() };
        match params.get("requestState") {
            // What is no string is not of our making, either.
            Some(_) => self.resume(&id, &request, &params.string("requestState").unwrap_or_default(), now),
            None => self.place(request, now),
        }
    }

    fn check(&self, id: &Id, request: &Message) -> Result<(), Fault> {
        if self.knows(id) {
            return Err(Fault::Shape(format!("expected a new request id, came {id}, which is still in use")));
        }
        let most = self.config.relay.max_in_flight;
        if self.owed_to_client() + self.listens.len() >= most {
            return Err(Fault::Upstream(format!("too many requests: {most} are under way already")));
        }
        check_sender(request)?;
        match request.method() {
            Some(method) if method.is_gone() => Err(Fault::UnknownMethod(method.to_string())),
            _ => Ok(()),
        }
    }

    pub(crate) fn handle_notification(&mut self, notification: &Message, now: Instant) {
        if !notification.is(method::CANCELLED) {
            return tracing::debug!(target: "era", "dropped {notification}: it belongs to no session");
        }
        let Some(id) = meta::cancelled_request(notification) else { return };
        self.waiting.retain(|waiting| waiting.request.id() != Some(&id));
        self.seats.iter_mut().for_each(|seat| seat.forget(&id));
        if self.listens.contains_key(&id) {
            self.end_listen(&id, now);
        } else if let Some(call) = self.calls.remove(&id) {
            self.cancel_upstream(&call, now);
        }
        self.seat_waiting(now);
    }

    pub(crate) fn handle_server(&mut self, upstream: Upstream, packet: Packet, now: Instant) {
        if let Some(id) = packet.message.id().filter(|_| packet.message.is_response())
            && let Some(seat) = self.seat(upstream)
            && seat.left_off.remove(id)
        {
            self.seat_waiting(now);
        }
        self.on_relay(upstream, now, |relay| relay.handle_server(packet, now));
    }

    pub(crate) fn handle_failed(&mut self, upstream: Upstream, message: Message, failure: Failure, now: Instant) {
        self.on_relay(upstream, now, |relay| relay.handle_failed(message, failure, now));
    }

    pub(crate) fn handle_session_lost(&mut self, upstream: Upstream, why: &str, now: Instant) {
        self.on_relay(upstream, now, |relay| relay.handle_session_lost(why, now));
    }

    pub(crate) fn handle_server_gone(&mut self, upstream: Upstream, why: &str, now: Instant) {
        self.seat(upstream).into_iter().for_each(|seat| seat.left_off.clear());
        self.on_relay(upstream, now, |relay| relay.handle_server_gone(why, now));
    }

    /// The connection is over and will not come back.
    pub(crate) fn handle_closed(&mut self, upstream: Upstream, why: &str, now: Instant) {
        self.on_relay(upstream, now, |relay| relay.abandon(why));
        self.drop_seat(upstream, why);
        self.seat_waiting(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for upstream in self.seats.iter().map(|seat| seat.upstream).collect::<Vec<_>>() {
            let before = self.may_be_heard_of(upstream);
            self.on_relay(upstream, now, |relay| relay.handle_timeout(now));
            if !before.is_empty() {
                let after = self.may_be_heard_of(upstream);
                let given_up: Vec<Id> = before.into_iter().filter(|id| !after.contains(id)).collect();
                self.leave_off(upstream, &given_up);
            }
        }
        self.expire_parked(now);
        self.retire_seats(now);
        self.seat_waiting(now);
    }

    /// The calls in a session that the server may ask something for, by its ids.
    fn may_be_heard_of(&self, upstream: Upstream) -> Vec<Id> {
        let seat = self.seats.iter().find(|seat| seat.upstream == upstream);
        let calls = seat.into_iter().flat_map(|seat| &seat.under_way);
        calls.filter(|(_, whose)| self.may_be_asked(whose)).map(|(id, _)| id.clone()).collect()
    }

    /// Answers everything that is still owed: nothing more will come from the server.
    pub(crate) fn abandon(&mut self, why: &str, now: Instant) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.refuse(&waiting.request, &lost(why));
        }
        for upstream in self.seats.iter().map(|seat| seat.upstream).collect::<Vec<_>>() {
            self.on_relay(upstream, now, |relay| relay.abandon(why));
        }
        for mut seat in std::mem::take(&mut self.seats) {
            seat.take_backlog().iter().for_each(|message| self.refuse(message, &lost(why)));
        }
        self.parked.clear();
        for id in self.listens.keys().cloned().collect::<Vec<_>>() {
            self.listens.remove(&id);
            self.tell(&id, listens::ended(&id));
        }
    }

    fn refuse(&mut self, request: &Message, fault: &Fault) {
        if let Some(id) = request.id() {
            self.tell_packet(id, fault.to_packet(Some(id)));
        }
    }

    fn tell_packet(&mut self, id: &Id, packet: Packet) {
        self.out.push_back(Effect::ToClient(Packet { lane: Lane::Request(id.clone()), ..packet }));
    }

    fn tell(&mut self, id: &Id, message: Message) {
        self.out.push_back(Effect::ToClient(Packet::new(Lane::Request(id.clone()), message)));
    }

    fn tell_client(&mut self, packet: impl Into<Packet>) {
        self.out.push_back(Effect::ToClient(packet.into()));
    }

    fn fresh_id(&mut self) -> Id {
        self.next_id += 1;
        Id::of_our_own("era-", self.config.relay.seed, self.next_id)
    }
}

/// Nothing more will come from the server.
fn lost(why: &str) -> Fault {
    Fault::NoAnswer(Cause::Interrupted, why.to_owned())
}

/// Whether a request says of its sender what it must.
fn check_sender(request: &Message) -> Result<(), Fault> {
    if request.sender().is_some() {
        return Ok(());
    }
    let declared = meta::declared(request).unwrap_or_default();
    let version = declared.version.unwrap_or_default();
    if !STATELESS_ERA.contains(&&*version) {
        return Err(Fault::Version { requested: version.into_owned(), supported: &ALL });
    }
    if declared.capabilities.and_then(|capabilities| Object::parse(capabilities.get())).is_none() {
        return Err(Fault::Params(format!("expected _meta to hold {}", meta::key::CLIENT_CAPABILITIES)));
    }
    match declared.log_level {
        Some(Level::Unknown(value)) => Err(Fault::Params(format!(
            "expected {} to be one of {}, got {}",
            meta::key::LOG_LEVEL,
            method::LOG_LEVELS.join(", "),
            clipped(value)
        ))),
        _ => Ok(()),
    }
}

/// The beginning of a value that a peer sent, for an error about it.
fn clipped(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(MOST_QUOTED) {
        Some((end, _)) => Cow::Owned(format!("{}…", &value[..end])),
        None => Cow::Borrowed(value),
    }
}
