//! What this server says of itself, whatever the version.

use serde_json::{Value, json};

pub(super) const INSTRUCTIONS: &str = "A server to try things with: call `echo`, `add`, `slow`, `progress` or `info`, \
    read test://static-text, or watch test://watched-resource and call `touch`.";

/// Its name and version; titles came with 2025-06-18.
pub(super) fn info(with_title: bool) -> Value {
    let mut info = json!({ "name": "mcpwire-reference", "version": env!("CARGO_PKG_VERSION") });
    if with_title {
        info["title"] = json!("mcpwire reference server");
    }
    info
}

pub(super) fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "prompts": { "listChanged": true },
        "logging": {},
        "completions": {},
    })
}
