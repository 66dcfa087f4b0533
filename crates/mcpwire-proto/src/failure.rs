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
    "timed out: no answer",
];

/// Whether an error response was given by a bridge because the server itself did not answer.
pub fn tells_of_no_answer(response: &Message) -> bool {
    #[derive(Deserialize)]
    struct Error<'a> {
        code: i64,
        #[serde(borrow)]
        message: Cow<'a, str>,
        /// What HTTP said instead, if that is what failed.
        #[serde(default)]
        data: Option<Data>,
    }
    #[derive(Deserialize)]
    struct Data {
        #[serde(default)]
        status: Option<u16>,
    }
    let Some(error) = response.read::<Error<'_>>() else { return false };
    let by_http = error.message.starts_with("HTTP ") && error.data.is_some_and(|data| data.status.is_some());
    let by_bridge = NO_ANSWER.iter().any(|beginning| error.message.starts_with(beginning));
    error.code == i64::from(code::INTERNAL_ERROR) && (by_http || by_bridge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, Id};

    #[test]
    fn errors_of_servers_are_their_own() {
        let id = Id::from(1);
        let no_answer = |text: &str| tells_of_no_answer(&Fault::Upstream(text.into()).to_message(Some(&id)));
        assert!(no_answer("cannot reach the server: it is not there; gave up after 20s"));
        assert!(no_answer("timed out: no answer and no progress for 1s"));
        assert!(!no_answer("timed out: the job took too long"));
        assert!(!no_answer("HTTP 404 from the API"));
        let error = r#"{"code":-32603,"message":"HTTP 502 Bad Gateway","data":{"status":502}}"#;
        assert!(tells_of_no_answer(&Message::error_object(Some(&id), error)));
        assert!(!tells_of_no_answer(&Message::error(Some(&id), -32602, "cannot reach the server")));
        assert!(!tells_of_no_answer(&Message::result(&id, r#"{"code":-32603,"message":"x"}"#)));
    }
}
