//! The messages for a server that may end at any time and be started anew: which of them belong to the new one, and
//! what becomes of the others.

use std::io;

use mcpwire_proto::{Failure, Message, Packet, method};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::{TO_SERVER, gather, log};
use crate::link::{Event, Port};

/// The server's end of a link, between one server and the next.
#[derive(Debug)]
pub(in crate::transport) struct Outbox {
    packets: mpsc::Receiver<Packet>,
    events: mpsc::Sender<Event>,
    /// The client has opened a session: a new server must see `initialize` first.
    in_session: bool,
}

impl Outbox {
    pub(in crate::transport) fn new(Port { tx, rx }: Port) -> Outbox {
        Outbox { packets: rx, events: tx, in_session: false }
    }

    pub(in crate::transport) fn events(&self) -> mpsc::Sender<Event> {
        self.events.clone()
    }

    /// The first packet for a new server; `None` when the link was dropped.
    pub(in crate::transport) async fn first(&mut self) -> Option<Packet> {
        loop {
            let packet = self.packets.recv().await?;
            if !self.in_session || packet.message.is(method::INITIALIZE) {
                log(TO_SERVER, &packet.message);
                self.in_session |= packet.message.is(method::INITIALIZE);
                return Some(packet);
            }
            // It was on its way before the session knew that the server is gone.
            if packet.message.is_request() {
                self.failed(packet.message, Failure::SessionLost("the server has ended".into())).await;
            }
        }
    }

    /// Writes packets, and shows each to `note`, until the link is dropped.
    pub(in crate::transport) async fn write(
        &mut self,
        mut output: impl AsyncWrite + Unpin,
        first: Packet,
        mut note: impl FnMut(&Message),
    ) -> io::Result<()> {
        note(&first.message);
        let Outbox { packets, in_session, .. } = self;
        let mut look = |packet: &Packet| {
            log(TO_SERVER, &packet.message);
            *in_session |= packet.message.is(method::INITIALIZE);
            note(&packet.message);
        };
        let mut next = Some(first);
        while let Some(packet) = next {
            for piece in gather(packet, || packets.try_recv().ok().inspect(&mut look)) {
                output.write_all(&piece).await?;
            }
            next = packets.recv().await.inspect(&mut look);
        }
        Ok(())
    }

    /// The next packet for the same server; `None` when the link was dropped.
    pub(in crate::transport) async fn next(&mut self) -> Option<Packet> {
        let packet = self.packets.recv().await?;
        log(TO_SERVER, &packet.message);
        self.in_session |= packet.message.is(method::INITIALIZE);
        Some(packet)
    }

    /// Tells that a message did not get through.
    pub(in crate::transport) async fn failed(&self, message: Message, failure: Failure) {
        let _ = self.events.send(Event::Failed { message, failure }).await;
    }

    /// Tells that the server is gone. What still waits here never reached it, and may go to the next one.
    pub(in crate::transport) async fn gone(&mut self, why: &str) {
        while let Ok(packet) = self.packets.try_recv() {
            if packet.message.is_request() {
                self.failed(packet.message, Failure::Unreachable(why.to_owned())).await;
            }
        }
        let _ = self.events.send(Event::Gone(why.to_owned())).await;
    }
}
