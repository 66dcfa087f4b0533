//! The messages for a server that may end at any time and be started anew: which of them belong to the new one, and
//! what becomes of the others.

use std::io;

use mcpwire_proto::{Failure, Message, Packet, meta, method};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{TO_SERVER, gather, log};
use crate::channel::{Receiver, Sender};
use crate::link::{Event, Port};

/// The server's end of a link, between one server and the next.
#[derive(Debug)]
pub(in crate::transport) struct Outbox {
    packets: Receiver<Packet>,
    events: Sender<Event>,
    session: Session,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Session {
    /// Nobody has asked for one.
    None,
    /// The server has seen `initialize`.
    Asked,
    /// It went with its server: a new one must see `initialize` first, or requests that need no session.
    Lost,
}

impl Session {
    /// Whether the server may have this. What it may not was on its way before its sender knew that the session is lost.
    fn admits(&mut self, message: &Message) -> bool {
        if message.is(method::INITIALIZE) {
            *self = Session::Asked;
        }
        *self != Session::Lost || !message.is_request() || meta::declared(message).is_some()
    }
}

impl Outbox {
    pub(in crate::transport) fn new(Port { tx, rx }: Port) -> Outbox {
        Outbox { packets: rx, events: tx, session: Session::None }
    }

    pub(in crate::transport) fn events(&self) -> Sender<Event> {
        self.events.clone()
    }

    /// The first packet for a new server; `None` when the link was dropped.
    pub(in crate::transport) async fn first(&mut self) -> Option<Packet> {
        if self.session == Session::Asked {
            self.session = Session::Lost;
        }
        loop {
            let Packet { lane, message, .. } = self.packets.recv().await?;
            if !self.session.admits(&message) {
                self.failed(message, session_lost()).await;
            } else if self.session != Session::Lost || message.is_request() {
                log(TO_SERVER, &message);
                return Some(Packet::new(lane, message));
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
        let Outbox { packets, session, events } = self;
        let mut refused = Vec::new();
        let mut next = Some(first);
        while let Some(packet) = next {
            let more = || {
                while let Ok(packet) = packets.try_recv() {
                    if session.admits(&packet.message) {
                        log(TO_SERVER, &packet.message);
                        note(&packet.message);
                        return Some(packet);
                    }
                    refused.push(packet.message);
                }
                None
            };
            for piece in gather(packet, more) {
                output.write_all(&piece).await?;
            }
            next = loop {
                for message in refused.drain(..) {
                    let _ = events.send(Event::Failed { message, failure: session_lost() }).await;
                }
                match packets.recv().await {
                    Some(packet) if !session.admits(&packet.message) => refused.push(packet.message),
                    next => break next,
                }
            };
            if let Some(Packet { message, .. }) = &next {
                log(TO_SERVER, message);
                note(message);
            }
        }
        Ok(())
    }

    /// The next packet for the same server; `None` when the link was dropped. Nothing is lost when this is dropped before
    /// it is done.
    pub(in crate::transport) async fn next(&mut self) -> Option<Packet> {
        let Outbox { packets, events, session } = self;
        loop {
            // Room for a refusal comes first: between taking a packet and refusing it there is no waiting.
            let room = match session {
                Session::Lost => Some(events.reserve().await.ok()?),
                Session::None | Session::Asked => None,
            };
            let packet = packets.recv().await?;
            let admitted = session.admits(&packet.message);
            match room {
                Some(room) if !admitted => {
                    room.send(Event::Failed { message: packet.message, failure: session_lost() });
                }
                _ => {
                    log(TO_SERVER, &packet.message);
                    return Some(packet);
                }
            }
        }
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

fn session_lost() -> Failure {
    Failure::SessionLost("the server has ended".into())
}
