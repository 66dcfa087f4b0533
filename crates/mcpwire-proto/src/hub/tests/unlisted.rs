//! What no list names: servers need not list all that they serve.

use super::*;

fn read(rig: &mut Rig, client: Client, id: u64, uri: &str) {
    rig.asks(client, id, method::RESOURCES_READ, &format!(r#""uri":"{uri}""#));
}

fn refuse(rig: &mut Rig, server: Server, method: &str, why: &str) {
    let asked = rig.asked(server, method);
    rig.server_says(server, Message::error(asked.id(), -32602, why));
}

/// A tool of the server returns a link to a resource.
fn returns_link(rig: &mut Rig, client: Client, server: Server, tool: &str, uri: &str) {
    rig.calls(client, 100, tool);
    let call = rig.asked(server, method::TOOLS_CALL);
    rig.answers(server, &call, &json!({ "content": [{ "type": "resource_link", "uri": uri, "name": "n" }] }));
    assert_eq!(rig.got_json(client)["id"], 100);
}

#[test]
fn an_unlisted_tool_prompt_or_resource_goes_to_the_only_server() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"])]);
    let client = rig.join(1);
    for (id, called, sent) in [(1, "hidden", "hidden"), (2, "a__hidden", "hidden")] {
        rig.calls(client, id, called);
        let call = rig.asked(servers[0], method::TOOLS_CALL);
        assert_eq!(call.members().expect("params").string("name").as_deref(), Some(sent));
        rig.server_says(servers[0], Message::error(call.id(), -32602, "its own words"));
        assert_eq!(rig.error(client, id), "its own words");
    }
    rig.asks(client, 3, method::PROMPTS_GET, r#""name":"hidden""#);
    rig.asked(servers[0], method::PROMPTS_GET);
    rig.asks(client, 4, method::COMPLETION_COMPLETE, r#""ref":{"type":"ref/prompt","name":"hidden"}"#);
    rig.asked(servers[0], method::COMPLETION_COMPLETE);
    read(&mut rig, client, 5, "u://it-has-no-capability-for");
    rig.asked(servers[0], method::RESOURCES_READ);
}

#[test]
fn an_unlisted_tool_goes_to_the_server_it_names_or_to_the_only_one_with_tools() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"]), ("a__b", &["x"]), ("c", &[])]);
    let client = rig.join(1);
    rig.calls(client, 1, "a__b__hidden");
    let call = rig.asked(servers[1], method::TOOLS_CALL);
    assert_eq!(call.members().expect("params").string("name").as_deref(), Some("hidden"));
    // It may act before it fails, so it is not tried on one server after the other.
    rig.calls(client, 2, "hidden");
    assert_eq!(rig.error(client, 2), "invalid params: unknown tool: hidden");

    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b")]);
    rig.pass(ms(250));
    rig.offer(servers[0], &json!({ "prompts": {} }), &[]);
    rig.offer(servers[1], &json!({ "tools": {} }), &["x"]);
    let client = rig.join(1);
    rig.calls(client, 1, "hidden");
    rig.asked(servers[1], method::TOOLS_CALL);
}

#[test]
fn an_unlisted_tool_that_the_patterns_leave_out_is_not_callable() {
    let hidden = Spec { policy: crate::Policy::new(&[], &["secret*".into()]), ..spec("a") };
    let (mut rig, servers) = Rig::new(vec![hidden]);
    rig.pass(ms(250));
    rig.offer(servers[0], &json!({ "tools": {} }), &["x", "secret"]);
    let client = rig.join(1);
    for (id, name) in [(1, "secret"), (2, "a__secret"), (3, "secret_unlisted"), (4, "a__secret_unlisted")] {
        rig.calls(client, id, name);
        assert_eq!(rig.error(client, id), format!("invalid params: unknown tool: {name}"));
    }
    assert!(rig.was_asked(servers[0], method::TOOLS_CALL).is_none());
}

#[test]
fn an_unlisted_prompt_is_asked_for_at_each_server_with_prompts() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b"), spec("c")]);
    rig.pass(ms(250));
    rig.offer(servers[0], &json!({ "prompts": {} }), &[]);
    rig.offer(servers[1], &json!({ "tools": {} }), &["x"]);
    rig.offer(servers[2], &json!({ "prompts": {} }), &[]);
    let client = rig.join(1);
    rig.asks(client, 1, method::PROMPTS_GET, r#""name":"hidden""#);
    refuse(&mut rig, servers[0], method::PROMPTS_GET, "none here");
    let asked = rig.asked(servers[2], method::PROMPTS_GET);
    rig.answers(servers[2], &asked, &json!({ "resultType": "input_required", "requestState": "c" }));
    assert_eq!(rig.got_json(client)["result"]["requestState"], "c");
    // The retry, with what this server sealed, goes nowhere else.
    rig.asks(client, 2, method::PROMPTS_GET, r#""name":"hidden","requestState":"c""#);
    assert!(rig.was_asked(servers[0], method::PROMPTS_GET).is_none());
    rig.asked(servers[2], method::PROMPTS_GET);
}

#[test]
fn a_bare_name_is_callable_while_one_server_has_it() {
    for prefix in [Prefix::Always, Prefix::Mcp] {
        let (mut rig, servers) = Rig::with(Config { prefix, ..Config::default() }, vec![spec("a"), spec("b")]);
        rig.pass(ms(250));
        rig.offer(servers[0], &json!({ "tools": {} }), &["both"]);
        let client = rig.join(1);
        rig.calls(client, 1, "mine");
        assert!(rig.next(client).is_none(), "the other server may have it");
        rig.offer(servers[1], &json!({ "tools": {} }), &["both", "mine"]);
        let call = rig.asked(servers[1], method::TOOLS_CALL);
        assert_eq!(call.members().expect("params").string("name").as_deref(), Some("mine"));
        rig.calls(client, 2, "both");
        assert_eq!(rig.error(client, 2), "invalid params: unknown tool: both");
    }
}

#[test]
fn a_link_is_read_at_the_server_that_returned_it() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b"), spec("c")]);
    rig.pass(ms(250));
    let lists = json!({ "resources": [{ "uri": "r://listed" }] });
    rig.offer_all(servers[0], &json!({ "resources": {} }), &lists);
    rig.offer(servers[1], &json!({ "tools": {} }), &["make"]);
    rig.offer(servers[2], &json!({ "tools": {} }), &["make"]);
    let (client, other) = (rig.join(1), rig.join(2));
    returns_link(&mut rig, client, servers[1], "b__make", "r://made");
    returns_link(&mut rig, client, servers[1], "b__make", "r://listed");
    returns_link(&mut rig, other, servers[2], "c__make", "r://made");
    for (id, who, uri, server) in
        [(1, client, "r://made", servers[1]), (2, client, "r://listed", servers[1]), (3, other, "r://made", servers[2])]
    {
        read(&mut rig, who, id, uri);
        assert!(rig.was_asked(servers[0], method::RESOURCES_READ).is_none());
        let asked = rig.asked(server, method::RESOURCES_READ);
        rig.answers(server, &asked, &json!({ "contents": [] }));
        assert_eq!(rig.got_json(who)["id"], id);
    }
    // A link may be to a resource of another server; if nobody has it, the answer of the one that returned it counts.
    read(&mut rig, client, 4, "r://made");
    refuse(&mut rig, servers[1], method::RESOURCES_READ, "not for you");
    refuse(&mut rig, servers[0], method::RESOURCES_READ, "unknown");
    assert_eq!(rig.error(client, 4), "not for you");
}

#[test]
fn a_greedy_template_does_not_capture_the_resources_of_others() {
    let (mut rig, servers) = Rig::new(vec![spec("greedy"), spec("plain"), spec("exact"), spec("wide")]);
    rig.pass(ms(250));
    for (server, templates) in
        [(0, json!([{ "uriTemplate": "{+any}" }])), (1, json!([])), (2, json!([{ "uriTemplate": "t://x/{y}" }]))]
    {
        rig.offer_all(servers[server], &json!({ "resources": {} }), &json!({ "resourceTemplates": templates }));
    }
    let wide = json!({ "resourceTemplates": [{ "uriTemplate": "t://{+rest}" }] });
    rig.offer_all(servers[3], &json!({ "resources": {} }), &wide);
    let client = rig.join(1);
    for (id, uri, order) in [(1, "u://unlisted", [1, 2, 3, 0]), (2, "t://x/1", [2, 3, 1, 0])] {
        read(&mut rig, client, id, uri);
        for server in order {
            refuse(&mut rig, servers[server], method::RESOURCES_READ, "unknown");
        }
        assert_eq!(rig.error(client, id), "unknown");
    }
}

#[test]
fn a_server_that_is_down_does_not_keep_others_from_being_asked() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b")]);
    rig.pass(ms(250));
    let template = json!({ "resourceTemplates": [{ "uriTemplate": "t://{x}" }] });
    rig.offer_all(servers[0], &json!({ "resources": {} }), &template);
    rig.offer_all(servers[1], &json!({ "resources": {} }), &json!({}));
    rig.hub.handle_closed(servers[0], "it ended", rig.now);
    rig.pump();
    let client = rig.join(1);
    read(&mut rig, client, 1, "t://1");
    rig.asked(servers[1], method::RESOURCES_READ);
}
