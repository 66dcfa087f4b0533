//! Sessions with the server: who gets which, when one is opened, and when it is given back.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::OldServer;
use super::listens::Subscription;
use crate::conversation::{Effect, Upstream};
use crate::era::{tells_of_era, translate};
use crate::method::{self, Method};
use crate::session::legacy::{Effect as RelayEffect, Phase, Session as Relay};
use crate::{Cause, Fault, Id, IdMap, Kind, Message, Object, Packet, meta};

/// How long a session that nobody uses is kept: one of several for the same client, and the last one.
const SPARE_IDLE: Duration = Duration::from_secs(30);
const LAST_IDLE: Duration = Duration::from_secs(600);

/// What the server was told of its client: requests that say the same may share a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Sort {
    info: Option<String>,
    capabilities: String,
    /// Whether the server may ask this client anything.
    pub(super) answers_questions: bool,
}

impl Sort {
    pub(crate) fn of(request: &Message) -> Sort {
        let (info, capabilities) = what_counts(request);
        let told = Object::parse(capabilities).unwrap_or_default();
        Sort {
            info: info.map(str::to_owned),
            capabilities: capabilities.to_owned(),
            answers_questions: ["elicitation", "sampling", "roots"].iter().any(|name| told.get(name).is_some()),
        }
    }

    /// Whether a request is from such a client.
    pub(super) fn fits(&self, (info, capabilities): (Option<&str>, &str)) -> bool {
        self.info.as_deref() == info && self.capabilities == capabilities
    }

    /// Whether the server may ask this client this. An `elicitation` without modes is one of forms alone.
    pub(super) fn answers(&self, question: &Message) -> bool {
        let capabilities = Object::parse(&self.capabilities).unwrap_or_default();
        match question.method().map(|method| &**method) {
            Some(method::ROOTS_LIST) => capabilities.get("roots").is_some(),
            Some(method::SAMPLING_CREATE_MESSAGE) => capabilities.get("sampling").is_some(),
            Some(method::ELICITATION_CREATE) => {
                let mode = question.members().and_then(|params| params.string("mode"));
                match mode.as_deref() {
                    Some("url") => self.opens_urls(),
                    _ => capabilities.get("elicitation").is_some(),
                }
            }
            _ => false,
        }
    }

    pub(super) fn opens_urls(&self) -> bool {
        let capabilities = Object::parse(&self.capabilities).unwrap_or_default();
        capabilities.object("elicitation").is_some_and(|modes| modes.get("url").is_some())
    }
}

/// What a request says of its sender that a server keeps with its session.
pub(super) fn what_counts(request: &Message) -> (Option<&str>, &str) {
    let declared = meta::declared(request).unwrap_or_default();
    (declared.client_info.map(RawValue::get), declared.capabilities.map_or("{}", RawValue::get))
}

