//! One server put into a configuration, or taken out: all else in the file, comments and order too, stays as it is.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::Value as Json;
use serde_json::ser::PrettyFormatter;
use serde_json::value::RawValue;

use super::jsonc;
use crate::atomic::{self, Lasting};

/// Why a file was left as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("expected a name of 1 to 100 letters, digits, '_', '.' or '-', came {0:?}")]
    Name(String),
    #[error("expected a JSON object: {0}")]
    NotJson(String),
    #[error("expected an object as {0:?}")]
    NotAnObject(String),
    #[error("{0:?} is there more than once")]
    Twice(String),
    #[error("the text cannot be changed without harm")]
    Unclear,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Puts a server into a file, which is made if it is not there; one of the same name is replaced.
pub fn insert_into(path: &Path, at: &[&str], name: &str, entry: &impl Serialize) -> Result<(), Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(e.into()),
    };
    Ok(atomic::write(path, insert(&text, at, name, entry)?.as_bytes(), Lasting::Yes)?)
}

/// Takes a server out of a file. False if it is not there; then the file is not touched.
pub fn remove_from(path: &Path, at: &[&str], name: &str) -> Result<bool, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e.into()),
    };
    match remove(&text, at, name)? {
        Some(text) => Ok(atomic::write(path, text.as_bytes(), Lasting::Yes).map(|()| true)?),
        None => Ok(false),
    }
}

/// The text with a server under these keys, as in `["mcpServers"]` or `["mcp", "servers"]`. Objects that are missing are made.
pub fn insert(text: &str, at: &[&str], name: &str, entry: &impl Serialize) -> Result<String, Error> {
    check_name(name)?;
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let document = Document::new(text);
    let printed = document.printed(entry).map_err(|e| Error::NotJson(e.to_string()))?;
    let mut path: Vec<&str> = at.to_vec();
    path.push(name);
    let (object, depth) = document.deepest(&path)?;
    let changed = match object.member(path[depth])? {
        Some(member) => document.replace(member, &printed),
        None => document.append(&object, path[depth], &document.nested(&path[depth + 1..], printed)),
    };
    let mut expected = document.value()?;
    *make(&mut expected, &path).ok_or(Error::Unclear)? = serde_json::to_value(entry).map_err(|_| Error::Unclear)?;
    verified(changed, &expected)
}

/// The text without a server; `None` if it is not there.
pub fn remove(text: &str, at: &[&str], name: &str) -> Result<Option<String>, Error> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let document = Document::new(text);
    let mut path: Vec<&str> = at.to_vec();
    path.push(name);
    let (object, depth) = document.deepest(&path)?;
    if depth + 1 < path.len() || object.member(name)?.is_none() {
        return Ok(None);
    }
    let mut expected = document.value()?;
    make(&mut expected, at).and_then(Json::as_object_mut).ok_or(Error::Unclear)?.remove(name);
    verified(document.cut(&object, name), &expected).map(Some)
}

fn check_name(name: &str) -> Result<(), Error> {
    let sound = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    if sound && (1..=100).contains(&name.len()) { Ok(()) } else { Err(Error::Name(name.to_owned())) }
}

/// Whatever was done to the text, it must say what it is meant to say.
fn verified(text: String, expected: &Json) -> Result<String, Error> {
    let said: Option<Json> = serde_json::from_str(&jsonc::plain(&text)).ok();
    if said.as_ref() == Some(expected) { Ok(text) } else { Err(Error::Unclear) }
}

/// The value at a path; objects on the way are made.
fn make<'a>(value: &'a mut Json, path: &[&str]) -> Option<&'a mut Json> {
    path.iter().try_fold(value, |value, key| {
        if value.is_null() {
            *value = Json::Object(Default::default());
        }
        Some(value.as_object_mut()?.entry(*key).or_insert(Json::Null))
    })
}

struct Document<'a> {
    text: &'a str,
    /// Without comments; commas tell where members end.
    uncommented: String,
    plain: String,
}

/// An object in the text.
struct Object {
    braces: Range<usize>,
    members: Vec<Member>,
}

struct Member {
    key: String,
    start: usize,
    value: Range<usize>,
}

