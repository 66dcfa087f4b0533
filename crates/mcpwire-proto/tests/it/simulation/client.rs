//! A client that keeps to the protocol of its era, does a number of things at once, and remembers what it was told.

use std::collections::{HashMap, HashSet};

use fastrand::Rng;
use mcpwire_proto::{Id, Kind, Lane, Message, Packet, method};
use serde_json::{Value, json};

use super::Era;

/// Something the client wants done, recognised by its marker wherever it goes.
#[derive(Debug)]
pub struct Task {
    method: &'static str,
    params: Value,
    /// Under which id it is under way at the moment.
    id: Option<Id>,
    cancelled: bool,
    pub outcome: Option<Outcome>,
    error: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Failed,
    /// The client was asked for input and left it at that.
    Dropped,
}

pub struct Client {
    era: Era,
    lanes_are_guessed: bool,
    capabilities: Value,
    pub tasks: Vec<Task>,
    by_id: HashMap<Id, usize>,
    next_id: u64,
    ready: bool,
    /// It does not wait for the answer to `initialize` before it goes on.
    eager: bool,
    /// Listens under way, and whether they are acknowledged.
    listens: HashMap<Id, bool>,
    /// Questions that are to be answered, with what they say.
    questions: HashMap<Id, String>,
    sent: HashSet<Id>,
}

/// What the client does about a message, and after how many milliseconds.
pub type Says = Vec<(u64, Message)>;

impl Client {
    pub fn new(era: Era, lanes_are_guessed: bool, rng: &mut Rng) -> Client {
        let offers = [json!({}), json!({"elicitation": {}, "sampling": {}})];
        let capabilities = offers[rng.usize(..2)].clone();
        let asked = capabilities != json!({});
        let tasks = (0..rng.usize(3..25)).map(|marker| Task::any(marker, asked, era, rng)).collect();
        Client {
            era,
            lanes_are_guessed,
            capabilities,
            tasks,
            by_id: HashMap::new(),
            next_id: 0,
            ready: era == Era::Stateless,
            eager: rng.bool(),
            listens: HashMap::new(),
            questions: HashMap::new(),
            sent: HashSet::new(),
        }
    }

    /// How the client begins.
    pub fn opens(&mut self) -> Vec<Message> {
        if self.era == Era::Stateless {
            return Vec::new();
        }
        let info = json!({"name": "c", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "clientInfo": info});
        let mut says = vec![Message::request(&Id::from("open"), method::INITIALIZE, Some(&params.to_string()))];
        if self.eager {
            says.push(Message::notification(method::INITIALIZED, None));
        }
        says
    }

    pub fn is_ready(&self) -> bool {
        self.ready || self.eager
    }

    /// Begins a task, or goes on with it.
    pub fn start(&mut self, marker: usize, input: Option<(Value, Value)>) -> Message {
        self.next_id += 1;
        let id = if self.next_id.is_multiple_of(3) {
            Id::from(format!("c{}", self.next_id).as_str())
        } else {
            Id::from(self.next_id)
        };
        let task = &mut self.tasks[marker];
        let mut params = task.params.clone();
        if self.era == Era::Stateless {
            let meta = params["_meta"].as_object_mut().expect("all have one");
            meta.insert("io.modelcontextprotocol/protocolVersion".into(), json!("2026-07-28"));
            meta.insert("io.modelcontextprotocol/clientCapabilities".into(), self.capabilities.clone());
        }
        if let Some((responses, state)) = input {
            params["inputResponses"] = responses;
            params["requestState"] = state;
        }
        task.id = Some(id.clone());
        self.by_id.insert(id.clone(), marker);
        if task.method == method::LISTEN {
            self.listens.insert(id.clone(), false);
        }
        Message::request(&id, task.method, Some(&params.to_string()))
    }

