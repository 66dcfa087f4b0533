//! What a request comes to: a result, or a refusal with its one mapping to a JSON-RPC error.

use mcpwire_proto::error::code;
use mcpwire_proto::{Fault, Id, Message};
use serde_json::{Value, json};

/// JSON-RPC leaves -32000 to -32099 to servers; the first is what failed tools are told with.
const TOOL_FAILED: i32 = -32000;

pub(super) type Reply = Result<Body, Refusal>;

/// A result: the JSON text of an object.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) json: String,
    /// Whether a client may keep it for a while.
    pub(super) cacheable: bool,
}

impl Body {
    pub(super) fn new(json: String) -> Body {
        Body { json, cacheable: false }
    }

    pub(super) fn cacheable(json: String) -> Body {
        Body { json, cacheable: true }
    }
}

impl From<Value> for Body {
    fn from(value: Value) -> Body {
        Body::new(value.to_string())
    }
}

/// Why a request gets no result.
#[derive(Debug)]
pub(super) enum Refusal {
    Fault(Fault),
    /// The parameters are wrong, in the words that clients of this kind of server know.
    Params(String),
    NoResource(String),
    Tool {
        tool: String,
        told: String,
    },
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Fault(fault)
    }
}

impl Refusal {
    pub(super) fn to_message(&self, id: &Id) -> Message {
        let (code, message, data) = match self {
            Refusal::Fault(fault) => return fault.to_message(Some(id)),
            Refusal::Params(told) => (code::INVALID_PARAMS, told.clone(), None),
            Refusal::NoResource(uri) => {
                (code::INVALID_PARAMS, format!("Resource not found: {}", excerpt(uri)), Some(json!({ "uri": uri })))
            }
            Refusal::Tool { tool, told } => {
                let data = json!({ "tool": tool, "originalError": told });
                (TOOL_FAILED, format!("Tool execution error: {told}"), Some(data))
            }
        };
        let mut error = json!({ "code": code, "message": message });
        if let Some(data) = data {
            error["data"] = data;
        }
        Message::error_object(Some(id), &error.to_string())
    }
}

/// The beginning of a peer's text, short enough for an error message.
pub(super) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
