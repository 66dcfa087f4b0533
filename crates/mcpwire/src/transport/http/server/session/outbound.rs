//! What the server sends: each message goes to the stream it belongs to.

use mcpwire_proto::version::V2025_03_26;
use mcpwire_proto::{Id, Kind, Lane, Message, Packet};
use serde::Deserialize;
use tokio::time::Instant;

use super::{FIRST, Session};
use crate::transport::http::server::log::MAIN;

impl Session {
    /// Passes a packet on. An answer belongs to its request, whatever its lane says.
    pub(super) fn pass(&mut self, packet: Packet) {
        let Packet { lane, message, .. } = packet;
        if message.is_response() {
            match message.id().cloned() {
                Some(id) => self.answer(&id, message),
                None => tracing::warn!(target: "http", "the server sent an error that belongs to no request"),
            }
            return;
        }
        let stream = match &lane {
            Lane::Request(id) => self.owed.get(id).copied().unwrap_or(MAIN),
            // A question that nobody can be asked on the main stream goes to the newest call that may be behind it.
            Lane::Main | Lane::Unsorted if message.is_request() && !self.main.is_attached() => {
                self.owed.values().copied().max().unwrap_or(MAIN)
            }
            Lane::Main | Lane::Unsorted => MAIN,
        };
        let told = self.exchange(stream).is_some_and(|(exchange, mut context)| exchange.tell(&message, &mut context));
        if !told {
            self.main.push(message.as_bytes().clone(), &mut self.log);
        }
        self.wake_for_streams();
    }

    pub(super) fn answer(&mut self, id: &Id, message: Message) {
        let Some(stream) = self.owed.remove(id) else {
            tracing::debug!(target: "http", %id, "the server answered a request that is owed no answer");
            return;
        };
        if stream == FIRST {
            self.negotiated(&message);
        }
        match self.exchange(stream) {
            None => self.main.push(message.into_bytes(), &mut self.log),
            Some((exchange, mut context)) => {
                if let Some(delivered) = exchange.answer(message, &mut context) {
                    self.exchanges.remove(&stream);
                    if delivered {
                        self.seen = Instant::now();
                    }
                    // Without the answer to `initialize` nobody knows of this session.
                    if stream == FIRST && (self.version.get().is_none() || !delivered) {
                        self.over = Some("the session was not opened");
                    }
                }
            }
        }
        self.drain_if_due();
        self.wake_for_streams();
    }

    /// Reads the version from the answer to `initialize` as it passes by.
    fn negotiated(&mut self, message: &Message) {
        #[derive(Deserialize)]
        struct Initialized {
            #[serde(rename = "protocolVersion")]
            protocol_version: String,
        }
        if let Kind::Result { .. } = message.kind() {
            // What a peer that does not say is taken for (2025-06-18, Transports, Protocol Version Header).
            let version = message.read::<Initialized>().map_or(V2025_03_26.to_owned(), |i| i.protocol_version);
            let _ = self.version.set(version);
        }
    }
}