/// Whose request it is, by the id under which the server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// Of the client's request under this id.
    Call(Id),
    /// Of a call that waits for input.
    Parked(u64),
    /// Ours, for listens: a subscription to a resource.
    Subscribe { uri: String },
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
    /// Its `serverInfo`, which every result repeats.
    pub(super) server_info: Option<String>,
    /// Requests that wait for the session to be open.
    backlog: VecDeque<Message>,
    pub(super) under_way: IdMap<Whose>,
    pub(super) log_level: Option<String>,
    /// Calls that the server was told to leave off and may still ask something for, which nobody could tell from a
    /// question for another call.
    pub(super) left_off: HashSet<Id>,
    /// The resources that listens want to hear of.
    pub(super) subscriptions: BTreeMap<String, Subscription>,
    pub(super) used: Instant,
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
            server_info: None,
            backlog: VecDeque::new(),
            under_way: IdMap::default(),
            log_level: None,
            left_off: HashSet::new(),
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

    /// Whether the server works on something here that ends by itself.
    pub(super) fn is_at_work(&self) -> bool {
        let works = |whose: &Whose| matches!(whose, Whose::Call(_) | Whose::Subscribe { .. });
        !self.backlog.is_empty() || self.under_way.values().any(works)
    }

    /// Whether calls wait for input here, and nothing else is under way.
    pub(super) fn only_waits(&self) -> bool {
        self.is_busy() && !self.is_at_work()
    }

    /// Whether a request of somebody's is with the server, or is to be.
    fn is_busy(&self) -> bool {
        !self.backlog.is_empty() || self.under_way.values().any(|whose| *whose != Whose::Nobody)
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

    pub(super) fn is_taken(&self, seat: &Seat) -> bool {
        let waits = seat.backlog.iter().any(|message| message.method().is_some_and(Method::may_ask));
        waits || !seat.left_off.is_empty() || seat.under_way.values().any(|whose| self.may_be_asked(whose))
    }

    pub(super) fn may_be_asked(&self, whose: &Whose) -> bool {
        match whose {
            Whose::Call(id) => self.calls.get(id).is_some_and(|call| call.method.may_ask()),
            Whose::Parked(_) => true,
            Whose::Subscribe { .. } | Whose::Nobody => false,
        }
    }

    pub(super) fn open(&mut self, sort: Sort, now: Instant) -> Upstream {
        let upstream = Upstream(self.next_upstream);
        self.next_upstream += 1;
        self.out.push_back(Effect::Open(upstream));
        let seat = self.opening_seat(upstream, sort, now);
        self.adopt(seat, None, now);
        upstream
    }

    pub(super) fn give(&mut self, upstream: Upstream, request: Message, now: Instant) {
        let Some(seat) = self.seat(upstream) else { return };
        seat.used = now;
        if seat.initialized.is_some() {
            self.start(upstream, request, now);
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
        let is_lost =
            |seat: &Seat| seat.initialized.is_some() && seat.relay.phase() == Phase::Closed && !seat.is_busy();
        if self.seat(upstream).is_some_and(|seat| is_lost(seat)) {
            // It had a session, lost it, and gets no new one.
            self.refused = true;
            self.drop_seat(upstream, "the server refused a session");
        }
    }

    /// Whether this is the answer to the `initialize` of that session; then it is seen to.
    pub(super) fn opens(&mut self, upstream: Upstream, answer: &Packet, now: Instant) -> bool {
        let Some(seat) = self.seat(upstream) else { return true };
        if answer.message.id() != Some(&seat.opening) {
            return false;
        }
        match answer.message.kind() {
            Kind::Result { .. } => self.opened(upstream, &answer.message, now),
            _ => self.refused(upstream, answer, now),
        }
        true
    }

    fn opened(&mut self, upstream: Upstream, result: &Message, now: Instant) {
        let Some(seat) = self.seat(upstream) else { return };
        seat.initialized = Some(result.payload().unwrap_or("{}").to_owned());
        seat.server_info = seat.server().get("serverInfo").map(str::to_owned);
        seat.used = now;
        let backlog = seat.take_backlog();
        (self.proven, self.refused, self.declined) = (true, false, false);
        let initialized = Message::notification(method::INITIALIZED, None);
        self.on_relay(upstream, now, |relay| relay.handle_client(initialized, now));
        for request in backlog {
            self.start(upstream, request, now);
        }
    }

    fn refused(&mut self, upstream: Upstream, error: &Packet, now: Instant) {
        self.refused = true;
        self.declined = tells_of_era(error);
        let is_declined = self.declined;
        let Some(seat) = self.seat(upstream) else { return };
        let backlog = seat.take_backlog();
        if is_declined && self.config.on_trust && !self.proven {
            self.unserved.extend(backlog);
            self.unserved.extend(std::mem::take(&mut self.waiting).into_iter().map(|waiting| waiting.request));
        } else {
            for request in backlog {
                if let Some(id) = request.id() {
                    self.tell_packet(id, Packet { message: error.message.with_id(id), ..error.clone() });
                }
            }
        }
        self.drop_seat(upstream, "the server refused a session");
        self.seat_waiting(now);
    }

    /// Ends a session. What is under way in it must have been seen to.
    pub(super) fn drop_seat(&mut self, upstream: Upstream, why: &str) {
        let Some(at) = self.seats.iter().position(|seat| seat.upstream == upstream) else { return };
        let mut seat = self.seats.swap_remove(at);
        let lost = Fault::NoAnswer(Cause::SessionLost, why.to_owned());
        seat.take_backlog().iter().for_each(|request| self.refuse(request, &lost));
        self.out.push_back(Effect::Close(upstream));
        let lost: Vec<Id> =
            self.listens.iter().filter(|(_, listen)| listen.upstream == upstream).map(|(id, _)| id.clone()).collect();
        for id in lost {
            self.listens.remove(&id);
            self.tell(&id, super::listens::ended(&id));
        }
    }

    /// Whether a session serves nobody at the moment.
    pub(super) fn is_spare(&self, seat: &Seat) -> bool {
        !seat.is_busy() && !self.is_listened_to(seat)
    }

    pub(super) fn is_listened_to(&self, seat: &Seat) -> bool {
        self.listens.values().any(|listen| listen.upstream == seat.upstream)
    }

    /// When a session has been of no use for long enough.
    pub(super) fn retires_at(&self, seat: &Seat) -> Option<Instant> {
        let is_tainted = !seat.left_off.is_empty();
        if !self.is_spare(seat) || (self.seats.len() == 1 && !is_tainted) {
            return None;
        }
        let is_spare =
            is_tainted || self.seats.iter().any(|other| other.upstream != seat.upstream && other.sort == seat.sort);
        Some(seat.used + if is_spare { SPARE_IDLE } else { LAST_IDLE })
    }

    pub(super) fn retire_seats(&mut self, now: Instant) {
        while let Some(upstream) = self
            .seats
            .iter()
            .filter(|seat| self.retires_at(seat).is_some_and(|at| at <= now))
            .max_by_key(|seat| (!seat.left_off.is_empty(), seat.upstream))
            .map(|seat| seat.upstream)
        {
            self.drop_seat(upstream, "");
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
