//! The content of results as text for people and models.

use serde::Deserialize;

use super::CallResult;

/// One part of a result, as far as its text depends on it.
#[derive(Deserialize)]
struct Part {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default, rename = "mimeType")]
    mime_type: String,
    #[serde(default)]
    uri: String,
    #[serde(default)]
    resource: Option<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    uri: String,
    #[serde(default)]
    text: Option<String>,
}

/// The content of a tool's result as one text: its parts, with a blank line between them. Of images and sound it tells the
/// type, of resources the URI and the text. A result that is an error begins with `Error: `.
pub fn text(result: &CallResult) -> String {
    let parts: Vec<String> = result.content.iter().filter_map(|part| part_text(part.get())).collect();
    let text = parts.join("\n\n");
    if result.is_error { format!("Error: {text}") } else { text }
}

/// One part of a result, a prompt's message or a sampled one as text; `None` if it has none.
pub fn part_text(part: &str) -> Option<String> {
    let part: Part = serde_json::from_str(part).ok()?;
    match (part.kind.as_str(), part.resource) {
        ("text", _) => Some(part.text),
        ("image", _) => Some(format!("[Image: {}]", part.mime_type)),
        ("audio", _) => Some(format!("[Audio: {}]", part.mime_type)),
        ("resource_link", _) => Some(format!("[Resource: {}]", part.uri)),
        ("resource", Some(Resource { uri, text: Some(text) })) => Some(format!("[Resource: {uri}]\n{text}")),
        ("resource", Some(Resource { uri, text: None })) => Some(format!("[Resource: {uri}]")),
        _ => None,
    }
}
