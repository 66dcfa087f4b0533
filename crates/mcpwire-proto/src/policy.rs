//! Which tools of a server may be listed and called. Every conversation with the server applies it, whatever the front.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::message::excerpt;
use crate::{Fault, Kind, Message, Object, method};

/// The tools of a server that clients may see and call; by default all of them. Clones share the patterns.
///
/// In a pattern `*` stands for any text and `?` for one character.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy(Option<Arc<Patterns>>);

#[derive(Debug, PartialEq, Eq)]
struct Patterns {
    include: Vec<String>,
    exclude: Vec<String>,
}

impl Policy {
    /// Allows the tools that match a pattern of `include`, or all if it is empty, except those that match one of `exclude`.
    pub fn new(include: &[String], exclude: &[String]) -> Policy {
        if include.is_empty() && exclude.is_empty() {
            return Policy::default();
        }
        Policy(Some(Arc::new(Patterns { include: include.to_vec(), exclude: exclude.to_vec() })))
    }

    /// Whether every tool is allowed.
    pub fn is_open(&self) -> bool {
        self.0.is_none()
    }

    pub fn allows(&self, tool: &str) -> bool {
        let Some(patterns) = &self.0 else { return true };
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        (patterns.include.is_empty() || any(&patterns.include)) && !any(&patterns.exclude)
    }

    /// Checks a message of the client. A notification `tools/call` counts as well: some servers run it.
    pub fn check(&self, message: &Message) -> Result<(), Fault> {
        if self.is_open() || !message.is(method::TOOLS_CALL) {
            return Ok(());
        }
        let params = message.members().unwrap_or_default();
        let unnamed = || Fault::Params("expected name to be a string".into());
        let mut named = false;
        // Servers differ in which of several members of one name they read, so each of them counts.
        for name in members(&params, "name") {
            let name: String = serde_json::from_str(name).map_err(|_| unnamed())?;
            if !self.allows(&name) {
                let name = excerpt(&name);
                return Err(Fault::Params(format!("unknown tool: {name} (the configuration does not offer it)")));
            }
            named = true;
        }
        if named { Ok(()) } else { Err(unnamed()) }
    }

    /// Removes the tools that are not allowed from a list of tools; any other message stays as it is.
    ///
    /// A list is recognised by its shape. Request ids would be the alternative, and a client that uses one twice, or
    /// cancels the request, must not get the whole list.
    pub fn filter(&self, message: Message) -> Message {
        let (false, Kind::Result { id }) = (self.is_open(), message.kind()) else { return message };
        if !message.payload().is_some_and(|result| result.contains(r#""tools""#)) {
            return message;
        }
        let Some(result) = message.payload().and_then(Object::parse) else { return message };
        let lists: Vec<(&str, String)> =
            members(&result, "tools").filter_map(|list| Some((list, self.allowed_of(list)?))).collect();
        if lists.is_empty() {
            return message;
        }
        let parts: Vec<(&str, &str)> = lists.iter().map(|(list, allowed)| (*list, allowed.as_str())).collect();
        message.rewritten(id, &parts)
    }

    /// The allowed tools of a JSON array, as JSON; `None` if all are allowed, or if it is no list.
    fn allowed_of(&self, list: &str) -> Option<String> {
        let tools: Vec<&RawValue> = serde_json::from_str(list).ok()?;
        let allowed: Vec<&str> = tools.iter().map(|tool| tool.get()).filter(|tool| self.allows_item(tool)).collect();
        (allowed.len() < tools.len()).then(|| format!("[{}]", allowed.join(",")))
    }

    fn allows_item(&self, tool: &str) -> bool {
        let tool = Object::parse(tool).unwrap_or_default();
        let mut names = members(&tool, "name").peekable();
        names.peek().is_some()
            && names.all(|name| serde_json::from_str::<String>(name).is_ok_and(|name| self.allows(&name)))
    }
}

/// The values of all members of this name.
fn members<'a>(object: &'a Object<'_>, name: &'a str) -> impl Iterator<Item = &'a str> {
    object.iter().filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

/// Whether a name matches a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The last `*`, and where the text after the part that it stands for begins.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, tried)) => {
                    star = Some((at, tried + 1));
                    (p, n) = (at + 1, tried + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(include: &[&str], exclude: &[&str]) -> Policy {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Policy::new(&owned(include), &owned(exclude))
    }

    fn message(text: &str) -> Message {
        Message::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn patterns() {
        for (pattern, name, fit) in [
            ("get_*", "get_x", true),
            ("get_*", "set_x", false),
            ("*", "", true),
            ("?", "", false),
            ("*_x_*", "a_x_x_b", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("é?", "éé", true),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(matches(pattern, name), fit, "{pattern} {name}");
        }
    }

    #[test]
    fn exclude_has_the_last_word() {
        let policy = policy(&["get_*", "set_*"], &["*_secret"]);
        assert!(policy.allows("get_x") && policy.allows("set_x"));
        assert!(!policy.allows("get_secret") && !policy.allows("drop_x"));
        assert!(Policy::new(&[], &[]).is_open());
    }

    #[test]
    fn a_call_is_checked_however_its_name_is_written() {
        let policy = policy(&[], &["drop"]);
        for refused in [
            r#"{"name":"drop"}"#,
            r#"{"name":"d\u0072op"}"#,
            r#"{"n\u0061me":"drop"}"#,
            r#"{"name":"get","name":"drop"}"#,
            r#"{"name":"drop","name":"get"}"#,
            r#"{"name":["drop"]}"#,
            r#"{"name":null}"#,
            r#"{}"#,
            r#"["drop"]"#,
        ] {
            for id in ["", r#""id":1,"#] {
                let call = message(&format!(r#"{{"jsonrpc":"2.0",{id}"method":"tools/call","params":{refused}}}"#));
                assert!(matches!(policy.check(&call), Err(Fault::Params(_))), "{refused}");
                assert_eq!(Policy::default().check(&call), Ok(()), "{refused}");
            }
        }
        let call =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get","arguments":{"name":"drop"}}}"#;
        assert_eq!(policy.check(&message(call)), Ok(()));
        assert!(policy.check(&message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#)).is_err());
        let prompt = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"drop"}}"#;
        assert_eq!(policy.check(&message(prompt)), Ok(()));
    }

    #[test]
    fn a_list_loses_what_is_not_allowed_and_nothing_else() {
        let policy = policy(&[], &["drop"]);
        let list = r#"{"jsonrpc":"2.0", "id":"a","result":{ "tools":[{"name":"get","n":1.10}, {"name":"drop"},{"name":"get","name":"drop"},{"title":"?"}],"nextCursor":"c"}}"#;
        let left = r#"{"jsonrpc":"2.0", "id":"a","result":{ "tools":[{"name":"get","n":1.10}],"nextCursor":"c"}}"#;
        assert_eq!(policy.filter(message(list)).as_bytes(), left);
        assert_eq!(policy.filter(message(left)).as_bytes(), left);
        assert_eq!(Policy::default().filter(message(list)).as_bytes(), list);
        for other in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{}},"structuredContent":{"tools":[{"name":"drop"}]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":{"name":"drop"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":["tools"]}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","tools":[{"name":"drop"}]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"tools":[{"name":"drop"}]}}"#,
        ] {
            assert_eq!(policy.filter(message(other)).as_bytes(), other);
        }
    }
}
