//! Every connection is a pair of bounded channels, the same for every transport.

use std::collections::VecDeque;

use bytes::Bytes;
use mcpwire_proto::{Failure, Message, Packet, Rejected};
use tokio::sync::mpsc::error::TrySendError;

use crate::channel::{Receiver, Sender, channel};

/// How many packets wait in a channel before its sender does.
const DEPTH: usize = 256;

/// A connection as its user sees it: a bridge, a client, a test.
///
/// Dropping `tx` asks the connection to end; `rx` gives `None` when it has.
#[derive(Debug)]
pub struct Link {
    pub tx: Sender<Packet>,
    pub rx: Receiver<Event>,
}

/// The other end of a [`Link`]: what a transport, or a server in this process, holds.
#[derive(Debug)]
pub struct Port {
    pub tx: Sender<Event>,
    pub rx: Receiver<Packet>,
}

/// What a connection has to tell.
#[derive(Debug)]
pub enum Event {
    Packet(Packet),
    /// The peer sent a JSON array of messages; whether it may is for the session to say.
    Batch(Bytes),
    /// The peer sent something that is no message; it says how to answer it.
    Garbage(Box<Rejected>),
    /// A message given to `Link::tx` did not get through.
    Failed {
        message: Message,
        failure: Failure,
    },
    /// The peer is gone, and everything it was working on with it. The link lives on: what is sent next goes to a new
    /// peer.
    Gone(String),
    /// The peer has forgotten our session; nothing that is under way is affected by this alone.
    SessionLost(String),
}

impl Link {
    /// The two ends of a connection.
    pub fn pair() -> (Link, Port) {
        let (link_tx, port_rx) = channel(DEPTH);
        let (port_tx, link_rx) = channel(DEPTH);
        (Link { tx: link_tx, rx: link_rx }, Port { tx: port_tx, rx: port_rx })
    }
}

/// Hands over what waits, as far as it is taken at once; gives whether the other end is still there.
pub(crate) fn hand_over<T, U>(waiting: &mut VecDeque<T>, to: &Sender<U>, wrap: impl Fn(T) -> U) -> bool {
    while !waiting.is_empty() {
        match to.try_reserve() {
            Ok(permit) => {
                if let Some(item) = waiting.pop_front() {
                    permit.send(wrap(item));
                }
            }
            Err(TrySendError::Full(())) => return true,
            Err(TrySendError::Closed(())) => return false,
        }
    }
    true
}
