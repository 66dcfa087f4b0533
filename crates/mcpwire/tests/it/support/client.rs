//! An MCP client on a link, which forgets nothing: what no test takes from it makes the test fail.

use std::collections::VecDeque;

use mcpwire::link::{Event, Link};
use mcpwire_proto::meta::key;
use mcpwire_proto::version::V2026_07_28;
use mcpwire_proto::{Message, Packet};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::within;

pub struct Client {
    link: Link,
    goodbye: JoinHandle<()>,
    /// What has come and was not asked for yet, oldest first.
    inbox: VecDeque<Value>,
    next_id: u64,
    /// What it says of itself with every request, if it is of the stateless era.
    declares: Option<Value>,
}

/// What came with the stateless era: clients of older versions may stumble over it.
const NEW_FIELDS: [&str; 4] = ["resultType", "ttlMs", "cacheScope", "inputRequests"];

impl Client {
    pub fn new((link, goodbye): (Link, JoinHandle<()>)) -> Client {
        Client { link, goodbye, inbox: VecDeque::new(), next_id: 0, declares: None }
    }

    /// A client of 2026-07-28, which can be asked for nothing until it declares so.
    pub fn stateless(connection: (Link, JoinHandle<()>)) -> Client {
        let mut client = Client::new(connection);
        client.declares = Some(json!({
            key::PROTOCOL_VERSION: V2026_07_28,
            key::CLIENT_INFO: {"name": "table", "version": "1"},
            key::CLIENT_CAPABILITIES: {},
        }));
        client
    }

    /// Says something else of itself from now on; `null` is not said at all.
    pub fn declare(&mut self, key: &str, value: Value) {
        let declares = self.declares.as_mut().and_then(Value::as_object_mut).expect("it is of the stateless era");
        match value {
            Value::Null => drop(declares.remove(key)),
            value => drop(declares.insert(key.to_owned(), value)),
        }
    }

    /// Opens a session, which must be of the version that is asked for.
    pub async fn open(connection: (Link, JoinHandle<()>), version: &str) -> Client {
        let mut client = Client::new(connection);
        let id = client.initialize(version).await;
        let result = client.result(id).await;
        assert_eq!(result["protocolVersion"], version);
        client.notify("notifications/initialized", json!({})).await;
        client
    }

