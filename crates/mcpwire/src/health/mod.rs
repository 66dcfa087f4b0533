//! What is known of the servers behind us: kept by the bridges, told to whoever asks.

mod board;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use mcpwire_proto::conversation::Upstream;
use mcpwire_proto::{Failure, IdMap, Kind, Message};
use serde_json::{Value, json};

pub use self::board::{Board, Overall};
use self::traffic::Traffic;

/// The error of a server that was given up, where nobody said why.
const GIVEN_UP: &str = "the server was given up before it answered";

/// The most calls of one client that are timed at once; further ones are not.
const MOST_TIMED: usize = 1024;

/// How a bridge finds its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Nothing was asked of it yet.
    Idle,
    /// A handshake is under way.
    Starting,
    /// It has answered.
    Up,
    /// It cannot be reached, or refuses us.
    Down,
}

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Condition::Idle => "idle",
            Condition::Starting => "starting",
            Condition::Up => "up",
            Condition::Down => "down",
        }
    }
}

/// The health of one target, over all bridges to it. Clones are the same record.
#[derive(Debug, Clone)]
pub struct Health(Arc<Mutex<Record>>);

#[derive(Debug)]
struct Record {
    name: String,
    bridges: BTreeMap<u64, Condition>,
    next: u64,
    state: Condition,
    since: SystemTime,
    /// How often the server was lost after it had been there.
    restarts: u64,
    /// All bridges have the same server, and somebody else counts how often it is lost.
    shared: bool,
    last_error: Option<(SystemTime, String)>,
    tools: Option<usize>,
    traffic: Traffic,
}

impl Health {
    /// A record of a target. The name is shown to peers: it must hold no secrets or paths.
    pub fn new(name: &str) -> Health {
        let record = Record {
            name: name.to_owned(),
            bridges: BTreeMap::new(),
            next: 0,
            state: Condition::Idle,
            since: SystemTime::now(),
            restarts: 0,
            shared: false,
            last_error: None,
            tools: None,
            traffic: Traffic::default(),
        };
        Health(Arc::new(Mutex::new(record)))
    }

    /// A bridge begins; its reports end when the watch is dropped.
    pub fn watch(&self) -> Watch {
        let mut record = self.record();
        record.next += 1;
        let id = record.next;
        record.bridges.insert(id, Condition::Idle);
        Watch {
            health: self.clone(),
            id,
            last: Condition::Idle,
            under_way: IdMap::default(),
            failure: String::new(),
            lost: BTreeSet::new(),
        }
    }

    /// All bridges share one server, whose losses are counted by the returned watch alone.
    pub fn watch_shared(&self) -> SharedWatch {
        self.record().shared = true;
        SharedWatch { health: self.clone(), present: false }
    }

    pub fn is_up(&self) -> bool {
        self.record().state != Condition::Down
    }

    /// How many tools the target offers, as far as somebody has counted them.
    pub fn set_tools(&self, count: usize) {
        self.record().tools = Some(count);
    }

    /// A call was answered.
    pub fn record_call(&self, took: Duration, ok: bool) {
        self.record().traffic.record(took, ok);
    }

    pub fn to_json(&self) -> Value {
        let record = self.record();
        let error = record.last_error.as_ref().map(|(at, text)| json!({"at": time(*at), "text": text}));
        json!({
            "name": record.name,
            "state": record.state.name(),
            "since": time(record.since),
            "sessions": record.bridges.len(),
            "restarts": record.restarts,
            "lastError": error,
            "tools": record.tools,
            "calls": record.traffic.calls(),
            "failed": record.traffic.failed(),
            "latencyMs": record.traffic.latency(),
        })
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// The target is as well as the bridge that fares worst, of those that have tried. One that was down stays so until it
    /// has answered one of them.
    fn update(&mut self, now: SystemTime) {
        let worst = self.bridges.values().copied().max().unwrap_or(Condition::Idle);
        let state = if self.state == Condition::Down && worst < Condition::Up { Condition::Down } else { worst };
        if state != self.state {
            self.state = state;
            self.since = now;
        }
    }

    /// The server is lost.
    fn lose(&mut self, why: &str, now: SystemTime) {
        self.restarts += 1;
        self.last_error = Some((now, why.to_owned()));
    }
}

/// An eye on a server that many bridges share.
#[derive(Debug)]
pub struct SharedWatch {
    health: Health,
    /// It has said something, and was not lost since.
    present: bool,
}

impl SharedWatch {
    pub fn saw_server(&mut self) {
        self.present = true;
    }

