//! The fixtures of the official conformance suite, as it describes them.

use super::*;
use crate::reference::RECONNECTION_PAUSE;

#[tokio::test]
async fn every_listed_tool_can_be_called() {
    let mut client = Client::open_as(&Shared::default(), "2025-11-25", json!({})).await;
    let tools = client.request("tools/list", json!({})).await;
    let tools = tools["tools"].as_array().unwrap();
    assert!(tools.len() >= 28);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        let id = client.start("tools/call", json!({ "name": name })).await;
        if name.starts_with("test_trigger_") {
            client.next(&Lane::Main).await;
        }
        let mut answer = client.next_of(&id).await;
        while answer.get("method").is_some() {
            answer = client.next_of(&id).await;
        }
        let text = answer.to_string();
        assert!(!text.contains("name of a tool") && !text.contains("extra tool"), "{name}: {text}");
        assert_eq!(answer.get("error").is_some(), tool["inputSchema"].get("required").is_some(), "{name}: {text}");
    }
    client.close().await;
}

#[tokio::test]
async fn tools_answer_every_kind_of_content() {
    let mut client = Client::open(&Shared::default()).await;
    assert_eq!(client.say("test_simple_text", json!({})).await, "This is a simple text response for testing.");
    let image = client.call("test_image_content", json!({})).await["content"][0].take();
    assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/png")));
    let audio = client.call("test_audio_content", json!({})).await["content"][0].take();
    assert_eq!((&audio["type"], &audio["mimeType"]), (&json!("audio"), &json!("audio/wav")));
    let embedded = json!({
        "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content.",
    });
    let result = client.call("test_embedded_resource", json!({})).await;
    assert_eq!(result["content"], json!([{ "type": "resource", "resource": embedded }]));
    let mixed = client.call("test_multiple_content_types", json!({})).await;
    let kinds: Vec<&str> =
        mixed["content"].as_array().unwrap().iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["text", "image", "resource"]);
    assert_eq!(mixed["content"][2]["resource"]["text"], r#"{"test":"data","value":123}"#);
    let result = client.call("test_error_handling", json!({})).await;
    assert!(failed(&result));
    assert_eq!(text_of(&result), "This tool intentionally returns an error for testing");
    client.close().await;
}

#[tokio::test]
async fn tools_log_and_report_in_three_steps() {
    let mut client = Client::open(&Shared::default()).await;
    assert_eq!(client.request("logging/setLevel", json!({ "level": "debug" })).await, json!({}));
    let id = client.start_call("test_tool_with_logging", json!({})).await;
    for data in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let params = client.next_of(&id).await["params"].take();
        assert_eq!((&params["level"], &params["data"]), (&json!("info"), &json!(data)));
    }
    client.answer(&id).await;

    let params = json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": "progress-test-1" } });
    let id = client.start("tools/call", params).await;
    for done in [0, 50, 100] {
        let params = client.next_of(&id).await["params"].take();
        assert_eq!(params["progressToken"], "progress-test-1");
        assert_eq!((&params["progress"], &params["total"]), (&json!(done), &json!(100)));
    }
    client.answer(&id).await;
    client.close().await;
}

