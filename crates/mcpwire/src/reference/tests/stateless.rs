//! The stateless era: what every request must say, and what every answer carries.

use super::*;

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

#[tokio::test]
async fn the_server_tells_what_it_is() {
    let mut client = Client::silent(&Shared::default());
    let result = client.request("server/discover", modern(json!({}))).await;
    let versions = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
    assert_eq!(result["supportedVersions"], json!(versions));
    assert_eq!(result["capabilities"]["resources"], json!({ "subscribe": true, "listChanged": true }));
    assert!(result["instructions"].as_str().unwrap().contains("echo"));
    client.close().await;
}

#[tokio::test]
async fn every_result_says_what_it_is_and_who_sent_it() {
    let mut client = Client::silent(&Shared::default());
    let prompt = json!({ "type": "ref/prompt", "name": "test_prompt_with_arguments" });
    for (method, params, kept) in [
        ("server/discover", json!({}), Some("public")),
        ("tools/list", json!({}), Some("public")),
        ("prompts/list", json!({}), Some("public")),
        ("resources/list", json!({}), Some("public")),
        ("resources/templates/list", json!({}), Some("public")),
        ("resources/read", json!({ "uri": "test://static-text" }), Some("private")),
        ("prompts/get", json!({ "name": "test_simple_prompt" }), None),
        ("tools/call", call("echo", json!({ "message": "hello" })), None),
        ("completion/complete", json!({ "ref": prompt, "argument": { "name": "arg1", "value": "" } }), None),
    ] {
        let result = client.request(method, modern(params)).await;
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "mcpwire-reference", "{method}");
        assert_eq!(result.get("cacheScope").and_then(Value::as_str), kept, "{method}");
        assert_eq!(result.get("ttlMs").is_some(), kept.is_some(), "{method}");
    }
    client.close().await;
}

