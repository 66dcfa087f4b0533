//! Servers that come, go and change while the hub runs.

use super::*;

#[test]
fn only_what_changed_is_started_anew() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"]), ("b", &["x"]), ("c", &["x"])]);
    let client = rig.join(1);
    rig.asks(client, 9, method::LISTEN, r#""notifications":{"toolsListChanged":true}"#);
    rig.got(client);
    for (id, tool) in [(1, "a__x"), (2, "b__x"), (3, "c__x")] {
        rig.calls(client, id, tool);
    }
    rig.opened.clear();
    let changed = Spec { hash: "2".into(), ..spec("b") };
    let now = rig.hub.handle_specs(vec![spec("d"), changed, spec("a")], rig.now);
    rig.pump();
    assert_eq!(now[2], servers[0]);
    assert_eq!(rig.opened, now[..2]);
    let mut closed = rig.closed.clone();
    closed.sort();
    assert_eq!(closed, servers[1..]);
    let mut failed = [rig.got_json(client), rig.got_json(client), rig.got_json(client)];
    failed.sort_by_key(|told| told["id"].as_u64());
    assert!(failed.iter().any(|told| told["method"] == method::TOOLS_LIST_CHANGED));
    let failed: Vec<u64> = failed.iter().filter_map(|told| told["id"].as_u64()).collect();
    assert_eq!(failed, [2, 3]);
    // The call to the one that stays goes on; the one that changed is taken for what it was.
    let call = rig.asked(servers[0], method::TOOLS_CALL);
    rig.answers(servers[0], &call, &json!({}));
    assert_eq!(rig.got_json(client)["id"], 1);
    assert_eq!(rig.tools(client), Some(vec!["b__x".into(), "a__x".into()]));
    rig.pass(Config::default().coalesce);
    rig.offer(now[1], &json!({ "tools": {} }), &["y"]);
    assert!(rig.got(client).is(method::TOOLS_LIST_CHANGED));
    rig.offer(now[0], &json!({ "tools": {} }), &["z"]);
    rig.pass(Config::default().coalesce);
    assert!(rig.got(client).is(method::TOOLS_LIST_CHANGED));
    assert_eq!(rig.tools(client), Some(vec!["d__z".into(), "b__y".into(), "a__x".into()]));
    // What those that are gone still say is not heard.
    let late = rig.asked(servers[1], method::TOOLS_CALL);
    rig.answers(servers[1], &late, &json!({}));
    assert!(rig.next(client).is_none());
}

#[test]
fn nothing_changes_when_nothing_changed() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"])]);
    let client = rig.join(1);
    rig.asks(client, 9, method::LISTEN, r#""notifications":{"toolsListChanged":true}"#);
    rig.got(client);
    rig.opened.clear();
    assert_eq!(rig.hub.handle_specs(vec![spec("a")], rig.now), servers);
    rig.pump();
    assert!(rig.opened.is_empty() && rig.closed.is_empty() && rig.next(client).is_none());
}
