//! Both ends simulated in virtual time, with loss, delay and reordering, for every pair of eras.
//!
//! A seed decides everything. Whatever happens: every request is answered once, nothing reaches the wrong request, no call
//! is executed twice, every message is one of its side's version, and in the end nothing is remembered.

mod client;
mod server;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::time::{Duration, Instant};

use fastrand::Rng;
use mcpwire_proto::conversation::{Config, Conversation, Effect, Known, Upstream};
use mcpwire_proto::session::legacy;
use mcpwire_proto::{Failure, Id, Lane, Message, Packet, method};

use self::client::{Client, Outcome};
use self::server::{Place, Server};
use crate::judge::{By, Judge};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Session,
    Stateless,
    /// A server that serves, on each connection, the era it was opened in.
    Both,
}

#[derive(Debug, Clone, Copy)]
struct Setting {
    client: Era,
    server: Era,
    /// Whether the transport tells which message belongs to which request, as HTTP does.
    sorted: bool,
    trouble: bool,
    /// Programs take seconds to start, and read what was written to them in the meantime.
    slow: bool,
}

/// How many runs there are of each kind; `MCPWIRE_SEEDS` sets another number.
const SEEDS: u64 = 150;

#[allow(clippy::disallowed_methods, reason = "not the core, but who tests it")]
fn check(client: Era, server: Era) {
    let seeds = std::env::var("MCPWIRE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    for sorted in [true, false] {
        for trouble in [false, true] {
            // Over HTTP no connection has an era, and servers are started before they are asked.
            if server == Era::Both && sorted {
                continue;
            }
            let setting = Setting { client, server, sorted, trouble, slow: !sorted };
            for seed in 0..seeds {
                let run = std::panic::catch_unwind(|| World::new(setting, seed).run());
                assert!(run.is_ok(), "seed {seed} of {setting:?}");
            }
        }
    }
}

#[test]
fn session_client_session_server() {
    check(Era::Session, Era::Session);
}

#[test]
fn session_client_stateless_server() {
    check(Era::Session, Era::Stateless);
}

#[test]
fn stateless_client_session_server() {
    check(Era::Stateless, Era::Session);
}

#[test]
fn stateless_client_stateless_server() {
    check(Era::Stateless, Era::Stateless);
}

#[test]
fn session_client_dual_server() {
    check(Era::Session, Era::Both);
}

#[test]
fn stateless_client_dual_server() {
    check(Era::Stateless, Era::Both);
}

#[derive(Debug)]
enum Event {
    Starts(usize),
    Cancels(usize),
    FromClient(Message),
    /// Over a connection, in the session that it was in when it was sent; with the number of the sending.
    AtServer(Place, u64, Message),
    /// Over a connection in one of its lives; for the sending that it answers.
    FromServer(Place, u32, Option<u64>, Packet),
    Fails(u32, Message, Failure),
    Changes,
    Trouble,
}

struct World {
    setting: Setting,
    rng: Rng,
    now: Instant,
    events: BTreeMap<u64, Event>,
    agenda: BinaryHeap<Reverse<(Instant, u64)>>,
    next_event: u64,
    /// When the last message of each ordered stream arrives.
    arrivals: HashMap<String, Instant>,
    conversation: Conversation,
    judge: Judge,
    client: Client,
    server: Server,
    /// How often each connection was cut off from what was under way on it.
    lives: HashMap<u32, u32>,
    /// Requests that are with the server, by connection.
    under_way: HashMap<(u32, Id), (u64, Message)>,
    /// In which sending the server has each request.
    serving: HashMap<(u32, Id), u64>,
    /// The session that each connection is in, as its transport knows.
    sessions: HashMap<u32, u64>,
    next_session: u64,
    /// Sendings that will not arrive.
    cut: HashSet<u64>,
    sendings: u64,
    down_until: Option<Instant>,
    slow_starts: bool,
    /// The lives of connections whose program was started.
    started: HashSet<(u32, u32)>,
    begun: Instant,
    /// What happened, to be read when it went wrong.
    history: Vec<String>,
}

impl Drop for World {
    #[allow(clippy::print_stderr, reason = "shown with a test that failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.history.join("\n"));
        }
    }
}

