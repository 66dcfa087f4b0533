//! Drives the reference server over an in-memory link, as a client would.

mod asking;
mod calls;
mod eras;
mod faults;
mod fixtures;
mod listening;
mod lists;
mod rounds;
mod stateless;

use std::collections::HashMap;
use std::time::Duration;

use mcpwire_proto::{Id, Lane, Message, Packet};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Shared, serve};
use crate::link::{Event, Link};
use crate::schema;

/// Longer than any test takes; a server that does not answer fails the test instead of hanging it.
const PATIENCE: Duration = Duration::from_secs(20);

const SESSION: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";

/// The parameters with what every request of the stateless era says, by a client that offers everything.
fn modern(params: Value) -> Value {
    modern_as(json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": {} }), params)
}

fn modern_as(capabilities: Value, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(STATELESS);
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}

/// A client that insists on knowing everything that arrives, and that it is what the schema of the version allows.
struct Client {
    link: Link,
    server: JoinHandle<()>,
    last_id: u64,
    /// The version of the session.
    version: String,
    /// What was asked under which id, and in which version.
    asked: HashMap<Id, (String, String)>,
}

impl Client {
    /// A client that has not sent `initialize`.
    fn silent(shared: &Shared) -> Client {
        let (link, port) = Link::pair();
        let server = tokio::spawn(serve(port, shared.clone()));
        Client { link, server, last_id: 0, version: SESSION.to_owned(), asked: HashMap::new() }
    }

    async fn open(shared: &Shared) -> Client {
        let all = json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": {} });
        Client::open_as(shared, SESSION, all).await
    }

    async fn open_as(shared: &Shared, version: &str, capabilities: Value) -> Client {
        let mut client = Client::silent(shared);
        client.initialize(version, capabilities).await;
        client
    }

    async fn initialize(&mut self, version: &str, capabilities: Value) {
        self.version = version.to_owned();
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
        let result = self.request("initialize", params).await;
        assert!(result["protocolVersion"].is_string(), "{result}");
        self.notify("notifications/initialized", json!({})).await;
    }

    async fn send(&mut self, message: Message) {
        if let (Some(id), Some(method)) = (message.id(), message.method()) {
            let says = String::from_utf8_lossy(message.as_bytes()).contains("io.modelcontextprotocol/");
            let stateless = says || ["server/discover", "subscriptions/listen"].contains(&&**method);
            let version = if stateless { STATELESS } else { &self.version };
            self.asked.insert(id.clone(), (method.to_string(), version.to_owned()));
        }
        self.link.tx.send(message.into()).await.unwrap();
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.send(Message::notification(method, Some(&params.to_string()))).await;
    }

    /// Sends a request without waiting for its answer.
    async fn start(&mut self, method: &str, params: Value) -> Id {
        self.last_id += 1;
        let id = Id::from(self.last_id);
        self.send(Message::request(&id, method, Some(&params.to_string()))).await;
        id
    }

    async fn start_call(&mut self, tool: &str, arguments: Value) -> Id {
        self.start("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// The next message, which must ride on that lane.
    async fn next(&mut self, lane: &Lane) -> Value {
        let event = timeout(PATIENCE, self.link.rx.recv()).await.expect("a message in time").expect("a session");
        let Event::Packet(packet) = event else { panic!("{event:?}") };
        let text = packet.message.as_bytes();
        assert_eq!(&packet.lane, lane, "{}", String::from_utf8_lossy(text));
        self.check(&packet)
    }

    /// A message that fits the schema of the version in which its stream was opened.
    fn check(&self, packet: &Packet) -> Value {
        let message = serde_json::from_slice(packet.message.as_bytes()).unwrap();
        let (method, version) = match &packet.lane {
            Lane::Request(id) => self.asked.get(id).map(|(method, version)| (Some(&**method), &**version)).unwrap(),
            _ => (None, &*self.version),
        };
        schema::assert_message(version, schema::Side::Server, &message, method);
        message
    }

    /// The next message, which must belong to that request.
    async fn next_of(&mut self, id: &Id) -> Value {
        self.next(&Lane::Request(id.clone())).await
    }

    /// The answer to a request, which must be the next message.
    async fn answer(&mut self, id: &Id) -> Value {
        let message = self.next_of(id).await;
        assert_eq!(message["id"].to_string(), id.as_json(), "{message}");
        assert!(message.get("method").is_none(), "{message}");
        message
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        let answer = self.answer(&id).await;
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// The error that answers a request.
    async fn error(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        let answer = self.answer(&id).await;
        answer.get("error").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    async fn refusal(&mut self, method: &str, params: Value) -> (i64, String) {
        let error = self.error(method, params).await;
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Calls a tool that answers one text.
    async fn say(&mut self, tool: &str, arguments: Value) -> String {
        text_of(&self.call(tool, arguments).await)
    }

    /// Answers the server's request, which must be the next message of that call; gives its parameters.
    async fn reply(&mut self, call: &Id, method: &str, result: Value) -> Value {
        let request = self.next_of(call).await;
        assert_eq!(request["method"], method, "{request}");
        let id = Id::from_json(&request["id"].to_string()).unwrap();
        self.send(Message::result(&id, &result.to_string())).await;
        request["params"].clone()
    }

    /// Closes the session; nothing may be left to read, and the server must end.
    async fn close(mut self) {
        drop(self.link.tx);
        let left = timeout(PATIENCE, self.link.rx.recv()).await.expect("an end in time");
        assert!(left.is_none(), "left unread: {left:?}");
        timeout(PATIENCE, self.server).await.expect("an end in time").expect("no panic");
    }
}

fn text_of(result: &Value) -> String {
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

fn failed(result: &Value) -> bool {
    result["isError"] == true
}
