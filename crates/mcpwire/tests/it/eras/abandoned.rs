//! Stateless clients that never come back with the input that a session-era server waits for.

use mcpwire_proto::meta::key;
use serde_json::json;

use super::asking::capable;
use crate::support::client::Client;
use crate::support::rig::{Front, Plan, Rig, Speaks, Target};

/// As many as there are sessions.
const CALLS: usize = 16;

#[tokio::test]
async fn abandoned_elicitations_lock_nobody_out() {
    let plan = Plan { front: Front::Streamable, target: Target::Child, server: Speaks::Session, options: &[] };
    let rig = Rig::start(plan).await;
    let mut careless = Client::stateless(rig.connect());
    capable(&mut careless);
    for _ in 0..CALLS {
        let id = careless.start("test_elicitation", json!({"message": "who?"})).await;
        careless.input_required(id).await;
    }
    let mut other = Client::stateless(rig.connect());
    capable(&mut other);
    other.declare(key::CLIENT_INFO, json!({"name": "other", "version": "1"}));
    for client in [&mut other, &mut careless] {
        assert_eq!(client.call("echo", json!({"message": "here"})).await, "here");
    }
    other.close().await;
    careless.close().await;
    rig.finish().await;
}
