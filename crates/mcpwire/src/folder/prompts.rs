//! Prompts: what their front matter declares, and how arguments are filled in.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::flaw::Flaw;
use super::source::{Entry, Stamp};
use super::{front, layout};

/// The folders of prompts in the order of the list; others follow them, and what is in none comes last.
const ORDER: [&str; 3] = ["workflows", "agents", "skills"];

#[derive(Debug, PartialEq)]
pub(super) struct Prompt {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) arguments: Vec<Argument>,
    /// The path below `prompts/`.
    pub(super) file: String,
    pub(super) stamp: Stamp,
}

#[derive(Debug, PartialEq)]
pub(super) struct Argument {
    pub(super) name: String,
    description: Option<String>,
    required: bool,
    /// What completion offers.
    pub(super) values: Vec<String>,
}

/// Reads what a prompt's front matter declares.
pub(super) fn read(entry: &Entry, text: &str) -> Result<Prompt, Flaw> {
    let fields = front::split(text)?.fields;
    let stem = layout::stem(&entry.path).rsplit('/').next().unwrap_or_default();
    let name = front::text(&fields, "name").unwrap_or_else(|| stem.to_owned());
    let kind = layout::top(&entry.path).map(|folder| folder.strip_suffix('s').unwrap_or(folder));
    let description = front::text(&fields, "description").unwrap_or_else(|| match kind {
        Some(kind) => format!("{kind} prompt: {name}"),
        None => format!("prompt: {name}"),
    });
    Ok(Prompt {
        title: front::text(&fields, "title").unwrap_or_else(|| name.clone()),
        arguments: arguments(&fields)?,
        name,
        description,
        file: entry.path.clone(),
        stamp: entry.stamp,
    })
}

fn arguments(fields: &Map<String, Value>) -> Result<Vec<Argument>, Flaw> {
    let list = match fields.get("arguments") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Flaw::new("expected a list as arguments")),
    };
    let mut found: Vec<Argument> = Vec::new();
    for item in list {
        let (name, fields) = match item {
            Value::String(name) => (Some(name.clone()), &Map::new()),
            Value::Object(fields) => (front::text(fields, "name"), fields),
            _ => (None, &Map::new()),
        };
        let Some(name) = name else { return Err(Flaw::new("expected a name for every argument")) };
        if found.iter().any(|known| known.name == name) {
            return Err(Flaw::new(format!("the argument {name:?} is declared twice")));
        }
        found.push(Argument {
            description: front::text(fields, "description"),
            required: fields.get("required").and_then(Value::as_bool).unwrap_or(false),
            values: front::texts(fields, "values").or_else(|| front::texts(fields, "enum")).unwrap_or_default(),
            name,
        });
    }
    Ok(found)
}

pub(super) fn sort(prompts: &mut [Arc<Prompt>]) {
    let rank = |prompt: &Arc<Prompt>| match layout::top(&prompt.file) {
        Some(folder) => ORDER.iter().position(|known| *known == folder).unwrap_or(ORDER.len()),
        None => ORDER.len() + 1,
    };
    prompts.sort_by_cached_key(|prompt| (rank(prompt), prompt.file.clone()));
}

impl Prompt {
    /// The entry of the list; titles came with 2025-06-18.
    pub(super) fn entry(&self, with_title: bool) -> Value {
        let arguments = self.arguments.iter().map(|argument| {
            let mut entry = json!({ "name": argument.name, "required": argument.required });
            if let Some(description) = &argument.description {
                entry["description"] = json!(description);
            }
            entry
        });
        let mut entry = json!({ "name": self.name, "description": self.description });
        if !self.arguments.is_empty() {
            entry["arguments"] = arguments.collect();
        }
        if with_title {
            entry["title"] = json!(self.title);
        }
        entry
    }

    /// The first required argument that is not given.
    pub(super) fn missing(&self, given: &Map<String, Value>) -> Option<&str> {
        let missing = self.arguments.iter().find(|argument| argument.required && !given.contains_key(&argument.name));
        missing.map(|argument| argument.name.as_str())
    }

    /// Fills in arguments, in one pass: what a value contains is not filled in again.
    pub(super) fn fill(&self, body: &str, given: &Map<String, Value>) -> String {
        let value = |name: &str| given.get(name).and_then(Value::as_str);
        let first = self.arguments.first().and_then(|argument| value(&argument.name)).filter(|text| !text.is_empty());
        let mut out = String::with_capacity(body.len());
        let mut rest = body;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let named = rest.strip_prefix("${").and_then(|rest| rest.split_once('}'));
            let (text, length) = if let (Some(first), true) = (first, rest.starts_with("$ARGUMENTS")) {
                (first, "$ARGUMENTS".len())
            } else if let Some((name, text)) = named.and_then(|(name, _)| Some((name, value(name)?))) {
                (text, name.len() + 3)
            } else {
                ("$", 1)
            };
            out.push_str(text);
            rest = &rest[length..];
        }
        out + rest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prompt(path: &str, text: &str) -> Result<Prompt, Flaw> {
        read(&Entry { path: path.into(), stamp: Stamp::default() }, text)
    }

    fn filled(body: &str, given: Value) -> String {
        let prompt = prompt("workflows/x.md", "---\narguments: [service, env-name]\n---\n").unwrap();
        prompt.fill(body, given.as_object().unwrap())
    }

    #[test]
    fn what_is_not_declared_has_its_default() {
        let prompt = prompt("workflows/deep/deploy-it.md", "Body").unwrap();
        assert_eq!((prompt.name.as_str(), prompt.title.as_str()), ("deploy-it", "deploy-it"));
        assert_eq!(prompt.description, "workflow prompt: deploy-it");
        assert_eq!(prompt.entry(false), json!({"name": "deploy-it", "description": "workflow prompt: deploy-it"}));
    }

    #[test]
    fn arguments_are_filled_in_and_others_stay() {
        let body = "Ship ${service} to ${env-name} now. $ARGUMENTS / ${service} $& ${unknown}\n";
        let given = json!({"service": "api", "env-name": "prod"});
        assert_eq!(filled(body, given), "Ship api to prod now. api / api $& ${unknown}\n");
        assert_eq!(filled("$ARGUMENTS ${", json!({})), "$ARGUMENTS ${");
        assert_eq!(filled("$ARGUMENTS", json!({"service": ""})), "$ARGUMENTS");
        assert_eq!(filled("${service}!", json!({"service": "${env-name}", "env-name": "x"})), "${env-name}!");
    }

    #[test]
    fn bad_declarations_are_told() {
        for arguments in ["x", "[{description: no name}]", "[a, a]", "[[]]"] {
            assert!(prompt("x.md", &format!("---\narguments: {arguments}\n---\n")).is_err(), "{arguments}");
        }
    }

    proptest! {
        #[test]
        fn a_text_without_dollars_stays_as_it_is(body in "[^$]{0,60}") {
            prop_assert_eq!(filled(&body, json!({"service": "x"})), body);
        }

        #[test]
        fn no_text_panics(body in "[${}a-z-]{0,60}", value in "\\PC{0,10}") {
            let _ = filled(&body, json!({"service": value}));
        }
    }
}
