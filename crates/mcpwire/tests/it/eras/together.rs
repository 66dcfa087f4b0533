//! Clients of both eras on one shared server.

use std::fmt;

use mcpwire_proto::version::V2025_11_25;
use serde_json::{Value, json};

use super::listening;
use crate::support::cases::{self, Place};
use crate::support::client::Client;
use crate::support::rig::{Front, Plan, Rig, Speaks, Target};
use crate::table::suite::{AGES, WATCHED, running};

#[derive(Debug, Clone, Copy)]
struct Case {
    front: Front,
    target: Target,
    server: Speaks,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} to {:?}, both to {:?}", self.front, self.target, self.server)
    }
}

#[tokio::test]
async fn on_one_server() {
    let mut all = Vec::new();
    for server in [Speaks::Both, Speaks::Session, Speaks::Stateless] {
        for front in [Front::Streamable, Front::Unix] {
            for target in [Target::Child, Target::Streamable, Target::Unix] {
                all.push(Case { front, target, server });
            }
        }
    }
    cases::check(all, run).await;
}

async fn run(Case { front, target, server }: Case, place: Place) {
    let mut rig = Rig::start(Plan { front, target, server, options: &["--share"] }).await;
    let mut old = Client::open(rig.connect(), V2025_11_25).await;
    let mut new = Client::stateless(rig.connect());
    place.at("the first calls");
    let (instance, process) = instance(&mut old, &mut new).await;

    place.at("changes");
    let id = old.request("resources/subscribe", json!({"uri": WATCHED})).await;
    assert_eq!(old.result(id).await, json!({}));
    let listen = listening::open(&mut new).await;
    new.call("touch", json!({"uri": WATCHED})).await;
    assert_eq!(old.expect("notifications/resources/updated").await["params"], json!({"uri": WATCHED}));
    listening::updated(&mut new, listen).await;
    old.call("register", json!({"kind": "tool", "name": "extra"})).await;
    old.expect("notifications/tools/list_changed").await;
    listening::changed(&mut new, "tool", listen).await;
    let id = old.request("resources/unsubscribe", json!({"uri": WATCHED})).await;
    assert_eq!(old.result(id).await, json!({}));
    listening::close(&mut new, listen).await;
    old.assert_quiet().await;

    place.at("the death of the server");
    let calls = [old.start("slow", json!({"ms": AGES})).await, new.start("slow", json!({"ms": AGES})).await];
    running(&mut old, 3).await;
    rig.kill_server(process).await;
    for (client, id) in [&mut old, &mut new].into_iter().zip(calls) {
        let error = client.error(id).await;
        assert!(error.contains("was not sent again"), "{error}");
    }
    assert_ne!(self::instance(&mut old, &mut new).await.0, instance);
    if server == Speaks::Stateless {
        for kind in ["tool", "resource", "prompt"] {
            old.expect(&format!("notifications/{kind}s/list_changed")).await;
        }
    }
    for mut client in [old, new] {
        client.assert_quiet().await;
        client.close().await;
    }
    rig.finish().await;
}

/// The server of both clients, which is one.
async fn instance(old: &mut Client, new: &mut Client) -> (Value, u32) {
    let infos = [old.info().await, new.info().await];
    assert_eq!(infos[0]["instance"], infos[1]["instance"]);
    let process = infos[0]["process"].as_u64().and_then(|id| id.try_into().ok()).expect("a process id");
    (infos[0]["instance"].clone(), process)
}
