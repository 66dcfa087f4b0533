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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(result: serde_json::Value, expected: &str) {
        assert_eq!(text(&serde_json::from_value(result).unwrap()), expected);
    }

    #[test]
    fn parts_are_joined_by_a_blank_line() {
        check(
            json!({"content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "line 1\nline 2"}},
                {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGk="}},
                {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///c", "name": "c"},
            ]}),
            "one\n\n[Image: image/png]\n\n[Resource: file:///a]\nline 1\nline 2\n\n[Resource: file:///b]\n\n[Audio: audio/wav]\n\n\
             [Resource: file:///c]",
        );
    }

    #[test]
    fn an_error_says_so_and_what_is_not_known_is_left_out() {
        check(json!({"content": [{"type": "text", "text": "no such file"}], "isError": true}), "Error: no such file");
        check(
            json!({"content": [{"type": "hologram"}, {"type": "resource"}, {}, 7, {"type": "text", "text": "x"}]}),
            "x",
        );
        check(json!({}), "");
    }
}