    /// Cancels a task that is under way; a listen always is at some time.
    pub fn cancel(&mut self, marker: usize) -> Option<Message> {
        let task = &mut self.tasks[marker];
        if task.outcome.is_some() || task.cancelled {
            return None;
        }
        let id = task.id.clone()?;
        task.cancelled = true;
        self.listens.remove(&id);
        // What was not sent yet will not be.
        if !self.sent.contains(&id) {
            return None;
        }
        Some(Message::notification(method::CANCELLED, Some(&format!(r#"{{"requestId":{id}}}"#))))
    }

    pub fn listens(&self, marker: usize) -> bool {
        self.tasks[marker].method == method::LISTEN
    }

    pub fn has_started(&self, marker: usize) -> bool {
        self.tasks[marker].id.is_some()
    }

    pub fn is_settled(&self, marker: usize) -> bool {
        self.tasks[marker].outcome.is_some() || self.tasks[marker].cancelled
    }

    pub fn hears(&mut self, packet: &Packet, rng: &mut Rng) -> Says {
        let value: Value = serde_json::from_slice(packet.message.as_bytes()).unwrap();
        match packet.message.kind() {
            Kind::Result { id } if *id == Id::from("open") => {
                self.ready = true;
                let initialized = (!self.eager).then(|| (0, Message::notification(method::INITIALIZED, None)));
                initialized.into_iter().collect()
            }
            Kind::Error { id: Some(id) } if *id == Id::from("open") => {
                self.eager = false;
                let at = rng.u64(1..3000);
                self.opens().into_iter().map(|message| (at, message)).collect()
            }
            Kind::Result { id } | Kind::Error { id: Some(id) } => self.answered(&id.clone(), &value, rng),
            Kind::Error { id: None } => panic!("an error of no request: {value}"),
            Kind::Request { id, .. } => {
                assert_eq!(self.era, Era::Session, "a stateless client is sent no requests: {value}");
                let (marker, asked, answer) = answer_to(&value["method"], &value["params"]);
                self.questions.insert(id.clone(), asked);
                self.check_lane(&packet.lane, marker, &value);
                let answer = Message::result(id, &answer.to_string());
                vec![(rng.u64(0..500), answer)]
            }
            Kind::Notification { .. } => {
                self.notified(packet, &value);
                Vec::new()
            }
        }
    }

    /// Whether it still wants to say this, now that the time has come.
    pub fn says(&mut self, message: &Message) -> bool {
        let Some(id) = message.id() else { return true };
        if message.is_response() {
            // Servers that were restarted ask under old ids: an answer is to what was asked.
            let said = String::from_utf8_lossy(message.as_bytes()).into_owned();
            let asked = self.questions.get(id).is_some_and(|asked| said.contains(&format!("\"{asked}\"")));
            return asked && self.questions.remove(id).is_some();
        }
        self.sent.insert(id.clone());
        !self.by_id.get(id).is_some_and(|marker| self.tasks[*marker].cancelled)
    }

    fn answered(&mut self, id: &Id, value: &Value, rng: &mut Rng) -> Says {
        let marker = *self.by_id.get(id).unwrap_or_else(|| panic!("nobody asked: {value}"));
        let task = &mut self.tasks[marker];
        assert!(!task.cancelled, "it was cancelled: {value}");
        assert!(task.outcome.is_none(), "it is answered already: {value}");
        assert_eq!(task.id.as_ref(), Some(id), "it is under way under another id: {value}");
        self.listens.remove(id);
        if value["result"]["resultType"] == "input_required" {
            return self.asked(marker, &value["result"], rng);
        }
        if value.get("error").is_some() {
            task.outcome = Some(Outcome::Failed);
            task.error = value["error"].clone();
            return Vec::new();
        }
        task.outcome = Some(Outcome::Done);
        let said = match task.method {
            method::TOOLS_CALL => &value["result"]["content"][0]["text"],
            method::PROMPTS_GET => &value["result"]["description"],
            method::RESOURCES_READ => &value["result"]["contents"][0]["text"],
            _ => return Vec::new(),
        };
        assert_eq!(said, &json!(format!("done {marker}")), "the answer of another");
        Vec::new()
    }

    /// A stateless client is asked for input.
    fn asked(&mut self, marker: usize, result: &Value, rng: &mut Rng) -> Says {
        assert_eq!(self.era, Era::Stateless);
        let mut responses = json!({});
        for (key, asked) in result["inputRequests"].as_object().expect("questions") {
            let (about, _, answer) = answer_to(&asked["method"], &asked["params"]);
            assert_eq!(about, marker, "the question of another: {result}");
            if rng.u8(..8) > 0 {
                responses[key] = answer;
            }
        }
        if rng.u8(..10) == 0 {
            self.tasks[marker].outcome = Some(Outcome::Dropped);
            return Vec::new();
        }
        let delay = rng.u64(0..2000);
        vec![(delay, self.start(marker, Some((responses, result["requestState"].clone()))))]
    }

    fn notified(&mut self, packet: &Packet, value: &Value) {
        let params = &value["params"];
        match &**packet.message.method().expect("notifications have one") {
            method::PROGRESS => {
                let marker = params["progressToken"].as_u64().expect("a token") as usize;
                self.check_lane(&packet.lane, marker, value);
            }
            method::CANCELLED => {
                if let Some(id) = mcpwire_proto::meta::cancelled_request(&packet.message) {
                    self.questions.remove(&id);
                }
            }
            method::ACKNOWLEDGED => {
                let id = mcpwire_proto::meta::subscription_id(&packet.message).expect("it names its listen");
                if let Some(acknowledged) = self.listens.get_mut(&id) {
                    assert!(!std::mem::replace(acknowledged, true), "acknowledged twice: {value}");
                }
            }
            _ if self.era == Era::Stateless => {
                let id = mcpwire_proto::meta::subscription_id(&packet.message).expect("it names its listen");
                assert!(self.listens.get(&id).is_none_or(|acknowledged| *acknowledged), "too early: {value}");
            }
            _ => assert!(params.get("_meta").is_none(), "a session-era client knows no subscriptions: {value}"),
        }
    }

    fn check_lane(&self, lane: &Lane, marker: usize, value: &Value) {
        if let (Lane::Request(id), false) = (lane, self.lanes_are_guessed) {
            assert_eq!(self.by_id.get(id), Some(&marker), "on the stream of another: {value}");
        }
    }
}

impl Task {
    fn any(marker: usize, asked: bool, era: Era, rng: &mut Rng) -> Task {
        let asks = if asked { rng.usize(..4).to_string() } else { "0".into() };
        let arguments = json!({"marker": marker.to_string(), "asks": asks, "way": rng.u8(..2).to_string()});
        let meta = json!({"progressToken": marker});
        let (method, params) = match rng.u8(..10) {
            0..4 => (method::TOOLS_CALL, json!({"name": "t", "arguments": arguments, "_meta": meta})),
            4..6 => (method::PROMPTS_GET, json!({"name": "p", "arguments": arguments, "_meta": meta})),
            6 => (method::RESOURCES_READ, json!({"uri": format!("sim:///{marker}"), "_meta": {}})),
            7 => (method::TOOLS_LIST, json!({"_meta": {}})),
            8 if era == Era::Session => (method::RESOURCES_SUBSCRIBE, json!({"uri": "sim:///s", "_meta": {}})),
            8 => {
                let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["sim:///s"]});
                (method::LISTEN, json!({"notifications": filter, "_meta": {}}))
            }
            _ if era == Era::Session => (method::LOGGING_SET_LEVEL, json!({"level": "info", "_meta": {}})),
            _ => (method::DISCOVER, json!({"_meta": {}})),
        };
        Task { method, params, id: None, cancelled: false, outcome: None, error: Value::Null }
    }
}

/// The task that a question is about, what it says, and the answer to it, which says the same.
fn answer_to(method: &Value, params: &Value) -> (usize, String, Value) {
    let sampling = method == method::SAMPLING_CREATE_MESSAGE;
    let said = if sampling { &params["messages"][0]["content"]["text"] } else { &params["message"] };
    let said = said.as_str().expect("a question");
    let marker = said.split('-').nth(1).and_then(|marker| marker.parse().ok()).expect("a marker");
    let answer = match sampling {
        true => json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": said}}),
        false => json!({"action": "accept", "content": {"said": said}}),
    };
    (marker, said.to_owned(), answer)
}
