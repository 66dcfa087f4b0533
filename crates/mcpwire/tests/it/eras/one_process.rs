//! Clients of both eras on one shared program of both eras, which must never see more than one opening.

use mcpwire_proto::meta::key;
use mcpwire_proto::version::{V2025_11_25, V2026_07_28};
use serde_json::{Value, json};

use crate::support::ask::{Reply, ask};
use crate::support::process::Mcpwire;
use crate::support::scratch::Scratch;

const MCPWIRE: &str = env!("CARGO_BIN_EXE_mcpwire");

/// A program of both eras that writes down what it gets, one file for each process, shared over HTTP.
struct Shared {
    expose: Mcpwire,
    address: String,
    scratch: Scratch,
}

impl Shared {
    async fn start(sleep: u32, era: &str) -> Shared {
        let scratch = Scratch::new();
        let script = format!(r#"sleep {sleep}; tee -a {}.$$ | exec "$0" "$@""#, scratch.file("seen"));
        let expose = ["expose", "--http", "127.0.0.1:0", "--print-url", "--share", "--", "sh", "-c", &script];
        let program = [MCPWIRE, "reference", "--stdio", "--era", era];
        let mut expose = Mcpwire::start(&[&expose[..], &program].concat());
        let url = expose.line().await.expect("a URL");
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        Shared { expose, address, scratch }
    }

    async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Reply {
        let accept = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        ask(&self.address, "POST", "/mcp", &[&accept[..], headers].concat(), &message.to_string()).await
    }

    /// The result of a tool, as a client of the stateless era gets it.
    async fn stateless_call(&self) -> Value {
        let meta = json!({key::PROTOCOL_VERSION: V2026_07_28, key::CLIENT_CAPABILITIES: {}});
        let params = json!({"name": "count", "arguments": {"name": "n"}, "_meta": meta});
        let headers = [("mcp-protocol-version", V2026_07_28), ("mcp-method", "tools/call"), ("mcp-name", "count")];
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = self.post(&headers, &call).await.json();
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"]["structuredContent"]["value"].clone()
    }

    /// The result of the same tool, as a client of the session era gets it.
    async fn session_call(&self) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": V2025_11_25, "capabilities": {}, "clientInfo": client});
        let opening = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let opened = self.post(&[], &opening).await;
        assert_eq!(opened.json()["result"]["protocolVersion"], V2025_11_25, "{}", opened.body);
        let session = opened.header("mcp-session-id").expect("a session").to_owned();
        let headers = [("mcp-session-id", &*session), ("mcp-protocol-version", V2025_11_25)];
        self.post(&headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let params = json!({"name": "count", "arguments": {"name": "n"}});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let answer = self.post(&headers, &call).await.json();
        assert!(answer["result"].is_object() && answer["result"].get("resultType").is_none(), "{answer}");
        answer["result"]["structuredContent"]["value"].clone()
    }

    /// Ends it; no process has seen both openings, unless it declines one, and one has served everybody.
    async fn finish(mut self, era: &str) {
        self.expose.signal("TERM");
        assert_eq!(self.expose.wait().await.code(), Some(0), "{}", self.expose.stderr());
        let mut used = 0;
        for file in std::fs::read_dir(self.scratch.path()).expect("a folder") {
            let seen = std::fs::read_to_string(file.expect("a file").path()).expect("text");
            let messages = seen.lines().map(|line| serde_json::from_str(line).expect("JSON"));
            let messages: Vec<Value> = messages.collect();
            let in_session = messages.iter().any(|message| message["method"] == "initialize");
            let stateless =
                messages.iter().any(|message| message["params"]["_meta"].get(key::PROTOCOL_VERSION).is_some());
            assert!(era != "both" || !(in_session && stateless), "{seen}");
            used += usize::from(messages.iter().any(|message| message["method"] == "tools/call"));
        }
        assert_eq!(used, 1, "one process serves all clients");
    }
}

#[tokio::test]
async fn a_shared_program_of_both_eras_is_used_in_the_era_of_its_first_client() {
    let shared = Shared::start(0, "both").await;
    assert_eq!((shared.session_call().await, shared.stateless_call().await), (json!(1), json!(2)));
    assert_eq!((shared.session_call().await, shared.stateless_call().await), (json!(3), json!(4)));
    shared.finish("both").await;
    let shared = Shared::start(0, "both").await;
    assert_eq!((shared.stateless_call().await, shared.session_call().await), (json!(1), json!(2)));
    assert_eq!((shared.stateless_call().await, shared.session_call().await), (json!(3), json!(4)));
    shared.finish("both").await;
}

async fn serve_many_at_once(era: &str) {
    let shared = Shared::start(4, era).await;
    let calls =
        tokio::join!(shared.stateless_call(), shared.session_call(), shared.stateless_call(), shared.session_call());
    let mut values = [calls.0, calls.1, calls.2, calls.3].map(|value| value.as_u64());
    values.sort_unstable();
    assert_eq!(values, [Some(1), Some(2), Some(3), Some(4)], "{era}");
    shared.finish(era).await;
}

/// The silence of the program is taken for a sign of the session era.
async fn serve_one_after_the_other(era: &str) {
    let shared = Shared::start(4, era).await;
    assert_eq!(shared.stateless_call().await, 1, "{era}");
    assert_eq!((shared.session_call().await, shared.stateless_call().await), (json!(2), json!(3)), "{era}");
    shared.finish(era).await;
}

#[tokio::test]
async fn a_slow_shared_program_never_sees_both_openings() {
    tokio::join!(serve_many_at_once("both"), serve_one_after_the_other("both"));
}

#[tokio::test]
async fn a_slow_shared_program_of_one_era_serves_clients_of_both() {
    tokio::join!(serve_many_at_once("session"), serve_one_after_the_other("session"));
    tokio::join!(serve_many_at_once("stateless"), serve_one_after_the_other("stateless"));
}
