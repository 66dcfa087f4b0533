//! Lists in pages, changes that are told, and what older versions are spared.

use super::*;
use crate::reference::{Item, Settings};

const WATCHED: &str = "test://watched-resource";

async fn updated(client: &mut Client) -> Value {
    let message = client.next(&Lane::Main).await;
    assert_eq!(message["method"], "notifications/resources/updated", "{message}");
    message["params"]["uri"].clone()
}

#[tokio::test]
async fn pages_add_up_to_the_whole_list() {
    let mut whole = Client::open(&Shared::default()).await;
    let mut paged = Client::open(&Shared::new(Settings { page_size: 3, ..Settings::default() })).await;
    for (method, key) in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let all = whole.request(method, json!({})).await;
        assert!(all.get("nextCursor").is_none(), "{all}");
        let mut items = Vec::new();
        let mut params = json!({});
        loop {
            let page = paged.request(method, params).await;
            let part = page[key].as_array().unwrap();
            assert!((1..=3).contains(&part.len()), "{page}");
            items.extend(part.clone());
            match page.get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => break,
            }
        }
        assert_eq!(json!(items), all[key], "{method}");
    }
    whole.close().await;
    paged.close().await;
}

#[tokio::test]
async fn subscribers_are_told_of_a_touch_and_others_are_not() {
    let shared = Shared::default();
    let mut watcher = Client::open(&shared).await;
    let mut other = Client::open(&shared).await;
    let uri = json!({ "uri": WATCHED });
    assert_eq!(watcher.request("resources/subscribe", uri.clone()).await, json!({}));
    assert_eq!(other.say("touch", json!({})).await, format!("{WATCHED} is at revision 1."));
    assert_eq!(updated(&mut watcher).await, WATCHED);
    let read = watcher.request("resources/read", uri.clone()).await;
    assert_eq!(read["contents"][0]["text"], "Watched resource, revision 1");

    // The one who touches is told before the answer.
    let call = watcher.start_call("touch", json!({ "uri": WATCHED })).await;
    assert_eq!(updated(&mut watcher).await, WATCHED);
    watcher.answer(&call).await;

    assert_eq!(watcher.request("resources/unsubscribe", uri).await, json!({}));
    other.say("touch", json!({})).await;
    watcher.request("ping", json!({})).await;
    watcher.close().await;
    other.close().await;
}

#[tokio::test]
async fn items_come_and_go_and_everyone_is_told() {
    let shared = Shared::default();
    let mut one = Client::open(&shared).await;
    let mut two = Client::open(&shared).await;
    for (kind, list, key, get, params) in [
        ("tool", "tools/list", "tools", "tools/call", json!({ "name": "extra" })),
        ("resource", "resources/list", "resources", "resources/read", json!({ "uri": "test://extra/extra" })),
        ("prompt", "prompts/list", "prompts", "prompts/get", json!({ "name": "extra" })),
    ] {
        let item = json!({ "kind": kind, "name": "extra" });
        for (change, there) in [("register", true), ("unregister", false)] {
            let call = one.start_call(change, item.clone()).await;
            let changed = format!("notifications/{key}/list_changed");
            assert_eq!(one.next(&Lane::Main).await["method"], changed);
            assert!(!failed(&one.answer(&call).await["result"]));
            assert_eq!(two.next(&Lane::Main).await["method"], changed);

            let listed = two.request(list, json!({})).await;
            let found = listed[key].as_array().unwrap().iter().any(|item| item["name"] == "extra");
            assert_eq!(found, there, "{listed}");
            let id = two.start(get, params.clone()).await;
            assert_eq!(two.answer(&id).await.get("result").is_some(), there);
            assert!(failed(&one.call(change, item.clone()).await), "a second {change} changes nothing");
        }
    }
    let taken = json!({ "kind": "tool", "name": "echo" });
    assert!(failed(&one.call("register", taken).await));
    one.close().await;
    two.close().await;
}

#[tokio::test]
async fn a_session_that_missed_changes_is_told_that_all_changed() {
    let shared = Shared::default();
    let mut client = Client::open(&shared).await;
    client.request("resources/subscribe", json!({ "uri": WATCHED })).await;
    // More at once than are kept for a session; it cannot run in between.
    for _ in 0..200 {
        shared.touch(WATCHED).unwrap();
    }
    for list in ["tools", "resources", "prompts"] {
        assert_eq!(client.next(&Lane::Main).await["method"], format!("notifications/{list}/list_changed"));
    }
    let ping = client.start("ping", json!({})).await;
    let mut told = 0;
    loop {
        let event = timeout(PATIENCE, client.link.rx.recv()).await.unwrap().unwrap();
        let Event::Packet(packet) = event else { panic!("{event:?}") };
        match packet.lane {
            Lane::Main | Lane::Unsorted => told += 1,
            Lane::Request(id) => break assert_eq!(id, ping),
        }
    }
    assert!((1..200).contains(&told), "{told}");
    client.close().await;
}

#[tokio::test]
async fn what_is_kept_has_a_limit() {
    let shared = Shared::default();
    for n in 0..1024 {
        assert!(shared.add(Item::Tool, &n.to_string()));
        assert!(shared.touch(&n.to_string()).is_some());
    }
    assert!(!shared.add(Item::Tool, "more"));
    assert!(shared.touch("more").is_none());
    assert_eq!(shared.touch("7"), Some(2));
    assert!(shared.remove(Item::Tool, "7"));
    assert!(shared.add(Item::Prompt, "more"));
}

#[tokio::test]
async fn older_versions_get_what_they_know() {
    let shared = Shared::default();
    for (version, structure, audio) in [
        ("2024-11-05", false, false),
        ("2025-03-26", false, true),
        ("2025-06-18", true, true),
        ("2025-11-25", true, true),
    ] {
        let mut client = Client::open_as(&shared, version, json!({})).await;
        let tools = client.request("tools/list", json!({})).await;
        let add = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "add").unwrap();
        assert_eq!(add.get("outputSchema").is_some(), structure, "{version}");
        assert_eq!(add.get("annotations").is_some(), audio, "{version}");
        let sum = client.call("add", json!({ "a": 1, "b": 2 })).await;
        assert_eq!(sum.get("structuredContent").is_some(), structure, "{version}");
        let sound = client.call("test_audio_content", json!({})).await;
        assert_eq!(sound["content"][0]["type"] == "audio", audio, "{version}");
        let link = client.call("resource_link", json!({})).await;
        assert_eq!(link["content"][0]["type"] == "resource_link", structure, "{version}");
        client.close().await;
    }
}
