//! Sessions with the server: who gets which, when one is opened, and when it is given back.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::OldServer;
use crate::conversation::{Effect, Upstream};
use crate::era::translate;
use crate::method::{self, Method};
use crate::session::legacy::{Effect as RelayEffect, Session as Relay};
use crate::{Fault, Id, Kind, Message, Object, meta};

/// How long a session that nobody uses is kept: one of several for the same client, and the last one.
const SPARE_IDLE: Duration = Duration::from_secs(30);
const LAST_IDLE: Duration = Duration::from_secs(600);

/// What the server was told of its client: requests that say the same may share a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sort {
    info: Option<String>,
    capabilities: String,
}

impl Sort {
    pub(crate) fn of(request: &Message) -> Sort {
        let declared = meta::declared(request).unwrap_or_default();
        Sort {
            info: declared.client_info.map(|info| info.get().to_owned()),
            capabilities: declared.capabilities.map_or("{}", |capabilities| capabilities.get()).to_owned(),
        }
    }

    /// Whether the server may ask this client anything.
    fn answers_questions(&self) -> bool {
        let capabilities = Object::parse(&self.capabilities).unwrap_or_default();
        ["elicitation", "sampling", "roots"].iter().any(|name| capabilities.get(name).is_some())
    }
}

/// Whose request it is, by the id under which the server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// Of the client's request under this id.
    Call(Id),
    /// Of a call that waits for input.
    Parked(u64),
    /// Ours, for a listen: a subscription to a resource.
    Subscribe { listen: Id, uri: String },
    /// Ours; the answer is not waited for.
    Nobody,
}

/// One session with the server.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(super) upstream: Upstream,
    pub(super) relay: Relay,
    pub(super) sort: Sort,
    /// Our `initialize`.
    opening: Id,
    /// What the server answered to it.
    pub(super) initialized: Option<String>,
    /// Requests that wait for the session to be open.
    backlog: VecDeque<Message>,
    pub(super) under_way: HashMap<Id, Whose>,
    pub(super) log_level: Option<String>,
    /// How many listens want to hear of each resource.
    pub(super) subscriptions: BTreeMap<String, usize>,
    used: Instant,
}

impl Seat {
    /// A session that is being opened, or is already, over a relay that has sent our `initialize` under that id.
    pub(crate) fn new(upstream: Upstream, relay: Relay, sort: Sort, opening: Id, now: Instant) -> Seat {
        Seat {
            upstream,
            relay,
            sort,
            opening,
            initialized: None,
            backlog: VecDeque::new(),
            under_way: HashMap::new(),
            log_level: None,
            subscriptions: BTreeMap::new(),
            used: now,
        }
    }

    pub(super) fn backlog(&self) -> usize {
        self.backlog.iter().filter(|message| !message.is(method::LISTEN)).count()
    }

    pub(super) fn awaits(&self, id: &Id) -> bool {
        self.backlog.iter().any(|message| message.id() == Some(id))
    }

    pub(super) fn forget(&mut self, id: &Id) {
        self.backlog.retain(|message| message.id() != Some(id));
    }

    pub(super) fn take_backlog(&mut self) -> VecDeque<Message> {
        std::mem::take(&mut self.backlog)
    }

    /// What the server told of itself.
    pub(super) fn server(&self) -> Object<'_> {
        self.initialized.as_deref().and_then(Object::parse).unwrap_or_default()
    }

    pub(super) fn server_info(&self) -> Option<String> {
        self.server().get("serverInfo").map(str::to_owned)
    }

    /// Whether the server says of itself that it has this, as in `resources`, `subscribe`.
    pub(super) fn server_has(&self, capability: &str, option: Option<&str>) -> bool {
        let server = self.server();
        let capabilities = server.object("capabilities").unwrap_or_default();
        match (capabilities.object(capability), option) {
            (Some(found), Some(option)) => found.get(option) == Some("true"),
            (found, None) => found.is_some(),
            (None, Some(_)) => false,
        }
    }

    fn is_unused(&self) -> bool {
        let busy = self.under_way.values().any(|whose| *whose != Whose::Nobody);
        !busy && self.backlog.is_empty() && self.subscriptions.is_empty()
    }
}

