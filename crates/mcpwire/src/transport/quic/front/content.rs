//! A result of `tools/call` as an Orchestra tool's: its text, and beside it all of it where the text does not say all.

use mcpwire_proto::code;
use serde_json::{Map, Value, json};

use super::caller::Failed;
use crate::transport::quic::MCP_RESULT;
use crate::transport::quic::proto::{Kind, Struct, ToolResponse, Value as Field};

/// A result, taken apart.
pub(super) struct ToolResult {
    pub(super) is_error: bool,
    pub(super) text: String,
    /// The text is all that there is.
    pub(super) plain: bool,
}

impl ToolResult {
    pub(super) fn read(result: &str) -> ToolResult {
        let members: Map<String, Value> = serde_json::from_str(result).unwrap_or_default();
        let blocks = members.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let known = members.iter().all(|(name, value)| name == "content" || name == "isError" && value.is_boolean());
        let text = match members.get("structuredContent") {
            Some(structure) if blocks.is_empty() => structure.to_string(),
            _ => blocks.iter().map(shown).collect::<Vec<_>>().join("\n"),
        };
        let is_error = members.get("isError") == Some(&json!(true));
        ToolResult { is_error, text, plain: known && matches!(blocks, [block] if is_plain(block)) }
    }
}

fn is_plain(block: &Value) -> bool {
    block["type"] == "text" && block["text"].is_string() && block.as_object().is_some_and(|block| block.len() == 2)
}

/// A block for those who read text only.
pub(super) fn shown(block: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => text(&block["text"]),
        Some("resource") if block["resource"]["text"].is_string() => text(&block["resource"]["text"]),
        Some("resource") => format!("[resource {}]", text(&block["resource"]["uri"])),
        Some("resource_link") => format!("[resource {}]", text(&block["uri"])),
        Some(kind) => format!("[{kind} {}]", text(&block["mimeType"])),
        None => String::new(),
    }
}

pub(super) fn response(result: &str) -> ToolResponse {
    let ToolResult { is_error, text, plain } = ToolResult::read(result);
    let mut members = Struct::default();
    if !plain {
        members.fields.insert(MCP_RESULT.to_owned(), string(result.to_owned()));
    }
    if is_error {
        return ToolResponse { result: (!plain).then_some(members), ..failure("tool_error", text) };
    }
    members.fields.insert("text".to_owned(), string(text));
    ToolResponse { success: true, result: Some(members), ..Default::default() }
}

fn string(text: String) -> Field {
    Field { kind: Some(Kind::String(text)) }
}

pub(super) fn failure(code: &str, message: impl Into<String>) -> ToolResponse {
    ToolResponse { error_code: code.to_owned(), error_message: message.into(), ..Default::default() }
}

/// The code under which callers are told that a tool could not be called.
pub(super) fn failure_code(failed: &Failed) -> &'static str {
    match failed {
        Failed::Refused { code, .. } if *code == i64::from(code::INVALID_PARAMS) => "invalid_params",
        Failed::Refused { .. } => "handler_error",
        Failed::NoSession(_) => "routing_error",
    }
}
