//! Clients hear of the changes they listen for.

use super::*;

fn resources() -> Value {
    json!({ "tools": {}, "resources": { "subscribe": true } })
}

/// Two servers with a resource each, and a template on the second.
fn two() -> (Rig, Vec<Server>) {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b")]);
    rig.pass(ms(250));
    rig.offer_all(servers[0], &resources(), &json!({ "resources": [{ "uri": "r://a" }] }));
    rig.offer_all(servers[1], &resources(), &json!({ "resources": [{ "uri": "r://b" }] }));
    (rig, servers)
}

fn wanted(listen: &Message) -> Value {
    let params: Value = serde_json::from_str(listen.payload().expect("params")).expect("JSON");
    params["notifications"]["resourceSubscriptions"].clone()
}

fn updated(rig: &mut Rig, server: Server, listen: &Message, uri: &str) {
    let update = Message::notification(method::RESOURCES_UPDATED, Some(&json!({ "uri": uri }).to_string()));
    rig.server_says(server, crate::era::subscribed(&update, listen.id().expect("an id")));
}

fn listens(rig: &mut Rig, client: Client, id: u64, uris: &str) {
    rig.asks(client, id, method::LISTEN, &format!(r#""notifications":{{"resourceSubscriptions":{uris}}}"#));
}

#[test]
fn a_listen_is_acknowledged_when_the_servers_have() {
    let (mut rig, servers) = two();
    let (one, two) = (rig.join(1), rig.join(2));
    listens(&mut rig, one, 1, r#"["r://a"]"#);
    assert!(rig.next(one).is_none());
    assert!(rig.was_asked(servers[1], method::LISTEN).is_none(), "it is none of its resources");
    let first = rig.asked(servers[0], method::LISTEN);
    assert_eq!(wanted(&first), json!(["r://a"]));
    updated(&mut rig, servers[0], &first, "r://a");
    assert!(rig.next(one).is_none(), "the first thing to hear is the acknowledgement");
    rig.acknowledge(servers[0], &first);
    let told = rig.got_json(one);
    assert_eq!(told["params"]["notifications"]["resourceSubscriptions"], json!(["r://a"]));
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert_eq!(rig.got_json(one)["params"]["uri"], "r://a");
    // Another client, another resource: the union is asked for, and each hears of its own.
    listens(&mut rig, two, 1, r#"["r://a","r://b"]"#);
    assert!(rig.was_asked(servers[0], method::LISTEN).is_none(), "it tells of it already");
    let second = rig.asked(servers[1], method::LISTEN);
    rig.acknowledge(servers[1], &second);
    assert!(rig.got(two).is(method::ACKNOWLEDGED));
    updated(&mut rig, servers[1], &second, "r://b");
    updated(&mut rig, servers[1], &second, "r://a");
    assert_eq!(rig.got_json(two)["params"]["uri"], "r://b");
    assert!(rig.next(one).is_none() && rig.next(two).is_none(), "a resource is told of by its server alone");
    updated(&mut rig, servers[0], &first, "r://a");
    assert!(rig.got(one).is(method::RESOURCES_UPDATED) && rig.got(two).is(method::RESOURCES_UPDATED));
    // With the last that wants it, it is let go.
    rig.says(two, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert_eq!(meta::cancelled_request(&rig.asked(servers[1], method::CANCELLED)), second.id().cloned());
    assert!(rig.was_asked(servers[0], method::CANCELLED).is_none());
    rig.hub.handle_leave(one, rig.now);
    rig.pump();
    assert_eq!(meta::cancelled_request(&rig.asked(servers[0], method::CANCELLED)), first.id().cloned());
}

#[test]
fn a_listen_grows_and_the_one_before_is_closed_when_it_is_in_force() {
    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    rig.pass(ms(250));
    rig.offer_all(servers[0], &resources(), &json!({ "resources": [{ "uri": "r://1" }, { "uri": "r://2" }] }));
    let client = rig.join(1);
    listens(&mut rig, client, 1, r#"["r://1"]"#);
    let first = rig.asked(servers[0], method::LISTEN);
    rig.acknowledge(servers[0], &first);
    listens(&mut rig, client, 2, r#"["r://2"]"#);
    let second = rig.asked(servers[0], method::LISTEN);
    assert_eq!(wanted(&second), json!(["r://1", "r://2"]));
    assert!(rig.was_asked(servers[0], method::CANCELLED).is_none());
    rig.acknowledge(servers[0], &second);
    assert_eq!(meta::cancelled_request(&rig.asked(servers[0], method::CANCELLED)), first.id().cloned());
}

#[test]
fn each_sort_of_client_hears_what_the_server_tells_its_own_sort() {
    let (mut rig, servers) = two();
    let (one, other) = (rig.join(1), rig.join(2));
    listens(&mut rig, one, 1, r#"["r://a"]"#);
    let ours = rig.asked(servers[0], method::LISTEN);
    rig.acknowledge(servers[0], &ours);
    assert!(rig.got(one).is(method::ACKNOWLEDGED));
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":{{"notifications":{{"resourceSubscriptions":["r://a"]}},{}}}}}"#,
        method::LISTEN,
        META.replace(
            "\"io.modelcontextprotocol/clientCapabilities\":{}",
            "\"io.modelcontextprotocol/clientCapabilities\":{\"roots\":{}}"
        ),
    );
    rig.says(other, &text);
    let theirs = rig.asked(servers[0], method::LISTEN);
    assert!(theirs.payload().expect("params").contains(r#"{"roots":{}}"#), "asked in their name: {theirs}");
    assert!(!theirs.payload().expect("params").contains("ListChanged"), "the lists are the hub's affair");
    assert!(rig.was_asked(servers[0], method::CANCELLED).is_none(), "the other sort's stays");
    rig.acknowledge(servers[0], &theirs);
    assert!(rig.got(other).is(method::ACKNOWLEDGED));
    updated(&mut rig, servers[0], &theirs, "r://a");
    assert!(rig.got(other).is(method::RESOURCES_UPDATED) && rig.next(one).is_none());
    updated(&mut rig, servers[0], &ours, "r://a");
    assert!(rig.got(one).is(method::RESOURCES_UPDATED) && rig.next(other).is_none());
}

#[test]
fn what_a_server_does_not_tell_of_is_not_promised() {
    let (mut rig, servers) = two();
    let client = rig.join(1);
    listens(&mut rig, client, 1, r#"["r://a"]"#);
    let listen = rig.asked(servers[0], method::LISTEN);
    let none = Message::notification(method::ACKNOWLEDGED, Some(r#"{"notifications":{}}"#));
    rig.server_says(servers[0], crate::era::subscribed(&none, listen.id().expect("an id")));
    assert_eq!(rig.got_json(client)["params"]["notifications"], json!({}));
    // One that says nothing holds nobody up for long.
    listens(&mut rig, client, 2, r#"["r://b"]"#);
    rig.pass(ms(5_000));
    assert_eq!(rig.got_json(client)["params"]["notifications"], json!({}));
}

#[test]
fn a_changed_list_is_asked_for_before_clients_are_told() {
    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    rig.pass(ms(250));
    let asked = rig.asked(servers[0], method::DISCOVER);
    rig.answers(servers[0], &asked, &json!({ "capabilities": { "tools": {} } }));
    let asked = rig.asked(servers[0], method::TOOLS_LIST);
    rig.answers(servers[0], &asked, &json!({ "tools": [] }));
    let listen = rig.asked(servers[0], method::LISTEN);
    rig.acknowledge(servers[0], &listen);
    let client = rig.join(1);
    rig.asks(client, 1, method::LISTEN, r#""notifications":{"toolsListChanged":true}"#);
    assert!(rig.got(client).is(method::ACKNOWLEDGED));
    let changed = Message::notification(method::TOOLS_LIST_CHANGED, None);
    let id = listen.id().expect("an id");
    rig.server_says(servers[0], crate::era::subscribed(&changed, id));
    // It changes again while it is asked for: it is asked for once more.
    rig.server_says(servers[0], crate::era::subscribed(&changed, id));
    assert!(rig.next(client).is_none());
    let asked = rig.asked(servers[0], method::TOOLS_LIST);
    assert!(rig.was_asked(servers[0], method::TOOLS_LIST).is_none());
    rig.answers(servers[0], &asked, &json!({ "tools": [{ "name": "x" }] }));
    assert!(rig.got(client).is(method::TOOLS_LIST_CHANGED));
    assert_eq!(rig.tools(client), Some(vec!["a__x".into()]));
    rig.pass(Config::default().coalesce);
    let asked = rig.asked(servers[0], method::TOOLS_LIST);
    rig.answers(servers[0], &asked, &json!({ "tools": [{ "name": "y" }] }));
    assert!(rig.got(client).is(method::TOOLS_LIST_CHANGED));
    // What does not come on a listen of ours counts for nothing.
    rig.server_says(servers[0], crate::era::subscribed(&changed, &Id::from("other")));
    rig.server_says(servers[0], changed);
    assert!(rig.was_asked(servers[0], method::TOOLS_LIST).is_none());
}

#[test]
fn a_listen_that_the_server_ends_is_opened_again_and_one_that_it_refuses_is_not() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b")]);
    rig.pass(ms(250));
    let mut listen = Vec::new();
    for server in &servers {
        let asked = rig.asked(*server, method::DISCOVER);
        rig.answers(*server, &asked, &json!({ "capabilities": {} }));
        listen.push(rig.asked(*server, method::LISTEN));
    }
    rig.acknowledge(servers[0], &listen[0]);
    rig.answers(servers[0], &listen[0], &json!({ "resultType": "complete" }));
    rig.server_says(servers[1], Message::error(listen[1].id(), -32601, "what?"));
    rig.pass(ms(200));
    assert!(rig.was_asked(servers[0], method::LISTEN).is_some());
    assert!(rig.was_asked(servers[0], method::TOOLS_LIST).is_some(), "changes may have been missed");
    assert!(rig.was_asked(servers[1], method::LISTEN).is_none());
}

#[test]
fn a_storm_of_changes_is_coalesced_and_the_last_one_is_never_lost() {
    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    rig.pass(ms(250));
    let asked = rig.asked(servers[0], method::DISCOVER);
    rig.answers(servers[0], &asked, &json!({ "capabilities": { "tools": {} } }));
    let asked = rig.asked(servers[0], method::TOOLS_LIST);
    rig.answers(servers[0], &asked, &json!({ "tools": [] }));
    let listen = rig.asked(servers[0], method::LISTEN);
    rig.acknowledge(servers[0], &listen);
    let client = rig.join(1);
    rig.asks(client, 1, method::LISTEN, r#""notifications":{"toolsListChanged":true}"#);
    assert!(rig.got(client).is(method::ACKNOWLEDGED));
    let (mut told, mut fetched, mut version) = (0, 0, 0);
    let mut serve = |rig: &mut Rig, version: usize| {
        while let Some(asked) = rig.was_asked(servers[0], method::TOOLS_LIST) {
            fetched += 1;
            rig.answers(servers[0], &asked, &json!({ "tools": [{ "name": format!("v{version}") }] }));
        }
        while let Some(message) = rig.next(client) {
            assert!(message.is(method::TOOLS_LIST_CHANGED), "{message}");
            told += 1;
        }
    };
    for _ in 0..1000 {
        version += 1;
        let changed = Message::notification(method::TOOLS_LIST_CHANGED, None);
        rig.server_says(servers[0], crate::era::subscribed(&changed, listen.id().expect("an id")));
        serve(&mut rig, version);
        rig.pass(ms(1));
    }
    for _ in 0..5 {
        rig.pass(ms(250));
        serve(&mut rig, version);
    }
    assert_eq!(rig.tools(client), Some(vec![format!("a__v{version}")]));
    assert!((4..=6).contains(&told) && (4..=6).contains(&fetched), "told {told} times, fetched {fetched} times");
    assert_eq!(rig.hub.poll_timeout(), None);
}

#[test]
fn servers_that_get_ready_one_after_the_other_are_announced_together() {
    let specs: Vec<Spec> = (0..20).map(|n| spec(&format!("s{n}"))).collect();
    let (mut rig, servers) = Rig::new(specs);
    let client = rig.join(1);
    rig.asks(client, 1, method::LISTEN, r#""notifications":{"toolsListChanged":true}"#);
    assert!(rig.got(client).is(method::ACKNOWLEDGED));
    for server in &servers {
        rig.offer(*server, &json!({ "tools": {} }), &["x"]);
        rig.pass(ms(10));
    }
    rig.pass(ms(300));
    assert!(rig.got(client).is(method::TOOLS_LIST_CHANGED) && rig.got(client).is(method::TOOLS_LIST_CHANGED));
    assert!(rig.next(client).is_none());
    assert_eq!(rig.tools(client).expect("a list").len(), 20);
}
