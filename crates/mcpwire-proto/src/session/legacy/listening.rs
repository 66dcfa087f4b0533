//! `subscriptions/listen` (2026-07-28): a request that stays open, and is opened again when its server is lost.

use std::time::Instant;

use super::{Effect, Session};
use crate::{Id, Lane, Message, Packet, meta, method};

const LIST_CHANGES: [(&str, &str); 3] = [
    ("toolsListChanged", method::TOOLS_LIST_CHANGED),
    ("promptsListChanged", method::PROMPTS_LIST_CHANGED),
    ("resourcesListChanged", method::RESOURCES_LIST_CHANGED),
];

impl Session {
    /// A listen was cut off: it waits until the server can be reached again. Its client need not know.
    pub(super) fn listen_interrupted(&mut self, id: &Id, now: Instant) {
        let Some(owed) = self.owed.entry(id) else { return };
        owed.repeated = true;
        owed.give_up = None;
        let message = owed.message.clone();
        self.hold(message, now);
    }

    /// Whether this is the second acknowledgement of a listen. The client has had the first; it is told instead that what
    /// it listens for may have changed while nobody listened.
    pub(super) fn takes_acknowledgement(&mut self, packet: &Packet) -> bool {
        if !packet.message.is(method::ACKNOWLEDGED) {
            return false;
        }
        let Some(id) = meta::subscription_id(&packet.message) else { return false };
        self.backoff.reset();
        let Some(owed) = self.owed.entry(&id).filter(|owed| owed.repeated) else { return false };
        owed.repeated = false;
        let honoured = packet.message.payload().and_then(crate::Object::parse);
        let honoured = honoured.as_ref().and_then(|params| params.object("notifications")).unwrap_or_default();
        for (kind, notification) in LIST_CHANGES {
            if honoured.get(kind) == Some("true") {
                let params = format!(r#"{{"_meta":{{"{}":{id}}}}}"#, meta::key::SUBSCRIPTION_ID);
                let message = Message::notification(notification, Some(&params));
                self.effects.push_back(Effect::ToClient(Packet { lane: Lane::Request(id.clone()), message }));
            }
        }
        true
    }

    /// Ends a listen in good order.
    pub(super) fn end_listen(&mut self, id: &Id) {
        let Some((id, _)) = self.owed.settle(id) else { return };
        let result = format!(r#"{{"resultType":"complete","_meta":{{"{}":{id}}}}}"#, meta::key::SUBSCRIPTION_ID);
        self.tell_client(Message::result(&id, &result));
    }
}
