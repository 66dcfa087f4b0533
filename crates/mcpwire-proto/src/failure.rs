//! Why a message that was handed to a transport did not get through: what recovery has to know, and what is kept with the
//! error that answers it.

use std::fmt;
use std::sync::Arc;

/// What became of a message that failed. It decides whether the message may be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server could not be reached or is not ready to serve: the message was not executed, and later it may be.
    Unreachable(String),
    /// No connection could be made: the same, and all the time since the message was sent went by in trying.
    NotConnected(String),
    /// The server does not know our session (any more): the message was not executed.
    SessionLost(String),
    /// The connection broke before the answer was whole: the message may have been executed.
    Interrupted(String),
    /// The server, or the transport for it, refused the message for good.
    Refused(Refusal),
}

/// The error that answers a refused message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A JSON-RPC error object.
    pub error: Box<str>,
    /// Why it is the transport's error; the server's own has none.
    pub cause: Option<Arc<Cause>>,
}

/// Why an answer is an error that the server did not give. It stays beside the message, in its
/// [`Packet`](crate::Packet), until the message leaves the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The server could not be reached, or not be started.
    Unreachable,
    /// There is no session with the server.
    SessionLost,
    /// The connection was lost before the answer: the request may have been executed.
    Interrupted,
    /// There was no answer in time.
    TimedOut,
    /// HTTP answered with this status, and without a JSON-RPC error.
    Http(Box<HttpStatus>),
    /// What the server sent is no answer that we understand or accept.
    Unusable,
    /// We refused the request ourselves, as for a limit of ours.
    Us,
}

/// An HTTP answer that is no success, as far as it was kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpStatus {
    pub status: u16,
    /// The beginning of the body, on one line.
    pub body: String,
    /// The header `WWW-Authenticate`.
    pub www_authenticate: Option<String>,
    /// The header `Mcp-Auth-Server`.
    pub auth_server: Option<String>,
}

impl Cause {
    /// Whether the server itself said nothing that could be its answer.
    pub fn is_no_answer(&self) -> bool {
        !matches!(self, Cause::Unusable | Cause::Us)
    }
}

impl Failure {
    /// The server's own error object.
    pub fn refused_by_server(error: impl Into<Box<str>>) -> Failure {
        Failure::Refused(Refusal { error: error.into(), cause: None })
    }

    /// An error object of the transport's.
    pub fn refused(error: impl Into<Box<str>>, cause: Cause) -> Failure {
        Failure::Refused(Refusal { error: error.into(), cause: Some(Arc::new(cause)) })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unreachable(why)
            | Failure::NotConnected(why)
            | Failure::SessionLost(why)
            | Failure::Interrupted(why) => f.write_str(why),
            Failure::Refused(refusal) => f.write_str(&refusal.error),
        }
    }
}