    pub async fn initialize(&mut self, version: &str) -> u64 {
        let mut capabilities = json!({"sampling": {}, "roots": {"listChanged": true}});
        if version >= "2025-06-18" {
            capabilities["elicitation"] = json!({});
        }
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "table", "version": "1"},
        });
        self.request("initialize", params).await
    }

    /// Sends a request and gives its id. All clients count from 1.
    pub async fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.next_id += 1;
        for (key, value) in self.declares.iter().filter_map(Value::as_object).flatten() {
            params["_meta"][key] = value.clone();
        }
        self.send(json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})).await;
        self.next_id
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Answers a question of the server's.
    pub async fn answer(&mut self, question: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
    }

    async fn send(&mut self, message: Value) {
        let message = Message::parse(message.to_string().into()).expect("we write sound messages");
        let packet = Packet::from(message);
        within("the front to take a message", self.link.tx.send(packet)).await.expect("the front is there");
    }

    /// Starts a tool call and gives its id.
    pub async fn start(&mut self, tool: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Starts a tool call that reports progress under this token.
    pub async fn start_with_token(&mut self, tool: &str, arguments: Value, token: &Value) -> u64 {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        self.request("tools/call", params).await
    }

    /// Calls a tool, which must succeed, and gives the text of its answer.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> String {
        let id = self.start(tool, arguments).await;
        self.said(id).await
    }

    /// What the tool `info` tells.
    pub async fn info(&mut self) -> Value {
        serde_json::from_str(&self.call("info", json!({})).await).expect("info is JSON")
    }

    /// The text that a tool call is answered with.
    pub async fn said(&mut self, id: u64) -> String {
        let result = self.result(id).await;
        assert_ne!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("not a text: {result}")).to_owned()
    }

    pub async fn result(&mut self, id: u64) -> Value {
        let mut answer = self.response(id).await;
        assert!(answer.get("error").is_none(), "request {id} was answered with {answer}");
        assert_ne!(answer["result"]["resultType"], "input_required", "{answer}");
        answer["result"].take()
    }

    /// What is asked before a request is answered, in the stateless era.
    pub async fn input_required(&mut self, id: u64) -> Value {
        let mut answer = self.response(id).await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        answer["result"].take()
    }

    /// Sends a request, answers what is asked before it is answered, and gives the result with the number of rounds.
    pub async fn ask(&mut self, method: &str, params: Value, answer: impl Fn(&Value) -> Value) -> (Value, usize) {
        let mut round = params.clone();
        for rounds in 0.. {
            let id = self.request(method, round).await;
            let mut told = self.response(id).await;
            let mut told = told["result"].take();
            if told["resultType"] != "input_required" {
                return (told, rounds);
            }
            round = params.clone();
            for (key, question) in told["inputRequests"].as_object().into_iter().flatten() {
                round["inputResponses"][key] = answer(question);
            }
            if !told["requestState"].is_null() {
                round["requestState"] = told["requestState"].take();
            }
        }
        unreachable!("there are no more numbers")
    }

    /// The error that a request is answered with.
    pub async fn refusal(&mut self, id: u64) -> Value {
        let mut answer = self.response(id).await;
        assert!(answer.get("error").is_some(), "expected an error, came {answer}");
        answer["error"].take()
    }

    /// The code of the error that a request is answered with.
    pub async fn code(&mut self, id: u64) -> i64 {
        self.refusal(id).await["code"].as_i64().expect("a code")
    }

    /// The message of the error that a request is answered with.
    pub async fn error(&mut self, id: u64) -> String {
        let answer = self.response(id).await;
        let text = answer["error"]["message"].as_str();
        text.unwrap_or_else(|| panic!("expected an error, came {answer}")).to_owned()
    }

    async fn response(&mut self, id: u64) -> Value {
        self.take(&format!("the answer to request {id}"), |m| m["id"] == id && m.get("method").is_none()).await
    }

    /// The next question or notification of this method.
    pub async fn expect(&mut self, method: &str) -> Value {
        self.take(method, |message| message["method"] == method).await
    }

    /// The oldest message that fits. Others are kept, in their order.
    pub async fn take(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(message) = self.inbox.iter().position(&fits).and_then(|at| self.inbox.remove(at)) {
            return message;
        }
        loop {
            let message = match tokio::time::timeout(super::LIMIT, self.receive()).await {
                Ok(message) => message.unwrap_or_else(|| panic!("the front is gone before {what} came")),
                Err(_) => panic!("waited for {what}; unread: {}", self.unread()),
            };
            if fits(&message) {
                return message;
            }
            self.inbox.push_back(message);
        }
    }

    /// The next message, whatever it is.
    pub async fn next(&mut self) -> Value {
        self.take("a message", |_| true).await
    }

    async fn receive(&mut self) -> Option<Value> {
        match self.link.rx.recv().await? {
            Event::Packet(packet) => {
                let message = serde_json::from_slice(packet.message.as_bytes()).expect("messages are JSON");
                self.assert_of_its_era(&message);
                Some(message)
            }
            other => panic!("the front failed: {other:?}"),
        }
    }

    fn assert_of_its_era(&self, message: &Value) {
        let result = message.get("result");
        if self.declares.is_some() {
            assert!(message.get("method").is_none() || message.get("id").is_none(), "asked by a server: {message}");
            assert!(result.is_none_or(|result| result["resultType"].is_string()), "no type: {message}");
        } else {
            let new = |result: &Value| NEW_FIELDS.into_iter().find(|field| result.get(field).is_some());
            assert_eq!(result.and_then(new), None, "a field of a newer version: {message}");
            let names_server = result.is_some_and(|result| result["_meta"].get(key::SERVER_INFO).is_some());
            assert!(!names_server, "a result that names its server: {message}");
        }
    }

    /// Asserts that nothing has come that was not asked for.
    pub async fn assert_quiet(&mut self) {
        if self.declares.is_some() {
            let id = self.request("server/discover", json!({})).await;
            self.result(id).await;
        } else {
            let id = self.request("ping", json!({})).await;
            assert_eq!(self.result(id).await, json!({}));
        }
        assert!(self.inbox.is_empty(), "unexpected: {}", self.unread());
    }

    fn unread(&self) -> String {
        let shown = |message: &Value| message.to_string().chars().take(300).collect::<String>();
        self.inbox.iter().map(shown).collect::<Vec<_>>().join("\n")
    }

    /// Ends the session; nothing may be left unread.
    pub async fn close(self) {
        let Client { link, goodbye, inbox, .. } = self;
        let Link { tx, mut rx } = link;
        assert!(inbox.is_empty(), "unexpected at the end: {inbox:?}");
        drop(tx);
        while let Some(event) = within("the front to end", rx.recv()).await {
            // Our own transport may tell of exchanges that it ends: of streams that lived on after their answer.
            assert!(matches!(event, Event::Failed { .. }), "unexpected at the end: {event:?}");
        }
        within("the connection to be put away", goodbye).await.expect("it ends by itself");
    }
}
