//! What comes from the server: answers go to whom they are owed, everything else to the client.

use std::time::Instant;

use super::{Asked, Creditor, Effect, MOST_ASKED, Owed, Session, State};
use crate::{Fault, Id, Kind, Lane, Message, Packet, meta, method};

impl Session {
    pub fn handle_server(&mut self, mut packet: Packet, now: Instant) {
        if self.config.attribute {
            packet.lane = self.attribute(packet.lane, &packet.message);
        }
        if let Lane::Request(id) = &packet.lane {
            self.postpone_deadline(id, now);
        }
        match packet.message.kind() {
            Kind::Request { id, .. } => {
                let id = id.clone();
                self.ask_client(id, packet);
            }
            Kind::Notification { .. } if self.takes_acknowledgement(&packet) => {}
            Kind::Notification { method } if *method == method::CANCELLED => {
                let packet = self.take_question_back(packet);
                self.effects.push_back(Effect::ToClient(packet));
            }
            Kind::Notification { .. } => self.effects.push_back(Effect::ToClient(packet)),
            Kind::Result { id } | Kind::Error { id: Some(id) } => match self.owed.settle(&id.clone()) {
                Some((id, owed)) => self.answer(id, owed, packet, now),
                None => {
                    tracing::debug!(target: "bridge", "dropped the server's {}: nobody waits for it", packet.message)
                }
            },
            Kind::Error { id: None } => tracing::warn!(
                target: "bridge", "the server reports an error of no request: {}",
                packet.message.payload().unwrap_or_default()
            ),
        }
    }

    fn answer(&mut self, id: Id, owed: Owed, packet: Packet, now: Instant) {
        self.tokens.forget(&owed.message);
        let succeeded = matches!(packet.message.kind(), Kind::Result { .. });
        match owed.to {
            Creditor::Client => {
                // Work that gets done is what counts: a server may also answer handshakes and then die.
                self.backoff.reset();
                self.fruitless = false;
                let opens = owed.message.is(method::INITIALIZE);
                if succeeded {
                    self.memory.learn(&owed.message, &packet.message);
                }
                // The client gets its id back as it wrote it, however the server spells it.
                let Packet { lane, message, .. } = packet;
                let verbatim = message.id().map(Id::as_bytes) == Some(id.as_bytes());
                let message = if verbatim { message } else { message.with_id(&id) };
                self.effects.push_back(Effect::ToClient(Packet { lane, message, ..packet }));
                match (opens, succeeded) {
                    (true, true) => self.open(now),
                    (true, false) => self.close("the server refused to initialize"),
                    (false, _) => {}
                }
            }
            Creditor::Reopening if succeeded => self.reopened(&packet.message, now),
            Creditor::Reopening => self.close(packet.message.payload().unwrap_or_default()),
            Creditor::Comparing(list) if succeeded => {
                if let Some(changed) = self.memory.compare(&list, &packet.message) {
                    tracing::info!(target: "bridge", "the new session has another {list}: telling the client");
                    self.tell_client(Message::notification(changed, None));
                }
            }
            Creditor::Restoring if succeeded => {}
            Creditor::Restoring | Creditor::Comparing(_) => {
                let error = packet.message.payload().unwrap_or_default();
                tracing::warn!(target: "bridge", "{} failed in the new session: {error}", owed.message);
            }
        }
    }

    /// A server restarted may count its ids from the start again while the client still works on old ones.
    fn ask_client(&mut self, id: Id, packet: Packet) {
        if self.asked.len() >= MOST_ASKED {
            let fault = Fault::Upstream(format!("too many requests: {MOST_ASKED} are with the client already"));
            return self.tell_server(fault.to_message(Some(&id)));
        }
        let reopening = matches!(self.state, State::Opening) && self.memory.version.is_some();
        if reopening && !packet.message.is(method::PING) {
            // Nobody asks before its session is open: this is of the one before, which cannot be answered.
            return tracing::debug!(target: "bridge", "dropped the server's {}: its session is gone", packet.message);
        }
        let generation = self.generation;
        let visible = if self.asked.contains_key(&id) { self.fresh_id() } else { id.clone() };
        let message = if visible.as_json() == id.as_json() { packet.message } else { packet.message.with_id(&visible) };
        self.asked.insert(visible, Asked { id, generation });
        self.effects.push_back(Effect::ToClient(Packet::new(packet.lane, message)));
    }

    /// The server does not want to know any more: the client is told so by the id that it knows, and owes no answer.
    fn take_question_back(&mut self, packet: Packet) -> Packet {
        let Some(id) = meta::cancelled_request(&packet.message) else { return packet };
        let is_it = |asked: &Asked| asked.id == id && asked.generation == self.generation;
        let Some(visible) = self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(visible, _)| visible.clone())
        else {
            return packet;
        };
        self.asked.remove(&visible);
        Packet::new(packet.lane, meta::with_cancelled_request(&packet.message, &visible))
    }

    fn postpone_deadline(&mut self, id: &Id, now: Instant) {
        let timeout = self.config.timeout;
        if let Some(owed) = self.owed.entry(id).filter(|owed| !owed.listens()) {
            owed.deadline = timeout.map(|timeout| now + timeout);
        }
    }
}
