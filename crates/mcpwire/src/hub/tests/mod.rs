//! Drives hubs over servers in this process, as clients of the stateless era do.

mod calls;
mod lists;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpwire_proto::conversation::Config;
use mcpwire_proto::{Id, Kind, Lane, Message, Packet, method};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::bridge::Reach;
use crate::link::Event;
use crate::reference::{self, Eras, Settings, Shared};

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A reference server in this process, and how to reach it.
struct Upstream {
    shared: Shared,
    /// The connections that were made, and those that are still there.
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Upstream {
    fn new(eras: Eras) -> Upstream {
        Upstream::with(Settings { eras, ..Settings::default() })
    }

    fn with(settings: Settings) -> Upstream {
        Upstream { shared: Shared::new(settings), tasks: Arc::default() }
    }

    fn spec(&self, name: &str) -> Spec {
        let (shared, tasks) = (self.shared.clone(), Arc::clone(&self.tasks));
        let reach = Reach::new(Arc::new(move || {
            let (link, port) = Link::pair();
            tasks.lock().expect("whole").push(tokio::spawn(reference::serve(port, shared.clone())));
            Ok((link, None))
        }));
        Spec::new(name, reach, Config { sorted: true, ..Config::default() })
    }

    fn connections(&self) -> usize {
        self.tasks.lock().expect("whole").len()
    }

    /// Whether every connection to it has ended.
    async fn is_let_go(&self) -> bool {
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("whole"));
        let all = async {
            for task in tasks {
                task.await.expect("it does not panic");
            }
        };
        timeout(PATIENCE, all).await.is_ok()
    }
}

fn open(specs: Vec<Spec>) -> (Hub, JoinHandle<()>) {
    Hub::open(specs, Options::default())
}

/// A client of the stateless era.
struct Client {
    link: Link,
    name: String,
    next: u64,
    /// What came and was not asked for yet.
    unread: VecDeque<Packet>,
}

impl Client {
    fn new(hub: &Hub, name: &str) -> Client {
        Client { link: hub.link(), name: name.to_owned(), next: 0, unread: VecDeque::new() }
    }

    fn sign(&self, mut params: Value) -> Value {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": self.name, "version": "1" });
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": {} });
        params
    }

    async fn send(&mut self, method: &str, params: Value) -> Id {
        self.next += 1;
        let id = Id::from(self.next);
        let message = Message::request(&id, method, Some(&self.sign(params).to_string()));
        self.link.tx.send(message.into()).await.expect("the hub is there");
        id
    }

    async fn notify(&self, method: &str, params: Value) {
        let message = Message::notification(method, Some(&params.to_string()));
        self.link.tx.send(message.into()).await.expect("the hub is there");
    }

    async fn receive(&mut self) -> Packet {
        match timeout(PATIENCE, self.link.rx.recv()).await.expect("in time").expect("the hub is there") {
            Event::Packet(packet) => packet,
            other => panic!("{other:?}"),
        }
    }

    /// The next packet that fits; others are kept.
    async fn find(&mut self, fits: impl Fn(&Packet) -> bool) -> Packet {
        if let Some(at) = self.unread.iter().position(&fits) {
            return self.unread.remove(at).expect("there");
        }
        loop {
            let packet = self.receive().await;
            if fits(&packet) {
                return packet;
            }
            self.unread.push_back(packet);
        }
    }

    async fn answer(&mut self, id: &Id) -> Result<Value, Value> {
        let packet = self.find(|packet| packet.message.is_response() && packet.message.id() == Some(id)).await;
        assert_eq!(packet.lane, Lane::Request(id.clone()));
        let payload = serde_json::from_str(packet.message.payload().expect("a payload")).expect("JSON");
        match packet.message.kind() {
            Kind::Result { .. } => Ok(payload),
            _ => Err(payload),
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.answer(&id).await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        self.ask(method::TOOLS_CALL, json!({ "name": tool, "arguments": arguments })).await
    }

    async fn say(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await.expect("a result");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    async fn names(&mut self, list: &str, member: &str, key: &str) -> Vec<String> {
        let listed = self.ask(list, json!({})).await.expect("a list");
        let items = listed[member].as_array().expect("an array");
        items.iter().map(|item| item[key].as_str().expect("a key").to_owned()).collect()
    }

    async fn tools(&mut self) -> Vec<String> {
        self.names(method::TOOLS_LIST, "tools", "name").await
    }

    /// Listens, and waits until that is so.
    async fn listen(&mut self, wanted: Value) -> (Id, Value) {
        let id = self.send(method::LISTEN, json!({ "notifications": wanted })).await;
        let packet = self.told(&id, method::ACKNOWLEDGED).await;
        (id, packet["notifications"].clone())
    }

    /// The next notification of a request; gives its parameters.
    async fn told(&mut self, id: &Id, method: &str) -> Value {
        let lane = Lane::Request(id.clone());
        let packet = self.find(|packet| packet.message.is(method) && packet.lane == lane).await;
        serde_json::from_str(packet.message.payload().unwrap_or("{}")).expect("JSON")
    }

    /// Whether nothing but what is known has come.
    fn is_quiet(&mut self) -> bool {
        self.unread.is_empty() && self.link.rx.try_recv().is_err()
    }
}

/// Ends a hub, and sees to it that it is gone.
async fn end(hub: Hub, ended: JoinHandle<()>) {
    drop(hub);
    timeout(PATIENCE, ended).await.expect("it ends").expect("it does not panic");
}
