//! What the server sends: each message goes to the exchange it belongs to, or to nobody.

use mcpwire_proto::{Fault, Kind, Lane, Message, Packet, meta, method};

use super::actor::Actor;
use super::presence::Key;

impl Actor {
    pub(super) fn pass(&mut self, packet: Packet) {
        let Packet { lane, message, .. } = packet;
        match message.kind() {
            Kind::Result { id } | Kind::Error { id: Some(id) } => self.answer(id, &message),
            Kind::Error { id: None } => {
                tracing::warn!(target: "http", "the server sent an error that belongs to no request");
            }
            // 2026-07-28, Streamable HTTP, Receiving Messages: there are none, and nobody would answer one.
            Kind::Request { id, method } => {
                let fault = Fault::UnknownMethod(format!("{method}: clients of this version take no requests"));
                self.send(fault.to_message(Some(id)));
            }
            Kind::Notification { .. } => match self.addressee(&lane, &message) {
                Some(key) => {
                    self.tell(key, &message);
                    if message.is(method::CANCELLED) {
                        self.end_gracefully(key);
                    }
                }
                None => tracing::debug!(target: "http", "dropped {message}: it belongs to no open request"),
            },
        }
    }

    /// The exchange that a notification belongs to. One that may belong to several reaches nobody: the wrong client must
    /// not see it.
    fn addressee(&self, lane: &Lane, message: &Message) -> Option<Key> {
        if message.is(method::CANCELLED) {
            // A server says so when it ends a subscription, and of nothing else.
            let key = self.owner(&meta::cancelled_request(message)?)?;
            return Some(key).filter(|key| self.exchanges.get(key).is_some_and(|exchange| exchange.is_listen));
        }
        if let Lane::Request(id) = lane {
            return self.owner(id);
        }
        if message.is(method::PROGRESS) {
            return self.tokens.owner(&meta::progress_token(message)?);
        }
        if let Some(id) = meta::subscription_id(message) {
            return self.owner(&id);
        }
        let is_log = message.is(method::LOG_MESSAGE);
        if !is_log && tells_of_change(message) {
            return None;
        }
        let mut candidates =
            self.exchanges.values().filter(|exchange| !exchange.is_listen && (exchange.wants_log || !is_log));
        candidates.next().filter(|_| candidates.next().is_none()).map(|exchange| exchange.key)
    }
}

/// Whether a notification is one that only subscriptions carry.
fn tells_of_change(message: &Message) -> bool {
    message.method().is_some_and(|name| {
        matches!(
            &**name,
            method::TOOLS_LIST_CHANGED
                | method::PROMPTS_LIST_CHANGED
                | method::RESOURCES_LIST_CHANGED
                | method::RESOURCES_UPDATED
                | method::ACKNOWLEDGED
        )
    })
}
