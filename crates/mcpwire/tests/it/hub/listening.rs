//! Changes of servers reach the clients that listen for them.

use super::*;

async fn listen(client: &mut Client, wanted: Value) -> (u64, Value) {
    let id = client.request("subscriptions/listen", json!({ "notifications": wanted })).await;
    let told = client.expect("notifications/subscriptions/acknowledged").await;
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    (id, told["params"]["notifications"].clone())
}

#[tokio::test]
async fn a_tool_that_comes_is_told_of_and_listed() {
    let (old, new) = (Inside::new(Eras::Session), Inside::new(Eras::Stateless));
    let rig = Rig::new(vec![old.spec("old"), new.spec("new")]);
    let (mut client, mut deaf, mut session) = (rig.stateless(), rig.stateless(), rig.session().await);
    let (id, honoured) = listen(&mut client, json!({ "toolsListChanged": true })).await;
    assert_eq!(honoured, json!({ "toolsListChanged": true }));
    tools(&mut deaf).await;
    tools(&mut session).await;
    for server in ["old", "new"] {
        client.call(&format!("{server}__register"), json!({ "kind": "tool", "name": "fresh" })).await;
        let told = client.expect("notifications/tools/list_changed").await;
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
        session.expect("notifications/tools/list_changed").await;
        for client in [&mut client, &mut session] {
            let name = format!("{server}__fresh");
            assert!(tools(client).await.contains(&name));
            client.call(&name, json!({})).await;
        }
    }
    deaf.assert_quiet().await;
    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
    client.assert_quiet().await;
    for client in [client, deaf, session] {
        client.close().await;
    }
    rig.end().await;
}

#[tokio::test]
async fn updates_of_resources_reach_those_who_subscribed() {
    let uri = "test://watched-resource";
    for eras in [Eras::Session, Eras::Stateless] {
        let server = Inside::new(eras);
        let rig = Rig::new(vec![server.spec("one"), Inside::new(Eras::Both).spec("two")]);
        let (mut client, mut other, mut session) = (rig.stateless(), rig.stateless(), rig.session().await);
        let (_, honoured) = listen(&mut client, json!({ "resourceSubscriptions": [uri, "test://nowhere"] })).await;
        assert_eq!(honoured["resourceSubscriptions"][0], uri);
        let id = session.request("resources/subscribe", json!({ "uri": uri })).await;
        session.result(id).await;
        other.call("one__touch", json!({ "uri": uri })).await;
        for client in [&mut client, &mut session] {
            let told = client.expect("notifications/resources/updated").await;
            assert_eq!(told["params"]["uri"], uri);
        }
        other.assert_quiet().await;
        let id = session.request("resources/unsubscribe", json!({ "uri": uri })).await;
        session.result(id).await;
        other.call("one__touch", json!({ "uri": uri })).await;
        client.expect("notifications/resources/updated").await;
        session.assert_quiet().await;
        for client in [client, other, session] {
            client.close().await;
        }
        rig.end().await;
    }
}
