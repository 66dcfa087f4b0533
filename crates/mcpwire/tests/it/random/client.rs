//! A client that writes what its script says, and checks every line that it gets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use mcpwire_proto::meta::key;
use serde_json::{Value, json};
use tokio::io::{BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::time::timeout;

use super::plan::{Plan, Script, Step, Way};
use super::world::World;
use crate::support::process::Mcpwire;

/// Longer than every limit of the bridge: what is not answered by then never is.
const DEADLINE: Duration = Duration::from_secs(60);
const OPEN: &str = "open";

/// What was seen, over all conversations.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals {
    pub conversations: u64,
    pub answered: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub faults: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, more: Totals) {
        self.conversations += more.conversations;
        self.answered += more.answered;
        self.failed += more.failed;
        self.cancelled += more.cancelled;
        self.faults += more.faults;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Totals { conversations, answered, failed, cancelled, faults } = self;
        write!(
            f,
            "{conversations} conversations, {faults} faults, {answered} requests answered ({failed} with an error), "
        )?;
        write!(f, "{cancelled} cancelled")
    }
}

pub struct Client {
    process: Mcpwire,
    lines: Lines<BufReader<ChildStdout>>,
    script: Script,
    /// What all its names begin with.
    name: String,
    stateless: bool,
    /// Whether calls may fail, because something goes wrong.
    troubled: bool,
    /// Whether nobody can say whose question it is when the server asks.
    shared: bool,
    prefixes: &'static [&'static str],
    version: &'static str,
    next: u64,
    pending: BTreeMap<String, Request>,
    done: BTreeSet<String>,
    totals: Totals,
    /// Both directions, for the report of a failure.
    transcript: String,
}

#[derive(Debug)]
struct Request {
    step: Step,
    params: Value,
    cancelled: bool,
}