impl Object {
    fn member(&self, key: &str) -> Result<Option<&Member>, Error> {
        let mut members = self.members.iter().filter(|member| member.key == key);
        match (members.next(), members.next()) {
            (_, Some(_)) => Err(Error::Twice(key.to_owned())),
            (member, None) => Ok(member),
        }
    }
}

impl<'a> Document<'a> {
    fn new(text: &'a str) -> Document<'a> {
        Document { text, uncommented: jsonc::uncommented(text), plain: jsonc::plain(text) }
    }

    fn value(&self) -> Result<Json, Error> {
        serde_json::from_str(&self.plain).map_err(|e| Error::NotJson(e.to_string()))
    }

    /// The innermost object on a path that is there, and how many keys lead to it; the last key is never entered.
    fn deepest(&self, path: &[&str]) -> Result<(Object, usize), Error> {
        let value: &RawValue = serde_json::from_str(&self.plain).map_err(|e| Error::NotJson(e.to_string()))?;
        let mut object = self.object(self.range_of(value), "the file")?;
        for (depth, key) in path[..path.len() - 1].iter().enumerate() {
            let Some(member) = object.member(key)? else { return Ok((object, depth)) };
            let range = member.value.clone();
            object = self.object(range, key)?;
        }
        Ok((object, path.len() - 1))
    }

    fn range_of(&self, value: &RawValue) -> Range<usize> {
        let start = value.get().as_ptr().addr() - self.plain.as_ptr().addr();
        start..start + value.get().len()
    }

    fn object(&self, range: Range<usize>, key: &str) -> Result<Object, Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        let mut reader = serde_json::Deserializer::from_str(&self.plain[range.clone()]);
        let members = reader.deserialize_map(Members).map_err(|_| Error::NotAnObject(key.to_owned()))?;
        let member = |(key, value): (&RawValue, &RawValue)| {
            let (start, value) = (self.range_of(key).start, self.range_of(value));
            serde_json::from_str(key.get()).map(|key| Member { key, start, value }).map_err(|_| Error::Unclear)
        };
        Ok(Object { braces: range, members: members.into_iter().map(member).collect::<Result<_, _>>()? })
    }

    fn replace(&self, member: &Member, value: &str) -> String {
        let value = self.indented(value, &self.indent_at(member.start));
        [&self.text[..member.value.start], &value, &self.text[member.value.end..]].concat()
    }

    /// Adds a member behind all there is in an object, comments included.
    fn append(&self, object: &Object, key: &str, value: &str) -> String {
        let (open, close) = (object.braces.start + 1, object.braces.end - 1);
        let outer = self.indent_at(object.braces.start);
        let inner = match object.members.first().filter(|first| self.is_first_on_line(first.start)) {
            Some(first) => self.indent_at(first.start),
            None => format!("{outer}{}", self.unit()),
        };
        let last = object.members.last().map(|last| last.value.end);
        let needs_comma = last.is_some_and(|last| !self.uncommented[last..close].contains(','));
        let last = last.unwrap_or(open);
        let end = open + self.text[open..close].trim_end().len();
        let end = end.max(last);
        let line = self.line_break();
        let member = format!("{line}{inner}{}: {}", Json::from(key), self.indented(value, &inner));
        let closing = if self.text[end..close].contains('\n') { "" } else { &format!("{line}{outer}") };
        let comma = if needs_comma { "," } else { "" };
        let rest = if closing.is_empty() { &self.text[end..] } else { &self.text[close..] };
        [&self.text[..last], comma, &self.text[last..end], &member, closing, rest].concat()
    }

