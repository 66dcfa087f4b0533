//! Why a message that was handed to a transport did not get through, as far as recovery has to know.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

use crate::{Message, code};

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

/// How the errors begin that a bridge gives when its server did not answer.
const NO_ANSWER: [&str; 6] = [
    "cannot reach the server",
    "the connection to the server",
    "there is no session with the server",
    "the server does not know the session",
    "the server refused a session",
    "timed out: ",
];

/// Whether an error response was given by a bridge because the server itself did not answer.
pub fn tells_of_no_answer(response: &Message) -> bool {
    #[derive(Deserialize)]
    struct Error<'a> {
        code: i64,
        #[serde(borrow)]
        message: Cow<'a, str>,
    }
    let internal = |error: &Error<'_>| error.code == i64::from(code::INTERNAL_ERROR);
    let error = response.read::<Error<'_>>().filter(internal);
    error.is_some_and(|error| NO_ANSWER.iter().any(|beginning| error.message.starts_with(beginning)))
}
