//! What a caller of the client may be told when something fails, in texts that callers may rely on.

use std::fmt;
use std::time::Duration;

use mcpwire_proto::{Cause as Because, HttpStatus, Object, Packet, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::transport::http;

/// Why something that was asked of a [`Client`](super::Client) failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with an error, or the bridge did in its place.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The server refused an HTTP request.
    #[error(transparent)]
    Http(Box<HttpError>),
    /// The connection ended while an answer was awaited.
    #[error("Transport closed")]
    Closed(#[source] Option<Cause>),
    /// The connection had ended before.
    #[error("Transport not connected")]
    NotConnected,
    /// The answer did not come in time. The server was told that it is not wanted any more.
    #[error("Request timeout after {}ms", .0.as_millis())]
    Timeout(Duration),
    /// A notification could not be handed over in time.
    #[error("Notify timeout after {}ms", .0.as_millis())]
    NotifyTimeout(Duration),
    /// The handshake did not end in time.
    #[error("Connection to MCP server \"{name}\" timed out after {}ms", .after.as_millis())]
    ConnectTimeout { name: String, after: Duration },
    /// The caller withdrew the request; holds the reason it gave.
    #[error("{0}")]
    Aborted(String),
    /// The stream with the answer ended before the answer came. Only a client that does not recover tells this.
    #[error("No response received for request ID {id}")]
    NoResponse { id: String, source: Cause },
    /// The server cannot be reached. Only a client that does not recover tells this; others wait, and are told by the bridge.
    #[error("{0}")]
    Unreachable(String),
    /// The answer is not what the method promises.
    #[error("{method}: {why}")]
    Unexpected { method: String, why: String },
    /// The parameters are no JSON object.
    #[error("expected an object as params, came {0}")]
    Params(String),
}

impl Error {
    /// The JSON-RPC error code, if the server answered with one.
    pub fn code(&self) -> Option<i64> {
        match self {
            Error::Rpc(error) => Some(error.code),
            _ => None,
        }
    }

    pub(super) fn closed(why: Option<&str>) -> Error {
        Error::Closed(why.map(|why| Cause(why.to_owned())))
    }

    /// What an error response means for the request that it answers. A bridge that recovers says in its own words what
    /// went wrong; without recovery the cause is all there is.
    pub(super) fn of(packet: &Packet, recovers: bool) -> Error {
        let response = &packet.message;
        let Some(error) = response.read::<RpcError>() else {
            let message = format!("expected an error object, got {}", response.payload().unwrap_or("none"));
            return RpcError::new(code::INTERNAL_ERROR, message).into();
        };
        match packet.cause.as_deref() {
            Some(Because::Http(told)) => Error::Http(Box::new(HttpError::from(&**told))),
            Some(cause) if !recovers => {
                let id = response.id().map(ToString::to_string).unwrap_or_default();
                Error::without_recovery(cause, id, error)
            }
            _ => Error::Rpc(error),
        }
    }

    fn without_recovery(cause: &Because, id: String, error: RpcError) -> Error {
        match (cause, HttpError::of_text(&error.message)) {
            (Because::Unreachable | Because::Interrupted | Because::SessionLost, Some(http)) => {
                Error::Http(Box::new(http))
            }
            (Because::Interrupted, None) => Error::NoResponse { id, source: Cause(error.message) },
            (Because::Unreachable | Because::SessionLost, None) => Error::Unreachable(error.message),
            _ => Error::Rpc(error),
        }
    }
}

/// What lies behind an error.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct Cause(pub(super) String);

/// A JSON-RPC error: what a server answers with, and what a [`Handler`](super::Handler) may answer a server with.
#[derive(Debug, Clone, Deserialize, thiserror::Error)]
#[error("MCP error {code}: {message}")]
pub struct RpcError {
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    pub fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError { code: code.into(), message: message.into(), data: None }
    }

    pub fn method_not_found(method: &str) -> RpcError {
        RpcError::new(code::METHOD_NOT_FOUND, format!("method not found: {method}"))
    }

    /// The error object, as it goes over the wire.
    pub(super) fn to_object(&self) -> String {
        let mut object = Object::new();
        object.set("code", self.code.to_string());
        object.set("message", mcpwire_proto::object::quoted(&self.message));
        if let Some(data) = &self.data {
            object.set("data", data.get());
        }
        object.to_string()
    }
}

/// An HTTP status that is no success, and what came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpError {
    pub status: u16,
    /// The beginning of the body, on one line.
    pub body: String,
    /// The header `WWW-Authenticate`.
    pub www_authenticate: Option<String>,
    /// The header `Mcp-Auth-Server`.
    pub auth_server: Option<String>,
}

impl HttpError {
    fn of_text(text: &str) -> Option<HttpError> {
        let (status, body) = http::client::described(text)?;
        let body = body.to_owned();
        Some(HttpError { status: status.as_u16(), body, www_authenticate: None, auth_server: None })
    }
}

impl From<&HttpStatus> for HttpError {
    fn from(told: &HttpStatus) -> HttpError {
        let HttpStatus { status, body, www_authenticate, auth_server } = told.clone();
        HttpError { status, body, www_authenticate, auth_server }
    }
}

impl std::error::Error for HttpError {}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}: {}", self.status, self.body)?;
        let hint = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}: {value}"));
        let hints = [hint("WWW-Authenticate", &self.www_authenticate), hint("Mcp-Auth-Server", &self.auth_server)];
        let hints: Vec<_> = hints.into_iter().flatten().collect();
        if hints.is_empty() { Ok(()) } else { write!(f, " [{}]", hints.join("; ")) }
    }
}
