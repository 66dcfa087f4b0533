//! The era without sessions, served natively.

use mcpwire_proto::{Lane, Message};
use serde_json::{Value, json};

use super::{Client, Scratch};
use crate::folder::Folder;
use crate::schema::{Side, assert_message};

/// Parameters as a client of 2026-07-28 sends them.
pub(super) fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

#[tokio::test]
async fn every_result_says_what_it_is() {
    let mut client = Client::silent(&Folder::sample());
    let found = client.request("server/discover", modern(json!({}))).await;
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "mcpwire-sample");
    assert!(found["capabilities"]["tools"].is_object(), "{found}");
    let cached = [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "orchestr8://registry"})),
    ];
    for (method, params) in cached {
        let result = client.request(method, modern(params)).await;
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["cacheScope"], "private", "{method}");
        assert!(result["ttlMs"].is_u64(), "{method}");
    }
    let search = json!({"name": "relevant-data.searchRecords", "arguments": {"categoryId": "PEOPLE", "limit": 1}});
    let result = client.request("tools/call", modern(search)).await;
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["structuredContent"]["total"], 7);
    assert!(result.get("ttlMs").is_none());
    client.close().await;
}

#[tokio::test]
async fn what_is_gone_is_not_found_and_other_versions_are_refused() {
    let mut client = Client::silent(&Folder::sample());
    for method in ["initialize", "ping", "resources/subscribe", "logging/setLevel"] {
        assert_eq!(client.answer(method, modern(json!({}))).await["error"]["code"], -32601, "{method}");
    }
    let missing = client.answer("resources/read", modern(json!({"uri": "orchestr8://agents/none"}))).await;
    assert_eq!(missing["error"]["code"], -32602);
    assert_eq!(missing["error"]["data"]["uri"], "orchestr8://agents/none");
    let mut other = modern(json!({}));
    other["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let refused = client.answer("tools/list", other).await;
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["requested"], "2030-01-01");
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
    let faulty = json!({"name": "relevant-data.describeCategory", "arguments": {}});
    let result = client.request("tools/call", modern(faulty)).await;
    assert_eq!((&result["isError"], &result["resultType"]), (&json!(true), &json!("complete")));
    client.close().await;
}

#[tokio::test]
async fn a_listener_hears_what_it_asked_for_and_nothing_else() {
    let scratch = Scratch::new(&[("resources/agents/a.md", "one"), ("resources/agents/b.md", "one")]);
    let mut client = Client::silent(&scratch.open());
    let wanted = json!({
        "resourcesListChanged": true, "promptsListChanged": true,
        "resourceSubscriptions": ["orchestr8://agents/a", "orchestr8://agents/none"],
    });
    let id = client.start("subscriptions/listen", modern(json!({ "notifications": wanted }))).await;
    let lane = Lane::Request(id.clone());
    let acknowledged = client.next(&lane).await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let honoured = json!({ "resourcesListChanged": true, "resourceSubscriptions": ["orchestr8://agents/a"] });
    assert_eq!(acknowledged["params"]["notifications"], honoured);

    scratch.write("resources/agents/a.md", "two");
    let updated = client.next(&lane).await;
    assert_eq!(updated["params"]["uri"], "orchestr8://agents/a");
    assert_eq!(updated["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].to_string(), id.as_json());
    scratch.write("resources/agents/c.md", "new");
    assert_eq!(client.next(&lane).await["method"], "notifications/resources/list_changed");

    for told in [&acknowledged, &updated] {
        assert_message("2026-07-28", Side::Server, told, None);
    }

    let cancelled = format!(r#"{{"requestId":{id}}}"#);
    let cancelled = Message::notification("notifications/cancelled", Some(&cancelled));
    client.link.tx.send(cancelled.into()).await.unwrap();
    client.request("server/discover", modern(json!({}))).await;
    scratch.write("resources/agents/d.md", "new");
    // Nothing more comes, or the client would find it left unread.
    let list = json!({ "uri": "orchestr8://agents/d" });
    let deadline = std::time::Instant::now() + super::PATIENCE;
    while client.answer("resources/read", modern(list.clone())).await.get("error").is_some() {
        assert!(std::time::Instant::now() < deadline, "the change was not seen");
    }
    client.close().await;
}

#[tokio::test]
async fn a_stream_that_is_open_in_the_end_gets_its_answer() {
    let Client { link, server, .. } = {
        let mut client = Client::silent(&Folder::sample());
        let params = modern(json!({ "notifications": { "toolsListChanged": true } }));
        let id = client.start("subscriptions/listen", params).await;
        client.next(&Lane::Request(id)).await;
        client
    };
    let crate::link::Link { tx, mut rx } = link;
    drop(tx);
    let Some(crate::link::Event::Packet(packet)) = rx.recv().await else { panic!("no answer") };
    let answer = serde_json::from_slice(packet.message.as_bytes()).unwrap();
    assert_message("2026-07-28", Side::Server, &answer, Some("subscriptions/listen"));
    assert!(rx.recv().await.is_none());
    server.await.unwrap();
}
