//! A server that keeps to the protocol of its era, asks during calls, and checks that it is told what it asked for.

use std::collections::HashMap;

use fastrand::Rng;
use mcpwire_proto::{Id, Kind, Lane, Message, Packet, meta, method};
use serde_json::{Value, json};

use super::Era;

pub struct Server {
    era: Era,
    /// The sessions that it has with its peers, by connection and number; in the stateless era, what is open there.
    rooms: HashMap<Place, Room>,
    /// What each connection of a server of both eras was opened with.
    pins: HashMap<Place, Pin>,
    /// How often each call of a tool was begun.
    pub begun: HashMap<usize, u32>,
}

/// A connection, and the session that its transport says it is in; none is 0.
pub type Place = (u32, u64);

/// The TypeScript SDK 2.x: a question for the era decides nothing, the next request does, for good.
#[derive(Default)]
struct Pin {
    discovered: bool,
    era: Option<Era>,
}

#[derive(Default)]
struct Room {
    calls: HashMap<Id, Call>,
    /// Questions by id: for which call.
    questions: HashMap<Id, (Id, String)>,
    listens: Vec<Id>,
    next_question: u64,
}

struct Call {
    marker: usize,
    method: String,
    asks: u64,
    parallel: bool,
    open: usize,
}

impl Server {
    pub fn new(era: Era) -> Server {
        Server { era, rooms: HashMap::new(), pins: HashMap::new(), begun: HashMap::new() }
    }

    /// It has lost what it knew of one peer, or of all.
    pub fn forget(&mut self, upstream: Option<u32>) {
        match upstream {
            Some(upstream) => {
                self.rooms.retain(|(at, _), _| *at != upstream);
                self.pins.retain(|(at, _), _| *at != upstream);
            }
            None => {
                self.rooms.clear();
                self.pins.clear();
            }
        }
    }

    /// Whether the session is none that it knows.
    pub fn misses(&self, place: Place) -> bool {
        self.era == Era::Session && place.1 > 0 && !self.rooms.contains_key(&place)
    }

