//! Requests that find their server, and what comes back, for every era on either side.

use mcpwire::link::Event;
use mcpwire_proto::{Id, Message};

use super::*;

/// Hubs over both eras at once.
fn both() -> (Rig, Inside, Inside) {
    let (old, new) = (Inside::new(Eras::Session), Inside::new(Eras::Stateless));
    let rig = Rig::new(vec![old.spec("old"), new.spec("new")]);
    (rig, old, new)
}

#[tokio::test]
async fn tools_prompts_resources_and_completions_are_routed() {
    let (rig, old, new) = both();
    for mut client in [rig.stateless(), rig.session().await] {
        for (name, mine, other) in [("old", &old, &new), ("new", &new, &old)] {
            let before = (mine.shared.calls(), other.shared.calls());
            assert_eq!(client.call(&format!("{name}__echo"), json!({ "message": "é\u{0}\"" })).await, "é\u{0}\"");
            assert_eq!((mine.shared.calls(), other.shared.calls()), (before.0 + 1, before.1));
            let prompt = format!("{name}__test_prompt_with_arguments");
            let params = json!({ "name": prompt, "arguments": { "arg1": "x", "arg2": "y" } });
            let id = client.request("prompts/get", params).await;
            assert!(client.result(id).await["messages"].is_array());
            let params = json!({
                "ref": { "type": "ref/prompt", "name": prompt },
                "argument": { "name": "arg1", "value": "par" },
            });
            let id = client.request("completion/complete", params).await;
            assert_eq!(client.result(id).await["completion"]["values"], json!(["paris", "park", "party"]));
        }
        for (uri, text) in [("test://static-text", true), ("test://template/7/data", true), ("test://nowhere", false)] {
            let id = client.request("resources/read", json!({ "uri": uri })).await;
            if text {
                assert_eq!(client.result(id).await["contents"][0]["uri"], uri);
            } else {
                client.refusal(id).await;
            }
        }
        let id = client.start("echo", json!({})).await;
        let refused = client.refusal(id).await;
        assert_eq!(refused["code"], -32602);
        assert!(refused["message"].as_str().unwrap().contains("echo"), "{refused}");
        client.assert_quiet().await;
        client.close().await;
    }
    rig.end().await;
}

#[tokio::test]
async fn between_equals_a_result_is_what_the_server_gave() {
    let (rig, ..) = both();
    for (mut client, is_old) in [(rig.session().await, true), (rig.stateless(), false)] {
        let given = json!({ "content": [{ "type": "text", "text": "x" }] });
        let id = client.start("old__echo", json!({ "message": "x" })).await;
        let mut result = client.result(id).await;
        if !is_old {
            assert_eq!(result["resultType"], "complete");
            assert!(result["_meta"][key::SERVER_INFO].is_object(), "{result}");
            let members = result.as_object_mut().unwrap();
            members.retain(|name, _| name == "content");
        }
        assert_eq!(result, given);
        let id = client.start("new__echo", json!({ "message": "y" })).await;
        assert_eq!(client.result(id).await["content"][0]["text"], "y");
        client.close().await;
    }
    rig.end().await;
}

#[tokio::test]
async fn progress_reaches_the_client_that_asked() {
    let (rig, ..) = both();
    let mut clients = [rig.stateless(), rig.stateless(), rig.session().await];
    let token = json!("same");
    let mut calls = Vec::new();
    for (n, client) in clients.iter_mut().enumerate() {
        let server = if n % 2 == 0 { "old" } else { "new" };
        let steps = json!({ "steps": n + 2, "ms": 10 });
        calls.push(client.start_with_token(&format!("{server}__progress"), steps, &token).await);
    }
    for (n, (client, id)) in clients.iter_mut().zip(calls).enumerate() {
        for _ in 0..n + 2 {
            let told = client.expect("notifications/progress").await;
            assert_eq!(told["params"]["progressToken"], token);
            assert_eq!(told["params"]["total"], n + 2, "it is this one's: {told}");
        }
        client.said(id).await;
        client.assert_quiet().await;
    }
    for client in clients {
        client.close().await;
    }
    rig.end().await;
}

