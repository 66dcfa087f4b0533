//! Reads parameters and arguments, and says what was expected and what came.

use std::ops::RangeInclusive;

use mcpwire_proto::{Fault, Message};
use serde_json::{Map, Value};

/// The `params` of a request, or an object inside them.
#[derive(Debug, Default)]
pub(super) struct Args(Map<String, Value>);

impl Args {
    /// The parameters of a message; none at all are as good as an empty object.
    pub(super) fn of_params(message: &Message) -> Result<Args, Fault> {
        match message.payload() {
            None => Ok(Args::default()),
            Some(text) => match serde_json::from_str(text) {
                Ok(map) => Ok(Args(map)),
                Err(_) => Err(Fault::Params(format!("expected an object as params, came {}", excerpt(text)))),
            },
        }
    }

    /// An object inside this one; empty if it is absent.
    pub(super) fn object(&self, name: &str) -> Result<Args, Fault> {
        match self.0.get(name) {
            None => Ok(Args::default()),
            Some(Value::Object(map)) => Ok(Args(map.clone())),
            Some(_) => Err(self.wrong("an object", name)),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, Fault> {
        self.optional_text(name)?.ok_or_else(|| self.wrong("a string", name))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&str>, Fault> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong("a string", name)),
        }
    }

    /// A whole number within bounds; `default` if it is absent.
    pub(super) fn whole(&self, name: &str, bounds: RangeInclusive<u64>, default: u64) -> Result<u64, Fault> {
        match self.0.get(name) {
            None => Ok(default),
            Some(value) => value.as_u64().filter(|number| bounds.contains(number)).ok_or_else(|| {
                self.wrong(&format!("a whole number from {} to {}", bounds.start(), bounds.end()), name)
            }),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<&serde_json::Number, Fault> {
        match self.0.get(name) {
            Some(Value::Number(number)) => Ok(number),
            _ => Err(self.wrong("a number", name)),
        }
    }

    /// Whether something is wanted; it is not if it is absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.0.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong("true or false", name)),
        }
    }

    /// A list of texts; empty if it is absent.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&str>, Fault> {
        let texts = match self.0.get(name) {
            None => Some(Vec::new()),
            Some(value) => value.as_array().and_then(|items| items.iter().map(Value::as_str).collect()),
        };
        texts.ok_or_else(|| self.wrong("a list of strings", name))
    }

    /// The progress token of a `_meta` object: a string or a number.
    pub(super) fn progress_token(&self) -> Result<Option<Value>, Fault> {
        match self.0.get("progressToken") {
            None => Ok(None),
            Some(token @ (Value::String(_) | Value::Number(_))) => Ok(Some(token.clone())),
            Some(_) => Err(self.wrong("a string or a number", "progressToken")),
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The same without some of its members.
    pub(super) fn without(&self, names: &[&str]) -> Map<String, Value> {
        let kept = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        self.0
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    pub(super) fn wrong(&self, expected: &str, name: &str) -> Fault {
        let came = self.0.get(name).map_or_else(|| "nothing".to_owned(), |value| excerpt(&value.to_string()));
        Fault::Params(format!("expected {expected} as {name}, came {came}"))
    }
}

/// The beginning of a peer's text, short enough for an error message.
pub(super) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