    pub fn hears(&mut self, place: Place, message: &Message, rng: &mut Rng) -> Vec<Packet> {
        let value: Value = serde_json::from_slice(message.as_bytes()).unwrap();
        match message.kind() {
            Kind::Request { id, method } => match self.era_of(place, method, &value["params"]) {
                Era::Stateless => self.stateless_request(place, id, method, &value["params"], rng),
                _ => self.session_request(place, id, method, &value["params"]),
            },
            Kind::Notification { method } if *method == method::CANCELLED => {
                let room = self.rooms.entry(place).or_default();
                let id = meta::cancelled_request(message).expect("it names a request");
                room.listens.retain(|listen| *listen != id);
                room.calls.remove(&id);
                let open: Vec<Id> =
                    room.questions.iter().filter(|(_, (call, _))| *call == id).map(|(q, _)| q.clone()).collect();
                for question in &open {
                    room.questions.remove(question);
                }
                let withdrawn = open.iter().map(|question| {
                    let params = format!(r#"{{"requestId":{question}}}"#);
                    Packet::new(Lane::Main, Message::notification(method::CANCELLED, Some(&params)))
                });
                withdrawn.collect()
            }
            Kind::Notification { .. } => Vec::new(),
            Kind::Result { id } | Kind::Error { id: Some(id) } => self.answered(place, id, &value),
            Kind::Error { id: None } => panic!("an error of no request: {value}"),
        }
    }

    /// In which era a request is served.
    fn era_of(&mut self, place: Place, method: &str, params: &Value) -> Era {
        if self.era != Era::Both {
            return self.era;
        }
        let pin = self.pins.entry(place).or_default();
        let modern = params["_meta"].get(meta::key::PROTOCOL_VERSION).is_some();
        let era = if modern { Era::Stateless } else { Era::Session };
        assert!(method != method::INITIALIZE || !pin.discovered, "a process that has seen both openings is used");
        assert!(pin.era.is_none_or(|pinned| pinned == era), "{method} in the wrong era");
        if method == method::DISCOVER {
            pin.discovered = true;
        } else {
            pin.era = Some(era);
        }
        era
    }

    /// Something has changed.
    pub fn changes(&self, rng: &mut Rng) -> Vec<(Place, Packet)> {
        let mut told = Vec::new();
        for (place, room) in &self.rooms {
            let method = if rng.bool() { method::TOOLS_LIST_CHANGED } else { method::RESOURCES_UPDATED };
            let mut params = if method == method::RESOURCES_UPDATED { json!({"uri": "sim:///s"}) } else { json!({}) };
            let pinned = self.pins.get(place).and_then(|pin| pin.era);
            if self.era == Era::Session || pinned == Some(Era::Session) {
                let message = Message::notification(method, Some(&params.to_string()));
                told.push((*place, Packet::new(Lane::Main, message)));
            }
            for listen in &room.listens {
                let id: Value = serde_json::from_str(listen.as_json()).unwrap();
                params["_meta"] = json!({meta::key::SUBSCRIPTION_ID: id});
                let message = Message::notification(method, Some(&params.to_string()));
                told.push((*place, Packet::new(Lane::Request(listen.clone()), message)));
            }
        }
        told
    }

    fn session_request(&mut self, place: Place, id: &Id, method: &str, params: &Value) -> Vec<Packet> {
        let done = |result: Value| vec![answer(id, &result)];
        if method == method::INITIALIZE {
            self.rooms.insert(place, Room::default());
            let capabilities = json!({
                "tools": {"listChanged": true}, "resources": {"subscribe": true}, "prompts": {}, "logging": {}
            });
            let info = json!({"name": "s", "version": "1"});
            return done(json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}));
        }
        let told = params["_meta"].get(meta::key::PROTOCOL_VERSION);
        assert!(method == method::DISCOVER || told.is_none(), "not stripped: {params}");
        match method {
            method::TOOLS_LIST => done(json!({"tools": []})),
            method::RESOURCES_READ => done(read(params)),
            method::TOOLS_CALL | method::PROMPTS_GET => {
                let call = self.begin(method, params);
                let progress = progress(&Lane::Request(id.clone()), params);
                let room = self.rooms.entry(place).or_default();
                room.calls.insert(id.clone(), call);
                progress.into_iter().chain(room.go_on(id)).collect()
            }
            method::PING | method::LOGGING_SET_LEVEL | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
                done(json!({}))
            }
            _ => vec![refusal(id)],
        }
    }

    fn begin(&mut self, method: &str, params: &Value) -> Call {
        let word = |name: &str| params["arguments"][name].as_str().expect("an argument").parse::<u64>().unwrap();
        let marker = word("marker") as usize;
        if method == method::TOOLS_CALL {
            *self.begun.entry(marker).or_default() += 1;
        }
        Call { marker, method: method.to_owned(), asks: word("asks"), parallel: word("way") == 1, open: 0 }
    }

    /// A question of ours was answered.
    fn answered(&mut self, place: Place, id: &Id, value: &Value) -> Vec<Packet> {
        let Some(room) = self.rooms.get_mut(&place) else { return Vec::new() };
        let Some((call, asked)) = room.questions.remove(id) else { return Vec::new() };
        check_answer(&asked, &value["result"]);
        if let Some(call) = room.calls.get_mut(&call) {
            call.open -= 1;
        }
        room.go_on(&call)
    }

    fn stateless_request(&mut self, place: Place, id: &Id, method: &str, params: &Value, rng: &mut Rng) -> Vec<Packet> {
        let kept = |mut result: Value| {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(5);
            result["cacheScope"] = json!("public");
            result["_meta"] = json!({meta::key::SERVER_INFO: {"name": "s", "version": "1"}});
            vec![answer(id, &result)]
        };
        let speaks = params["_meta"][meta::key::PROTOCOL_VERSION] == "2026-07-28";
        match method {
            _ if !speaks => vec![refusal(id)],
            method::DISCOVER => {
                let capabilities = json!({
                    "tools": {"listChanged": true}, "resources": {"subscribe": true}, "prompts": {}, "logging": {}
                });
                kept(json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities}))
            }
            method::TOOLS_LIST => kept(json!({"tools": []})),
            method::RESOURCES_READ => kept(read(params)),
            method::TOOLS_CALL | method::PROMPTS_GET => self.stateless_call(id, method, params),
            method::LISTEN => {
                self.rooms.entry(place).or_default().listens.push(id.clone());
                let listen: Value = serde_json::from_str(id.as_json()).unwrap();
                let meta = json!({meta::key::SUBSCRIPTION_ID: listen});
                let told = json!({"notifications": params["notifications"], "_meta": meta});
                let lane = Lane::Request(id.clone());
                let message = Message::notification(method::ACKNOWLEDGED, Some(&told.to_string()));
                let mut packets = vec![Packet::new(lane, message)];
                if rng.u8(..4) == 0 {
                    self.rooms.entry(place).or_default().listens.pop();
                    packets.push(answer(id, &json!({"resultType": "complete", "_meta": meta})));
                }
                packets
            }
            _ => vec![refusal(id)],
        }
    }

    fn stateless_call(&mut self, id: &Id, method: &str, params: &Value) -> Vec<Packet> {
        let state = params["requestState"].as_str();
        let step = state.map_or(0, |state| state.split(':').nth(1).unwrap().parse().unwrap());
        let call = self.begin(method, params);
        if let Some(state) = state {
            assert!(state.starts_with(&format!("{}:", call.marker)), "the state of another: {params}");
            self.begun.entry(call.marker).and_modify(|count| *count -= u32::from(method == method::TOOLS_CALL));
        }
        let per_round = if call.parallel { call.asks } else { 1 };
        let mut done = step;
        for (key, response) in params["inputResponses"].as_object().into_iter().flatten() {
            check_answer(&format!("q-{}-{key}", call.marker), response);
            done += 1;
        }
        if done >= call.asks {
            let mut result = call.result();
            result["resultType"] = json!("complete");
            return progress(&Lane::Request(id.clone()), params).into_iter().chain([answer(id, &result)]).collect();
        }
        let mut questions = json!({});
        for number in done..(done + per_round).min(call.asks) {
            let (method, params) = question(&format!("q-{}-{number}", call.marker), number);
            questions[number.to_string()] = json!({"method": method, "params": params});
        }
        let state = format!("{}:{done}", call.marker);
        vec![answer(id, &json!({"resultType": "input_required", "inputRequests": questions, "requestState": state}))]
    }
}

