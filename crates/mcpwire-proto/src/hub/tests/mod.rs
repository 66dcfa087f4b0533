//! The hub in virtual time, with clients and servers played by the tests.

mod apply;
mod apps;
mod extensions;
mod failures;
mod gate;
mod listening;
mod refreshing;
mod routing;
mod simulation;
mod unlisted;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::{Cause, meta};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

struct Rig {
    hub: Hub,
    now: Instant,
    to_clients: HashMap<Client, VecDeque<Packet>>,
    to_servers: HashMap<Server, VecDeque<Message>>,
    opened: Vec<Server>,
    closed: Vec<Server>,
    told: Vec<Server>,
}

fn spec(name: &str) -> Spec {
    Spec { name: name.into(), hash: "1".into(), ..Spec::default() }
}

fn cached(name: &str, tools: &[&str]) -> Spec {
    let mut catalogue = Catalogue::default();
    catalogue.describe(r#"{"capabilities":{"tools":{}}}"#);
    let item = |name: &&str| Item { key: (*name).into(), text: json!({ "name": name }).to_string() };
    catalogue.tools = tools.iter().map(item).collect();
    Spec { cached: Some(Arc::new(catalogue)), ..spec(name) }
}

impl Rig {
    fn new(specs: Vec<Spec>) -> (Rig, Vec<Server>) {
        Rig::with(Config::default(), specs)
    }

    fn with(config: Config, specs: Vec<Spec>) -> (Rig, Vec<Server>) {
        let now = Instant::now();
        let mut rig = Rig {
            hub: Hub::new(config, now),
            now,
            to_clients: HashMap::new(),
            to_servers: HashMap::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            told: Vec::new(),
        };
        let servers = rig.hub.handle_specs(specs, now);
        rig.pump();
        (rig, servers)
    }

    /// Servers that offer these tools have told so.
    fn live(servers: &[(&str, &[&str])]) -> (Rig, Vec<Server>) {
        let (mut rig, named) = Rig::new(servers.iter().map(|(name, _)| spec(name)).collect());
        rig.pass(Config::default().greet);
        for (server, (_, tools)) in named.iter().zip(servers) {
            rig.offer(*server, &json!({ "tools": {} }), tools);
        }
        (rig, named)
    }

    fn pump(&mut self) {
        while let Some(effect) = self.hub.poll_effect() {
            match effect {
                Effect::ToClient(client, packet) => self.to_clients.entry(client).or_default().push_back(packet),
                Effect::ToServer(server, message) => self.to_servers.entry(server).or_default().push_back(message),
                Effect::Open(server) => self.opened.push(server),
                Effect::Close(server) => self.closed.push(server),
                Effect::Told(server, _) => self.told.push(server),
            }
        }
    }

    /// Lets time pass, and every alarm ring when it is due.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.hub.poll_timeout().filter(|at| *at <= end) {
            assert!(at >= self.now || self.hub.poll_timeout() == Some(at), "alarms do not ring for ever");
            self.now = self.now.max(at);
            self.hub.handle_timeout(self.now);
            assert!(self.hub.poll_timeout().is_none_or(|next| next > self.now), "an alarm was seen to");
            self.pump();
        }
        self.now = end;
    }

    fn join(&mut self, number: u64) -> Client {
        self.hub.handle_join(Client(number));
        Client(number)
    }

    fn says(&mut self, client: Client, text: &str) {
        let message = Message::parse(text.to_owned().into()).expect("a message");
        self.hub.handle_client(client, message, self.now);
        self.pump();
    }

    fn asks(&mut self, client: Client, id: u64, method: &str, params: &str) {
        let comma = if params.is_empty() { "" } else { "," };
        self.says(
            client,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}{META}}}}}"#),
        );
    }

    fn calls(&mut self, client: Client, id: u64, tool: &str) {
        self.asks(client, id, method::TOOLS_CALL, &format!(r#""name":"{tool}""#));
    }

    fn server_says(&mut self, server: Server, message: Message) {
        self.hub.handle_server(server, Packet::new(Lane::Unsorted, message), self.now);
        self.pump();
    }

    /// What the server was last asked under that method.
    fn asked(&mut self, server: Server, method: &str) -> Message {
        self.was_asked(server, method).unwrap_or_else(|| panic!("{method} was not asked"))
    }

    fn was_asked(&mut self, server: Server, method: &str) -> Option<Message> {
        let queue = self.to_servers.entry(server).or_default();
        let at = queue.iter().position(|message| message.is(method))?;
        queue.remove(at)
    }

    /// Lists may be reused unless they say otherwise.
    fn answers(&mut self, server: Server, request: &Message, result: &Value) {
        let mut result = result.clone();
        if request.method().is_some_and(|method| Part::of(method).is_some()) && result.get("ttlMs").is_none() {
            result["ttlMs"] = json!(86_400_000);
            result["cacheScope"] = json!("public");
        }
        self.server_says(server, Message::result(request.id().expect("an id"), &result.to_string()));
    }

    /// Answers everything that the hub itself asks.
    fn offer(&mut self, server: Server, capabilities: &Value, tools: &[&str]) {
        let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
        self.offer_all(server, capabilities, &json!({ "tools": tools }));
    }

    fn offer_all(&mut self, server: Server, capabilities: &Value, lists: &Value) {
        loop {
            if let Some(asked) = self.was_asked(server, method::DISCOVER) {
                self.answers(server, &asked, &json!({ "capabilities": capabilities }));
                continue;
            }
            let listed = Part::ALL.into_iter().find_map(|part| Some((part, self.was_asked(server, part.method())?)));
            if let Some((part, asked)) = listed {
                let items = lists.get(part.member()).cloned().unwrap_or_else(|| json!([]));
                self.answers(server, &asked, &json!({ part.member(): items }));
                continue;
            }
            match self.was_asked(server, method::LISTEN) {
                Some(asked) => self.acknowledge(server, &asked),
                None => return,
            }
        }
    }

    fn acknowledge(&mut self, server: Server, listen: &Message) {
        let wanted: Value = serde_json::from_str(listen.payload().expect("params")).expect("JSON");
        let params = json!({ "notifications": wanted["notifications"] }).to_string();
        let told = Message::notification(method::ACKNOWLEDGED, Some(&params));
        self.server_says(server, crate::era::subscribed(&told, listen.id().expect("an id")));
    }

    /// What the client got next.
    fn got(&mut self, client: Client) -> Message {
        self.next(client).unwrap_or_else(|| panic!("{client:?} got nothing"))
    }

    fn next(&mut self, client: Client) -> Option<Message> {
        Some(self.to_clients.get_mut(&client)?.pop_front()?.message)
    }

    fn got_json(&mut self, client: Client) -> Value {
        let message = self.got(client);
        serde_json::from_slice(message.as_bytes()).expect("JSON")
    }

    /// The names of the tools that a client is told, if it is told at once.
    fn tools(&mut self, client: Client) -> Option<Vec<String>> {
        self.asks(client, 999, method::TOOLS_LIST, "");
        let Some(answer) = self.next(client) else {
            self.says(client, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":999}}"#);
            return None;
        };
        let answer: Value = serde_json::from_slice(answer.as_bytes()).expect("JSON");
        let tools = answer["result"]["tools"].as_array().expect("tools").iter();
        Some(tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect())
    }

    fn error(&mut self, client: Client, id: u64) -> String {
        let answer = self.got_json(client);
        assert_eq!(answer["id"], id, "{answer}");
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