#[tokio::test]
async fn a_request_that_does_not_say_who_asks_is_refused() {
    let mut client = Client::silent(&Shared::default());
    let without = |key: &str| {
        let mut params = modern(json!({}));
        params["_meta"].as_object_mut().unwrap().remove(key);
        params
    };
    let with = |key: &str, value: Value| {
        let mut params = modern(json!({}));
        params["_meta"][key] = value;
        params
    };
    for (method, params, text) in [
        ("server/discover", json!({}), "expected a string as io.modelcontextprotocol/protocolVersion, came nothing"),
        ("subscriptions/listen", json!({}), "protocolVersion, came nothing"),
        ("server/discover", json!({ "_meta": 1 }), "expected an object as _meta, came 1"),
        ("tools/list", without(VERSION), "protocolVersion, came nothing"),
        ("tools/list", without(CAPABILITIES), "an object as io.modelcontextprotocol/clientCapabilities, came nothing"),
        ("tools/list", with(VERSION, json!(2026)), "protocolVersion, came 2026"),
        ("tools/list", with(CAPABILITIES, json!([])), "clientCapabilities, came []"),
        ("tools/list", with(INFO, json!("me")), r#"clientInfo, came "me""#),
        ("tools/list", with(LEVEL, json!("loud")), "expected a log level, debug to emergency, as io.model"),
    ] {
        let (code, message) = client.refusal(method, params.clone()).await;
        assert!(code == -32602 && message.contains(text), "{method} {params}: {code} {message}");
    }
    client.request("tools/list", without(INFO)).await;
    client.close().await;
}

#[tokio::test]
async fn a_version_that_is_not_spoken_gets_the_list_of_those_that_are() {
    let mut client = Client::silent(&Shared::default());
    for version in ["v999.0.0", "2025-11-25", ""] {
        let mut params = modern(json!({}));
        params["_meta"][VERSION] = json!(version);
        let error = client.error("tools/list", params).await;
        assert_eq!((&error["code"], &error["data"]["requested"]), (&json!(-32022), &json!(version)));
        assert_eq!(error["data"]["supported"][0], STATELESS);
    }
    client.close().await;
}

#[tokio::test]
async fn methods_that_are_gone_are_not_found() {
    let mut client = Client::silent(&Shared::default());
    for method in
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method"]
    {
        let params = modern(json!({ "uri": "test://static-text", "level": "info", "protocolVersion": SESSION }));
        assert_eq!(client.refusal(method, params).await, (-32601, format!("method not found: {method}")));
    }
    client.close().await;
}

#[tokio::test]
async fn a_resource_that_is_not_there_is_a_wrong_parameter() {
    let mut client = Client::silent(&Shared::default());
    for (method, params) in [
        ("resources/read", json!({ "uri": "test://none" })),
        ("tools/call", call("touch", json!({ "uri": "test://none" }))),
    ] {
        let error = client.error(method, modern(params)).await;
        assert_eq!((&error["code"], &error["data"]), (&json!(-32602), &json!({ "uri": "test://none" })));
    }
    client.close().await;
}

#[tokio::test]
async fn what_a_client_does_not_offer_is_named() {
    let mut client = Client::silent(&Shared::default());
    let url = json!({ "url": "https://example.com/" });
    let several = "test_input_required_result_multiple_inputs";
    for (tool, arguments, offered, lacking) in [
        ("test_missing_capability", json!({}), json!({}), json!({ "sampling": {} })),
        ("roots", json!({}), json!({ "sampling": {} }), json!({ "roots": {} })),
        ("test_streaming_elicitation", json!({}), json!({}), json!({ "elicitation": { "form": {} } })),
        (
            "test_streaming_elicitation",
            json!({}),
            json!({ "elicitation": { "url": {} } }),
            json!({ "elicitation": { "form": {} } }),
        ),
        ("elicit_url", url, json!({ "elicitation": {} }), json!({ "elicitation": { "url": {} } })),
        (several, json!({}), json!({ "elicitation": {} }), json!({ "sampling": {}, "roots": {} })),
    ] {
        let error = client.error("tools/call", modern_as(offered, call(tool, arguments))).await;
        assert_eq!(error["code"], -32021, "{tool}");
        assert_eq!(error["data"], json!({ "requiredCapabilities": lacking }), "{tool}");
    }
    let offered = modern_as(json!({ "sampling": {} }), call("test_missing_capability", json!({})));
    client.request("tools/call", offered).await;
    client.close().await;
}

#[tokio::test]
async fn nothing_is_kept_from_one_request_to_the_next() {
    let mut client = Client::silent(&Shared::default());
    let asks = call("test_streaming_elicitation", json!({}));
    assert_eq!(client.request("tools/call", modern(asks.clone())).await["resultType"], "input_required");
    assert_eq!(client.refusal("tools/call", modern_as(json!({}), asks)).await.0, -32021);
    let info = client.request("tools/call", modern(call("info", json!({})))).await;
    let info = &info["structuredContent"];
    assert_eq!((&info["session"], &info["sessions"]), (&Value::Null, &json!(0)));
    assert_eq!((&info["client"], &info["protocolVersion"]), (&json!("test"), &json!(STATELESS)));
    client.close().await;
}

#[tokio::test]
async fn logs_come_only_to_requests_that_ask_for_them() {
    let mut client = Client::silent(&Shared::default());
    let log = call("log", json!({ "level": "warning", "message": "hello", "logger": "test" }));
    let at = |level: &str| {
        let mut params = modern(log.clone());
        params["_meta"][LEVEL] = json!(level);
        params
    };
    client.request("tools/call", modern(log.clone())).await;
    client.request("tools/call", at("error")).await;
    let id = client.start("tools/call", at("warning")).await;
    let message = client.next_of(&id).await;
    assert_eq!(message["params"], json!({ "level": "warning", "logger": "test", "data": "hello" }));
    client.answer(&id).await;
    client.request("tools/call", modern(log.clone())).await;
    client.request("tools/call", modern(call("test_logging_tool", json!({})))).await;
    client.close().await;
}

#[tokio::test]
async fn progress_comes_on_the_stream_of_its_request() {
    let mut client = Client::silent(&Shared::default());
    let mut params = modern(call("test_tool_with_progress", json!({})));
    params["_meta"]["progressToken"] = json!("progress-test-1");
    let id = client.start("tools/call", params).await;
    for done in [0, 50, 100] {
        let progress = client.next_of(&id).await;
        assert_eq!(progress["params"]["progressToken"], "progress-test-1");
        assert_eq!(progress["params"]["progress"], done);
    }
    client.answer(&id).await;
    client.close().await;
}

#[tokio::test]
async fn a_cancelled_request_is_not_answered_and_stops() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    let id = client.start("tools/call", modern(call("slow", json!({ "ms": 3_600_000 })))).await;
    client.request("server/discover", modern(json!({}))).await;
    assert_eq!(shared.running(), 1);
    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    client.request("server/discover", modern(json!({}))).await;
    while shared.running() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        client.request("tools/call", modern(call("echo", json!({ "message": "m" })))).await["content"][0]["text"],
        "m"
    );
    assert_eq!(id, Id::from(1));
    client.close().await;
}

#[tokio::test]
async fn every_tool_answers_what_the_schema_allows() {
    let mut client = Client::silent(&Shared::default());
    let tools = client.request("tools/list", modern(json!({}))).await;
    for tool in tools["tools"].as_array().unwrap() {
        for params in [json!({ "name": tool["name"] }), call(tool["name"].as_str().unwrap(), example(tool))] {
            let mut params = modern(params);
            params["_meta"]["progressToken"] = json!(7);
            params["_meta"][LEVEL] = json!("debug");
            let id = client.start("tools/call", params).await;
            let mut message = client.next_of(&id).await;
            while message.get("method").is_some() {
                message = client.next_of(&id).await;
            }
        }
    }
    client.close().await;
}

/// Arguments that a tool takes.
fn example(tool: &Value) -> Value {
    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
    let values = properties.iter().map(|(name, schema)| {
        let value = match (name.as_str(), schema["type"].as_str()) {
            _ if schema.get("enum").is_some() => schema["enum"][0].clone(),
            ("uri", _) => json!("test://watched-resource"),
            ("url", _) => json!("https://example.com/"),
            (_, Some("integer" | "number")) => json!(1),
            (_, Some("boolean")) => json!(true),
            (_, Some("string")) => json!("text"),
            _ => json!({}),
        };
        (name.clone(), value)
    });
    Value::Object(values.collect())
}
