//! Content of results and prompts, and what older versions get in its place.

use serde_json::{Value, json};

use crate::reference::client::Client;

/// An image of one pixel.
pub(in crate::reference) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGO44KAAAAMUATH3v8xWAAAAAElFTkSuQmCC";
/// One millisecond of a tone.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACA2v/agCUAJQ==";

pub(in crate::reference) fn text(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

pub(in crate::reference) fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

pub(super) fn audio() -> Value {
    json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" })
}

pub(in crate::reference) fn resource(uri: &str, mime: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime, "text": text } })
}

/// A result of these items.
pub(super) fn result(content: Vec<Value>) -> Value {
    json!({ "content": content })
}

/// A result that is one text.
pub(super) fn said(words: impl Into<String>) -> Value {
    result(vec![text(words)])
}

/// A result that tells of a failure.
pub(super) fn failed(words: impl Into<String>) -> Value {
    json!({ "content": [text(words)], "isError": true })
}

/// A result that is a structure; its text comes beside it for clients that do not read structures.
pub(super) fn structured(structure: Value) -> Value {
    json!({ "content": [text(structure.to_string())], "structuredContent": structure })
}

/// Takes out of a result what the client's version does not know.
pub(super) fn suit(mut result: Value, client: &Client) -> Value {
    if client.knows_structure() {
        return result;
    }
    if let Some(result) = result.as_object_mut() {
        result.remove("structuredContent");
    }
    for item in result["content"].as_array_mut().into_iter().flatten() {
        let unknown = item["type"] == "resource_link" || item["type"] == "audio" && !client.knows_audio();
        if unknown {
            *item = text(format!("{} content is not known in {}", item["type"], client.version));
        }
    }
    result
}
