//! Two servers with the same `ui://` address: each tool shows the app of its own server.

use super::*;

const APP: &str = "ui://app/main.html";
const SECOND: &str = "ui://b+app/main.html";

/// Servers `a` and `b` with the same app, which `a` does not list, and a client.
fn two() -> (Rig, Vec<Server>, Client) {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b")]);
    rig.pass(ms(250));
    let tools = json!([
        { "name": "nested", "_meta": { "ui": { "resourceUri": APP, "visibility": ["app"] }, "n": 1 } },
        { "name": "flat", "_meta": { "ui/resourceUri": APP } },
        { "name": "other", "description": APP, "_meta": { "ui": { "resourceUri": "ui://other" } } },
    ]);
    let resources = json!([{ "uri": APP, "name": "main" }, { "uri": "ui://b/own" }]);
    let all = json!({ "tools": {}, "resources": { "subscribe": true } });
    rig.offer_all(servers[0], &all, &json!({ "tools": tools }));
    rig.offer_all(servers[1], &all, &json!({ "tools": tools, "resources": resources }));
    let client = rig.join(1);
    (rig, servers, client)
}

#[test]
fn lists_name_an_address_of_its_own_for_each_app() {
    let (mut rig, _, client) = two();
    rig.asks(client, 1, method::TOOLS_LIST, "");
    let tools = rig.got_json(client)["result"]["tools"].clone();
    for (at, address) in [(0, APP), (3, SECOND)] {
        assert_eq!(tools[at]["_meta"], json!({ "ui": { "resourceUri": address, "visibility": ["app"] }, "n": 1 }));
        assert_eq!(tools[at + 1]["_meta"], json!({ "ui/resourceUri": address }));
        assert_eq!(tools[at + 2]["description"], APP);
    }
    assert_eq!(tools[5]["_meta"]["ui"]["resourceUri"], "ui://b+other");
    rig.asks(client, 2, method::RESOURCES_LIST, "");
    let resources = rig.got_json(client)["result"]["resources"].clone();
    assert_eq!(resources, json!([{ "uri": SECOND, "name": "main" }, { "uri": "ui://b/own" }]));
}

#[test]
fn an_app_is_read_at_its_own_server_and_comes_back_under_the_address_asked_for() {
    let (mut rig, servers, client) = two();
    for (id, uri, server) in [(1, APP, servers[0]), (2, SECOND, servers[1])] {
        rig.asks(client, id, method::RESOURCES_READ, &format!(r#""uri":"{uri}""#));
        let asked = rig.asked(server, method::RESOURCES_READ);
        assert_eq!(asked.members().expect("params").string("uri").as_deref(), Some(APP));
        let page = json!({ "uri": APP, "mimeType": "text/html;profile=mcp-app", "text": APP });
        rig.answers(server, &asked, &json!({ "contents": [page] }));
        let read = rig.got_json(client)["result"]["contents"][0].clone();
        assert_eq!((&read["uri"], &read["text"]), (&json!(uri), &json!(APP)));
    }
}

#[test]
fn results_and_links_name_the_app_of_the_server_they_come_from() {
    let (mut rig, servers, client) = two();
    let result = json!({
        "content": [
            { "type": "resource_link", "uri": APP, "name": "n" },
            { "type": "resource", "resource": { "uri": APP, "text": "x" } },
            { "type": "text", "text": APP },
        ],
        "structuredContent": { "uri": APP },
        "_meta": { "ui": { "resourceUri": APP } },
    });
    for (id, tool, server, uri) in [(1, "a__nested", servers[0], APP), (2, "b__nested", servers[1], SECOND)] {
        rig.calls(client, id, tool);
        let call = rig.asked(server, method::TOOLS_CALL);
        rig.answers(server, &call, &result);
        let got = rig.got_json(client)["result"].clone();
        assert_eq!((&got["content"][0]["uri"], &got["content"][1]["resource"]["uri"]), (&json!(uri), &json!(uri)));
        assert_eq!((&got["content"][2]["text"], &got["structuredContent"]["uri"]), (&json!(APP), &json!(APP)));
        assert_eq!(got["_meta"]["ui"]["resourceUri"], uri);
    }
    // A link to the app of the one is not read at the other.
    rig.asks(client, 3, method::RESOURCES_READ, &format!(r#""uri":"{APP}""#));
    rig.asked(servers[0], method::RESOURCES_READ);
}

#[test]
fn changes_of_an_app_are_told_under_the_address_subscribed_to() {
    let (mut rig, servers, client) = two();
    let wanted = format!(r#""notifications":{{"resourceSubscriptions":["{SECOND}"]}}"#);
    rig.asks(client, 1, method::LISTEN, &wanted);
    assert!(rig.was_asked(servers[0], method::LISTEN).is_none());
    let listen = rig.asked(servers[1], method::LISTEN);
    assert!(listen.payload().expect("params").contains(&format!(r#"["{APP}"]"#)), "{listen}");
    rig.acknowledge(servers[1], &listen);
    assert_eq!(rig.got_json(client)["params"]["notifications"], json!({ "resourceSubscriptions": [SECOND] }));
    let update = Message::notification(method::RESOURCES_UPDATED, Some(&json!({ "uri": APP }).to_string()));
    rig.server_says(servers[1], crate::era::subscribed(&update, listen.id().expect("an id")));
    assert_eq!(rig.got_json(client)["params"]["uri"], SECOND);
}

#[test]
fn an_address_that_one_server_has_stays_as_it_is() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b"), spec("b ")]);
    rig.pass(ms(250));
    let all = json!({ "resources": {} });
    for (server, uri) in [(0, "ui://x"), (1, "ui://y"), (2, "ui://b_+y")] {
        rig.offer_all(servers[server], &all, &json!({ "resources": [{ "uri": uri }] }));
    }
    let client = rig.join(1);
    let uris = |rig: &mut Rig| {
        rig.asks(client, 1, method::RESOURCES_LIST, "");
        let listed = rig.got_json(client)["result"]["resources"].clone();
        listed.as_array().expect("a list").iter().map(|one| one["uri"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(uris(&mut rig), ["ui://x", "ui://y", "ui://b_+y"]);
    // A new address is never one that somebody has.
    let again = rig.hub.handle_specs(vec![spec("b"), Spec { hash: "2".into(), ..spec("b ") }], rig.now);
    rig.pump();
    let both = json!({ "resources": [{ "uri": "ui://y" }, { "uri": "ui://b_+y" }] });
    rig.offer_all(again[1], &all, &both);
    assert_eq!(uris(&mut rig), ["ui://y", "ui://b__2+y", "ui://b_+y"]);
}
