//! A message, the stream of its connection that it rides on, and what this process knows of it beyond its text.

use std::sync::Arc;

use crate::{Cause, Id, Message};

/// On which stream of a connection a message rides.
///
/// Progress, logs and server requests that belong to a call must follow that call. stdio ignores the lane, HTTP maps
/// it to response streams.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Lane {
    /// The connection itself: what belongs to no request.
    #[default]
    Main,
    /// The stream of one request of the client's, by its id.
    Request(Id),
    /// There is one stream for everything (stdio, HTTP+SSE, a shared server): the message may belong to any request.
    Unsorted,
}

#[derive(Debug, Clone)]
pub struct Packet {
    pub lane: Lane,
    pub message: Message,
    /// Why we answered in place of the server. The server's own answers, and all other messages, have none: code that
    /// must tell them apart reads this, never the text of an error.
    pub cause: Option<Arc<Cause>>,
    /// Whether a session-era server sent it, even if its text was translated since.
    pub of_session: bool,
}

impl Packet {
    /// A message that a peer sent, or that needs no explanation.
    pub fn new(lane: Lane, message: Message) -> Packet {
        Packet { lane, message, cause: None, of_session: false }
    }

    /// The same packet as one of a session-era server.
    pub(crate) fn of_session(mut self) -> Packet {
        self.of_session = true;
        self
    }

    /// The same packet with the reason for an error that the server did not give.
    pub fn because(mut self, cause: Option<Arc<Cause>>) -> Packet {
        self.cause = cause;
        self
    }

    /// Whether this is an error that stands for an answer the server did not give.
    pub fn is_unanswered(&self) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.is_no_answer())
    }
}

impl From<Message> for Packet {
    fn from(message: Message) -> Packet {
        Packet::new(Lane::Main, message)
    }
}
