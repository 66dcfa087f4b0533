//! Lists that may not be reused are asked for again.

use super::*;

/// A server that lists one tool, and says this about how long that may be reused.
fn live(ttl: u64, scope: &str) -> (Rig, Server, Client) {
    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    rig.pass(ms(250));
    let asked = rig.asked(servers[0], method::DISCOVER);
    rig.answers(servers[0], &asked, &json!({ "capabilities": { "tools": {} } }));
    let asked = rig.asked(servers[0], method::TOOLS_LIST);
    rig.answers(servers[0], &asked, &list("x", ttl, scope));
    let listen = rig.asked(servers[0], method::LISTEN);
    rig.acknowledge(servers[0], &listen);
    let client = rig.join(1);
    rig.pass(ms(1));
    (rig, servers[0], client)
}

fn list(tool: &str, ttl: u64, scope: &str) -> Value {
    json!({ "tools": [{ "name": tool }], "ttlMs": ttl, "cacheScope": scope })
}

fn lists(rig: &mut Rig, client: Client, id: u64) {
    rig.asks(client, id, method::TOOLS_LIST, "");
}

fn got(rig: &mut Rig, client: Client, id: u64, tool: &str) -> Value {
    let answer = rig.got_json(client);
    assert_eq!((&answer["id"], &answer["result"]["tools"][0]["name"]), (&json!(id), &json!(tool)), "{answer}");
    answer["result"].clone()
}

#[test]
fn a_list_without_a_time_to_live_or_that_is_private_is_asked_for_each_time() {
    for (ttl, scope) in [(0, "public"), (0, "private"), (60_000, "private")] {
        let (mut rig, server, client) = live(ttl, scope);
        rig.asks(client, 9, method::LISTEN, r#""notifications":{"toolsListChanged":true}"#);
        assert!(rig.got(client).is(method::ACKNOWLEDGED));
        for (id, tool) in [(1, "y"), (2, "z")] {
            rig.pass(ms(1));
            lists(&mut rig, client, id);
            assert!(rig.next(client).is_none());
            let asked = rig.asked(server, method::TOOLS_LIST);
            rig.answers(server, &asked, &list(tool, ttl, scope));
            let result = got(&mut rig, client, id, &format!("a__{tool}"));
            assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
            assert!(rig.next(client).is_none(), "what the server does not announce is not announced");
            // Names are routed by what was listed.
            rig.calls(client, 3, &format!("a__{tool}"));
            let call = rig.asked(server, method::TOOLS_CALL);
            rig.answers(server, &call, &json!({}));
            rig.got(client);
        }
        assert!(rig.hub.refreshes.is_empty(), "nothing is kept of lists that are answered");
    }
}

#[test]
fn a_list_of_a_session_era_server_is_reused_until_a_change_is_announced() {
    let (mut rig, server, client) = live(0, "private");
    lists(&mut rig, client, 1);
    let asked = rig.asked(server, method::TOOLS_LIST);
    // As the translation writes it.
    let translated = Message::result(asked.id().unwrap(), &list("y", 0, "private").to_string());
    rig.hub.handle_server(server, Packet::from(translated).of_session(), rig.now);
    rig.pump();
    got(&mut rig, client, 1, "a__y");
    rig.pass(Duration::from_secs(3600));
    lists(&mut rig, client, 2);
    let result = got(&mut rig, client, 2, "a__y");
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")), "clients may not reuse it");
    assert!(rig.was_asked(server, method::TOOLS_LIST).is_none());
}

#[test]
fn a_public_list_is_reused_while_it_lives() {
    let (mut rig, server, client) = live(60_000, "public");
    rig.pass(ms(9_999));
    lists(&mut rig, client, 1);
    let result = got(&mut rig, client, 1, "a__x");
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(50_000), &json!("public")));
    rig.pass(ms(50_000));
    lists(&mut rig, client, 2);
    let asked = rig.asked(server, method::TOOLS_LIST);
    rig.answers(server, &asked, &list("y", 60_000, "public"));
    got(&mut rig, client, 2, "a__y");
}

#[test]
fn a_list_that_was_asked_for_before_the_client_did_is_asked_for_again() {
    let (mut rig, server, client) = live(0, "public");
    let other = rig.join(2);
    lists(&mut rig, client, 1);
    let first = rig.asked(server, method::TOOLS_LIST);
    rig.pass(ms(10));
    lists(&mut rig, other, 1);
    lists(&mut rig, other, 2);
    assert!(rig.was_asked(server, method::TOOLS_LIST).is_none());
    rig.answers(server, &first, &list("y", 0, "public"));
    got(&mut rig, client, 1, "a__y");
    assert!(rig.next(other).is_none(), "a change between the two is not to be missed");
    let second = rig.asked(server, method::TOOLS_LIST);
    rig.answers(server, &second, &list("z", 0, "public"));
    got(&mut rig, other, 1, "a__z");
    got(&mut rig, other, 2, "a__z");
    assert!(rig.was_asked(server, method::TOOLS_LIST).is_none());
}

#[test]
fn a_list_is_not_asked_for_twice_when_the_first_client_asks_for_it() {
    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    let client = rig.join(1);
    lists(&mut rig, client, 1);
    let asked = rig.asked(servers[0], method::DISCOVER);
    rig.pass(ms(20));
    rig.answers(servers[0], &asked, &json!({ "capabilities": { "tools": {} } }));
    let asked = rig.asked(servers[0], method::TOOLS_LIST);
    rig.answers(servers[0], &asked, &list("x", 0, "private"));
    got(&mut rig, client, 1, "a__x");
    assert!(rig.was_asked(servers[0], method::TOOLS_LIST).is_none());
}

#[test]
fn a_server_that_does_not_list_again_is_offered_as_it_was() {
    let (mut rig, server, client) = live(0, "private");
    // It refuses.
    lists(&mut rig, client, 1);
    let asked = rig.asked(server, method::TOOLS_LIST);
    rig.server_says(server, Message::error(asked.id(), -32000, "not now"));
    got(&mut rig, client, 1, "a__x");
    // It is silent.
    rig.pass(ms(1));
    lists(&mut rig, client, 2);
    rig.pass(ms(2_999));
    assert!(rig.next(client).is_none());
    rig.pass(ms(1));
    got(&mut rig, client, 2, "a__x");
    // It is gone.
    lists(&mut rig, client, 3);
    rig.hub.handle_closed(server, "it ended", rig.now);
    rig.pump();
    got(&mut rig, client, 3, "a__x");
    lists(&mut rig, client, 4);
    got(&mut rig, client, 4, "a__x");
}

#[test]
fn several_lists_are_asked_for_at_once() {
    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    rig.pass(ms(250));
    let all = json!({ "tools": {}, "prompts": {}, "resources": {} });
    rig.offer_all(servers[0], &all, &json!({ "prompts": [{ "name": "p" }] }));
    rig.pass(Duration::from_secs(24 * 3600));
    let client = rig.join(1);
    for (id, part) in (1..).zip(Part::ALL) {
        rig.asks(client, id, part.method(), "");
    }
    let asked: Vec<Message> = Part::ALL.map(|part| rig.asked(servers[0], part.method())).into();
    for (part, asked) in Part::ALL.into_iter().zip(asked) {
        assert!(rig.next(client).is_none());
        rig.answers(servers[0], &asked, &json!({ part.member(): [] }));
    }
    for id in 1..=4 {
        assert_eq!(rig.got_json(client)["id"], id);
    }
}
