//! When lists are answered while servers still start.

use super::*;

fn caps() -> Value {
    json!({ "tools": {} })
}

#[test]
fn servers_that_are_ready_in_time_are_live() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), cached("b", &["old"])]);
    assert_eq!(rig.opened, servers);
    let client = rig.join(1);
    assert_eq!(rig.tools(client), None);
    rig.pass(ms(50));
    rig.offer(servers[0], &caps(), &["x"]);
    assert_eq!(rig.tools(client), None, "the other may still be in time");
    rig.offer(servers[1], &caps(), &["y"]);
    assert_eq!(rig.tools(client), Some(vec!["a__x".into(), "b__y".into()]));
    assert_eq!(rig.told, servers);
}

#[test]
fn a_server_that_is_known_from_before_is_offered_after_the_gate() {
    let (mut rig, servers) = Rig::new(vec![cached("a", &["x", "y"]), spec("b")]);
    let client = rig.join(1);
    rig.asks(client, 1, method::TOOLS_LIST, "");
    rig.offer(servers[1], &caps(), &["z"]);
    rig.pass(ms(249));
    assert!(rig.next(client).is_none());
    rig.pass(ms(1));
    let tools = &rig.got_json(client)["result"]["tools"];
    assert_eq!(tools[0]["name"], "a__x");
    assert_eq!(tools[2]["name"], "b__z");
    // A call to it waits for the connection, which is the bridge's to do.
    rig.calls(client, 2, "a__x");
    let call = rig.asked(servers[0], method::TOOLS_CALL);
    rig.answers(servers[0], &call, &json!({ "late": true }));
    assert_eq!(rig.got_json(client)["result"]["late"], true);
    // It has other tools by now: who listens is told.
    rig.asks(client, 3, method::LISTEN, r#""notifications":{"toolsListChanged":true,"promptsListChanged":true}"#);
    assert!(rig.got(client).is(method::ACKNOWLEDGED));
    rig.offer(servers[0], &caps(), &["x", "new"]);
    assert!(rig.got(client).is(method::TOOLS_LIST_CHANGED));
    assert!(rig.next(client).is_none());
    assert_eq!(rig.tools(client), Some(vec!["a__x".into(), "a__new".into(), "b__z".into()]));
}

#[test]
fn a_server_that_turns_out_the_same_is_no_news() {
    let (mut rig, servers) = Rig::new(vec![cached("a", &["x"])]);
    let client = rig.join(1);
    rig.asks(client, 1, method::LISTEN, r#""notifications":{"toolsListChanged":true}"#);
    assert!(rig.got(client).is(method::ACKNOWLEDGED));
    rig.pass(ms(300));
    assert_eq!(rig.tools(client), Some(vec!["a__x".into()]));
    rig.offer(servers[0], &caps(), &["x"]);
    assert!(rig.next(client).is_none());
}

#[test]
fn an_unknown_server_is_waited_for_but_not_for_ever() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b")]);
    let client = rig.join(1);
    rig.offer(servers[0], &caps(), &["x"]);
    rig.asks(client, 1, method::TOOLS_LIST, "");
    rig.asks(client, 2, method::DISCOVER, "");
    rig.calls(client, 3, "b__y");
    rig.offer(servers[0], &caps(), &["x"]);
    rig.pass(ms(2_900));
    assert!(rig.next(client).is_none());
    rig.pass(ms(100));
    assert_eq!(rig.got_json(client)["result"]["tools"].as_array().expect("tools").len(), 1);
    let found = rig.got_json(client);
    assert_eq!(found["id"], 2);
    assert!(found["result"]["capabilities"]["prompts"].is_object(), "it may turn out to have any: {found}");
    rig.asked(servers[1], method::TOOLS_CALL);
    assert!(rig.was_asked(servers[1], method::CANCELLED).is_none(), "it may still tell what it offers");
    rig.pass(ms(17_000));
    assert!(rig.asked(servers[1], method::CANCELLED).payload().is_some(), "it is asked no longer");
}

#[test]
fn a_silent_server_holds_the_first_list_up_for_three_seconds_and_is_announced_later() {
    let (mut rig, servers) = Rig::new(vec![spec("quick"), spec("silent")]);
    let client = rig.join(1);
    rig.asks(client, 1, method::LISTEN, r#""notifications":{"toolsListChanged":true}"#);
    assert!(rig.got(client).is(method::ACKNOWLEDGED));
    rig.asks(client, 2, method::TOOLS_LIST, "");
    rig.offer(servers[0], &caps(), &["x"]);
    assert!(rig.got(client).is(method::TOOLS_LIST_CHANGED));
    rig.pass(ms(2_999));
    assert!(rig.next(client).is_none());
    rig.pass(ms(1));
    let listed = rig.got_json(client);
    assert_eq!(listed["result"]["tools"].as_array().expect("tools").len(), 1, "{listed}");
    // A call to the silent one is not refused: it is sent to where its name says it belongs.
    rig.calls(client, 3, "silent__y");
    rig.asked(servers[1], method::TOOLS_CALL);
    rig.pass(ms(10_000));
    assert!(rig.next(client).is_none());
    rig.offer(servers[1], &caps(), &["y"]);
    assert!(rig.got(client).is(method::TOOLS_LIST_CHANGED));
    assert_eq!(rig.tools(client), Some(vec!["quick__x".into(), "silent__y".into()]));
}

#[test]
fn a_server_that_fails_is_waited_for_no_longer_and_tried_again() {
    let (mut rig, servers) = Rig::new(vec![spec("bad"), spec("good")]);
    let client = rig.join(1);
    rig.asks(client, 1, method::TOOLS_LIST, "");
    rig.offer(servers[1], &caps(), &["x"]);
    assert!(rig.next(client).is_none());
    let asked = rig.asked(servers[0], method::DISCOVER);
    let error = Fault::Upstream("cannot reach the server: it is not there; gave up after 20s".into());
    rig.server_says(servers[0], error.to_message(asked.id()));
    assert_eq!(rig.got_json(client)["result"]["tools"][0]["name"], "good__x");
    rig.pass(ms(100));
    rig.offer(servers[0], &caps(), &["y"]);
    assert_eq!(rig.tools(client), Some(vec!["bad__y".into(), "good__x".into()]), "in the order of the servers");
}

#[test]
fn a_server_in_trouble_is_waited_for_no_longer() {
    let (mut rig, servers) = Rig::new(vec![spec("bad")]);
    let client = rig.join(1);
    rig.asks(client, 1, method::TOOLS_LIST, "");
    rig.hub.handle_trouble(servers[0], rig.now);
    rig.pump();
    assert_eq!(rig.got_json(client)["result"]["tools"], json!([]));
    assert_eq!(rig.hub.unsettled().count(), 0);
}

#[test]
fn what_servers_can_do_is_told_at_once_when_they_are_known() {
    let (mut rig, _) = Rig::new(vec![cached("a", &["x"]), cached("b", &["y"])]);
    let client = rig.join(1);
    rig.asks(client, 1, method::DISCOVER, "");
    let found = rig.got_json(client);
    assert_eq!(found["result"]["capabilities"], json!({ "tools": { "listChanged": true } }));
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
}

#[test]
fn the_catalogue_is_asked_for_in_the_name_of_the_first_client() {
    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    assert!(rig.was_asked(servers[0], method::DISCOVER).is_none(), "a client may come at any moment");
    let client = rig.join(1);
    let signed = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name": "me"},"io.modelcontextprotocol/clientCapabilities":{"roots":{ }}}}}"#;
    rig.says(client, signed);
    let asked = rig.asked(servers[0], method::DISCOVER);
    let declared = meta::declared(&asked).expect("it stands for itself");
    assert_eq!(declared.client_info.expect("info").get(), r#"{"name": "me"}"#);
    assert_eq!(declared.capabilities.expect("capabilities").get(), r#"{"roots":{ }}"#);

    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    rig.pass(ms(250));
    let asked = rig.asked(servers[0], method::DISCOVER);
    assert!(meta::declared(&asked).expect("it stands for itself").client_info.expect("info").get().contains("mcpwire"));
}

#[test]
fn pages_are_followed() {
    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    rig.pass(ms(250));
    let asked = rig.asked(servers[0], method::DISCOVER);
    rig.answers(servers[0], &asked, &json!({ "capabilities": { "tools": {} } }));
    for (tool, cursor) in [("x", json!("2 \"")), ("y", json!("3")), ("z", Value::Null)] {
        let asked = rig.asked(servers[0], method::TOOLS_LIST);
        rig.answers(servers[0], &asked, &json!({ "tools": [{ "name": tool }], "nextCursor": cursor }));
    }
    let client = rig.join(1);
    assert_eq!(rig.tools(client), Some(vec!["a__x".into(), "a__y".into(), "a__z".into()]));
    rig.asks(client, 5, method::TOOLS_LIST, r#""cursor":"2""#);
    assert!(rig.error(client, 5).contains("cursor"));
}