    /// Takes a member out, and its line if nothing else is on it.
    fn cut(&self, object: &Object, name: &str) -> String {
        let Some(n) = object.members.iter().position(|member| member.key == name) else { return self.text.to_owned() };
        let member = &object.members[n];
        let next = object.members.get(n + 1).map_or(object.braces.end - 1, |next| next.start);
        let comma_in = |range: Range<usize>| Some(range.start + self.uncommented[range].find(',')?);
        let (mut start, mut end) = (member.start, member.value.end);
        let own = comma_in(end..next);
        // The last has none of its own; then the one before it goes.
        let before = match (own, n.checked_sub(1)) {
            (None, Some(before)) => comma_in(object.members[before].value.end..start),
            _ => None,
        };
        end = own.map_or(end, |comma| comma + 1);
        let rest = &self.text[end..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if self.is_first_on_line(start) && (rest[blank..].starts_with(['\n', '\r'])) {
            start = self.text[..start].trim_end_matches([' ', '\t']).len();
            let line_end = rest[blank..].find('\n').map_or(0, |at| at + 1);
            end += blank + line_end;
        } else if own.is_some() {
            end += blank;
        }
        match before {
            Some(comma) => [&self.text[..comma], &self.text[comma + 1..start], &self.text[end..]].concat(),
            None => [&self.text[..start], &self.text[end..]].concat(),
        }
    }

    fn is_first_on_line(&self, at: usize) -> bool {
        self.text[..at].trim_end_matches([' ', '\t']).ends_with('\n')
    }

    /// The white space that the line of this place begins with.
    fn indent_at(&self, at: usize) -> String {
        let line = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        self.text[line..at].chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
    }

    /// One step of indentation: that of the first line that has some.
    fn unit(&self) -> String {
        let indents = self.plain.lines().filter(|line| line.trim_start().starts_with('"'));
        let indents = indents.map(|line| line[..line.len() - line.trim_start().len()].to_owned());
        indents.into_iter().find(|indent| !indent.is_empty()).unwrap_or_else(|| "  ".to_owned())
    }

    fn line_break(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// A value as it looks at the beginning of a line.
    fn printed(&self, value: &impl Serialize) -> serde_json::Result<String> {
        let unit = self.unit();
        let mut out = Vec::new();
        value.serialize(&mut serde_json::Serializer::with_formatter(
            &mut out,
            PrettyFormatter::with_indent(unit.as_bytes()),
        ))?;
        Ok(String::from_utf8(out).unwrap_or_default())
    }

    /// A value inside of objects that are not there yet.
    fn nested(&self, keys: &[&str], value: String) -> String {
        let unit = self.unit();
        let wrap = |value: String, key: &&str| {
            format!("{{\n{unit}{}: {}\n}}", Json::from(*key), value.replace('\n', &format!("\n{unit}")))
        };
        keys.iter().rev().fold(value, wrap)
    }

    fn indented(&self, value: &str, indent: &str) -> String {
        value.replace('\n', &format!("{}{indent}", self.line_break()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const MINE: &str = r#"{
    // My servers.
    "mcpServers": {
        "b": { "command": "b" }, // about b
        "a": {
            "command": "a" /* about a */
        } // the end
    },
    "theme": "dark", "number": 1.10
}
"#;

    fn entry() -> Json {
        json!({ "command": "new", "args": [1] })
    }

    #[test]
    fn a_server_is_added_and_nothing_else_changes() {
        let text = insert(MINE, &["mcpServers"], "n", &entry()).unwrap();
        let expected = MINE.replace(
            "        } // the end\n",
            "        }, // the end\n        \"n\": {\n            \"args\": [\n                1\n            ],\n            \"command\": \"new\"\n        }\n",
        );
        assert_eq!(text, expected);
        assert_eq!(remove(&text, &["mcpServers"], "n").unwrap().as_deref(), Some(MINE));
    }

    #[test]
    fn a_server_is_replaced_where_it_stands() {
        let text = insert(MINE, &["mcpServers"], "b", &json!(1)).unwrap();
        assert_eq!(text, MINE.replace("{ \"command\": \"b\" }", "1"));
    }

    #[test]
    fn servers_are_taken_out_with_their_lines() {
        let text = remove(MINE, &["mcpServers"], "b").unwrap().unwrap();
        assert_eq!(text, MINE.replace("\"b\": { \"command\": \"b\" }, // about b", "// about b"));
        let text = remove(MINE, &["mcpServers"], "a").unwrap().unwrap();
        let expected = MINE.replace("\"b\" }, //", "\"b\" } //");
        let expected = expected
            .replace("\"a\": {\n            \"command\": \"a\" /* about a */\n        } // the end", " // the end");
        assert_eq!(text.replace(" ", ""), expected.replace(" ", ""));
        assert_eq!(remove(MINE, &["mcpServers"], "none").unwrap(), None);
        assert_eq!(remove(MINE, &["servers"], "a").unwrap(), None);
        assert_eq!(remove("", &["servers"], "a").unwrap(), None);
        let text = "{\n  \"s\": {\n    \"a\": 1,\n    \"b\": 2\n  }\n}";
        assert_eq!(remove(text, &["s"], "a").unwrap().unwrap(), "{\n  \"s\": {\n    \"b\": 2\n  }\n}");
        assert_eq!(remove(text, &["s"], "b").unwrap().unwrap(), "{\n  \"s\": {\n    \"a\": 1\n  }\n}");
    }

    #[test]
    fn what_is_missing_is_made() {
        let new = "{\n  \"mcp\": {\n    \"servers\": {\n      \"n\": 1\n    }\n  }\n}\n";
        assert_eq!(insert("", &["mcp", "servers"], "n", &json!(1)).unwrap(), new);
        let crlf = "{\r\n\t\"a\": 1,\r\n}\r\n";
        let text = insert(crlf, &["servers"], "n", &json!(1)).unwrap();
        assert_eq!(text, "{\r\n\t\"a\": 1,\r\n\t\"servers\": {\r\n\t\t\"n\": 1\r\n\t}\r\n}\r\n");
        let text = insert("{\"mcpServers\":{\"a\":1}}", &["mcpServers"], "n", &json!(1)).unwrap();
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), json!({ "mcpServers": { "a": 1, "n": 1 } }));
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        let at = &["mcpServers"][..];
        let refused = |text: &str, at: &[&str], name: &str| insert(text, at, name, &json!(1)).unwrap_err().to_string();
        for text in ["[]", "{", "nonsense", "{\"mcpServers\": }", "{} {}"] {
            assert!(refused(text, at, "n").starts_with("expected a"), "{text}");
        }
        assert_eq!(refused(r#"{"mcpServers": []}"#, at, "n"), "expected an object as \"mcpServers\"");
        assert_eq!(
            refused(r#"{"mcpServers": {}, "mcpServers": {}}"#, at, "n"),
            "\"mcpServers\" is there more than once"
        );
        assert_eq!(refused(r#"{"mcpServers": {"n": 1, "n": 2}}"#, at, "n"), "\"n\" is there more than once");
        for name in ["", "a b", "ü", "a/b", &"x".repeat(101)] {
            assert!(refused("{}", at, name).starts_with("expected a name"), "{name}");
        }
        assert!(insert("{}", at, &"x".repeat(100), &json!(1)).is_ok());
    }

    #[test]
    fn files_are_made_for_the_user_alone_and_keep_their_mode_and_links() {
        let root = std::env::temp_dir().join(format!("mcpwire-write-{:016x}", fastrand::u64(..)));
        let path = root.join("sub/mcp.json");
        assert!(!remove_from(&path, &["mcpServers"], "n").unwrap());
        insert_into(&path, &["mcpServers"], "n", &entry()).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&root.join("sub"))), (0o600, 0o700));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let link = root.join("link.json");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(remove_from(&link, &["mcpServers"], "n").unwrap());
        assert_eq!(mode(&path), 0o644);
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(root.join("sub")).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_dir_all(root).unwrap();
    }

    proptest! {
        #[test]
        fn any_object_survives(keys in proptest::collection::vec("[a-c,{}\"/]{1,3}", 0..5), pretty: bool, trailing: bool) {
            let inner: serde_json::Map<String, Json> = keys.iter().map(|key| (key.clone(), json!({ "x": key }))).collect();
            let value = json!({ "a": 1, "mcpServers": inner, "z": "//z" });
            let mut text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            if trailing {
                text = text.replace("\"//z\"", "\"//z\", // , }\n");
            }
            let added = insert(&text, &["mcpServers"], "new", &entry()).unwrap();
            let mut expected = value.clone();
            expected["mcpServers"]["new"] = entry();
            prop_assert_eq!(serde_json::from_str::<Json>(&jsonc::plain(&added)).unwrap(), expected);
            let back = remove(&added, &["mcpServers"], "new").unwrap().unwrap();
            prop_assert_eq!(serde_json::from_str::<Json>(&jsonc::plain(&back)).unwrap(), value);
        }

        #[test]
        fn any_text_is_taken_or_refused(text in "[\\PC{}\\[\\]\",:/*\n ]*") {
            let _ = insert(&text, &["mcpServers"], "n", &json!(1));
            let _ = remove(&text, &["mcpServers"], "n");
        }
    }
}