#[tokio::test]
async fn the_reconnection_tool_is_silent_for_its_pause() {
    let mut client = Client::open(&Shared::default()).await;
    let started = tokio::time::Instant::now();
    let text = client.say("test_reconnection", json!({})).await;
    assert!(started.elapsed() >= RECONNECTION_PAUSE);
    assert!(text.starts_with("Reconnection test completed successfully"), "{text}");
    client.close().await;
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let mut client = Client::open(&Shared::default()).await;
    let listed = client.request("resources/list", json!({})).await;
    for resource in listed["resources"].as_array().unwrap() {
        let id = client.start("resources/read", json!({ "uri": resource["uri"] })).await;
        if resource["name"] == "asking-resource" {
            let answer = json!({ "action": "accept", "content": { "name": "Alice" } });
            client.reply(&id, "elicitation/create", answer).await;
        }
        let read = client.answer(&id).await["result"].take();
        let contents = &read["contents"][0];
        assert_eq!((&contents["uri"], &contents["mimeType"]), (&resource["uri"], &resource["mimeType"]));
    }
    let text = client.request("resources/read", json!({ "uri": "test://static-text" })).await;
    assert_eq!(text["contents"][0]["text"], "This is the content of the static text resource.");
    let binary = client.request("resources/read", json!({ "uri": "test://static-binary" })).await;
    assert!(binary["contents"][0]["blob"].is_string());

    let templates = client.request("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "test://template/{id}/data");
    let contents = json!({
        "uri": "test://template/123/data",
        "mimeType": "application/json",
        "text": r#"{"id":"123","templateTest":true,"data":"Data for ID: 123"}"#,
    });
    let read = client.request("resources/read", json!({ "uri": "test://template/123/data" })).await;
    assert_eq!(read, json!({ "contents": [contents] }));
    let read = client.request("resources/read", json!({ "uri": "test://template/a\"b/data" })).await;
    let text: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text["id"], "a\"b");
    client.close().await;
}

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    let mut client = Client::open(&Shared::default()).await;
    let listed = client.request("prompts/list", json!({})).await;
    let names: Vec<&str> = listed["prompts"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    let expected = [
        "test_simple_prompt",
        "test_prompt_with_arguments",
        "test_prompt_with_embedded_resource",
        "test_prompt_with_image",
        "test_input_required_result_prompt",
    ];
    assert_eq!(names, expected);

    let user = |content: Value| json!({ "role": "user", "content": content });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let simple = client.request("prompts/get", json!({ "name": "test_simple_prompt" })).await;
    assert_eq!(simple["messages"], json!([user(text("This is a simple prompt for testing."))]));
    let params = json!({
        "name": "test_prompt_with_arguments", "arguments": { "arg1": "testValue1", "arg2": "testValue2" },
    });
    let filled = client.request("prompts/get", params).await;
    let expected = user(text("Prompt with arguments: arg1='testValue1', arg2='testValue2'"));
    assert_eq!(filled["messages"], json!([expected]));
    let uri = "test://example-resource";
    let params = json!({ "name": "test_prompt_with_embedded_resource", "arguments": { "resourceUri": uri } });
    let embedded = client.request("prompts/get", params).await;
    let resource = json!({ "uri": uri, "mimeType": "text/plain", "text": "Embedded resource content for testing." });
    assert_eq!(embedded["messages"][0], user(json!({ "type": "resource", "resource": resource })));
    assert_eq!(embedded["messages"][1], user(text("Please process the embedded resource above.")));
    let image = client.request("prompts/get", json!({ "name": "test_prompt_with_image" })).await;
    assert_eq!(image["messages"][0]["content"]["mimeType"], "image/png");
    assert_eq!(image["messages"][1], user(text("Please analyze the image above.")));
    client.close().await;
}

#[tokio::test]
async fn arguments_are_completed() {
    let mut client = Client::open(&Shared::default()).await;
    let prompt = json!({ "type": "ref/prompt", "name": "test_prompt_with_arguments" });
    let template = json!({ "type": "ref/resource", "uri": "test://template/{id}/data" });
    let complete =
        |of: &Value, name: &str, value: &str| json!({ "ref": of, "argument": { "name": name, "value": value } });
    let result = client.request("completion/complete", complete(&prompt, "arg1", "par")).await;
    let expected = json!({ "values": ["paris", "park", "party"], "total": 3, "hasMore": false });
    assert_eq!(result, json!({ "completion": expected }));
    let result = client.request("completion/complete", complete(&prompt, "arg1", "test")).await;
    assert_eq!(result["completion"]["values"], json!(["testValue1", "testing"]));
    let result = client.request("completion/complete", complete(&template, "id", "")).await;
    let completion = &result["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(150), &json!(true)));
    let result = client.request("completion/complete", complete(&template, "other", "")).await;
    assert_eq!(result["completion"]["total"], 0);
    let unknown = json!({ "type": "ref/prompt", "name": "none" });
    assert_eq!(client.refusal("completion/complete", complete(&unknown, "a", "")).await.0, -32602);
    client.close().await;
}

#[tokio::test]
async fn the_schema_of_2020_12_arrives_whole() {
    let mut client = Client::open(&Shared::default()).await;
    let tools = client.request("tools/list", json!({})).await;
    let tool =
        tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "json_schema_2020_12_tool").unwrap();
    let expected: Value = serde_json::from_str(
        r##"{
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
            }},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"}
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false
        }"##,
    )
    .unwrap();
    assert_eq!(tool["inputSchema"], expected);
    assert_eq!(tool["description"], "Tool with JSON Schema 2020-12 features");
    client.close().await;
}
