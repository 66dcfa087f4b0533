//! Front matter: the YAML between two lines of `---` at the beginning of a Markdown file, and the body behind it.

use serde_json::{Map, Value};

use super::flaw::Flaw;
use super::yaml;

/// More than this is no front matter.
const LONGEST: usize = 64 * 1024;

/// A Markdown text in its two parts.
#[derive(Debug, PartialEq)]
pub(super) struct Document<'a> {
    pub(super) fields: Map<String, Value>,
    pub(super) body: &'a str,
}

/// Splits a text; one without front matter is all body.
pub(super) fn split(text: &str) -> Result<Document<'_>, Flaw> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(start) = after_fence(text) else { return Ok(Document { fields: Map::new(), body: text }) };
    let mut at = start;
    let end = loop {
        let rest = &text[at..];
        if let Some(behind) = after_fence(rest) {
            break at + behind;
        }
        match rest.find('\n') {
            Some(newline) if at - start <= LONGEST => at += newline + 1,
            Some(_) => return Err(Flaw::at(1, format!("front matter is longer than {LONGEST} bytes"))),
            None => return Err(Flaw::at(1, "front matter is not closed by a line of ---")),
        }
    };
    let fields = match yaml::read(&text[start..at]).map_err(below_fence)? {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        _ => return Err(Flaw::at(2, "expected `name: value` lines as front matter")),
    };
    Ok(Document { fields, body: &text[end..] })
}

/// Where the text behind a `---` line begins, if this is one.
fn after_fence(text: &str) -> Option<usize> {
    let line = text.split_inclusive('\n').next()?;
    (line.trim_end() == "---").then_some(line.len())
}

/// YAML counts from the line behind the fence.
fn below_fence(flaw: Flaw) -> Flaw {
    Flaw { line: flaw.line.map(|line| line + 1), ..flaw }
}

/// A field that is a text; a number or a boolean is as good as its text.
pub(super) fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(text.clone()),
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        _ => None,
    }
}

/// A field that is a list of texts; `None` if it is no list.
pub(super) fn texts(fields: &Map<String, Value>, name: &str) -> Option<Vec<String>> {
    let as_text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    Some(fields.get(name)?.as_array()?.iter().filter_map(as_text).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_body_is_what_follows_the_second_fence() {
        let document = split("---\nname: x\ntags: [a]\n---\n# Body\n---\nmore\n").unwrap();
        assert_eq!(Value::Object(document.fields), json!({"name": "x", "tags": ["a"]}));
        assert_eq!(document.body, "# Body\n---\nmore\n");
    }

    #[test]
    fn line_ends_of_windows_a_byte_order_mark_and_nothing_at_all_will_do() {
        assert_eq!(split("\u{feff}---\r\nname: x\r\n---\r\nBody\r\n").unwrap().body, "Body\r\n");
        assert_eq!(split("---\n---\n").unwrap(), Document { fields: Map::new(), body: "" });
        assert_eq!(split("").unwrap().body, "");
        assert_eq!(split("# Title\n---\nx\n").unwrap().body, "# Title\n---\nx\n");
        assert_eq!(split("---\nname: x\n---").unwrap().body, "");
    }

    #[test]
    fn faults_name_the_line_of_the_file() {
        assert_eq!(split("---\nname: x\n").unwrap_err().line, Some(1));
        assert_eq!(split("---\n- a\n---\n").unwrap_err().line, Some(2));
        assert_eq!(split("---\na: 1\na: 2\n---\n").unwrap_err().line, Some(3));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(---)?\\PC{0,80}\n(---)?\n\\PC{0,80}") {
            let _ = split(&text);
        }

        #[test]
        fn the_body_comes_back_whatever_it_is(body in "\\PC{0,80}") {
            let text = format!("---\nname: x\n---\n{body}");
            prop_assert_eq!(split(&text).unwrap().body, body);
        }
    }
}
