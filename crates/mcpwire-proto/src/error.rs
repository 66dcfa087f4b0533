//! Faults, named by who is to blame, and their one mapping to JSON-RPC errors.

use std::sync::Arc;

use crate::{Cause, Id, Message, Packet};

/// The JSON-RPC error codes we send ourselves.
pub mod code {
    pub const PARSE_ERROR: i32 = -32700;
    pub const INVALID_REQUEST: i32 = -32600;
    pub const METHOD_NOT_FOUND: i32 = -32601;
    pub const INVALID_PARAMS: i32 = -32602;
    pub const INTERNAL_ERROR: i32 = -32603;
    /// Session era only; a missing resource is [`INVALID_PARAMS`] since.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// The Language Server Protocol's code for it; the Python SDK answers cancelled HTTP requests with it, too.
    pub const REQUEST_CANCELLED: i32 = -32800;
    /// 2025-11-25 only.
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    pub const HEADER_MISMATCH: i32 = -32020;
    pub const MISSING_CLIENT_CAPABILITY: i32 = -32021;
    pub const UNSUPPORTED_VERSION: i32 = -32022;

    /// Whether only a server of the stateless era answers with this code.
    pub fn is_modern(code: i64) -> bool {
        (-32022..=-32020).contains(&code)
    }
}

/// Why a message could not be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The peer sent text that is not JSON.
    #[error("parse error: {0}")]
    Syntax(String),
    /// The peer sent JSON that is no JSON-RPC message.
    #[error("invalid request: {0}")]
    Shape(String),
    /// The peer sent more bytes in one message than we take.
    #[error("message too large: the limit is {limit} bytes (--max-message sets it)")]
    TooLarge { limit: usize },
    /// The peer asked for a method that is not served here.
    #[error("method not found: {0}")]
    UnknownMethod(String),
    /// The peer speaks a version that is not served here.
    #[error("unsupported protocol version: expected one of {}, came {requested}", supported.join(", "))]
    Version { requested: String, supported: &'static [&'static str] },
    /// What the headers of an HTTP request say is not what its body says.
    #[error("header mismatch: {0}")]
    Headers(String),
    /// The peer called a method with parameters it does not take.
    #[error("invalid params: {0}")]
    Params(String),
    /// The other side of the bridge failed; the peer did nothing wrong.
    #[error("{0}")]
    Upstream(String),
    /// The server did not answer, for this reason and in these words.
    #[error("{1}")]
    NoAnswer(Cause, String),
}

impl Fault {
    pub fn code(&self) -> i32 {
        match self {
            Fault::Syntax(_) => code::PARSE_ERROR,
            Fault::Shape(_) | Fault::TooLarge { .. } => code::INVALID_REQUEST,
            Fault::UnknownMethod(_) => code::METHOD_NOT_FOUND,
            Fault::Version { .. } => code::UNSUPPORTED_VERSION,
            Fault::Headers(_) => code::HEADER_MISMATCH,
            Fault::Params(_) => code::INVALID_PARAMS,
            Fault::Upstream(_) | Fault::NoAnswer(..) => code::INTERNAL_ERROR,
        }
    }

    /// The error response that tells the peer. An unknown id is `null` (JSON-RPC 2.0, section 5).
    pub fn to_message(&self, id: Option<&Id>) -> Message {
        match self {
            Fault::Version { requested, supported } => {
                let data = serde_json::json!({"supported": supported, "requested": requested});
                let error = serde_json::json!({"code": self.code(), "message": self.to_string(), "data": data});
                Message::error_object(id, &error.to_string())
            }
            _ => Message::error(id, self.code(), &self.to_string()),
        }
    }

    /// The same, with what the text says for those who have to decide by it.
    pub fn to_packet(&self, id: Option<&Id>) -> Packet {
        let cause = match self {
            Fault::NoAnswer(cause, _) => cause.clone(),
            _ => Cause::Us,
        };
        Packet::from(self.to_message(id)).because(Some(Arc::new(cause)))
    }
}
