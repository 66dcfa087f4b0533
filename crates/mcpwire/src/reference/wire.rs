//! The way to the client and from it, whichever end of a link this server holds.

use mcpwire_proto::{Lane, Message, Packet};

use crate::channel::{Receiver, Sender};
use crate::link::Event;

/// The client has closed its end.
#[derive(Debug)]
pub(super) struct Gone;

/// Where answers go: to the other end of our port, or to the front of a transport.
#[derive(Debug, Clone)]
pub(super) enum Outbox {
    Port(Sender<Event>),
    Front(Sender<Packet>),
}

impl Outbox {
    /// Waits while the client is slow to read.
    pub(super) async fn send(&self, lane: Lane, message: Message) -> Result<(), Gone> {
        let packet = Packet::new(lane, message);
        match self {
            Outbox::Port(tx) => tx.send(Event::Packet(packet)).await.map_err(|_| Gone),
            Outbox::Front(tx) => tx.send(packet).await.map_err(|_| Gone),
        }
    }
}

/// Where requests come from.
#[derive(Debug)]
pub(super) enum Inbox {
    Port(Receiver<Packet>),
    Front(Receiver<Event>),
}

impl Inbox {
    /// What comes next; `None` when the client is gone. Loses nothing when it is dropped before it is done.
    pub(super) async fn recv(&mut self) -> Option<Event> {
        match self {
            Inbox::Port(rx) => rx.recv().await.map(Event::Packet),
            Inbox::Front(rx) => rx.recv().await,
        }
    }
}
