//! The tools that the official conformance suite calls, with the texts that it describes.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::content::{audio, failed, image, resource, result, said, text};
use super::tool;
use crate::reference::RECONNECTION_PAUSE;
use crate::reference::args::Args;
use crate::reference::call::Call;
use crate::reference::logging::Level;
use crate::reference::shared::Item;

/// The suite's pause between notifications.
const STEP: Duration = Duration::from_millis(50);

pub(super) fn tools() -> Vec<Value> {
    let plain = [
        ("test_simple_text", "Answers a text"),
        ("test_image_content", "Answers an image"),
        ("test_audio_content", "Answers a sound"),
        ("test_embedded_resource", "Answers an embedded resource"),
        ("test_multiple_content_types", "Answers a text, an image and a resource"),
        ("test_error_handling", "Answers that it failed"),
        ("test_tool_with_logging", "Sends three log messages, then answers"),
        ("test_tool_with_progress", "Reports progress three times, then answers"),
        ("test_logging_tool", "Sends three log messages, then answers"),
        ("test_trigger_tool_change", "Adds a tool, or takes it away"),
        ("test_trigger_prompt_change", "Adds a prompt, or takes it away"),
        ("test_reconnection", "Is silent for a while, so that the client has to come back for the answer"),
    ];
    let mut tools: Vec<Value> = plain.iter().map(|(name, text)| tool(name, text, json!({}), &[])).collect();
    tools.push(json!({
        "name": "json_schema_2020_12_tool",
        "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": schema_2020_12(),
    }));
    tools
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

pub(super) fn simple_text() -> Value {
    said("This is a simple text response for testing.")
}

pub(super) fn image_content() -> Value {
    result(vec![image()])
}

pub(super) fn audio_content() -> Value {
    result(vec![audio()])
}

pub(super) fn embedded_resource() -> Value {
    result(vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")])
}

pub(super) fn multiple_content_types() -> Value {
    let data = r#"{"test":"data","value":123}"#;
    result(vec![
        text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource", "application/json", data),
    ])
}

pub(super) fn error_handling() -> Value {
    failed("This tool intentionally returns an error for testing")
}

pub(super) async fn with_logging(call: &Call) -> Value {
    call.log(Level::Info, "reference", json!("Tool execution started")).await;
    sleep(STEP).await;
    call.log(Level::Info, "reference", json!("Tool processing data")).await;
    sleep(STEP).await;
    call.log(Level::Info, "reference", json!("Tool execution completed")).await;
    said("Tool with logging executed successfully")
}

pub(super) async fn with_progress(call: &Call) -> Value {
    call.progress(0, 100, "started").await;
    sleep(STEP).await;
    call.progress(50, 100, "half way").await;
    sleep(STEP).await;
    call.progress(100, 100, "done").await;
    said("Tool with progress executed successfully")
}

/// Changes a list, in one way and then in the other.
pub(super) fn change(call: &Call, item: Item) -> Value {
    const NAME: &str = "test_dynamic_item";
    let changed = call.shared.add(item, NAME) || call.shared.remove(item, NAME);
    if changed { said("The list has changed.") } else { failed("there are too many items") }
}

/// Closing the response stream in the meantime is left to the front.
pub(super) async fn reconnection() -> Value {
    sleep(RECONNECTION_PAUSE).await;
    said("Reconnection test completed successfully: the answer reached the client that came back for it.")
}

pub(super) fn json_schema(args: &Args) -> Value {
    said(format!("JSON Schema 2020-12 tool called with: {}", args.to_json()))
}
