//! A message and the stream of its connection that it rides on.

use crate::{Id, Message};

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
}

impl From<Message> for Packet {
    fn from(message: Message) -> Packet {
        Packet { lane: Lane::Main, message }
    }
}
