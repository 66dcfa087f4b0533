//! What a request comes to: a result, a refusal, or a failure whose consequences are for the session to decide.

use mcpwire_proto::{Failure, Fault, Id, Message, code};
use serde_json::{Value, json};

use crate::transport::quic::call::{NoAnswer, UNEXPECTED};
use crate::transport::quic::proto::{Response, ToolResponse};

/// How a request ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Reply(Reply),
    Failed(Failure),
}

/// What the client is answered.
#[derive(Debug)]
pub(super) enum Reply {
    /// The text of a result.
    Result(String),
    Refused(Refusal),
}

impl Reply {
    pub(super) fn to_message(&self, id: &Id) -> Message {
        match self {
            Reply::Result(text) => Message::result(id, text),
            Reply::Refused(refusal) => refusal.to_message(id),
        }
    }
}

/// Why a request gets no result, as a JSON-RPC error.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: i32,
    message: String,
    data: Option<Value>,
}

impl Refusal {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), data: None }
    }

    pub(super) fn params(message: impl Into<String>) -> Refusal {
        Refusal::new(code::INVALID_PARAMS, message)
    }

    pub(super) fn internal(message: impl Into<String>) -> Refusal {
        Refusal::new(code::INTERNAL_ERROR, message)
    }

    pub(super) fn missing(parameter: &str) -> Refusal {
        Refusal::params(format!("missing required parameter: {parameter}"))
    }

    pub(super) fn with_data(self, data: Value) -> Refusal {
        Refusal { data: Some(data), ..self }
    }

    pub(super) fn with_code(self, code: i32) -> Refusal {
        Refusal { code, ..self }
    }

    pub(super) fn to_message(&self, id: &Id) -> Message {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        Message::error_object(Some(id), &error.to_string())
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        let data = match &fault {
            Fault::Version { requested, supported } => Some(json!({ "supported": supported, "requested": requested })),
            _ => None,
        };
        Refusal { code: fault.code(), message: fault.to_string(), data }
    }
}

/// Why a method stops before it has a result.
#[derive(Debug)]
pub(super) enum Stop {
    Refused(Refusal),
    Failed(Failure),
}

impl<R: Into<Refusal>> From<R> for Stop {
    fn from(refusal: R) -> Stop {
        Stop::Refused(refusal.into())
    }
}

/// What it means for the client that a call of ours, named by `call`, has no answer.
pub(super) fn no_answer(call: &'static str) -> impl Fn(NoAnswer) -> Stop {
    move |failure| match failure {
        NoAnswer::Unreachable(why) => Stop::Failed(Failure::Unreachable(why)),
        NoAnswer::NotConnected(why) => Stop::Failed(Failure::NotConnected(why)),
        NoAnswer::Interrupted(why) => Stop::Failed(Failure::Interrupted(why)),
        NoAnswer::Useless(why) if why == UNEXPECTED => Refusal::internal(why).into(),
        NoAnswer::Useless(why) => Refusal::internal(format!("orchestrator {call} failed: {why}")).into(),
    }
}

/// What it means that an answer is of another kind than the call. Orchestrators tell errors of any call as a tool's.
pub(super) fn unexpected(call: &str, response: Response) -> Refusal {
    match response {
        Response::ToolCall(ToolResponse { success: false, error_code, error_message, .. }) => {
            let why = if error_message.is_empty() { error_code } else { error_message };
            Refusal::internal(format!("orchestrator {call} failed: {why}"))
        }
        _ => Refusal::internal(UNEXPECTED),
    }
}
