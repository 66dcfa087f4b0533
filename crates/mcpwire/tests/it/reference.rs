//! `mcpwire reference --stdio`: the reference server as a process, in either era, with nothing between it and the pipe.

use serde_json::{Value, json};

use crate::support::process::Mcpwire;
use crate::support::within;

fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    params
}

#[tokio::test]
async fn a_pipe_that_is_closed_gets_its_last_answers() {
    let mut server = Mcpwire::start(&["reference", "--stdio"]);
    let echo = json!({ "name": "echo", "arguments": { "message": "hello" } });
    server.request(1, "tools/call", modern(echo)).await;
    server.request(2, "tools/call", modern(json!({ "name": "slow", "arguments": { "ms": 3_600_000 } }))).await;
    server.close_stdin();
    assert_eq!(server.message().await["result"]["content"][0]["text"], "hello");
    assert_eq!(server.line().await, None);
    assert!(within("the end", server.wait()).await.success());
}

#[tokio::test]
async fn a_subscription_is_ended_with_an_answer_when_the_server_is_stopped() {
    let mut server = Mcpwire::start(&["reference", "--stdio"]);
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    server.request("listen:0", "subscriptions/listen", modern(wanted)).await;
    assert_eq!(server.message().await["method"], "notifications/subscriptions/acknowledged");
    server.request(1, "tools/call", modern(json!({ "name": "test_trigger_tool_change" }))).await;
    let told = server.message().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "listen:0");
    assert_eq!(server.message().await["id"], 1);
    server.signal("TERM");
    let end = server.message().await;
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("listen:0"), &json!("complete")), "{end}");
    assert!(within("the end", server.wait()).await.success());
}

#[tokio::test]
async fn one_era_only_if_so_wanted() {
    for (era, discovered, initialized) in [("both", true, true), ("session", false, true), ("stateless", true, false)] {
        let mut server = Mcpwire::start(&["reference", "--stdio", "--era", era]);
        server.request(1, "server/discover", modern(json!({}))).await;
        assert_eq!(server.message().await.get("result").is_some(), discovered, "{era}");
        server.request(2, "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {} })).await;
        assert_eq!(server.message().await.get("result").is_some(), initialized, "{era}");
        server.finish().await;
    }
}

#[tokio::test]
async fn servers_with_the_same_secret_take_up_each_others_rounds() {
    let call = json!({ "name": "test_input_required_result_request_state" });
    let mut retry = call.clone();
    for (round, kind) in [(1, "input_required"), (2, "complete")] {
        let mut server = Mcpwire::start(&["reference", "--stdio", "--state-secret", "shared"]);
        server.request(round, "tools/call", modern(retry.clone())).await;
        let answer = server.message().await;
        assert_eq!(answer["result"]["resultType"], kind, "{answer}");
        retry["requestState"] = answer["result"]["requestState"].clone();
        retry["inputResponses"] = json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
        server.finish().await;
    }
}
