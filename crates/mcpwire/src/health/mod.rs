//! What is known of the servers behind us: kept by the bridges, told to whoever asks.

mod board;
mod traffic;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use mcpwire_proto::{Failure, IdMap, Kind, Message};
use serde_json::{Value, json};

pub use self::board::{Board, Overall};
use self::traffic::Traffic;

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
    restarts: u64,
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
        Watch { health: self.clone(), id, last: Condition::Idle, under_way: IdMap::default(), failure: String::new() }
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
    /// The target is as well as the bridge that fares worst, of those that have tried.
    fn update(&mut self) {
        let state = self.bridges.values().copied().max().unwrap_or(match self.state {
            Condition::Down => Condition::Down,
            _ => Condition::Idle,
        });
        if state != self.state {
            self.state = state;
            self.since = SystemTime::now();
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
        let mut record = self.health.record();
        let new = || !why.is_empty() && record.last_error.as_ref().is_none_or(|(_, last)| last != why);
        if condition == Condition::Down && new() {
            record.last_error = Some((SystemTime::now(), why.to_owned()));
        }
        if condition == self.last {
            return;
        }
        record.bridges.insert(self.id, condition);
        if self.last == Condition::Down && condition == Condition::Up {
            record.restarts += 1;
        }
        self.last = condition;
        record.update();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut record = self.health.record();
        record.bridges.remove(&self.id);
        record.update();
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
    fn a_target_is_as_well_as_its_worst_bridge() {
        let health = Health::new("t");
        let (mut a, mut b) = (health.watch(), health.watch());
        let state = || health.to_json()["state"].as_str().map(str::to_owned);
        assert_eq!(state().as_deref(), Some("idle"));
        a.report(Condition::Up, "");
        assert_eq!(state().as_deref(), Some("up"));
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
