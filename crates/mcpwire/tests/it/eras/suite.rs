//! What must work for a client without sessions, whatever the server speaks; each feature is one function.

use std::collections::BTreeSet;

use mcpwire_proto::meta::key;
use mcpwire_proto::version::{V2025_11_25, V2026_07_28};
use serde_json::{Value, json};

use super::new_clients::Case;
use super::{asking, listening};
use crate::support::client::Client;
use crate::support::rig::{Plan, Rig as Bridge, Speaks};
use crate::table::suite::{AGES, large, progress, running};

/// A case set up.
pub(super) struct Rig {
    pub(super) case: Case,
    pub(super) client: Client,
    /// Another client with the same ids, where there can be one.
    bystander: Option<Client>,
    bridge: Bridge,
}

impl Rig {
    pub(super) async fn start(case: Case) -> Rig {
        let Case { front, target, server, shared } = case;
        let options: &[&str] = if shared { &["--share"] } else { &[] };
        let bridge = Bridge::start(Plan { front, target, server, options }).await;
        let bystander = shared.then(|| Client::stateless(bridge.connect()));
        let mut client = Client::stateless(bridge.connect());
        if shared {
            // The one session of all clients is opened for the first of them, and knows what that one can do.
            asking::capable(&mut client);
            client.assert_quiet().await;
            asking::incapable_again(&mut client);
        }
        Rig { case, client, bystander, bridge }
    }

    pub(super) async fn assert_quiet(&mut self) {
        self.client.assert_quiet().await;
        if let Some(bystander) = &mut self.bystander {
            bystander.assert_quiet().await;
        }
    }

    pub(super) async fn finish(self) {
        self.client.close().await;
        if let Some(bystander) = self.bystander {
            bystander.close().await;
        }
        self.bridge.finish().await;
    }

    /// Kills the server in the middle of a call. It comes back, and the call gets an error that says so.
    async fn lose_server(&mut self) {
        let old = self.client.info().await;
        let id = self.client.start("slow", json!({"ms": AGES})).await;
        running(&mut self.client, 2).await;
        self.bridge.kill_server(old["process"].as_u64().and_then(|id| id.try_into().ok()).expect("a process id")).await;
        let error = self.client.error(id).await;
        assert!(error.contains("was lost before the answer came") && error.contains("was not sent again"), "{error}");
        let counted = self.client.call("count", json!({"name": "after"})).await;
        assert_eq!(serde_json::from_str::<Value>(&counted).expect("JSON")["value"], 1);
        let new = self.client.info().await;
        assert_ne!(new["instance"], old["instance"]);
        assert_eq!((&new["calls"], &new["running"]), (&json!(2), &json!(1)), "a call was sent again");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    Discover,
    List,
    Call,
    Refused,
    Progress,
    Log,
    Cancel,
    Questions,
    SeveralRounds,
    Forged,
    Incapable,
    ManyQuestions,
    Listen,
    Large,
    InFlight,
    Killed,
}

impl Feature {
    pub(super) const ALL: [Feature; 16] = [
        Feature::Discover,
        Feature::List,
        Feature::Call,
        Feature::Refused,
        Feature::Progress,
        Feature::Log,
        Feature::Cancel,
        Feature::Questions,
        Feature::SeveralRounds,
        Feature::Forged,
        Feature::Incapable,
        Feature::ManyQuestions,
        Feature::Listen,
        Feature::Large,
        Feature::InFlight,
        Feature::Killed,
    ];

    /// Why a case goes without this, if it does.
    pub(super) fn lacks(self, case: Case) -> Option<&'static str> {
        match self {
            Feature::ManyQuestions if case.shared && case.server == Speaks::Session => {
                Some("in one session for all, nobody can tell which of several calls asks")
            }
            Feature::Large if case.shared => Some("takes long, and the size of a message is no matter of who shares"),
            _ => None,
        }
    }

    pub(super) async fn show(self, rig: &mut Rig) {
        let (case, client) = (rig.case, &mut rig.client);
        match self {
            Feature::Discover => discover(client).await,
            Feature::List => list(client).await,
            Feature::Call => call(client, case.server).await,
            Feature::Refused => refused(client).await,
            Feature::Progress => progress(client).await,
            Feature::Log => log(client).await,
            Feature::Cancel => cancel(client).await,
            Feature::Questions => asking::questions(client).await,
            Feature::SeveralRounds => asking::several_rounds(client).await,
            Feature::Forged => asking::forged(client).await,
            Feature::Incapable => asking::incapable(client, case.server).await,
            Feature::ManyQuestions => asking::many(client).await,
            Feature::Listen => listening::listen(client).await,
            Feature::Large => large(client).await,
            Feature::InFlight => in_flight(client).await,
            Feature::Killed => killed(rig).await,
        }
    }
}

