//! What a `subscriptions/listen` wants to hear of (2026-07-28, Subscriptions).

use serde::Deserialize;

use crate::{Message, Object, method};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Filter {
    pub tools_list_changed: bool,
    pub prompts_list_changed: bool,
    pub resources_list_changed: bool,
    pub resource_subscriptions: Vec<String>,
}

impl Filter {
    pub(crate) fn to_json(&self) -> String {
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

    pub(crate) fn wants(&self, notification: &Message) -> bool {
        match notification.method().map(|method| &**method) {
            Some(method::TOOLS_LIST_CHANGED) => self.tools_list_changed,
            Some(method::PROMPTS_LIST_CHANGED) => self.prompts_list_changed,
            Some(method::RESOURCES_LIST_CHANGED) => self.resources_list_changed,
            Some(method::RESOURCES_UPDATED) => {
                let uri = notification.members().and_then(|params| params.string("uri"));
                uri.is_some_and(|uri| self.resource_subscriptions.iter().any(|wanted| covers(wanted, &uri)))
            }
            _ => false,
        }
    }
}

/// Whether an update is of the resource that was subscribed to, or of a part of it.
pub(crate) fn covers(wanted: &str, uri: &str) -> bool {
    uri.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || wanted.ends_with('/') || rest.starts_with(['/', '?', '#']))
}
