//! Changes, as clients without sessions hear of them.

use mcpwire_proto::meta::key;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::rig::Speaks;
use crate::table::suite::{WATCHED, names};

const KINDS: [&str; 3] = ["tool", "resource", "prompt"];

/// Listens for everything; gives the id of the subscription.
pub(super) async fn open(client: &mut Client) -> u64 {
    let everything = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": [WATCHED],
    });
    listen_for(client, everything).await
}

async fn listen_for(client: &mut Client, wanted: Value) -> u64 {
    let id = client.request("subscriptions/listen", json!({"notifications": wanted})).await;
    let acknowledged = heard(client, "subscriptions/acknowledged", id).await;
    assert_eq!(acknowledged["notifications"], wanted);
    id
}

/// What a subscription is told.
async fn heard(client: &mut Client, what: &str, listen: u64) -> Value {
    let method = format!("notifications/{what}");
    let for_it = |message: &Value| {
        message["method"] == *method && message["params"]["_meta"][key::SUBSCRIPTION_ID] == json!(listen)
    };
    client.take(&format!("{method} for {listen}"), for_it).await["params"].take()
}

pub(super) async fn close(client: &mut Client, listen: u64) {
    client.notify("notifications/cancelled", json!({"requestId": listen})).await;
    client.call("touch", json!({"uri": WATCHED})).await;
    client.assert_quiet().await;
}

async fn touch(client: &mut Client, listen: u64) {
    client.call("touch", json!({"uri": WATCHED})).await;
    updated(client, listen).await;
}

/// A subscription is told that the resource has changed.
pub(super) async fn updated(client: &mut Client, listen: u64) {
    assert_eq!(heard(client, "resources/updated", listen).await["uri"], WATCHED);
}

/// A subscription is told that a list has changed.
pub(super) async fn changed(client: &mut Client, kind: &str, listen: u64) {
    heard(client, &format!("{kind}s/list_changed"), listen).await;
}

pub(super) async fn listen(client: &mut Client) {
    let all = open(client).await;
    let prompts = listen_for(client, json!({"promptsListChanged": true})).await;
    touch(client, all).await;
    for kind in KINDS {
        for (tool, there) in [("register", true), ("unregister", false)] {
            client.call(tool, json!({"kind": kind, "name": "extra"})).await;
            changed(client, kind, all).await;
            if kind == "prompt" {
                changed(client, "prompt", prompts).await;
            }
            assert_eq!(names(client, kind).await.contains("extra"), there, "{kind}");
        }
    }
    close(client, all).await;
    client.call("register", json!({"kind": "prompt", "name": "extra"})).await;
    changed(client, "prompt", prompts).await;
    client.call("unregister", json!({"kind": "prompt", "name": "extra"})).await;
    changed(client, "prompt", prompts).await;
    close(client, prompts).await;
}

/// The subscription outlives its server.
pub(super) async fn goes_on(client: &mut Client, listen: u64, server: Speaks) {
    if server == Speaks::Stateless {
        // Nobody has listened for a while, and what has changed meanwhile cannot be known.
        for kind in KINDS {
            changed(client, kind, listen).await;
        }
        updated(client, listen).await;
    }
    touch(client, listen).await;
    client.call("register", json!({"kind": "tool", "name": "late"})).await;
    changed(client, "tool", listen).await;
}
