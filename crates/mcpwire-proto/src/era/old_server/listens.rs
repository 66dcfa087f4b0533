//! `subscriptions/listen` over a session: what changes in it is told to everybody who listens for it.

use std::time::Instant;

use serde::Deserialize;

use super::OldServer;
use super::seats::Whose;
use crate::conversation::Upstream;
use crate::era::translate;
use crate::filter::Filter;
use crate::{Fault, Id, Message, meta, method};

/// The most resources in one listen.
const MOST_RESOURCES: usize = 10_000;
/// The most changes that wait for a listen to be acknowledged.
const MOST_EARLY: usize = 100;

#[derive(Debug)]
pub(super) struct Listen {
    pub upstream: Upstream,
    honoured: Filter,
    /// How many subscriptions are not answered yet; then it is acknowledged.
    open: usize,
    acknowledged: bool,
    /// Changes that came before that.
    early: Vec<Message>,
}

/// A resource that the server was asked to tell of.
#[derive(Debug)]
pub(super) struct Subscription {
    /// The request that asked for it.
    request: Id,
    granted: bool,
    /// The listens that want it.
    listens: Vec<Id>,
}

impl OldServer {
    pub(super) fn listen(&mut self, upstream: Upstream, request: &Message, now: Instant) {
        #[derive(Deserialize)]
        struct Params {
            notifications: Filter,
        }
        let Some(id) = request.id().cloned() else { return };
        let wanted = request.read::<Params>().map(|params| params.notifications);
        let Some(mut wanted) = wanted.filter(|wanted| wanted.resource_subscriptions.len() <= MOST_RESOURCES) else {
            let text = format!("expected notifications to be a filter with at most {MOST_RESOURCES} resources");
            return self.tell(&id, Fault::Params(text).to_message(Some(&id)));
        };
        let Some(seat) = self.seat(upstream) else { return };
        wanted.tools_list_changed &= seat.server_has("tools", Some("listChanged"));
        wanted.prompts_list_changed &= seat.server_has("prompts", Some("listChanged"));
        wanted.resources_list_changed &= seat.server_has("resources", Some("listChanged"));
        if !seat.server_has("resources", Some("subscribe")) {
            wanted.resource_subscriptions.clear();
        }
        wanted.resource_subscriptions.sort();
        wanted.resource_subscriptions.dedup();
        let uris = wanted.resource_subscriptions.clone();
        let listen = Listen { upstream, honoured: wanted, open: uris.len(), acknowledged: false, early: Vec::new() };
        self.listens.insert(id.clone(), listen);
        for uri in uris {
            self.subscribe(upstream, &id, uri, now);
        }
        self.acknowledge_if_all_is_said(&id);
    }

    fn subscribe(&mut self, upstream: Upstream, listen: &Id, uri: String, now: Instant) {
        let request_id = self.fresh_id();
        let Some(seat) = self.seat(upstream) else { return };
        if let Some(subscription) = seat.subscriptions.get_mut(&uri) {
            subscription.listens.push(listen.clone());
            if subscription.granted {
                self.subscribed(listen, &uri, true);
            }
            return;
        }
        let request = about(&request_id, method::RESOURCES_SUBSCRIBE, &uri);
        let subscription = Subscription { request: request_id.clone(), granted: false, listens: vec![listen.clone()] };
        seat.subscriptions.insert(uri.clone(), subscription);
        seat.under_way.insert(request_id, Whose::Subscribe { uri });
        self.on_relay(upstream, now, |relay| relay.handle_client(request, now));
    }

    /// The server has answered a subscription.
    pub(super) fn subscription_answered(&mut self, upstream: Upstream, request: &Id, uri: &str, granted: bool) {
        let Some(seat) = self.seat(upstream) else { return };
        let Some(found) = seat.subscriptions.get_mut(uri).filter(|found| found.request == *request) else { return };
        found.granted = granted;
        let listens = found.listens.clone();
        if !granted {
            seat.subscriptions.remove(uri);
        }
        listens.iter().for_each(|listen| self.subscribed(listen, uri, granted));
    }

    fn subscribed(&mut self, listen: &Id, uri: &str, granted: bool) {
        let Some(found) = self.listens.get_mut(listen) else { return };
        found.open = found.open.saturating_sub(1);
        if !granted {
            found.honoured.resource_subscriptions.retain(|honoured| honoured != uri);
        }
        self.acknowledge_if_all_is_said(listen);
    }

    fn acknowledge_if_all_is_said(&mut self, id: &Id) {
        let Some(listen) = self.listens.get_mut(id) else { return };
        if listen.open > 0 || std::mem::replace(&mut listen.acknowledged, true) {
            return;
        }
        let early = std::mem::take(&mut listen.early);
        let params = format!(r#"{{"notifications":{}}}"#, listen.honoured.to_json());
        let acknowledged = Message::notification(method::ACKNOWLEDGED, Some(&params));
        for message in std::iter::once(acknowledged).chain(early) {
            self.tell(id, translate::subscribed(&message, id));
        }
    }

    /// Tells those who listen that something has changed.
    pub(super) fn publish(&mut self, upstream: Upstream, notification: &Message) {
        let mut told = Vec::new();
        for (id, listen) in &mut self.listens {
            if listen.upstream != upstream || !listen.honoured.wants(notification) {
                continue;
            }
            if listen.acknowledged {
                told.push(id.clone());
            } else if listen.early.len() < MOST_EARLY {
                listen.early.push(notification.clone());
            }
        }
        for id in told {
            self.tell(&id, translate::subscribed(notification, &id));
        }
    }

    /// The client does not listen any more.
    pub(super) fn end_listen(&mut self, id: &Id, now: Instant) {
        let Some(listen) = self.listens.remove(id) else { return };
        for uri in listen.honoured.resource_subscriptions {
            let request_id = self.fresh_id();
            let Some(seat) = self.seat(listen.upstream) else { return };
            let Some(subscription) = seat.subscriptions.get_mut(&uri) else { continue };
            subscription.listens.retain(|listen| listen != id);
            if subscription.listens.is_empty() {
                seat.subscriptions.remove(&uri);
                seat.under_way.insert(request_id.clone(), Whose::Nobody);
                let request = about(&request_id, method::RESOURCES_UNSUBSCRIBE, &uri);
                self.on_relay(listen.upstream, now, |relay| relay.handle_client(request, now));
            }
        }
    }
}

/// The answer that ends a listen in good order.
pub(super) fn ended(id: &Id) -> Message {
    let result = format!(r#"{{"resultType":"complete","_meta":{{"{}":{id}}}}}"#, meta::key::SUBSCRIPTION_ID);
    Message::result(id, &result)
}

fn about(id: &Id, method: &str, uri: &str) -> Message {
    Message::request(id, method, Some(&serde_json::json!({"uri": uri}).to_string()))
}
