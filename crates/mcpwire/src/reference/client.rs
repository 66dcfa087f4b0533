//! What a client says of itself: once in a session, or with every request.

use mcpwire_proto::version::{V2025_03_26, V2025_06_18};
use serde_json::{Value, json};

/// Who asks, in which version, and what it can do for us.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) version: &'static str,
    pub(super) name: String,
    pub(super) capabilities: Value,
}

/// Something a client may be able to do for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skill {
    Sampling,
    Roots,
    Form,
    Url,
}

impl Skill {
    /// The capability by which a client declares it.
    pub(super) fn capability(self) -> (&'static str, Value) {
        match self {
            Skill::Sampling => ("sampling", json!({})),
            Skill::Roots => ("roots", json!({})),
            Skill::Form => ("elicitation", json!({ "form": {} })),
            Skill::Url => ("elicitation", json!({ "url": {} })),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Skill::Sampling => "sampling",
            Skill::Roots => "roots",
            Skill::Form => "elicitation by form",
            Skill::Url => "elicitation by url",
        }
    }
}

impl Client {
    pub(super) fn offers(&self, skill: Skill) -> bool {
        let declares = |path: &str| self.capabilities.pointer(path).is_some_and(Value::is_object);
        match skill {
            Skill::Sampling => declares("/sampling"),
            Skill::Roots => declares("/roots"),
            // Without a mode it means forms: there was no other at first.
            Skill::Form => declares("/elicitation/form") || declares("/elicitation") && !declares("/elicitation/url"),
            Skill::Url => declares("/elicitation/url"),
        }
    }

    /// Output schemas, structured content, resource links and titles came with 2025-06-18.
    pub(super) fn knows_structure(&self) -> bool {
        self.version >= V2025_06_18
    }

    /// Audio content and tool annotations came with 2025-03-26.
    pub(super) fn knows_audio(&self) -> bool {
        self.version >= V2025_03_26
    }
}
