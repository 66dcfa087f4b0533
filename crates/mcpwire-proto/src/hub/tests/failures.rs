//! Servers that fail cost their own calls, and nobody else's.

use super::*;

fn fail(rig: &mut Rig, server: Server, request: &Message) {
    let text = "the connection to the server was lost before the answer came: it died";
    let packet = Fault::NoAnswer(Cause::Interrupted, text.into()).to_packet(request.id());
    rig.hub.handle_server(server, packet, rig.now);
    rig.pump();
}

/// The texts are those of our own errors, as far as anything in the hub ever looked at them.
#[test]
fn a_tool_that_fails_in_our_words_is_not_taken_for_a_dead_server() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"])]);
    let client = rig.join(1);
    let texts = [
        "cannot reach the server db1: no route to host",
        "the connection to the server db1 was lost",
        "there is no session with the server",
        "the server does not know the session",
        "the server refused a session",
        "timed out: no answer from db1",
        "HTTP 502 Bad Gateway",
    ];
    for (id, text) in (1..).zip(texts) {
        rig.calls(client, id, "a__x");
        let call = rig.asked(servers[0], method::TOOLS_CALL);
        let error = json!({"code": -32603, "message": text, "data": {"status": 502}}).to_string();
        rig.server_says(servers[0], Message::error_object(call.id(), &error));
        assert_eq!(rig.error(client, id), text, "the error is the tool's own");
    }
    rig.calls(client, 99, "a__x");
    rig.asked(servers[0], method::TOOLS_CALL);
}

#[test]
fn a_tool_that_fails_before_its_server_is_listed_is_not_taken_for_a_dead_server() {
    let (mut rig, servers) = Rig::new(vec![cached("a", &["x"])]);
    let client = rig.join(1);
    for id in 1..=6 {
        rig.calls(client, id, "a__x");
        let call = rig.asked(servers[0], method::TOOLS_CALL);
        rig.server_says(servers[0], Message::error(call.id(), -32603, "its own trouble"));
        assert_eq!(rig.error(client, id), "its own trouble");
    }
}

#[test]
fn the_error_of_a_dead_server_names_it() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"]), ("b", &["x"])]);
    let client = rig.join(1);
    rig.calls(client, 1, "a__x");
    rig.calls(client, 2, "b__x");
    let call = rig.asked(servers[0], method::TOOLS_CALL);
    fail(&mut rig, servers[0], &call);
    assert!(rig.error(client, 1).starts_with("MCP server not connected: a: the connection"));
    let call = rig.asked(servers[1], method::TOOLS_CALL);
    rig.server_says(servers[1], Message::error(call.id(), -32603, "its own trouble"));
    assert_eq!(rig.error(client, 2), "its own trouble");
}

#[test]
fn five_failures_in_a_row_and_calls_fail_at_once_until_it_is_back() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"]), ("b", &["x"])]);
    let client = rig.join(1);
    for id in 1..=5 {
        rig.calls(client, id, "a__x");
        let call = rig.asked(servers[0], method::TOOLS_CALL);
        fail(&mut rig, servers[0], &call);
        rig.error(client, id);
    }
    rig.calls(client, 6, "a__x");
    let told = rig.error(client, 6);
    assert!(told.contains("MCP server not connected: a") && told.contains("tried again in"), "{told}");
    assert!(rig.was_asked(servers[0], method::TOOLS_CALL).is_none());
    rig.calls(client, 7, "b__x");
    rig.asked(servers[1], method::TOOLS_CALL);
    // It is asked for its catalogue, and not by way of somebody's call.
    rig.pass(ms(100));
    rig.calls(client, 8, "a__x");
    assert!(rig.error(client, 8).contains("being tried again"));
    rig.offer(servers[0], &json!({ "tools": {} }), &["x"]);
    rig.calls(client, 9, "a__x");
    rig.asked(servers[0], method::TOOLS_CALL);
}

#[test]
fn a_call_that_its_server_refuses_before_it_has_told_what_it_offers_is_no_failure() {
    let (mut rig, servers) = Rig::new(vec![cached("a", &["x"])]);
    let client = rig.join(1);
    for id in 1..=6 {
        rig.calls(client, id, "a__x");
        let call = rig.asked(servers[0], method::TOOLS_CALL);
        rig.server_says(servers[0], Message::error(call.id(), -32602, "not so"));
        assert_eq!(rig.error(client, id), "not so");
    }
}

#[test]
fn a_connection_that_ends_is_made_anew() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"])]);
    let client = rig.join(1);
    rig.opened.clear();
    rig.calls(client, 1, "a__x");
    rig.hub.handle_closed(servers[0], "cannot reach for it", rig.now);
    rig.pump();
    assert!(rig.error(client, 1).contains("MCP server not connected: a"));
    rig.calls(client, 2, "a__x");
    assert!(rig.error(client, 2).contains("tried again in"));
    assert_eq!(rig.tools(client), Some(vec!["a__x".into()]), "it is still offered");
    rig.pass(ms(100));
    assert_eq!(rig.opened, servers);
    rig.to_servers.clear();
    rig.calls(client, 3, "a__x");
    rig.asked(servers[0], method::TOOLS_CALL);
}

#[test]
fn a_server_that_does_not_tell_what_it_offers_is_asked_again_and_again() {
    let (mut rig, servers) = Rig::new(vec![spec("a")]);
    for _ in 0..5 {
        rig.pass(ms(26_000));
        assert!(rig.was_asked(servers[0], method::DISCOVER).is_some());
    }
    rig.to_servers.clear();
    rig.pass(ms(26_000));
    rig.offer(servers[0], &json!({ "tools": {} }), &["x"]);
    let client = rig.join(1);
    assert_eq!(rig.tools(client), Some(vec!["a__x".into()]));
    assert_eq!(rig.hub.poll_timeout(), None);
}
