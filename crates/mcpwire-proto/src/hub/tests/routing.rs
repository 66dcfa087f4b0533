//! Requests reach their server with nothing changed but what must be, and everything comes back to its client alone.

use super::*;
use crate::Policy;

#[test]
fn only_the_name_the_id_and_the_token_are_changed() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"]), ("b", &["x"])]);
    let client = rig.join(1);
    let meta = &META[9..META.len() - 1];
    let call = format!(
        r#"{{"jsonrpc":"2.0","params":{{ "zz" : 1.10, "name":"b__x","arguments":{{"name":"b__x","n":12345678901234567890, "e":"é"}},"_meta":{{"progressToken":"t","progress":"t",{meta}}} }} ,"method":"tools/call","id":"c1"}}"#
    );
    rig.says(client, &call);
    let sent = rig.asked(servers[1], method::TOOLS_CALL);
    let ours = sent.id().expect("an id").to_string();
    let expected = call
        .replacen(r#""name":"b__x","arg"#, r#""name":"x","arg"#, 1)
        .replacen(r#""progressToken":"t""#, &format!(r#""progressToken":{ours}"#), 1)
        .replacen(r#""id":"c1""#, &format!(r#""id":{ours}"#), 1);
    assert_eq!(sent.as_bytes(), &expected);
    // It is what it would be had it been read anew.
    let read = Message::parse(expected.into()).expect("a message");
    assert_eq!((read.payload(), read.kind()), (sent.payload(), sent.kind()));
    let result = format!(r#"{{"jsonrpc":"2.0","result":{{ "big": 1.0 }},"id":{ours}}}"#);
    rig.server_says(servers[1], Message::parse(result.clone().into()).expect("a message"));
    assert_eq!(rig.got(client).as_bytes(), &result.replace(&format!(r#""id":{ours}"#), r#""id":"c1""#));
    assert_eq!(rig.hub.load(), 0);
}

#[test]
fn prompts_and_completions_are_routed_by_their_names() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b")]);
    rig.pass(ms(250));
    for server in &servers {
        let lists = json!({ "prompts": [{ "name": "p" }], "resourceTemplates": [{ "uriTemplate": "x://{y}" }] });
        rig.offer_all(*server, &json!({ "prompts": {}, "resources": {} }), &lists);
    }
    let client = rig.join(1);
    rig.asks(client, 1, method::PROMPTS_GET, r#""name":"b__p""#);
    assert!(rig.asked(servers[1], method::PROMPTS_GET).payload().expect("params").contains(r#""name":"p""#));
    rig.asks(
        client,
        2,
        method::COMPLETION_COMPLETE,
        r#""ref":{"type":"ref/prompt","name":"b__p"},"argument":{"name":"b__p"}"#,
    );
    let sent = rig.asked(servers[1], method::COMPLETION_COMPLETE);
    let sent = sent.payload().expect("params");
    assert!(sent.starts_with(r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"b__p"}"#), "{sent}");
    rig.asks(client, 3, method::COMPLETION_COMPLETE, r#""ref":{"type":"ref/resource","uri":"x://{y}"}"#);
    rig.asked(servers[0], method::COMPLETION_COMPLETE);
    rig.asks(client, 4, method::PROMPTS_GET, r#""name":"p""#);
    assert_eq!(rig.error(client, 4), "invalid params: unknown prompt: p");
}

#[test]
fn resources_are_found_by_list_by_template_and_by_asking() {
    let (mut rig, servers) = Rig::new(vec![spec("a"), spec("b"), spec("c")]);
    rig.pass(ms(250));
    let resources = json!({ "resources": {} });
    rig.offer_all(servers[0], &resources, &json!({ "resources": [{ "uri": "r://1" }] }));
    rig.offer_all(servers[1], &resources, &json!({ "resources": [{ "uri": "r://1" }, { "uri": "r://2" }] }));
    rig.offer_all(servers[2], &resources, &json!({ "resourceTemplates": [{ "uriTemplate": "t://{x}/y" }] }));
    let client = rig.join(1);
    let read = |rig: &mut Rig, id: u64, uri: &str| {
        rig.asks(client, id, method::RESOURCES_READ, &format!(r#""uri":"{uri}""#));
    };
    read(&mut rig, 1, "r://1");
    rig.asked(servers[0], method::RESOURCES_READ);
    read(&mut rig, 2, "r://2");
    rig.asked(servers[1], method::RESOURCES_READ);
    read(&mut rig, 3, "t://7/y");
    rig.asked(servers[2], method::RESOURCES_READ);
    // Nobody has listed it: each is asked in turn, and the first that has it answers.
    read(&mut rig, 4, "u://unlisted");
    for server in &servers[..2] {
        let asked = rig.asked(*server, method::RESOURCES_READ);
        rig.server_says(*server, Message::error(asked.id(), -32602, "no such resource"));
    }
    let asked = rig.asked(servers[2], method::RESOURCES_READ);
    rig.answers(servers[2], &asked, &json!({ "contents": ["here"] }));
    let answer = rig.got_json(client);
    assert_eq!((&answer["id"], &answer["result"]["contents"][0]), (&json!(4), &json!("here")));
    // If nobody has it, what the last said is told.
    read(&mut rig, 5, "u://none");
    for server in &servers {
        let asked = rig.asked(*server, method::RESOURCES_READ);
        rig.server_says(*server, Message::error(asked.id(), -32602, "no such resource"));
    }
    assert_eq!(rig.error(client, 5), "no such resource");
    rig.asks(client, 6, method::RESOURCES_LIST, "");
    assert_eq!(rig.got_json(client)["result"]["resources"].as_array().expect("a list").len(), 2);
}

#[test]
fn clients_with_the_same_ids_and_tokens_are_kept_apart() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"])]);
    let (one, two) = (rig.join(1), rig.join(2));
    let meta = &META[9..META.len() - 1];
    for client in [one, two] {
        rig.says(client, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a__x","_meta":{{"progressToken":1,{meta}}}}}}}"#));
    }
    let calls = [rig.asked(servers[0], method::TOOLS_CALL), rig.asked(servers[0], method::TOOLS_CALL)];
    for (call, client) in calls.iter().zip([one, two]).rev() {
        let token = meta::progress_token(call).expect("a token");
        let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
        rig.server_says(servers[0], Message::notification(method::PROGRESS, Some(&params)));
        let told = rig.got_json(client);
        assert_eq!(told["params"], json!({ "progressToken": 1, "progress": 1 }));
        rig.answers(servers[0], call, &json!({ "client": client.0 }));
        let answer = rig.got_json(client);
        assert_eq!((&answer["id"], &answer["result"]["client"]), (&json!(1), &json!(client.0)));
    }
    assert!(rig.next(one).is_none() && rig.next(two).is_none());
    // What is late, or was made up by another server, reaches nobody.
    rig.answers(servers[0], &calls[0], &json!({}));
    assert!(rig.next(one).is_none() && rig.next(two).is_none());
}

#[test]
fn a_server_cannot_answer_for_another() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"]), ("b", &["x"])]);
    let client = rig.join(1);
    rig.calls(client, 1, "a__x");
    let call = rig.asked(servers[0], method::TOOLS_CALL);
    rig.answers(servers[1], &call, &json!({ "forged": true }));
    assert!(rig.next(client).is_none());
    rig.answers(servers[0], &call, &json!({ "forged": false }));
    assert_eq!(rig.got_json(client)["result"]["forged"], false);
}

#[test]
fn log_messages_reach_the_call_they_are_for_or_nobody() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"])]);
    let (one, two) = (rig.join(1), rig.join(2));
    let meta = &META[9..META.len() - 1];
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a__x","_meta":{{"io.modelcontextprotocol/logLevel":"info",{meta}}}}}}}"#
    );
    let log = || Message::notification(method::LOG_MESSAGE, Some(r#"{"level":"info","data":1}"#));
    rig.says(one, &call);
    let first = rig.asked(servers[0], method::TOOLS_CALL);
    rig.calls(two, 1, "a__x");
    rig.server_says(servers[0], log());
    assert!(rig.got(one).is(method::LOG_MESSAGE), "the other wants none");
    rig.says(two, &call.replace(r#""id":1"#, r#""id":2"#));
    rig.server_says(servers[0], log());
    assert!(rig.next(one).is_none() && rig.next(two).is_none(), "it may be either's");
    let lane = Lane::Request(first.id().expect("an id").clone());
    rig.hub.handle_server(servers[0], Packet::new(lane, log()), rig.now);
    rig.pump();
    assert!(rig.got(one).is(method::LOG_MESSAGE));
    assert!(rig.next(two).is_none());
}

#[test]
fn a_cancelled_call_is_cancelled_at_its_server_and_not_answered() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"])]);
    let client = rig.join(1);
    rig.calls(client, 7, "a__x");
    let call = rig.asked(servers[0], method::TOOLS_CALL);
    rig.says(
        client,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}"#,
    );
    let told = rig.asked(servers[0], method::CANCELLED);
    assert_eq!(meta::cancelled_request(&told), call.id().cloned());
    assert!(told.payload().expect("params").contains("enough"));
    rig.answers(servers[0], &call, &json!({}));
    assert!(rig.next(client).is_none());
    assert_eq!(rig.hub.load(), 0);
    rig.calls(client, 7, "a__x");
    rig.asked(servers[0], method::TOOLS_CALL);
}

#[test]
fn the_calls_of_a_client_that_leaves_are_cancelled() {
    let (mut rig, servers) = Rig::live(&[("a", &["x"]), ("b", &["x"])]);
    let client = rig.join(1);
    rig.calls(client, 1, "a__x");
    rig.calls(client, 2, "b__x");
    rig.hub.handle_leave(client, rig.now);
    rig.pump();
    for server in servers {
        let call = rig.asked(server, method::TOOLS_CALL);
        assert_eq!(meta::cancelled_request(&rig.asked(server, method::CANCELLED)), call.id().cloned());
        rig.answers(server, &call, &json!({}));
    }
    assert!(rig.next(client).is_none());
    assert_eq!(rig.hub.load(), 0);
}

#[test]
fn what_is_no_request_of_this_era_is_refused() {
    let (mut rig, _) = Rig::live(&[("a", &["x"]), ("b", &[])]);
    let client = rig.join(1);
    for (request, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
            -32022,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
            -32602,
        ),
    ] {
        rig.says(client, request);
        assert_eq!(rig.got_json(client)["error"]["code"], code, "{request}");
    }
    for (method, params, code) in [
        ("ping", "", -32601),
        ("no/such", "", -32601),
        ("tools/call", "", -32602),
        ("tools/call", r#""name":1"#, -32602),
        ("resources/read", "", -32602),
        ("completion/complete", "", -32602),
        ("completion/complete", r#""ref":1"#, -32602),
        ("subscriptions/listen", "", -32602),
    ] {
        rig.asks(client, 2, method, params);
        assert_eq!(rig.got_json(client)["error"]["code"], code, "{method} {params}");
    }
    rig.calls(client, 3, "a__x");
    rig.calls(client, 3, "a__x");
    assert_eq!(rig.got_json(client)["id"], Value::Null, "the id is in use");
    assert_eq!(rig.hub.load(), 1);
}

#[test]
fn a_method_that_nobody_knows_goes_to_the_only_server() {
    let (mut rig, servers) = Rig::live(&[("a", &[])]);
    let client = rig.join(1);
    rig.asks(client, 1, "x/unknown", r#""any":"thing""#);
    let sent = rig.asked(servers[0], "x/unknown");
    rig.answers(servers[0], &sent, &json!({ "resultType": "y" }));
    assert_eq!(rig.got_json(client)["result"]["resultType"], "y");
}

#[test]
fn patterns_say_which_tools_are_offered() {
    let policy = Policy::new(&["get_*".into(), "set_*".into()], &["*_secret".into()]);
    let filtered = Spec { policy, ..spec("a") };
    let (mut rig, servers) = Rig::with(Config { prefix: Prefix::Never, ..Config::default() }, vec![filtered]);
    rig.pass(ms(250));
    rig.offer(servers[0], &json!({ "tools": {} }), &["get_x", "get_secret", "drop_x", "set_x"]);
    let client = rig.join(1);
    assert_eq!(rig.tools(client), Some(vec!["get_x".into(), "set_x".into()]));
    rig.calls(client, 1, "get_secret");
    assert_eq!(rig.error(client, 1), "invalid params: unknown tool: get_secret");
}
