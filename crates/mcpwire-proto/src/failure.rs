//! Why a message that was handed to a transport did not get through, as far as recovery has to know.

use std::fmt;

/// What became of a message that failed. It decides whether the message may be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server could not be reached or is not ready to serve: the message was not executed, and later it may be.
    Unreachable(String),
    /// The server does not know our session (any more): the message was not executed.
    SessionLost(String),
    /// The connection broke before the answer was whole: the message may have been executed.
    Interrupted(String),
    /// The server, or the transport for it, refused the message for good. Holds a JSON-RPC error object.
    Refused(Box<str>),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unreachable(why) | Failure::SessionLost(why) | Failure::Interrupted(why) => f.write_str(why),
            Failure::Refused(error) => f.write_str(error),
        }
    }
}