impl Room {
    /// Asks what is to be asked next in a call, or answers it.
    fn go_on(&mut self, id: &Id) -> Vec<Packet> {
        let Some(call) = self.calls.get_mut(id).filter(|call| call.open == 0) else { return Vec::new() };
        let lane = Lane::Request(id.clone());
        if call.asks == 0 {
            let result = call.result();
            self.calls.remove(id);
            return vec![Packet::new(lane, Message::result(id, &result.to_string()))];
        }
        let count = if call.parallel { call.asks } else { 1 };
        call.asks -= count;
        call.open = count as usize;
        let mut packets = Vec::new();
        for number in 0..count {
            self.next_question += 1;
            let asked = format!("q-{}-{}", call.marker, call.asks + number);
            let (method, params) = question(&asked, call.asks + number);
            let question = Id::from(self.next_question);
            let message = Message::request(&question, method, Some(&params.to_string()));
            self.questions.insert(question, (id.clone(), asked));
            packets.push(Packet::new(lane.clone(), message));
        }
        packets
    }
}

impl Call {
    fn result(&self) -> Value {
        let said = format!("done {}", self.marker);
        match self.method == method::TOOLS_CALL {
            true => json!({"content": [{"type": "text", "text": said}]}),
            false => json!({"messages": [], "description": said}),
        }
    }
}

fn question(asked: &str, number: u64) -> (&'static str, Value) {
    if number % 2 == 1 {
        let messages = json!([{"role": "user", "content": {"type": "text", "text": asked}}]);
        return (method::SAMPLING_CREATE_MESSAGE, json!({"messages": messages, "maxTokens": 5}));
    }
    let schema = json!({"type": "object", "properties": {"said": {"type": "string"}}});
    (method::ELICITATION_CREATE, json!({"mode": "form", "message": asked, "requestedSchema": schema}))
}

/// What comes back must be the answer to what was asked, or none.
fn check_answer(asked: &str, result: &Value) {
    let said = if result.get("model").is_some() { &result["content"]["text"] } else { &result["content"]["said"] };
    assert!(said.is_null() || said == asked, "asked {asked}, was told {result}");
}

fn read(params: &Value) -> Value {
    let uri = params["uri"].as_str().expect("a uri");
    let marker = uri.trim_start_matches("sim:///");
    json!({"contents": [{"uri": uri, "text": format!("done {marker}")}]})
}

fn progress(lane: &Lane, params: &Value) -> Option<Packet> {
    let token = params["_meta"].get("progressToken")?;
    let told = json!({"progressToken": token, "progress": 1});
    Some(Packet::new(lane.clone(), Message::notification(method::PROGRESS, Some(&told.to_string()))))
}

fn answer(id: &Id, result: &Value) -> Packet {
    Packet::new(Lane::Request(id.clone()), Message::result(id, &result.to_string()))
}

fn refusal(id: &Id) -> Packet {
    Packet::new(Lane::Request(id.clone()), Message::error(Some(id), -32601, "unknown method"))
}