#[tokio::test]
async fn log_messages_reach_the_call_that_wants_them() {
    let (rig, ..) = both();
    for server in ["old", "new"] {
        let (mut loud, mut quiet) = (rig.stateless(), rig.stateless());
        loud.declare(key::LOG_LEVEL, json!("info"));
        for client in [&mut loud, &mut quiet] {
            let id = client.start(&format!("{server}__log"), json!({ "level": "error", "message": "ouch" })).await;
            client.said(id).await;
        }
        assert_eq!(loud.expect("notifications/message").await["params"]["level"], "error");
        quiet.assert_quiet().await;
        loud.assert_quiet().await;
        loud.close().await;
        quiet.close().await;
    }
    rig.end().await;
}

#[tokio::test]
async fn questions_are_asked_of_the_client_that_called() {
    let (rig, ..) = both();
    let name = |_: &Value| json!({ "action": "accept", "content": { "name": "Ada" } });
    for server in ["old", "new"] {
        let tool = format!("{server}__test_input_required_result_elicitation");
        let (mut client, mut other) = (rig.stateless(), rig.stateless());
        let (result, rounds) = client.ask("tools/call", json!({ "name": tool, "arguments": {} }), name).await;
        assert_eq!((&result["content"][0]["text"], rounds), (&json!("Hello, Ada!"), 1));
        other.assert_quiet().await;
        let mut old = rig.session().await;
        let id = old.start(&tool, json!({})).await;
        let question = old.expect("elicitation/create").await;
        old.answer(&question, name(&question)).await;
        assert_eq!(old.said(id).await, "Hello, Ada!");
        for client in [client, other, old] {
            client.close().await;
        }
    }
    rig.end().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_at_its_server() {
    let (rig, old, new) = both();
    for mut client in [rig.stateless(), rig.session().await] {
        for (name, server) in [("old", &old), ("new", &new)] {
            let id = client.start(&format!("{name}__slow"), json!({ "ms": 60_000 })).await;
            crate::support::until("the call", || server.shared.running() == 1).await;
            client.notify("notifications/cancelled", json!({ "requestId": id })).await;
            crate::support::until("the end of it", || server.shared.running() == 0).await;
            client.assert_quiet().await;
        }
        client.close().await;
    }
    rig.end().await;
}

#[tokio::test]
async fn the_calls_of_a_client_that_leaves_end_at_their_servers() {
    let (rig, old, new) = both();
    let mut client = rig.stateless();
    client.start("old__slow", json!({ "ms": 60_000 })).await;
    client.start("new__slow", json!({ "ms": 60_000 })).await;
    crate::support::until("the calls", || old.shared.running() + new.shared.running() == 2).await;
    drop(client);
    crate::support::until("the end of them", || old.shared.running() + new.shared.running() == 0).await;
    let mut next = rig.stateless();
    next.assert_quiet().await;
    next.close().await;
    rig.end().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_nobody() {
    const MANY: u64 = 3000;
    let (rig, ..) = both();
    let mut client = rig.stateless();
    assert_eq!(client.call("new__echo", json!({ "message": "first" })).await, "first");
    let Link { tx, mut rx } = rig.hub.link();
    let flood = tokio::spawn(async move {
        for n in 0..MANY {
            let meta = json!({ key::PROTOCOL_VERSION: "2026-07-28", key::CLIENT_CAPABILITIES: {} });
            let arguments = json!({ "message": n.to_string() });
            let params = json!({ "name": "new__echo", "arguments": arguments, "_meta": meta }).to_string();
            tx.send(Message::request(&Id::from(n), "tools/call", Some(&params)).into()).await.unwrap();
        }
        tx
    });
    for n in 0..100 {
        assert_eq!(client.call("new__echo", json!({ "message": n.to_string() })).await, n.to_string());
    }
    client.close().await;
    assert!(!flood.is_finished(), "no more is taken from it than it can be told");
    // What it is owed is still there.
    let mut answers = std::collections::BTreeSet::new();
    while answers.len() < usize::try_from(MANY).unwrap() {
        let Some(Event::Packet(packet)) = within("an answer", rx.recv()).await else { panic!("it was let go") };
        let answer: Value = serde_json::from_slice(packet.message.as_bytes()).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], answer["id"].to_string());
        assert!(answers.insert(answer["id"].as_u64()), "once each");
    }
    drop(within("it to be done", flood).await.unwrap());
    rig.end().await;
}
