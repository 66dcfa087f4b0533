//! `subscriptions/listen` over a session: what changes in it is told to everybody who listens for it.

use std::time::Instant;

use serde::Deserialize;

use super::OldServer;
use super::seats::Whose;
use crate::conversation::Upstream;
use crate::era::translate;
use crate::{Fault, Id, Message, Object, meta, method};

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

/// What a client wants to hear of.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    resource_subscriptions: Vec<String>,
}

impl Filter {
    fn to_json(&self) -> String {
        let mut told = Object::new();
        for (name, wanted) in [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ] {
            if wanted {
                told.set(name, "true");
            }
        }
        if !self.resource_subscriptions.is_empty() {
            told.set("resourceSubscriptions", serde_json::json!(self.resource_subscriptions).to_string());
        }
        told.to_string()
    }

    fn wants(&self, notification: &Message) -> bool {
        match notification.method().map(|method| &**method) {
            Some(method::TOOLS_LIST_CHANGED) => self.tools_list_changed,
            Some(method::PROMPTS_LIST_CHANGED) => self.prompts_list_changed,
            Some(method::RESOURCES_LIST_CHANGED) => self.resources_list_changed,
            Some(method::RESOURCES_UPDATED) => {
                let uri = notification.payload().and_then(Object::parse).and_then(|params| params.string("uri"));
                // An update may be of a part of the resource that was subscribed to.
                let covers = |wanted: &String| uri.as_ref().is_some_and(|uri| uri.starts_with(wanted.as_str()));
                self.resource_subscriptions.iter().any(covers)
            }
            _ => false,
        }
    }
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
        let count = seat.subscriptions.entry(uri.clone()).or_default();
        *count += 1;
        if *count > 1 {
            return self.subscribed(upstream, listen, &uri, true);
        }
        let request = about(&request_id, method::RESOURCES_SUBSCRIBE, &uri);
        seat.under_way.insert(request_id, Whose::Subscribe { listen: listen.clone(), uri });
        self.on_relay(upstream, now, |relay| relay.handle_client(request, now));
    }

    /// The server has answered a subscription.
    pub(super) fn subscribed(&mut self, upstream: Upstream, listen: &Id, uri: &str, granted: bool) {
        if !granted && let Some(seat) = self.seat(upstream) {
            seat.subscriptions.remove(uri);
        }
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
            let left = seat.subscriptions.get_mut(&uri).map(|count| {
                *count = count.saturating_sub(1);
                *count
            });
            if left == Some(0) {
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