impl OldServer {
    pub(super) fn seat(&mut self, upstream: Upstream) -> Option<&mut Seat> {
        self.seats.iter_mut().find(|seat| seat.upstream == upstream)
    }

    /// A session that is being opened over a connection that is there already.
    pub(crate) fn opening_seat(&mut self, upstream: Upstream, sort: Sort, now: Instant) -> Seat {
        let opening = self.fresh_id();
        let mut relay = Relay::new(self.config.relay.clone());
        relay.handle_client(opener(self.config.version, &sort, &opening), now);
        Seat::new(upstream, relay, sort, opening, now)
    }

    /// Takes a session in; what the server answered to its `initialize`, if that is known.
    pub(crate) fn adopt(&mut self, seat: Seat, initialized: Option<&Message>, now: Instant) {
        let upstream = seat.upstream;
        self.seats.push(seat);
        self.on_relay(upstream, now, |_| ());
        if let Some(result) = initialized {
            self.opened(upstream, result, now);
        }
    }

    /// Gives a request to a session, opens one for it, or lets it wait for one.
    pub(super) fn place(&mut self, request: Message, now: Instant) {
        let sort = Sort::of(&request);
        let alone = self.needs_seat_alone(&request, &sort);
        let free = |seat: &&Seat| seat.sort == sort && (!alone || !self.is_taken(seat));
        if let Some(upstream) = self.seats.iter().find(free).map(|seat| seat.upstream) {
            return self.give(upstream, request, now);
        }
        if self.seats.len() >= self.config.most_sessions && !self.make_room() {
            let until = now + self.config.relay.wait;
            return self.waiting.push_back((request, until));
        }
        let upstream = self.open(sort, now);
        self.give(upstream, request, now);
    }

    /// A question that comes without saying for which call must find only one that it can be for.
    fn needs_seat_alone(&self, request: &Message, sort: &Sort) -> bool {
        self.config.relay.attribute && request.method().is_some_and(Method::may_ask) && sort.answers_questions()
    }

    fn is_taken(&self, seat: &Seat) -> bool {
        let waits = seat.backlog.iter().any(|message| message.method().is_some_and(Method::may_ask));
        waits || seat.under_way.values().any(|whose| self.may_be_asked(whose))
    }

    pub(super) fn may_be_asked(&self, whose: &Whose) -> bool {
        match whose {
            Whose::Call(id) => self.calls.get(id).is_some_and(|call| call.method.may_ask()),
            Whose::Parked(_) => true,
            Whose::Subscribe { .. } | Whose::Nobody => false,
        }
    }

    fn open(&mut self, sort: Sort, now: Instant) -> Upstream {
        let upstream = Upstream(self.next_upstream);
        self.next_upstream += 1;
        self.out.push_back(Effect::Open(upstream));
        let seat = self.opening_seat(upstream, sort, now);
        self.adopt(seat, None, now);
        upstream
    }

    fn give(&mut self, upstream: Upstream, request: Message, now: Instant) {
        let Some(seat) = self.seat(upstream) else { return };
        seat.used = now;
        if seat.initialized.is_some() {
            self.start(upstream, &request, now);
        } else {
            seat.backlog.push_back(request);
        }
    }

    /// Lets the relay of a session do something, and sees to what comes of it.
    pub(super) fn on_relay(&mut self, upstream: Upstream, now: Instant, act: impl FnOnce(&mut Relay)) {
        let Some(seat) = self.seat(upstream) else { return };
        act(&mut seat.relay);
        while let Some(effect) = self.seat(upstream).and_then(|seat| seat.relay.poll_effect()) {
            match effect {
                RelayEffect::ToServer(packet) => self.out.push_back(Effect::ToServer(upstream, packet)),
                RelayEffect::ToClient(packet) => self.heard(upstream, packet, now),
            }
        }
    }

