//! The way to the client, shared by the session's loop and its calls.

use mcpwire_proto::{Lane, Message, Packet};
use tokio::sync::mpsc;

use crate::link::Event;

/// The client has closed its end.
#[derive(Debug)]
pub(super) struct Gone;

#[derive(Debug, Clone)]
pub(super) struct Outbox(mpsc::Sender<Event>);

impl Outbox {
    pub(super) fn new(tx: mpsc::Sender<Event>) -> Outbox {
        Outbox(tx)
    }

    /// Waits while the client is slow to read.
    pub(super) async fn send(&self, lane: Lane, message: Message) -> Result<(), Gone> {
        self.0.send(Event::Packet(Packet { lane, message })).await.map_err(|_| Gone)
    }
}
