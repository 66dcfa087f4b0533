//! What a request comes to: a result, or the reason why there is none; each era has its own words for the latter.

use mcpwire_proto::{Fault, Id, Message};
use serde_json::{Map, Value, json};

use super::args::excerpt;
use super::client::Skill;

pub(super) type Reply = Result<Value, Refusal>;

/// Why a request gets no result, or not yet.
#[derive(Debug)]
pub(super) enum Refusal {
    Fault(Fault),
    NoResource(String),
    /// The client does not offer what is needed to serve it.
    Needs(Vec<Skill>),
    /// The work was begun and failed; holds a text for people.
    Failed(String),
    /// The client has to answer questions first (2026-07-28, Multi Round-Trip Requests).
    Asks {
        questions: Map<String, Value>,
        state: Option<String>,
    },
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Fault(fault)
    }
}

/// The answer for a resource that is not there; the code depends on the era.
pub(super) fn no_resource(id: &Id, code: i32, uri: &str) -> Message {
    let message = format!("resource not found: {}", excerpt(uri));
    error(id, code, &message, json!({ "uri": uri }))
}

pub(super) fn error(id: &Id, code: i32, message: &str, data: Value) -> Message {
    let error = json!({ "code": code, "message": message, "data": data });
    Message::error_object(Some(id), &error.to_string())
}

/// Says what the client lacks.
pub(super) fn lacks(skills: &[Skill]) -> String {
    let names: Vec<&str> = skills.iter().map(|skill| skill.name()).collect();
    format!("the client does not offer {}", names.join(", "))
}