impl World {
    #[allow(clippy::disallowed_methods, reason = "any instant will do to begin with")]
    fn new(setting: Setting, seed: u64) -> World {
        let mut rng = Rng::with_seed(seed);
        let now = Instant::now();
        // Between equals of the session era, over one stream, a question's request is guessed for its deadline alone.
        let guessed = !setting.sorted && setting.client == Era::Session && setting.server != Era::Stateless;
        let attribute = !setting.sorted && rng.bool();
        let relay = legacy::Config { attribute, seed, ..legacy::Config::default() };
        // With few sessions, calls that nobody goes on with keep others waiting until they give up.
        let most_sessions = if setting.trouble { rng.usize(1..6) } else { 100 };
        // A session-era client finds out by itself when the server is not what is remembered of it.
        let known = match setting.client == Era::Session && rng.bool() {
            true => Known { session: Some(false), stateless: Some(true), is_inside: false },
            false => Known::default(),
        };
        let config = Config { relay, sorted: setting.sorted, most_sessions, known, ..Config::default() };
        World {
            setting,
            now,
            events: BTreeMap::new(),
            agenda: BinaryHeap::new(),
            next_event: 0,
            arrivals: HashMap::new(),
            conversation: Conversation::new(config).opened_first(),
            judge: Judge::default(),
            client: Client::new(setting.client, guessed, &mut rng),
            server: Server::new(setting.server),
            lives: HashMap::new(),
            under_way: HashMap::new(),
            serving: HashMap::new(),
            sessions: HashMap::new(),
            next_session: 0,
            cut: HashSet::new(),
            sendings: 0,
            down_until: None,
            slow_starts: rng.bool(),
            started: HashSet::new(),
            begun: now,
            history: Vec::new(),
            rng,
        }
    }

    fn run(&mut self) {
        for message in self.client.opens() {
            self.plan(0, Event::FromClient(message));
        }
        for marker in 0..self.client.tasks.len() {
            // Some are sent at once, behind the handshake or before the server's era is known.
            let at = if self.rng.u8(..4) == 0 { 0 } else { self.rng.u64(0..5000) };
            self.plan(at, Event::Starts(marker));
            if self.client.listens(marker) || self.rng.u8(..8) == 0 {
                let later = at + self.rng.u64(0..3000);
                self.plan(later, Event::Cancels(marker));
            }
        }
        for _ in 0..4 {
            let at = self.rng.u64(0..8000);
            self.plan(at, Event::Changes);
        }
        if self.setting.trouble {
            for _ in 0..self.rng.u8(1..5) {
                let at = self.rng.u64(0..8000);
                self.plan(at, Event::Trouble);
            }
        }
        // Long after the last deadline of anybody.
        let end = self.now + Duration::from_secs(3000);
        for _ in 0..200_000 {
            let next = self.agenda.peek().map(|Reverse((at, _))| *at);
            let alarm = self.conversation.poll_timeout();
            match next.into_iter().chain(alarm).min().filter(|at| *at <= end) {
                None => return self.judge_end(),
                Some(at) if Some(at) == next => {
                    let Some(Reverse((at, number))) = self.agenda.pop() else { continue };
                    self.now = self.now.max(at);
                    let event = self.events.remove(&number).expect("it is planned");
                    self.happens(event);
                }
                Some(at) => {
                    self.now = self.now.max(at);
                    self.conversation.handle_timeout(self.now);
                }
            }
            self.drain();
        }
        panic!("it does not come to rest");
    }

    fn judge_end(&mut self) {
        assert_eq!(self.judge.owed_to_client(), Vec::<String>::new(), "not answered");
        for marker in 0..self.client.tasks.len() {
            assert!(self.client.is_settled(marker), "nothing came of {:?}", self.client.tasks[marker]);
            let failed = self.client.tasks[marker].outcome == Some(Outcome::Failed);
            assert!(self.setting.trouble || !failed, "failed without need: {:?}", self.client.tasks[marker]);
        }
        assert!(self.server.begun.values().all(|count| *count <= 1), "executed twice: {:?}", self.server.begun);
        assert_eq!(self.conversation.owed_to_client(), 0);
        assert_eq!(self.conversation.load(), 0, "something is remembered: {:#?}", self.conversation);
    }

    fn note(&mut self, what: String) {
        let at = self.now.duration_since(self.begun).as_millis();
        self.history.push(format!("{at:>7} {what}"));
    }

    fn plan(&mut self, millis: u64, event: Event) {
        self.plan_at(self.now + Duration::from_millis(millis), event);
    }

    fn plan_at(&mut self, at: Instant, event: Event) {
        self.next_event += 1;
        self.events.insert(self.next_event, event);
        self.agenda.push(Reverse((at, self.next_event)));
    }

    /// When a message arrives: after a while, and on an ordered stream not before those ahead of it.
    fn arrival(&mut self, stream: Option<String>) -> Instant {
        let at = self.now + Duration::from_millis(self.rng.u64(0..200));
        let Some(stream) = stream else { return at };
        let last = self.arrivals.entry(stream).or_insert(at);
        *last = at.max(*last + Duration::from_micros(1));
        *last
    }

