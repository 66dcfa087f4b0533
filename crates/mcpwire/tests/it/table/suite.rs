//! What must work whatever lies between client and server; each feature is one function.

use std::collections::{BTreeMap, BTreeSet};

use mcpwire_proto::version::V2026_07_28;
use serde_json::{Value, json};

use super::Case;
use super::rig::Rig;
use crate::support::client::Client;
use crate::support::rig::{Front, Speaks};
use crate::support::within;

pub const WATCHED: &str = "test://watched-resource";
/// Longer than any test: a call that is to be under way.
pub const AGES: u64 = 600_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    List,
    Call,
    Progress,
    Log,
    Cancel,
    Sampling,
    Elicitation,
    Roots,
    Subscribe,
    ListChanged,
    Large,
    InFlight,
    Killed,
}

impl Feature {
    pub(super) const ALL: [Feature; 13] = [
        Feature::List,
        Feature::Call,
        Feature::Progress,
        Feature::Log,
        Feature::Cancel,
        Feature::Sampling,
        Feature::Elicitation,
        Feature::Roots,
        Feature::Subscribe,
        Feature::ListChanged,
        Feature::Large,
        Feature::InFlight,
        Feature::Killed,
    ];

    pub(super) async fn show(self, rig: &mut Rig) {
        match self {
            Feature::List => list(&mut rig.client).await,
            Feature::Call => call(&mut rig.client, rig.case).await,
            Feature::Progress => progress(&mut rig.client).await,
            Feature::Log => log(&mut rig.client).await,
            Feature::Cancel => cancel(&mut rig.client, rig.case.front).await,
            Feature::Sampling => sampling(&mut rig.client).await,
            Feature::Elicitation => elicitation(&mut rig.client).await,
            Feature::Roots => roots(&mut rig.client).await,
            Feature::Subscribe => subscribe(&mut rig.client).await,
            Feature::ListChanged => list_changed(rig).await,
            Feature::Large => large(&mut rig.client).await,
            Feature::InFlight => in_flight(&mut rig.client, rig.case.server).await,
            Feature::Killed => killed(rig).await,
        }
    }
}

/// The names of what a list method lists.
pub async fn names(client: &mut Client, kind: &str) -> BTreeSet<String> {
    let id = client.request(&format!("{kind}s/list"), json!({})).await;
    let result = client.result(id).await;
    let items = result[format!("{kind}s")].as_array().unwrap_or_else(|| panic!("no list: {result}"));
    items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
}

async fn list(client: &mut Client) {
    for (kind, name) in [("tool", "echo"), ("resource", "watched-resource"), ("prompt", "test_simple_prompt")] {
        let names = names(client, kind).await;
        assert!(names.contains(name), "{names:?}");
    }
}

async fn call(client: &mut Client, case: Case) {
    assert_eq!(client.call("echo", json!({"message": "grüß \u{1f642} \u{2028}\n"})).await, "grüß \u{1f642} \u{2028}\n");
    let version = if case.server == Speaks::Stateless { V2026_07_28 } else { case.version };
    assert_eq!(client.info().await["protocolVersion"], version);
    let id = client.start("no_such_tool", json!({})).await;
    assert!(client.error(id).await.contains("no_such_tool"));
    let id = client.request("no/such/method", json!({"kept": 1.10})).await;
    assert!(client.error(id).await.contains("no/such/method"));
}

/// Several calls report progress at once: each under its own token, from the first step to the last, then its answer.
pub async fn progress(client: &mut Client) {
    let tokens = [json!("a"), json!(1), json!("1"), json!(0), json!("ü"), json!(-7)];
    let mut steps: BTreeMap<u64, (Value, u64, u64)> = BTreeMap::new();
    for (token, wanted) in tokens.into_iter().zip(5_u64..) {
        let id = client.start_with_token("progress", json!({"steps": wanted, "ms": 1}), &token).await;
        steps.insert(id, (token, wanted, 0));
    }
    while !steps.is_empty() {
        let message = client.next().await;
        if message["method"] == "notifications/progress" {
            let params = &message["params"];
            let owner = steps.values_mut().find(|(token, ..)| *token == params["progressToken"]);
            let (_, wanted, seen) = owner.unwrap_or_else(|| panic!("progress of no call: {message}"));
            *seen += 1;
            assert_eq!((&params["progress"], &params["total"]), (&json!(*seen), &json!(*wanted)), "{message}");
        } else {
            let done = message["id"].as_u64().and_then(|id| steps.remove(&id));
            let (_, wanted, seen) = done.unwrap_or_else(|| panic!("neither progress nor an answer: {message}"));
            assert_eq!(seen, wanted, "the answer came before all progress: {message}");
            assert_eq!(message["result"]["content"][0]["text"], format!("Took {wanted} steps."));
        }
    }
}

async fn log(client: &mut Client) {
    for (level, told) in [("debug", true), ("error", false)] {
        let id = client.request("logging/setLevel", json!({"level": level})).await;
        assert_eq!(client.result(id).await, json!({}));
        let id = client.start("log", json!({"level": "warning", "message": level, "logger": "table"})).await;
        if told {
            let params = client.expect("notifications/message").await["params"].take();
            assert_eq!(params, json!({"level": "warning", "logger": "table", "data": level}));
        }
        assert_eq!(client.said(id).await, "Logged as warning.");
    }
}

/// Waits until so many calls are under way at the server, the one that asks included.
pub async fn running(client: &mut Client, calls: u64) {
    within(&format!("{calls} calls under way"), async { while client.info().await["running"] != calls {} }).await;
}