impl Client {
    pub fn start(plan: &Plan, script: &Script, world: &World, index: usize) -> Client {
        let args = world.connect(plan);
        let mut process = Mcpwire::start(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let lines = process.take_stdout();
        Client {
            process,
            lines,
            script: script.clone(),
            name: format!("seed {} client {index}", plan.seed),
            stateless: plan.stateless(),
            troubled: plan.troubled(),
            shared: plan.way == Way::Shared,
            prefixes: world.prefixes(),
            version: plan.version,
            next: 0,
            pending: BTreeMap::new(),
            done: BTreeSet::new(),
            totals: Totals::default(),
            transcript: format!("{plan:?}\n{args:?}\n"),
        }
    }

    /// The number of its `mcpwire`.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Writes all of a turn at once; the first begins with the handshake, and does not wait for its answer.
    pub async fn turn(&mut self, turn: usize) {
        let (steps, waits) = self.script.turns[turn].clone();
        let mut text = String::new();
        if turn == 0 && !self.stateless {
            self.open(&mut text);
        }
        for step in steps {
            self.act(step, &mut text);
        }
        self.write(text).await;
        if waits {
            self.settle().await;
        }
    }

    fn open(&mut self, text: &mut String) {
        let params = json!({
            "protocolVersion": self.version,
            "capabilities": if self.version >= "2025-06-18" { json!({"elicitation": {}}) } else { json!({}) },
            "clientInfo": {"name": self.name, "version": "1"},
        });
        let request = Request { step: Step::List, params: params.clone(), cancelled: false };
        self.pending.insert(OPEN.to_owned(), request);
        *text += &format!("{}\n", json!({"jsonrpc": "2.0", "id": OPEN, "method": "initialize", "params": params}));
        *text += "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    }

    fn act(&mut self, step: Step, text: &mut String) {
        self.next += 1;
        let nonce = format!("{}: {}", self.name, self.next);
        let prefix = self.prefixes[self.next as usize % self.prefixes.len()];
        let call = |tool: &str, arguments: Value| {
            ("tools/call", json!({"name": format!("{prefix}{tool}"), "arguments": arguments}))
        };
        let (method, params) = match step {
            Step::Count => call("count", json!({"name": nonce})),
            Step::Echo => call("echo", json!({"message": nonce})),
            Step::Slow(ms) => {
                let (method, mut params) = call("slow", json!({"ms": ms}));
                params["_meta"]["progressToken"] = json!(nonce);
                (method, params)
            }
            Step::Ask => call("test_elicitation", json!({"message": nonce})),
            Step::List => ("tools/list", json!({})),
            Step::Read => ("resources/read", json!({"uri": "test://static-text"})),
            Step::Unknown => ("no/such-method", json!({"nonce": nonce})),
            Step::Cancel => return self.cancel(text),
            Step::Garbage => return *text += "{\"jsonrpc\": \"2.0\", \n",
        };
        self.request(step, method, params, text);
    }

    fn request(&mut self, step: Step, method: &str, mut params: Value, text: &mut String) {
        if self.stateless {
            params["_meta"][key::PROTOCOL_VERSION] = json!(self.version);
            params["_meta"][key::CLIENT_INFO] = json!({"name": self.name, "version": "1"});
            params["_meta"][key::CLIENT_CAPABILITIES] = json!({"elicitation": {}});
        }
        let id = self.pending.len() + self.done.len() + 1;
        *text += &format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.pending.insert(id.to_string(), Request { step, params, cancelled: false });
    }

    fn cancel(&mut self, text: &mut String) {
        let waiting = |(id, request): &(&String, &mut Request)| !request.cancelled && *id != OPEN;
        let Some((id, request)) = self.pending.iter_mut().find(waiting) else { return };
        request.cancelled = true;
        self.totals.cancelled += 1;
        let id: u64 = id.parse().expect("ids of requests are numbers");
        let params = json!({"requestId": id, "reason": "enough"});
        *text += &format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }

    async fn write(&mut self, text: String) {
        for line in text.lines() {
            self.transcript += &format!("> {line}\n");
        }
        if !text.is_empty() {
            self.process.send_text(text.trim_end()).await;
        }
    }

    /// Waits until every request has its answer.
    async fn settle(&mut self) {
        while self.pending.values().any(|request| !request.cancelled) {
            match timeout(DEADLINE, self.lines.next_line()).await {
                Ok(Ok(Some(line))) => self.got(&line).await,
                Ok(end) => self.fail(&format!("stdout ended: {end:?}")),
                Err(_) => self.fail("not answered"),
            }
        }
    }

    /// Closes its side and reads to the end: nothing may be owed, and nothing doubled.
    pub async fn finish(mut self) -> Totals {
        if !self.script.leaves_early {
            self.settle().await;
        }
        self.process.close_stdin();
        loop {
            match timeout(DEADLINE, self.lines.next_line()).await {
                Ok(Ok(Some(line))) => self.got(&line).await,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => self.fail(&format!("stdout: {error}")),
                Err(_) => self.fail("stdout stays open"),
            }
        }
        if self.pending.values().any(|request| !request.cancelled) {
            self.fail("not answered at the end");
        }
        let code = self.process.wait().await.code();
        if code != Some(0) {
            self.fail(&format!("exit code {code:?}"));
        }
        self.totals
    }

    async fn got(&mut self, line: &str) {
        self.transcript += &format!("< {}\n", line.chars().take(400).collect::<String>());
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(error) => self.fail(&format!("not JSON: {error}")),
        };
        match (message["method"].as_str(), &message["id"]) {
            (Some(method), Value::Null) => self.notified(method, &message),
            (Some(method), id) => self.asked(method, id.clone()).await,
            (None, Value::Null) => {} // the answer to garbage
            (None, id) => self.answered(id.as_str().map_or_else(|| id.to_string(), str::to_owned), &message).await,
        }
    }

    fn notified(&self, method: &str, message: &Value) {
        let token = message["params"]["progressToken"].as_str();
        if method == "notifications/progress" && !token.is_some_and(|token| token.starts_with(&self.name)) {
            self.fail("progress of somebody else");
        }
    }

    async fn asked(&mut self, method: &str, id: Value) {
        let result = match method {
            "ping" => json!({}),
            "elicitation/create" if !self.stateless => {
                json!({"action": "accept", "content": {"username": self.name, "email": "user@example.com"}})
            }
            _ => self.fail(&format!("an unexpected request: {method}")),
        };
        self.write(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()).await;
    }

    async fn answered(&mut self, id: String, message: &Value) {
        let Some(request) = self.pending.remove(&id) else {
            let known = self.done.contains(&id);
            self.fail(&format!("{id} was {}", if known { "answered twice" } else { "never asked" }));
        };
        self.done.insert(id);
        self.totals.answered += 1;
        if message.get("error").is_some() {
            self.totals.failed += 1;
            // With a shared server nobody can tell whose question it is.
            let unclear = self.shared && request.step == Step::Ask;
            if !(self.troubled || request.cancelled || unclear || request.step == Step::Unknown) {
                self.fail("an error, though nothing went wrong");
            }
            return;
        }
        let result = &message["result"];
        if result["resultType"] == "input_required" {
            return self.come_again(request, result).await;
        }
        self.check(&request, result);
    }

    /// Repeats a request with the answers that the server wants first.
    async fn come_again(&mut self, request: Request, result: &Value) {
        let mut params = request.params;
        for key in result["inputRequests"].as_object().into_iter().flat_map(|questions| questions.keys()) {
            let content = json!({"username": self.name, "email": "user@example.com"});
            params["inputResponses"][key] = json!({"action": "accept", "content": content});
        }
        if !result["requestState"].is_null() {
            params["requestState"] = result["requestState"].clone();
        }
        let mut text = String::new();
        self.request(request.step, "tools/call", params, &mut text);
        self.write(text).await;
    }

    /// The answer must be the one to this request.
    fn check(&self, Request { step, params, .. }: &Request, result: &Value) {
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let arguments = &params["arguments"];
        let right = match step {
            Step::Count => {
                let counted: Value = serde_json::from_str(text).unwrap_or_default();
                counted["name"] == arguments["name"] && counted["value"] == 1
            }
            Step::Echo => arguments["message"] == text,
            Step::Ask => self.shared || self.troubled || text.contains(&self.name),
            Step::Unknown => false,
            _ => result["isError"] != true,
        };
        if !right {
            self.fail(&format!("the answer is not the one to {params}"));
        }
    }

    fn fail(&self, why: &str) -> ! {
        let waiting: Vec<_> = self.pending.iter().filter(|(_, request)| !request.cancelled).collect();
        let stderr = self.process.stderr();
        panic!("{}: {why}\nwaiting: {waiting:?}\n{}\nstderr:\n{stderr}", self.name, self.transcript);
    }
}