    /// The server is gone, or a message did not reach it. One that was not there cannot be lost.
    pub fn saw_lost(&mut self, why: &str) {
        if std::mem::take(&mut self.present) {
            self.health.record().lose(why, SystemTime::now());
        }
    }
}

/// One bridge's eye on its server.
#[derive(Debug)]
pub struct Watch {
    health: Health,
    id: u64,
    last: Condition,
    /// Since when the client waits for the calls that are under way.
    under_way: IdMap<Instant>,
    /// Why a message did not get through the last time.
    failure: String,
    /// The connections whose server was lost and has said nothing since.
    lost: BTreeSet<Upstream>,
}

impl Watch {
    /// The client says something.
    pub fn saw_client(&mut self, message: &Message, now: Instant) {
        if let Kind::Request { id, method } = message.kind()
            && method.is_call()
            && self.under_way.len() < MOST_TIMED
        {
            self.under_way.insert(id.clone(), now);
        }
    }

    /// The client is told something.
    pub fn saw_answer(&mut self, message: &Message, now: Instant) {
        if let Kind::Result { id } | Kind::Error { id: Some(id) } = message.kind()
            && let Some(since) = self.under_way.remove(id)
        {
            let ok = matches!(message.kind(), Kind::Result { .. });
            self.health.record_call(now.saturating_duration_since(since), ok);
        }
    }

    /// A message to the server did not get through.
    pub fn saw_failure(&mut self, failure: &Failure) {
        self.failure = match failure {
            Failure::Refused(refusal) => {
                let error = serde_json::from_str::<Value>(&refusal.error).unwrap_or_default();
                error["message"].as_str().unwrap_or("the server refused a message").to_owned()
            }
            failure => failure.to_string(),
        };
    }

    /// The server said something on a connection.
    pub fn saw_server(&mut self, upstream: Upstream) {
        if !self.lost.is_empty() {
            self.lost.remove(&upstream);
        }
    }

    /// The server of a connection is gone. The conversation may not notice: without a session there is nothing to lose.
    pub fn saw_lost(&mut self, upstream: Upstream, why: &str) {
        // One that could not be started again is lost already.
        if self.last == Condition::Up {
            self.lost.insert(upstream);
            let mut record = self.health.record();
            if !record.shared {
                record.lose(why, SystemTime::now());
            }
        }
    }