    /// A program that is started by this message reads it once it is up.
    fn start_slowly(&mut self, upstream: u32) {
        let life = self.life(upstream);
        if self.setting.slow && self.started.insert((upstream, life)) && self.slow_starts {
            let up = self.now + Duration::from_millis(self.rng.u64(0..7000));
            self.arrivals.insert(format!("to {upstream}"), up);
        }
    }

    fn happens(&mut self, event: Event) {
        self.note(format!("{event:?}"));
        match event {
            Event::Starts(marker) if self.client.is_ready() => {
                let message = self.client.start(marker, None);
                self.client_says(message);
            }
            Event::Starts(marker) => self.plan(100, Event::Starts(marker)),
            Event::Cancels(marker) if self.client.is_ready() && self.client.has_started(marker) => {
                // What it was told on the way to us crosses with this.
                if let Some(message) = self.client.cancel(marker) {
                    self.client_says(message);
                }
            }
            Event::Cancels(marker) => {
                if !self.client.is_settled(marker) {
                    self.plan(150, Event::Cancels(marker));
                }
            }
            Event::FromClient(message) => self.client_says(message),
            Event::AtServer(place, sending, message) => {
                if !self.cut.contains(&sending) {
                    self.at_server(place, sending, message);
                }
            }
            Event::FromServer(place, life, sending, packet) => {
                if life == self.life(place.0) {
                    self.server_says(place, sending, packet);
                }
            }
            Event::Fails(upstream, message, failure) => {
                self.conversation.handle_failed(Upstream(upstream), message, failure, self.now);
            }
            Event::Changes => {
                for (place, packet) in self.server.changes(&mut self.rng) {
                    self.send_from_server(place, packet);
                }
            }
            Event::Trouble => self.trouble(),
        }
    }

    fn client_says(&mut self, message: Message) {
        if !self.client.says(&message) {
            return;
        }
        self.judge.at_client(By::Peer, &message);
        self.conversation.handle_client(message, self.now);
    }

    fn life(&self, upstream: u32) -> u32 {
        self.lives.get(&upstream).copied().unwrap_or_default()
    }

    fn is_down(&self) -> bool {
        self.down_until.is_some_and(|until| self.now < until)
    }

    /// A message of ours arrives at the server, or does not.
    fn at_server(&mut self, place: Place, sending: u64, message: Message) {
        let (upstream, mut session) = place;
        let why = || "simulated".to_owned();
        let opens = message.is(method::INITIALIZE);
        let failure = match () {
            () if self.setting.sorted && self.is_down() => Some(Failure::Unreachable(why())),
            () if self.setting.sorted && !opens && self.server.misses(place) => Some(Failure::SessionLost(why())),
            () => None,
        };
        if let Some(failure) = failure {
            if message.is_request()
                && let Some(id) = message.id()
            {
                self.judge.request_lost(upstream, id);
                self.under_way.remove(&(upstream, id.clone()));
            }
            return self.plan(1, Event::Fails(upstream, message, failure));
        }
        if message.is_request()
            && let Some(id) = message.id()
        {
            self.serving.insert((upstream, id.clone()), sending);
        }
        if opens && self.setting.sorted {
            self.next_session += 1;
            session = self.next_session;
        }
        for packet in self.server.hears((upstream, session), &message, &mut self.rng) {
            self.send_from_server((upstream, session), packet);
        }
    }

    fn send_from_server(&mut self, place: Place, mut packet: Packet) {
        let upstream = place.0;
        let sending = match &packet.lane {
            Lane::Request(id) => self.serving.get(&(upstream, id.clone())).copied(),
            _ => None,
        };
        let stream = match (&packet.lane, self.setting.sorted) {
            (_, false) => format!("from {upstream}"),
            (lane, true) => format!("from {upstream} {lane:?}"),
        };
        if !self.setting.sorted {
            packet.lane = Lane::Unsorted;
        }
        let at = self.arrival(Some(stream));
        let life = self.life(upstream);
        self.plan_at(at, Event::FromServer(place, life, sending, packet));
    }

    fn server_says(&mut self, place: Place, sending: Option<u64>, packet: Packet) {
        let upstream = place.0;
        if self.setting.sorted
            && let Lane::Request(id) = &packet.lane
        {
            let Some((current, message)) = self.under_way.get(&(upstream, id.clone())) else { return };
            if Some(*current) != sending {
                return; // its stream was cut, and the request sent again
            }
            if message.is(method::INITIALIZE) && packet.message.is_response() {
                self.sessions.insert(upstream, place.1);
            }
        }
        if packet.message.is_response()
            && let Some(id) = packet.message.id()
        {
            self.under_way.remove(&(upstream, id.clone()));
        }
        self.judge.at_server(upstream, By::Peer, &packet.message);
        self.conversation.handle_server(Upstream(upstream), packet, self.now);
    }

