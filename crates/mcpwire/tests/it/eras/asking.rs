//! Servers that ask clients without sessions: results that require input, and requests that come again with it.

use std::collections::BTreeMap;

use mcpwire_proto::meta::key;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::rig::Speaks;

pub(super) fn capable(client: &mut Client) {
    client.declare(key::CLIENT_CAPABILITIES, json!({"elicitation": {}, "sampling": {}, "roots": {}}));
}

pub(super) fn incapable_again(client: &mut Client) {
    client.declare(key::CLIENT_CAPABILITIES, json!({}));
}

/// What a user, a model and a file system would say.
fn answer(question: &Value) -> Value {
    let properties = &question["params"]["requestedSchema"]["properties"];
    match question["method"].as_str() {
        Some("sampling/createMessage") => {
            assert!(question["params"]["messages"][0]["content"]["text"].is_string(), "{question}");
            json!({"role": "assistant", "content": {"type": "text", "text": "that"}, "model": "m"})
        }
        Some("roots/list") => json!({"roots": [{"uri": "file:///r"}]}),
        Some("elicitation/create") => {
            let names = properties.as_object().unwrap_or_else(|| panic!("no form: {question}")).keys();
            let content: serde_json::Map<String, Value> = names.map(|name| (name.clone(), json!("me"))).collect();
            json!({"action": "accept", "content": content})
        }
        _ => panic!("no question: {question}"),
    }
}

/// Calls a tool that asks; gives what it says in the end.
async fn call(client: &mut Client, tool: &str, arguments: Value, least_rounds: usize) -> String {
    let (result, rounds) = client.ask("tools/call", json!({"name": tool, "arguments": arguments}), answer).await;
    assert!(rounds >= least_rounds, "{tool} asked {rounds} times");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{tool}: not a text: {result}")).to_owned()
}

pub(super) async fn questions(client: &mut Client) {
    capable(client);
    assert_eq!(call(client, "test_sampling", json!({"prompt": "what?"}), 1).await, "LLM response: that");
    let said = call(client, "test_elicitation", json!({"message": "who?"}), 1).await;
    assert!(said.contains("accept") && said.contains(r#""username":"me""#), "{said}");
    assert_eq!(call(client, "roots", json!({}), 1).await, r#"Roots: [{"uri":"file:///r"}]"#);
    let (result, rounds) = client.ask("resources/read", json!({"uri": "test://asking-resource"}), answer).await;
    assert_eq!((&result["contents"][0]["text"], rounds), (&json!("Read by me."), 1));
    incapable_again(client);
}

pub(super) async fn several_rounds(client: &mut Client) {
    capable(client);
    let tool = "test_input_required_result_multi_round";
    assert_eq!(call(client, tool, json!({}), 2).await, "me likes me.");
    let tool = "test_input_required_result_multiple_inputs";
    assert_eq!(call(client, tool, json!({}), 1).await, "that me, roots: 1");
    incapable_again(client);
}

/// A state that was tampered with is refused; the right one is taken afterwards.
pub(super) async fn forged(client: &mut Client) {
    capable(client);
    let params = json!({"name": "test_input_required_result_request_state", "arguments": {}});
    let id = client.request("tools/call", params.clone()).await;
    let asked = client.input_required(id).await;
    let state = asked["requestState"].as_str().unwrap_or_else(|| panic!("no state: {asked}"));
    let mut again = params;
    for (key, _) in asked["inputRequests"].as_object().into_iter().flatten() {
        again["inputResponses"][key] = json!({"action": "accept", "content": {"ok": true}});
    }
    for forged in [format!("{state}x"), "x".to_owned(), state[1..].to_owned()] {
        again["requestState"] = json!(forged);
        let id = client.request("tools/call", again.clone()).await;
        assert_eq!(client.code(id).await, -32602);
    }
    again["requestState"] = json!(state);
    let id = client.request("tools/call", again).await;
    assert_eq!(client.said(id).await, "state-ok: true");
    incapable_again(client);
}

/// A client that cannot be asked hears so, in the way of the server: only the stateless era has an error for it.
pub(super) async fn incapable(client: &mut Client, server: Speaks) {
    let id = client.start("test_sampling", json!({"prompt": "what?"})).await;
    if server == Speaks::Stateless {
        assert_eq!(client.code(id).await, -32021);
    } else {
        assert_eq!(client.result(id).await["isError"], true);
    }
}

/// Many calls ask at once, and each gets its own answer.
pub(super) async fn many(client: &mut Client) {
    const CALLS: usize = 24;
    capable(client);
    let params = json!({"name": "roots", "arguments": {}});
    let mut open: BTreeMap<u64, Option<usize>> = BTreeMap::new();
    for _ in 0..CALLS {
        open.insert(client.request("tools/call", params.clone()).await, None);
    }
    let mut asked = 0;
    while !open.is_empty() {
        let message = client.next().await;
        let id = message["id"].as_u64().unwrap_or_else(|| panic!("no answer: {message}"));
        let result = &message["result"];
        match open.remove(&id).unwrap_or_else(|| panic!("not asked for: {message}")) {
            Some(number) => assert_eq!(result["content"][0]["text"], format!("Roots: [{number}]"), "{message}"),
            None => {
                assert_eq!(result["resultType"], "input_required", "{message}");
                let mut again = params.clone();
                for (key, _) in result["inputRequests"].as_object().into_iter().flatten() {
                    again["inputResponses"][key] = json!({"roots": [asked]});
                }
                if !result["requestState"].is_null() {
                    again["requestState"] = result["requestState"].clone();
                }
                open.insert(client.request("tools/call", again).await, Some(asked));
                asked += 1;
            }
        }
    }
    assert_eq!(asked, CALLS);
    incapable_again(client);
}
