//! `mcpwire expose` where other bridges fail: each test is named after what must not go wrong.

mod ends;
mod guards;
mod recovery;
mod sessions;
mod wire;

use serde_json::{Value, json};

use crate::support::ask::{Reply, ask};
use crate::support::client::Client;
use crate::support::process::Mcpwire;
use crate::support::{proc, reach};

const VERSION: &str = "2025-11-25";
/// Longer than any test: a call that is to be under way.
const AGES: u64 = 600_000;
/// The reference server as a program on stdio.
const REFERENCE: [&str; 4] = ["--", reach::MCPWIRE, "reference", "--stdio"];

/// `mcpwire expose` on a port of its own.
struct Exposed {
    process: Mcpwire,
    url: String,
    /// As in 127.0.0.1:1234.
    address: String,
}

impl Exposed {
    async fn start(options: &[&str], target: &[&str]) -> Exposed {
        let front = ["expose", "--http", "127.0.0.1:0", "--print-url"];
        let mut process = Mcpwire::start(&[&front, options, target].concat());
        let url = process.line().await.expect("the URL");
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        Exposed { process, url, address }
    }

    /// A client of Streamable HTTP.
    async fn client(&self) -> Client {
        Client::open(reach::http(&self.url), VERSION).await
    }

    /// POSTs by hand.
    async fn post(&self, headers: &[(&str, &str)], body: &str) -> Reply {
        let usual = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        ask(&self.address, "POST", "/mcp", &[&usual, headers].concat(), body).await
    }

    /// Opens a session by hand and gives its id. No connection stays.
    async fn session(&self) -> String {
        let reply = self.post(&[], &initialize()).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.header("mcp-session-id").expect("a session").to_owned()
    }

    /// What /health tells: the status, and its one target.
    async fn health(&self) -> (u16, Value) {
        let reply = ask(&self.address, "GET", "/health", &[], "").await;
        (reply.status, reply.json()["targets"][0].take())
    }

    /// Waits until the target is in this state, and gives the rest of what /health tells.
    async fn healthy(&self, status: u16, state: &str) -> Value {
        crate::support::within(&format!("health {state}"), async {
            loop {
                let (is, target) = self.health().await;
                if is == status && target["state"] == state {
                    return target;
                }
            }
        })
        .await
    }

    fn children(&self) -> Vec<u32> {
        proc::children(self.process.id())
    }

    /// Stops it; it must go in peace.
    async fn stop(mut self) {
        self.process.signal("TERM");
        assert_eq!(self.process.wait().await.code(), Some(0), "{}", self.process.stderr());
    }
}

/// The text of an `initialize` request.
fn initialize() -> String {
    let params =
        json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "sharp", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

/// The text of a tool call that reports progress under this token.
fn call(id: u64, tool: &str, arguments: Value, token: &str) -> String {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}
