//! What a request comes to: a result, or a refusal with its one mapping to a JSON-RPC error.

use mcpwire_proto::{Fault, Id, Message};
use serde_json::{Value, json};

/// Version 2025-11-25, server/resources, "Error Handling".
const RESOURCE_NOT_FOUND: i32 = -32002;

pub(super) type Reply = Result<Value, Refusal>;

/// Why a request gets no result.
#[derive(Debug)]
pub(super) enum Refusal {
    Fault(Fault),
    NoResource(String),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Fault(fault)
    }
}

pub(super) fn to_message(id: &Id, reply: Reply) -> Message {
    match reply {
        Ok(result) => Message::result(id, &result.to_string()),
        Err(Refusal::Fault(fault)) => fault.to_message(Some(id)),
        Err(Refusal::NoResource(uri)) => {
            let message = format!("resource not found: {}", super::args::excerpt(&uri));
            let error = json!({ "code": RESOURCE_NOT_FOUND, "message": message, "data": { "uri": uri } });
            Message::error_object(Some(id), &error.to_string())
        }
    }
}
