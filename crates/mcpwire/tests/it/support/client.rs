//! An MCP client on a link, which forgets nothing: what no test takes from it makes the test fail.

use std::collections::VecDeque;

use mcpwire::link::{Event, Link};
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
    /// Added to the parameters of every request: what a client of the stateless era says of itself.
    meta: Option<Value>,
}

impl Client {
    pub fn new((link, goodbye): (Link, JoinHandle<()>)) -> Client {
        Client { link, goodbye, inbox: VecDeque::new(), next_id: 0, meta: None }
    }

    /// A client of the stateless era, which needs no handshake.
    pub fn stateless(connection: (Link, JoinHandle<()>), version: &str) -> Client {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        Client { meta: Some(meta), ..Client::new(connection) }
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
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.next_id += 1;
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
        answer["result"].take()
    }

    /// The message of the error that a request is answered with.
    pub async fn error(&mut self, id: u64) -> String {
        let answer = self.response(id).await;
        let text = answer["error"]["message"].as_str();
        text.unwrap_or_else(|| panic!("expected an error, came {answer}")).to_owned()
    }

    /// The error that a request is answered with.
    pub async fn refusal(&mut self, id: u64) -> Value {
        let mut answer = self.response(id).await;
        assert!(answer.get("error").is_some(), "expected an error, came {answer}");
        answer["error"].take()
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
                Some(serde_json::from_slice(packet.message.as_bytes()).expect("messages are JSON"))
            }
            other => panic!("the front failed: {other:?}"),
        }
    }

    /// Asserts that nothing has come that was not asked for.
    pub async fn assert_quiet(&mut self) {
        let id = self.request("ping", json!({})).await;
        assert_eq!(self.result(id).await, json!({}));
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
