//! Files that change under a client that goes on.

use serde_json::json;

use super::{Client, Scratch};

const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";

#[tokio::test]
async fn what_changes_is_told_and_served_at_once() {
    let scratch = Scratch::new(&[("resources/agents/a.md", "one"), ("prompts/p.md", "old ${x}")]);
    let folder = scratch.open();
    let mut client = Client::open(&folder, "2025-11-25").await;
    client.request("resources/list", json!({})).await;
    for uri in ["orchestr8://agents/a", "orchestr8://match?query=new"] {
        client.request("resources/subscribe", json!({ "uri": uri })).await;
    }

    scratch.write("resources/agents/a.md", "two");
    let told = client.notified(2).await;
    assert_eq!(told, [format!("{UPDATED} orchestr8://agents/a"), format!("{UPDATED} orchestr8://match?query=new")]);
    let read = client.request("resources/read", json!({ "uri": "orchestr8://agents/a" })).await;
    assert_eq!(read["contents"][0]["text"], "two");

    scratch.write("resources/guides/deep/er/b.md", "---\ntags: [new]\n---\nx");
    let told = client.notified(2).await;
    assert_eq!(told, [RESOURCES.to_owned(), format!("{UPDATED} orchestr8://match?query=new")]);
    let read = client.request("resources/read", json!({ "uri": "orchestr8://match?query=new" })).await;
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("guides/deep/er/b"), "{read}");

    scratch.write("prompts/q.md", "another");
    assert_eq!(client.notified(1).await, ["notifications/prompts/list_changed"]);
    assert_eq!(client.request("prompts/list", json!({})).await["prompts"].as_array().unwrap().len(), 2);

    client.request("resources/unsubscribe", json!({ "uri": "orchestr8://match?query=new" })).await;
    scratch.remove("resources/guides/deep/er/b.md");
    assert_eq!(client.notified(1).await, [RESOURCES]);
    let gone = client.answer("resources/read", json!({ "uri": "orchestr8://guides/deep/er/b" })).await;
    assert_eq!(gone["error"]["code"], -32602);
    client.close().await;
}

#[tokio::test]
async fn records_that_change_are_found_as_they_are_now() {
    let scratch = Scratch::new(&[("data/things/records.json", r#"[{"id":"a","n":1}]"#)]);
    let folder = scratch.open();
    let mut client = Client::open(&folder, "2025-11-25").await;
    let search =
        json!({"name": "relevant-data.searchRecords", "arguments": {"categoryId": "things", "filters": {"n": 1}}});
    assert_eq!(client.request("tools/call", search.clone()).await["structuredContent"]["total"], 1);
    scratch.write("data/things/records.json", r#"[{"id":"a","n":1},{"id":"b","n":1}]"#);
    let deadline = std::time::Instant::now() + super::PATIENCE;
    // Data is no list that anybody is told of.
    while client.request("tools/call", search.clone()).await["structuredContent"]["total"] != 2 {
        assert!(std::time::Instant::now() < deadline, "the change was not seen");
        tokio::task::yield_now().await;
    }
    client.close().await;
}

#[tokio::test]
async fn two_clients_share_one_folder_and_hear_the_same() {
    let scratch = Scratch::new(&[("resources/agents/a.md", "one")]);
    let folder = scratch.open();
    let (mut first, mut second) =
        (Client::open(&folder, "2025-11-25").await, Client::open(&folder, "2024-11-05").await);
    first.request("resources/list", json!({})).await;
    second.request("resources/list", json!({})).await;
    scratch.write("resources/agents/b.md", "two");
    assert_eq!(first.notified(1).await, [RESOURCES]);
    assert_eq!(second.notified(1).await, [RESOURCES]);
    first.close().await;
    second.close().await;
}

#[tokio::test]
async fn a_folder_that_is_taken_away_and_put_back_is_served_again() {
    let scratch = Scratch::new(&[("resources/agents/a.md", "one")]);
    let folder = scratch.open();
    let mut client = Client::open(&folder, "2025-11-25").await;
    client.request("resources/list", json!({})).await;
    std::fs::rename(&scratch.0, scratch.0.with_extension("away")).unwrap();
    assert_eq!(client.notified(1).await, [RESOURCES]);
    let gone = client.answer("resources/read", json!({ "uri": "orchestr8://agents/a" })).await;
    assert_eq!(gone["error"]["code"], -32602);
    std::fs::rename(scratch.0.with_extension("away"), &scratch.0).unwrap();
    assert_eq!(client.notified(1).await, [RESOURCES]);
    scratch.write("resources/agents/b.md", "two");
    assert_eq!(client.notified(1).await, [RESOURCES]);
    client.close().await;
}
