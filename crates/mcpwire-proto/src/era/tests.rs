//! A session-era client and a session-era server joined by both adaptors, as they are through a hub.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{OldClient, OldServer, OldServerConfig, Out};
use crate::conversation::{Effect, Key, Upstream};
use crate::session::legacy::Config as RelayConfig;
use crate::version::{V2025_11_25, V2026_07_28};
use crate::{Id, Lane, Message, Packet};

struct Rig {
    client: OldClient,
    server: OldServer,
    now: Instant,
    to_client: Vec<Value>,
    to_server: Vec<Value>,
}

fn message(value: &Value) -> Message {
    Message::parse(value.to_string().into()).unwrap()
}

fn value(message: &Message) -> Value {
    serde_json::from_slice(message.as_bytes()).unwrap()
}

impl Rig {
    /// A client that has been initialized, and a server that declares `logging`.
    #[allow(clippy::disallowed_methods, reason = "any instant will do")]
    fn new() -> Rig {
        let now = Instant::now();
        let capabilities = json!({ "elicitation": { "url": {} } });
        let params = json!({ "protocolVersion": V2025_11_25, "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"} });
        let initialize = Message::request(&Id::from(0), "initialize", Some(&params.to_string()));
        let discovered = json!({ "supportedVersions": [V2026_07_28], "capabilities": { "tools": {}, "logging": {} } });
        let client = OldClient::new(initialize, Some(discovered.to_string()), V2026_07_28, 0, true);
        let config = OldServerConfig {
            relay: RelayConfig::default(),
            version: V2025_11_25,
            most_sessions: 4,
            most_parked: 4,
            park_for: Duration::from_secs(300),
            key: Key::default(),
            on_trust: false,
        };
        let server = OldServer::new(config, 2, now);
        let mut rig = Rig { client, server, now, to_client: Vec::new(), to_server: Vec::new() };
        rig.pump();
        rig.to_client.clear();
        rig
    }

    fn pump(&mut self) {
        loop {
            while let Some(out) = self.client.poll() {
                match out {
                    Out::Client(packet) => self.to_client.push(value(&packet.message)),
                    Out::Server(request) if request.is_request() => self.server.handle_request(request, self.now),
                    Out::Server(other) => self.server.handle_notification(&other, self.now),
                }
            }
            let Some(effect) = self.server.poll() else { return };
            match effect {
                Effect::ToClient(packet) => self.client.handle_server(packet, self.now),
                Effect::ToServer(_, packet) => self.to_server.push(value(&packet.message)),
                _ => {}
            }
        }
    }

    fn client_says(&mut self, said: &Value) {
        self.client.handle_client(message(said), self.now);
        self.pump();
    }

    fn server_says(&mut self, lane: Lane, said: &Value) {
        self.server.handle_server(Upstream(2), Packet::new(lane, message(said)), self.now);
        self.pump();
    }

    /// The client calls a tool, and the server has the call.
    fn call(&mut self) -> Lane {
        self.client_says(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "t" } }));
        let opening = self.sent("initialize");
        let capabilities = json!({ "tools": {}, "logging": {} });
        let result = json!({ "protocolVersion": V2025_11_25, "capabilities": capabilities, "serverInfo": { "name": "s", "version": "1" } });
        self.server_says(Lane::Unsorted, &json!({ "jsonrpc": "2.0", "id": opening["id"], "result": result }));
        self.sent("notifications/initialized");
        let call = self.sent("tools/call");
        assert_eq!(call["params"], json!({ "name": "t" }));
        Lane::Request(Id::from_json(&call["id"].to_string()).unwrap())
    }

    /// The next message that the server got.
    fn sent(&mut self, method: &str) -> Value {
        assert!(!self.to_server.is_empty(), "expected {method}, got nothing");
        let next = self.to_server.remove(0);
        assert_eq!(next["method"], method, "{next}");
        next
    }

    /// All that the client got since it was last asked.
    fn got(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.to_client)
    }
}

#[test]
fn a_client_that_set_no_level_gets_what_the_server_logs_of_its_own_accord() {
    let mut rig = Rig::new();
    let lane = rig.call();
    let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "debug", "data": 1 } });
    rig.server_says(lane.clone(), &log);
    assert_eq!(rig.got(), [log]);
    assert!(rig.to_server.is_empty(), "nobody set a level: {:?}", rig.to_server);

    rig.client_says(
        &json!({ "jsonrpc": "2.0", "id": 8, "method": "logging/setLevel", "params": { "level": "error" } }),
    );
    assert_eq!(rig.got(), [json!({ "jsonrpc": "2.0", "id": 8, "result": {} })]);
    rig.client_says(&json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "t" } }));
    assert_eq!(rig.sent("logging/setLevel")["params"]["level"], "debug", "the first call still wants everything");
}

#[test]
fn an_elicitation_out_of_band_keeps_its_id_until_its_end() {
    let mut rig = Rig::new();
    let lane = rig.call();
    let page = json!({ "mode": "url", "message": "Go", "url": "https://a.example/", "elicitationId": "e1" });
    let complete = |id: &str| json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": { "elicitationId": id } });
    rig.server_says(
        lane.clone(),
        &json!({ "jsonrpc": "2.0", "id": 71, "method": "elicitation/create", "params": page }),
    );
    let [question] = &rig.got()[..] else { panic!("expected one question") };
    assert_eq!((&question["method"], &question["params"]), (&json!("elicitation/create"), &page));

    // It may end before the client has answered, and after.
    rig.server_says(Lane::Unsorted, &complete("e1"));
    assert!(rig.got().is_empty(), "the call is not with the server's side now");
    rig.client_says(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } }));
    assert_eq!(rig.to_server, [json!({ "jsonrpc": "2.0", "id": 71, "result": { "action": "accept" } })]);
    assert_eq!(rig.got(), [complete("e1")]);
    rig.server_says(Lane::Unsorted, &complete("e1"));
    assert_eq!(rig.got(), [complete("e1")]);
    rig.server_says(Lane::Unsorted, &complete("somebody else's"));
    assert!(rig.got().is_empty());

    let Lane::Request(id) = lane else { unreachable!() };
    let id: Value = serde_json::from_str(id.as_json()).unwrap();
    rig.server_says(Lane::Unsorted, &json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } }));
    assert_eq!(rig.got(), [json!({ "jsonrpc": "2.0", "id": 7, "result": { "content": [] } })]);
}

#[test]
fn a_session_client_gets_the_error_that_names_the_pages_to_open() {
    let mut rig = Rig::new();
    let Lane::Request(id) = rig.call() else { unreachable!() };
    let id: Value = serde_json::from_str(id.as_json()).unwrap();
    let page = json!({ "mode": "url", "message": "Go", "url": "https://a.example/", "elicitationId": "e1" });
    let error = json!({ "code": -32042, "message": "open it", "data": { "elicitations": [page] } });
    rig.server_says(Lane::Unsorted, &json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    assert_eq!(rig.got(), [json!({ "jsonrpc": "2.0", "id": 7, "error": error })]);
}
