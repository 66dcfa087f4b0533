//! Subscriptions of the stateless era: requests that stay open and hear of changes (2026-07-28, Subscriptions).

use std::collections::BTreeSet;

use mcpwire_proto::meta::key;
use mcpwire_proto::{Fault, Id, Lane, Message, Object, method};
use serde_json::{Value, json};

use super::args::Args;
use super::shared::{Change, Item, Listening, Shared};
use super::wire::{Gone, Outbox};
use super::{identity, resources};

/// How many subscriptions one client may have open.
const MOST_LISTENS: usize = 256;
/// How many resources one subscription may watch.
const MOST_RESOURCES: usize = 1024;

const LISTS: [(&str, Item); 3] =
    [("toolsListChanged", Item::Tool), ("promptsListChanged", Item::Prompt), ("resourcesListChanged", Item::Resource)];

/// One open subscription.
#[derive(Debug)]
struct Listen {
    id: Id,
    lists: Vec<Item>,
    uris: BTreeSet<String>,
    _open: Listening,
}

/// The open subscriptions of one client, oldest first.
#[derive(Debug, Default)]
pub(super) struct Listens(Vec<Listen>);

impl Listens {
    pub(super) fn contains(&self, id: &Id) -> bool {
        self.0.iter().any(|listen| listen.id == *id)
    }

    /// Opens a subscription; gives the message that tells the client what it will hear of, and that it must hear first.
    pub(super) fn open(&mut self, id: &Id, params: &Args, shared: &Shared) -> Result<Message, Fault> {
        if self.0.len() >= MOST_LISTENS {
            return Err(Fault::Upstream(format!("a client may have {MOST_LISTENS} subscriptions")));
        }
        if params.value("notifications").is_none() {
            return Err(params.wrong("an object", "notifications"));
        }
        let wanted = params.object("notifications")?;
        let mut honoured = json!({});
        let mut lists = Vec::new();
        for (name, item) in LISTS {
            if wanted.flag(name)? {
                lists.push(item);
                honoured[name] = json!(true);
            }
        }
        let there = |uri: &&str| resources::check(uri, shared).is_ok();
        let uris = wanted.texts("resourceSubscriptions")?.into_iter().filter(there).map(str::to_owned);
        let uris: BTreeSet<String> = uris.take(MOST_RESOURCES).collect();
        if !uris.is_empty() {
            honoured["resourceSubscriptions"] = json!(uris);
        }
        let listen = Listen { id: id.clone(), lists, uris, _open: shared.start_listening() };
        let message = listen.notification(method::ACKNOWLEDGED, &json!({ "notifications": honoured }));
        self.0.push(listen);
        Ok(message)
    }

    /// Ends a subscription that the client wants no more; it gets no answer.
    pub(super) fn cancel(&mut self, id: &Id) {
        self.0.retain(|listen| listen.id != *id);
    }

    /// Tells those that want to hear of a change; `None` stands for changes that were missed.
    pub(super) async fn tell(&self, change: Option<&Change>, outbox: &Outbox) -> Result<(), Gone> {
        for listen in &self.0 {
            let all = if change.is_none() { Change::all(&listen.uris) } else { Vec::new() };
            for change in change.into_iter().chain(&all) {
                let message = match change {
                    Change::Resource(uri) if listen.uris.contains(uri) => {
                        listen.notification(method::RESOURCES_UPDATED, &json!({ "uri": uri }))
                    }
                    Change::List(item) if listen.lists.contains(item) => {
                        listen.notification(item.list_changed(), &json!({}))
                    }
                    _ => continue,
                };
                outbox.send(listen.lane(), message).await?;
            }
        }
        Ok(())
    }

    /// Ends all subscriptions with an answer, because the server stops.
    pub(super) async fn end(&mut self, outbox: &Outbox) -> Result<(), Gone> {
        for listen in self.0.drain(..) {
            let meta = listen.meta(&json!({ key::SERVER_INFO: identity::info(true) }));
            let result = format!(r#"{{"resultType":"complete","_meta":{meta}}}"#);
            outbox.send(listen.lane(), Message::result(&listen.id, &result)).await?;
        }
        Ok(())
    }
}

impl Listen {
    fn lane(&self) -> Lane {
        Lane::Request(self.id.clone())
    }

    fn notification(&self, method: &str, params: &Value) -> Message {
        let text = params.to_string();
        let mut params = Object::parse(&text).unwrap_or_default();
        params.set("_meta", self.meta(&json!({})));
        Message::notification(method, Some(&params.to_string()))
    }

    /// A `_meta` that names this subscription. The id is put in as the client wrote it: not every number fits a value.
    fn meta(&self, more: &Value) -> String {
        let text = more.to_string();
        let mut meta = Object::parse(&text).unwrap_or_default();
        meta.set(key::SUBSCRIPTION_ID, self.id.as_json());
        meta.to_string()
    }
}
