//! Both eras on one connection, and servers that speak one of them only.

use super::*;
use crate::reference::{Eras, Item, Settings};

fn speaking(eras: Eras) -> Shared {
    Shared::new(Settings { eras, ..Settings::default() })
}

#[tokio::test]
async fn both_eras_are_served_side_by_side() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    client.request("server/discover", modern(json!({}))).await;
    client.initialize(SESSION, json!({})).await;
    client.request("logging/setLevel", json!({ "level": "debug" })).await;
    let params = modern(json!({ "notifications": { "toolsListChanged": true } }));
    let listen = client.start("subscriptions/listen", params).await;
    client.next_of(&listen).await;

    // The level of the session is none of a request that says by itself what it wants.
    let log = json!({ "name": "log", "arguments": { "level": "error", "message": "m" } });
    client.request("tools/call", modern(log)).await;
    shared.add(Item::Tool, "extra");
    assert_eq!(client.next(&Lane::Main).await["method"], "notifications/tools/list_changed");
    assert_eq!(client.next_of(&listen).await["method"], "notifications/tools/list_changed");
    let old = client.call("echo", json!({ "message": "m" })).await;
    assert!(old.get("resultType").is_none(), "{old}");
    client.close().await;
}

#[tokio::test]
async fn an_old_server_knows_nothing_of_the_new_era() {
    let mut client = Client::silent(&speaking(Eras::Session));
    client.version = SESSION.to_owned();
    for method in ["server/discover", "subscriptions/listen"] {
        assert_eq!(client.refusal(method, modern(json!({}))).await, (-32601, format!("method not found: {method}")));
    }
    assert_eq!(client.refusal("tools/list", modern(json!({}))).await.0, -32600);
    client.initialize(SESSION, json!({})).await;
    assert_eq!(client.refusal("server/discover", modern(json!({}))).await.0, -32601);
    let id = client.start("tools/list", json!({ "_meta": { "progressToken": 1 } })).await;
    assert!(client.answer(&id).await["result"].get("resultType").is_none());
    // It does not look at what it does not know: the result is one of its own era.
    let params = modern(json!({ "name": "echo", "arguments": { "message": "m" } }));
    let id = client.start("tools/call", params).await;
    client.asked.insert(id.clone(), ("tools/call".into(), SESSION.into()));
    let result = client.answer(&id).await["result"].take();
    assert_eq!(text_of(&result), "m");
    client.close().await;
}

#[tokio::test]
async fn a_new_server_names_its_versions_to_those_who_initialize() {
    let mut client = Client::silent(&speaking(Eras::Stateless));
    client.version = STATELESS.to_owned();
    let params =
        json!({ "protocolVersion": SESSION, "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
    let error = client.error("initialize", params).await;
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"], json!({ "supported": [STATELESS], "requested": SESSION }));
    assert!(error["message"].as_str().unwrap().contains(STATELESS), "{error}");
    client.error("initialize", json!({})).await;
    client.notify("notifications/initialized", json!({})).await;
    for method in ["ping", "tools/list", "tools/call", "nonsense"] {
        assert_eq!(client.refusal(method, json!({})).await.0, -32602, "{method}");
    }
    let result = client.request("server/discover", modern(json!({}))).await;
    assert_eq!(result["supportedVersions"], json!([STATELESS]));
    assert_eq!(client.refusal("initialize", modern(json!({}))).await.0, -32601);
    client.close().await;
}
