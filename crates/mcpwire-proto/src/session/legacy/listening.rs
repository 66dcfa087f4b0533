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
        let Some(owed) = self.owed.entry(&id).filter(|owed| owed.listens()) else { return false };
        let again = std::mem::take(&mut owed.repeated);
        // It may have been cut off before its client heard of the first.
        if !std::mem::replace(&mut owed.acknowledged, true) || !again {
            return false;
        }
        let honoured = packet.message.payload().and_then(crate::Object::parse);
        let honoured = honoured.as_ref().and_then(|params| params.object("notifications")).unwrap_or_default();
        for (kind, notification) in LIST_CHANGES {
            if honoured.get(kind) == Some("true") {
                let message = crate::era::subscribed(&Message::notification(notification, None), &id);
                self.effects.push_back(Effect::ToClient(Packet::new(Lane::Request(id.clone()), message)));
            }
        }
        let uris =
            honoured.get("resourceSubscriptions").and_then(|uris| serde_json::from_str::<Vec<String>>(uris).ok());
        for uri in uris.unwrap_or_default() {
            let params = serde_json::json!({"uri": uri}).to_string();
            let message = Message::notification(method::RESOURCES_UPDATED, Some(&params));
            let message = crate::era::subscribed(&message, &id);
            self.effects.push_back(Effect::ToClient(Packet::new(Lane::Request(id.clone()), message)));
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