    /// Whether this is the answer to the `initialize` of that session; then it is seen to.
    pub(super) fn opens(&mut self, upstream: Upstream, answer: &Message, now: Instant) -> bool {
        let Some(seat) = self.seat(upstream) else { return true };
        if answer.id() != Some(&seat.opening) {
            return false;
        }
        match answer.kind() {
            Kind::Result { .. } => self.opened(upstream, answer, now),
            _ => self.refused(upstream, answer, now),
        }
        true
    }

    fn opened(&mut self, upstream: Upstream, result: &Message, now: Instant) {
        let Some(seat) = self.seat(upstream) else { return };
        seat.initialized = Some(result.payload().unwrap_or("{}").to_owned());
        seat.used = now;
        let backlog = seat.take_backlog();
        let initialized = Message::notification(method::INITIALIZED, None);
        self.on_relay(upstream, now, |relay| relay.handle_client(initialized, now));
        for request in backlog {
            self.start(upstream, &request, now);
        }
    }

    fn refused(&mut self, upstream: Upstream, error: &Message, now: Instant) {
        self.refused = true;
        let Some(seat) = self.seat(upstream) else { return };
        for request in seat.take_backlog() {
            if let Some(id) = request.id() {
                self.tell(id, error.with_id(id));
            }
        }
        self.drop_seat(upstream, "the server refused a session");
        self.seat_waiting(now);
    }

    /// Ends a session. What is under way in it must have been seen to.
    pub(super) fn drop_seat(&mut self, upstream: Upstream, why: &str) {
        let Some(at) = self.seats.iter().position(|seat| seat.upstream == upstream) else { return };
        let mut seat = self.seats.swap_remove(at);
        seat.take_backlog().iter().for_each(|request| self.refuse(request, why));
        self.out.push_back(Effect::Close(upstream));
        let lost: Vec<Id> =
            self.listens.iter().filter(|(_, listen)| listen.upstream == upstream).map(|(id, _)| id.clone()).collect();
        for id in lost {
            self.listens.remove(&id);
            self.tell(&id, super::listens::ended(&id));
        }
    }

    /// Gives up a session that nobody uses, for one that somebody needs.
    fn make_room(&mut self) -> bool {
        let unused = self.seats.iter().filter(|seat| seat.is_unused()).min_by_key(|seat| seat.used);
        let Some(upstream) = unused.map(|seat| seat.upstream) else { return false };
        self.drop_seat(upstream, "");
        true
    }

    /// When a session has been of no use for long enough.
    pub(super) fn retires_at(&self, seat: &Seat) -> Option<Instant> {
        if !seat.is_unused() || self.seats.len() == 1 {
            return None;
        }
        let is_spare = self.seats.iter().any(|other| other.upstream != seat.upstream && other.sort == seat.sort);
        Some(seat.used + if is_spare { SPARE_IDLE } else { LAST_IDLE })
    }

    pub(super) fn retire_seats(&mut self, now: Instant) {
        while let Some(upstream) = self
            .seats
            .iter()
            .filter(|seat| self.retires_at(seat).is_some_and(|at| at <= now))
            .max_by_key(|seat| seat.upstream)
            .map(|seat| seat.upstream)
        {
            self.drop_seat(upstream, "");
        }
    }

    /// Somebody may have made room for those that wait.
    pub(super) fn seat_waiting(&mut self, now: Instant) {
        for (request, until) in std::mem::take(&mut self.waiting) {
            if until <= now {
                let most = self.config.most_sessions;
                let fault = Fault::Upstream(format!("all {most} sessions with the server are taken"));
                if let Some(id) = request.id() {
                    self.tell(id, fault.to_message(Some(id)));
                }
                continue;
            }
            let waited = self.waiting.len();
            self.place(request, now);
            if self.waiting.len() > waited
                && let Some(last) = self.waiting.back_mut()
            {
                last.1 = until;
            }
        }
    }

    pub(super) fn touch(&mut self, upstream: Upstream, now: Instant) {
        if let Some(seat) = self.seat(upstream) {
            seat.used = now;
        }
    }
}

/// The `initialize` of a session for clients of that sort.
pub(crate) fn opener(version: &str, sort: &Sort, id: &Id) -> Message {
    translate::initialize(id, version, sort.info.as_deref(), &sort.capabilities)
}