/// A cancelled call ends at the server and is not answered.
async fn cancel(client: &mut Client, front: Front) {
    let id = client.start("slow", json!({"ms": AGES})).await;
    running(client, 2).await;
    client.notify("notifications/cancelled", json!({"requestId": id, "reason": "never mind"})).await;
    running(client, 1).await;
    match front {
        // The POST must end somehow, and a stream that ends without an answer looks like one that was cut.
        Front::Streamable => assert_eq!(client.code(id).await, -32800),
        Front::Connect | Front::Sse | Front::Unix | Front::Quic => {}
    }
}

async fn sampling(client: &mut Client) {
    let id = client.start("test_sampling", json!({"prompt": "what?"})).await;
    let question = client.expect("sampling/createMessage").await;
    assert_eq!(question["params"]["messages"][0]["content"]["text"], "what?");
    let answer = json!({"role": "assistant", "content": {"type": "text", "text": "that"}, "model": "m"});
    client.answer(&question, answer).await;
    assert_eq!(client.said(id).await, "LLM response: that");
}

async fn elicitation(client: &mut Client) {
    let id = client.start("test_elicitation", json!({"message": "who?"})).await;
    let question = client.expect("elicitation/create").await;
    assert_eq!(question["params"]["message"], "who?");
    client.answer(&question, json!({"action": "accept", "content": {"username": "me", "email": "m@e"}})).await;
    let said = client.said(id).await;
    assert!(said.contains("accept") && said.contains("m@e"), "{said}");
}

async fn roots(client: &mut Client) {
    let id = client.start("roots", json!({})).await;
    let question = client.expect("roots/list").await;
    client.answer(&question, json!({"roots": [{"uri": "file:///r"}]})).await;
    assert_eq!(client.said(id).await, r#"Roots: [{"uri":"file:///r"}]"#);
}

async fn subscribe(client: &mut Client) {
    for (method, told) in [("resources/subscribe", true), ("resources/unsubscribe", false)] {
        let id = client.request(method, json!({"uri": WATCHED})).await;
        assert_eq!(client.result(id).await, json!({}));
        client.call("touch", json!({"uri": WATCHED})).await;
        if told {
            assert_eq!(client.expect("notifications/resources/updated").await["params"], json!({"uri": WATCHED}));
        }
    }
}

/// What comes and goes is told to every client, and shows in the lists.
async fn list_changed(rig: &mut Rig) {
    for kind in ["tool", "resource", "prompt"] {
        let changed = format!("notifications/{kind}s/list_changed");
        for (tool, there) in [("register", true), ("unregister", false)] {
            rig.client.call(tool, json!({"kind": kind, "name": "extra"})).await;
            rig.client.expect(&changed).await;
            if let Some(bystander) = &mut rig.bystander {
                bystander.expect(&changed).await;
            }
            assert_eq!(names(&mut rig.client, kind).await.contains("extra"), there, "{kind}");
        }
    }
}

/// 10 MB each way.
pub async fn large(client: &mut Client) {
    let text = "0123456789".repeat(1_000_000);
    assert!(client.call("echo", json!({"message": text})).await == text, "the text was changed");
}

/// All are under way at once: the client keeps the server waiting until it was asked by every call.
async fn in_flight(client: &mut Client, server: Speaks) {
    const CALLS: usize = 200;
    // A server without sessions forgets a call that asks, and begins it again with the answers.
    let rounds = if server == Speaks::Stateless { 2 } else { 1 };
    let before = client.info().await["calls"].as_u64().expect("a number");
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        calls.push(client.start("roots", json!({})).await);
    }
    let mut questions = Vec::new();
    for _ in 0..CALLS {
        questions.push(client.expect("roots/list").await);
    }
    for (number, question) in questions.iter().enumerate() {
        client.answer(question, json!({"roots": [number]})).await;
    }
    let mut answers = BTreeSet::new();
    for id in calls {
        answers.insert(client.said(id).await);
    }
    assert_eq!(answers, (0..CALLS).map(|number| format!("Roots: [{number}]")).collect());
    assert_eq!(client.info().await["calls"], before + rounds * CALLS as u64 + 1, "a call ran twice, or never");
}

/// The server dies in mid-call: that call gets an error that says so, the next one works, and nothing runs twice.
async fn killed(rig: &mut Rig) {
    let old = rig.client.info().await;
    let id = rig.client.start("slow", json!({"ms": AGES})).await;
    running(&mut rig.client, 2).await;
    rig.kill_server(old["process"].as_u64().and_then(|id| id.try_into().ok()).expect("a process id")).await;
    let error = rig.client.error(id).await;
    assert!(error.contains("was lost before the answer came") && error.contains("was not sent again"), "{error}");
    let counted = rig.client.call("count", json!({"name": "after"})).await;
    assert_eq!(serde_json::from_str::<Value>(&counted).expect("JSON")["value"], 1);
    let new = rig.client.info().await;
    assert_ne!(new["instance"], old["instance"]);
    assert_eq!((&new["calls"], &new["running"]), (&json!(2), &json!(1)), "a call was sent again");
    if let Some(bystander) = &mut rig.bystander {
        assert_eq!(bystander.info().await["instance"], new["instance"]);
    }
    if rig.case.server == Speaks::Stateless {
        // Nobody has listened for a while, and what has changed meanwhile cannot be known.
        for client in [&mut rig.client].into_iter().chain(&mut rig.bystander) {
            for kind in ["tool", "resource", "prompt"] {
                client.expect(&format!("notifications/{kind}s/list_changed")).await;
            }
        }
    }
}