    /// Notes how things stand; `why` is read only when they are bad. A server that was down stays so until it has
    /// answered: to be tried is not to be well, and neither is to be given up before it was open.
    pub fn report(&mut self, condition: Condition, why: &str) {
        let given_up = condition == Condition::Idle && matches!(self.last, Condition::Starting | Condition::Down);
        let condition = if given_up { Condition::Down } else { condition };
        let why = if why.is_empty() { &self.failure } else { why };
        let tried = self.last == Condition::Down && condition == Condition::Starting;
        if tried || condition == self.last && condition != Condition::Down {
            return;
        }
        let (mut record, now) = (self.health.record(), SystemTime::now());
        if condition == Condition::Down {
            // What is reported again and again is not news each time, but a bridge that fails now failed now.
            let known = |text: &str| record.last_error.as_ref().is_some_and(|(_, last)| last == text);
            let why = if why.is_empty() { GIVEN_UP } else { why };
            if condition != self.last || why != GIVEN_UP && !known(why) {
                record.last_error = Some((now, why.to_owned()));
            }
        }
        if condition == self.last {
            return;
        }
        record.bridges.insert(self.id, condition);
        match (self.last, condition) {
            (Condition::Up, Condition::Down) if self.lost.is_empty() && !record.shared => {
                self.lost.insert(Upstream::FIRST);
                record.restarts += 1;
            }
            (_, Condition::Up) => self.lost.clear(),
            _ => {}
        }
        self.last = condition;
        record.update(now);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut record = self.health.record();
        record.bridges.remove(&self.id);
        record.update(SystemTime::now());
    }
}

fn time(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_never_opened_is_down_and_says_why() {
        let health = Health::new("t");
        let mut watch = health.watch();
        watch.report(Condition::Starting, "");
        watch.saw_failure(&Failure::refused_by_server(r#"{"code":-32603,"message":"cannot start it"}"#));
        watch.report(Condition::Idle, "");
        assert!(!health.is_up());
        assert_eq!(health.to_json()["lastError"]["text"], "cannot start it");
        watch.report(Condition::Starting, "");
        watch.report(Condition::Idle, "");
        assert!(!health.is_up());
        watch.report(Condition::Starting, "");
        watch.report(Condition::Up, "");
        watch.report(Condition::Idle, "");
        assert!(health.is_up(), "what was open and is not used is well");
    }

    #[test]
    fn each_loss_of_a_server_counts_once() {
        let health = Health::new("t");
        let restarts = || health.to_json()["restarts"].as_u64();
        let mut watch = health.watch();
        watch.report(Condition::Up, "");
        watch.saw_lost(Upstream::FIRST, "it died");
        watch.report(Condition::Down, "it died");
        watch.report(Condition::Starting, "");
        watch.saw_lost(Upstream::FIRST, "it died at once");
        watch.report(Condition::Down, "it died at once");
        assert_eq!(restarts(), Some(1));
        watch.saw_server(Upstream::FIRST);
        watch.report(Condition::Up, "");
        watch.report(Condition::Down, "connection refused");
        assert_eq!(restarts(), Some(2), "it was noticed by a failure alone");
        drop(watch);
        // Clients that leave at once, and one that has no session to lose.
        for _ in 0..3 {
            let mut watch = health.watch();
            watch.report(Condition::Up, "");
            watch.saw_lost(Upstream::FIRST, "it died");
        }
        assert_eq!(restarts(), Some(5));
        let mut watch = health.watch();
        watch.report(Condition::Up, "");
        for _ in 0..3 {
            watch.saw_lost(Upstream::FIRST, "it died of its first request");
            watch.report(Condition::Up, "");
        }
        assert_eq!(restarts(), Some(8));
    }

    #[test]
    fn the_loss_of_a_shared_server_counts_once_for_all_bridges() {
        let health = Health::new("t");
        let mut shared = health.watch_shared();
        shared.saw_lost("it is not there yet");
        let mut bridges: Vec<Watch> = (0..40).map(|_| health.watch()).collect();
        for _ in 0..3 {
            bridges.iter_mut().for_each(|bridge| bridge.report(Condition::Up, ""));
            shared.saw_server();
            shared.saw_lost("it died");
            shared.saw_lost("connection refused");
            for bridge in &mut bridges {
                bridge.saw_lost(Upstream::FIRST, "it died");
                bridge.report(Condition::Down, "it died");
            }
        }
        assert_eq!(health.to_json()["restarts"], 3);
    }

    #[test]
    fn the_last_error_is_never_older_than_the_state_it_explains() {
        let health = Health::new("t");
        let at = |told: &Value| told["lastError"]["at"].as_str().unwrap().to_owned();
        let mut watch = health.watch();
        for why in ["it died", "it died", ""] {
            watch.report(Condition::Starting, "");
            watch.report(Condition::Up, "");
            // So that one time can be told from the next.
            std::thread::sleep(Duration::from_millis(2));
            watch.report(Condition::Down, why);
            let told = health.to_json();
            assert_eq!((told["state"].as_str(), at(&told)), (Some("down"), told["since"].as_str().unwrap().to_owned()));
        }
        drop(watch);
        let before = health.to_json();
        std::thread::sleep(Duration::from_millis(2));
        let mut next = health.watch();
        next.report(Condition::Starting, "");
        assert!(!health.is_up(), "to be tried by another bridge is not to be well");
        next.report(Condition::Down, "");
        let after = health.to_json();
        assert_eq!(after["since"], before["since"]);
        assert!(at(&after) > at(&before), "the same error, again");
    }

    #[test]
    fn a_target_is_as_well_as_its_worst_bridge() {
        let health = Health::new("t");
        let (mut a, mut b) = (health.watch(), health.watch());
        let state = || health.to_json()["state"].as_str().map(str::to_owned);
        assert_eq!(state().as_deref(), Some("idle"));
        a.report(Condition::Up, "");
        assert_eq!(state().as_deref(), Some("up"));
        b.report(Condition::Up, "");
        b.report(Condition::Down, "it died");
        assert_eq!(state().as_deref(), Some("down"));
        assert_eq!(health.to_json()["lastError"]["text"], "it died");
        assert!(!health.is_up());
        b.report(Condition::Starting, "");
        assert!(!health.is_up(), "it has not answered yet");
        b.report(Condition::Down, "it died again");
        assert_eq!(health.to_json()["lastError"]["text"], "it died again");
        b.report(Condition::Starting, "");
        b.report(Condition::Up, "");
        assert!(health.is_up());
        assert_eq!(health.to_json()["restarts"], 1);
        assert_eq!(health.to_json()["sessions"], 2);
        drop((a, b));
        assert_eq!(state().as_deref(), Some("idle"));
    }
}