    fn trouble(&mut self) {
        let upstreams: Vec<u32> = self.lives.keys().copied().collect();
        let Some(upstream) = self.rng.choice(upstreams) else { return };
        match (self.setting.sorted, self.rng.u8(..4)) {
            (false, _) => {
                self.server.forget(Some(upstream));
                self.end_life(upstream);
                self.judge.server_lost(upstream);
                self.conversation.handle_server_gone(Upstream(upstream), "simulated", self.now);
            }
            (true, 0) => {
                // The server is restarted: everything under way is cut off, all sessions are forgotten.
                self.server.forget(None);
                self.down_until = Some(self.now + Duration::from_millis(self.rng.u64(0..4000)));
                self.lives.keys().copied().collect::<Vec<_>>().into_iter().for_each(|upstream| self.cut_off(upstream));
            }
            (true, 1) => {
                self.server.forget(Some(upstream));
                self.cut_off(upstream);
                self.conversation.handle_session_lost(Upstream(upstream), "simulated", self.now);
            }
            (true, _) => {
                let ids: Vec<_> = self.under_way.keys().cloned().collect();
                if let Some(key) = self.rng.choice(ids)
                    && let Some((sending, message)) = self.under_way.remove(&key)
                {
                    self.cut(key.0, &key.1, sending, message);
                }
            }
        }
    }

    /// Everything under way on a connection is lost, and the transport says so of each request.
    fn cut_off(&mut self, upstream: u32) {
        self.end_life(upstream);
        let lost: Vec<_> = self.under_way.extract_if(|(at, _), _| *at == upstream).collect();
        for ((_, id), (sending, message)) in lost {
            self.cut(upstream, &id, sending, message);
        }
    }

    fn end_life(&mut self, upstream: u32) {
        *self.lives.entry(upstream).or_default() += 1;
        // What is on its way will not arrive. Requests are told apart: the transport says what became of each.
        for event in self.events.values() {
            if let Event::AtServer((to, _), sending, message) = event
                && *to == upstream
                && (!self.setting.sorted || !message.is_request())
            {
                self.cut.insert(*sending);
            }
        }
        if !self.setting.sorted {
            self.under_way.retain(|(at, _), _| *at != upstream);
        }
    }

    fn cut(&mut self, upstream: u32, id: &Id, sending: u64, message: Message) {
        self.cut.insert(sending);
        self.judge.request_lost(upstream, id);
        self.conversation.handle_failed(
            Upstream(upstream),
            message,
            Failure::Interrupted("simulated".into()),
            self.now,
        );
    }

    fn drain(&mut self) {
        while let Some(effect) = self.conversation.poll_effect() {
            self.note(format!("        {effect:?}"));
            match effect {
                Effect::ToClient(packet) => {
                    self.judge.at_client(By::Us, &packet.message);
                    for (delay, message) in self.client.hears(&packet, &mut self.rng) {
                        self.plan(delay, Event::FromClient(message));
                    }
                }
                Effect::ToServer(Upstream(upstream), packet) => {
                    self.judge.at_server(upstream, By::Us, &packet.message);
                    let message = packet.message;
                    self.lives.entry(upstream).or_default();
                    if message.is_request()
                        && let Some(id) = message.id()
                    {
                        self.under_way.insert((upstream, id.clone()), (self.sendings + 1, message.clone()));
                    }
                    if message.is(method::CANCELLED)
                        && let Some(id) = mcpwire_proto::meta::cancelled_request(&message)
                    {
                        self.under_way.remove(&(upstream, id));
                    }
                    self.start_slowly(upstream);
                    let at = self.arrival((!self.setting.sorted).then(|| format!("to {upstream}")));
                    self.sendings += 1;
                    let session = self.sessions.get(&upstream).copied().unwrap_or_default();
                    self.plan_at(at, Event::AtServer((upstream, session), self.sendings, message));
                }
                Effect::Open(_) | Effect::Learned(_) => {}
                Effect::Close(Upstream(upstream)) => {
                    self.server.forget(Some(upstream));
                    self.end_life(upstream);
                    self.judge.server_lost(upstream);
                    self.under_way.retain(|(at, _), _| *at != upstream);
                }
            }
        }
    }
}
