//! Subscriptions of the stateless era: acknowledged, filtered, tagged with their id, and ended by either side.

use super::*;
use crate::reference::Item;

const WATCHED: &str = "test://watched-resource";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl Client {
    /// Opens a subscription; gives its id and what the server agreed to.
    async fn listen(&mut self, wanted: Value) -> (Id, Value) {
        let id = self.start("subscriptions/listen", modern(json!({ "notifications": wanted }))).await;
        let told = self.heard(&id, "notifications/subscriptions/acknowledged").await;
        (id, told["notifications"].clone())
    }

    /// What a subscription hears next, which must be of that method and carry its id.
    async fn heard(&mut self, id: &Id, method: &str) -> Value {
        let message = self.next_of(id).await;
        assert_eq!(message["method"], method, "{message}");
        assert_eq!(message["params"]["_meta"][SUBSCRIPTION].to_string(), id.as_json(), "{message}");
        message["params"].clone()
    }

    /// Makes sure that nothing else has come.
    async fn quiet(&mut self) {
        self.request("server/discover", modern(json!({}))).await;
    }
}

#[tokio::test]
async fn the_server_says_what_it_agrees_to() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    let wanted = json!({
        "toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": [WATCHED, "test://none"],
        "unknown": true,
    });
    let (_, agreed) = client.listen(wanted).await;
    assert_eq!(agreed, json!({ "toolsListChanged": true, "resourceSubscriptions": [WATCHED] }));
    let (_, agreed) = client.listen(json!({ "resourceSubscriptions": ["test://none"] })).await;
    assert_eq!(agreed, json!({}));
    assert_eq!(shared.listening(), 2);
    client.close().await;
    assert_eq!(shared.listening(), 0);
}

#[tokio::test]
async fn each_hears_what_it_asked_for_and_nothing_else() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    let (tools, _) = client.listen(json!({ "toolsListChanged": true })).await;
    let (both, _) = client.listen(json!({ "promptsListChanged": true, "resourceSubscriptions": [WATCHED] })).await;
    let (resources, _) = client.listen(json!({ "resourcesListChanged": true })).await;

    shared.add(Item::Tool, "extra");
    client.heard(&tools, "notifications/tools/list_changed").await;
    shared.add(Item::Prompt, "extra");
    client.heard(&both, "notifications/prompts/list_changed").await;
    shared.add(Item::Resource, "extra");
    client.heard(&resources, "notifications/resources/list_changed").await;
    shared.touch(WATCHED);
    assert_eq!(client.heard(&both, "notifications/resources/updated").await["uri"], WATCHED);
    shared.touch("test://static-text");
    client.quiet().await;

    // The one who makes a change hears of it before the answer.
    let id = client.start("tools/call", modern(json!({ "name": "test_trigger_tool_change" }))).await;
    client.heard(&tools, "notifications/tools/list_changed").await;
    client.answer(&id).await;
    client.close().await;
}

#[tokio::test]
async fn ids_are_given_back_as_they_were_written() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    for raw in [r#""listen:0""#, "123456789012345678901234567890", r#""\u00e9""#, "-7"] {
        let id = Id::from_json(raw).unwrap();
        let params = modern(json!({ "notifications": { "toolsListChanged": true } }));
        client.send(Message::request(&id, "subscriptions/listen", Some(&params.to_string()))).await;
        let text = |event: Option<Event>| match event {
            Some(Event::Packet(packet)) => String::from_utf8(packet.message.as_bytes().to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        let told = text(timeout(PATIENCE, client.link.rx.recv()).await.unwrap());
        assert!(told.contains(&format!(r#""{SUBSCRIPTION}":{raw}"#)), "{told}");
        let params = format!(r#"{{"requestId":{raw}}}"#);
        client.send(Message::notification("notifications/cancelled", Some(&params))).await;
    }
    client.quiet().await;
    shared.add(Item::Tool, "extra");
    client.quiet().await;
    assert_eq!(shared.listening(), 0);
    client.close().await;
}

#[tokio::test]
async fn a_cancelled_subscription_hears_nothing_more() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    let (one, _) = client.listen(json!({ "toolsListChanged": true })).await;
    let (two, _) = client.listen(json!({ "toolsListChanged": true })).await;
    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    client.quiet().await;
    shared.add(Item::Tool, "extra");
    client.heard(&two, "notifications/tools/list_changed").await;
    client.quiet().await;
    assert_eq!(one, Id::from(1));
    client.close().await;
}

#[tokio::test]
async fn a_server_that_stops_ends_subscriptions_with_an_answer() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    let (one, _) = client.listen(json!({ "toolsListChanged": true })).await;
    let (two, _) = client.listen(json!({})).await;
    timeout(PATIENCE, shared.close()).await.expect("an end in time");
    for id in [&one, &two] {
        let answer = client.answer(id).await;
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(answer["result"]["_meta"][SUBSCRIPTION], answer["id"]);
    }
    assert_eq!(shared.listening(), 0);
    // One that comes too late is ended at once.
    let (late, _) = client.listen(json!({ "toolsListChanged": true })).await;
    client.answer(&late).await;
    client.quiet().await;
    client.close().await;
}

#[tokio::test]
async fn a_subscription_that_missed_changes_is_told_that_all_it_watches_changed() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": [WATCHED] });
    let (id, _) = client.listen(wanted).await;
    // More at once than are kept; the server cannot run in between.
    for _ in 0..200 {
        shared.touch("test://static-text");
    }
    client.heard(&id, "notifications/tools/list_changed").await;
    client.heard(&id, "notifications/resources/updated").await;
    client.quiet().await;
    client.close().await;
}

#[tokio::test]
async fn wrong_wishes_are_refused() {
    let mut client = Client::silent(&Shared::default());
    for (wanted, text) in [
        (json!({}), "expected an object as notifications, came nothing"),
        (json!({ "notifications": [] }), "expected an object as notifications, came []"),
        (json!({ "notifications": { "toolsListChanged": 1 } }), "expected true or false as toolsListChanged, came 1"),
        (json!({ "notifications": { "resourceSubscriptions": [1] } }), "a list of strings as resourceSubscriptions"),
        (
            json!({ "notifications": { "resourceSubscriptions": WATCHED } }),
            "a list of strings as resourceSubscriptions",
        ),
    ] {
        let (code, message) = client.refusal("subscriptions/listen", modern(wanted)).await;
        assert!(code == -32602 && message.contains(text), "{code} {message}");
    }
    let (id, _) = client.listen(json!({})).await;
    let params = modern(json!({ "notifications": {} })).to_string();
    client.send(Message::request(&id, "subscriptions/listen", Some(&params))).await;
    assert_eq!(client.answer(&id).await["error"]["code"], -32600);
    for _ in 1..256 {
        client.listen(json!({})).await;
    }
    let full = client.refusal("subscriptions/listen", modern(json!({ "notifications": {} }))).await;
    assert_eq!(full, (-32603, "a client may have 256 subscriptions".into()));
    client.close().await;
}