async fn discover(client: &mut Client) {
    let id = client.request("server/discover", json!({})).await;
    let result = client.result(id).await;
    let versions = result["supportedVersions"].as_array().unwrap_or_else(|| panic!("no versions: {result}"));
    assert!(versions.contains(&json!(V2026_07_28)), "{result}");
    for (capability, option) in [("tools", "listChanged"), ("resources", "subscribe"), ("prompts", "listChanged")] {
        assert_eq!(result["capabilities"][capability][option], true, "{result}");
    }
    assert!(result["_meta"][key::SERVER_INFO]["name"].is_string() && result["instructions"].is_string(), "{result}");
    assert_cacheable(&result);
}

fn assert_cacheable(result: &Value) {
    assert!(result["ttlMs"].is_u64(), "{result}");
    assert!(["public", "private"].iter().any(|scope| result["cacheScope"] == *scope), "{result}");
}

async fn list(client: &mut Client) {
    let lists = [
        ("tools/list", "tools", "echo"),
        ("resources/list", "resources", "watched-resource"),
        ("resources/templates/list", "resourceTemplates", "template"),
        ("prompts/list", "prompts", "test_simple_prompt"),
    ];
    for (method, key, name) in lists {
        let id = client.request(method, json!({})).await;
        let result = client.result(id).await;
        assert_cacheable(&result);
        let items = result[key].as_array().unwrap_or_else(|| panic!("no list: {result}"));
        assert!(items.iter().any(|item| item["name"] == name), "{result}");
    }
    let id = client.request("resources/read", json!({"uri": "test://static-text"})).await;
    let result = client.result(id).await;
    assert_cacheable(&result);
    assert_eq!(result["contents"][0]["mimeType"], "text/plain");
}

async fn call(client: &mut Client, server: Speaks) {
    assert_eq!(client.call("echo", json!({"message": "grüß \u{1f642} \u{2028}\n"})).await, "grüß \u{1f642} \u{2028}\n");
    let info = client.info().await;
    let version = if server == Speaks::Session { V2025_11_25 } else { V2026_07_28 };
    assert_eq!((&info["protocolVersion"], &info["client"]), (&json!(version), &json!("table")));
    let id = client.start("add", json!({"a": 1, "b": 2})).await;
    let result = client.result(id).await;
    assert_eq!(result["structuredContent"], json!({"sum": 3}));
    assert!(result.get("ttlMs").is_none(), "{result}");
    assert_eq!(client.call("route", json!({"region": "süd", "priority": 1, "urgent": true})).await, "Routed to süd.");
}

/// What does not exist, and what exists no more.
async fn refused(client: &mut Client) {
    let id = client.start("no_such_tool", json!({})).await;
    assert!(client.error(id).await.contains("no_such_tool"));
    let id = client.request("resources/read", json!({"uri": "test://nowhere"})).await;
    assert_eq!(client.code(id).await, -32602);
    for (method, params) in [
        ("no/such/method", json!({})),
        ("ping", json!({})),
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", json!({"uri": "test://static-text"})),
        ("resources/unsubscribe", json!({"uri": "test://static-text"})),
    ] {
        let id = client.request(method, params).await;
        assert_eq!(client.code(id).await, -32601, "{method}");
    }
}

async fn log(client: &mut Client) {
    for (level, told) in [(json!("debug"), true), (json!("error"), false), (json!("info"), true), (Value::Null, false)]
    {
        client.declare(key::LOG_LEVEL, level);
        let id = client.start("log", json!({"level": "warning", "message": "hear", "logger": "table"})).await;
        if told {
            let params = client.expect("notifications/message").await["params"].take();
            assert_eq!(params, json!({"level": "warning", "logger": "table", "data": "hear"}));
        }
        assert_eq!(client.said(id).await, "Logged as warning.");
    }
}

/// A cancelled call ends at the server and is not answered.
async fn cancel(client: &mut Client) {
    let id = client.start("slow", json!({"ms": AGES})).await;
    running(client, 2).await;
    client.notify("notifications/cancelled", json!({"requestId": id, "reason": "never mind"})).await;
    running(client, 1).await;
}

async fn in_flight(client: &mut Client) {
    const CALLS: u64 = 200;
    let before = client.info().await["calls"].as_u64().expect("a number");
    let mut calls = BTreeSet::new();
    for _ in 0..CALLS {
        calls.insert(client.start("slow", json!({"ms": 500})).await);
    }
    for id in calls {
        assert_eq!(client.said(id).await, "Waited 500 ms.");
    }
    assert_eq!(client.info().await["calls"], before + CALLS + 1, "a call ran twice, or never");
}

/// The server dies in mid-call while somebody listens: nothing runs twice, the next call works, and the listener hears of
/// the new server.
async fn killed(rig: &mut Rig) {
    let listen = listening::open(&mut rig.client).await;
    rig.lose_server().await;
    listening::goes_on(&mut rig.client, listen, rig.case.server).await;
    listening::close(&mut rig.client, listen).await;
    if let Some(bystander) = &mut rig.bystander {
        assert_eq!(bystander.info().await["instance"], rig.client.info().await["instance"]);
    }
}
