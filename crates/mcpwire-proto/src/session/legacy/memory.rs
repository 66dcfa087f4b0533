//! What a new server session must be told, or is compared with, when it takes the place of a lost one.

use std::collections::{BTreeMap, HashMap, hash_map::DefaultHasher};
use std::hash::{Hash, Hasher};

use serde::Deserialize;

use crate::Message;
use crate::method::{self, Method};

/// Learned from the requests that were answered, so it never claims what the server did not grant.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The client's own `initialize`.
    pub initialize: Option<Message>,
    /// The protocol version the server answered with; it is what the client goes by.
    pub version: Option<String>,
    /// The client has sent `notifications/initialized`.
    pub initialized: bool,
    log_level: Option<Message>,
    subscriptions: BTreeMap<String, Message>,
    /// What the client was last told of each list, as a digest.
    lists: HashMap<Method, u64>,
}

#[derive(Deserialize)]
struct InitializeResult {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
}

#[derive(Deserialize)]
struct Subscription {
    uri: String,
}

#[derive(Deserialize)]
struct Page {
    cursor: Option<String>,
}

impl Memory {
    pub(super) fn of(initialize: &Message) -> Memory {
        Memory { initialize: Some(initialize.detached()), ..Memory::default() }
    }

    /// A client's request was answered with a result.
    pub(super) fn learn(&mut self, request: &Message, result: &Message) {
        let Some(method) = request.method() else { return };
        match &**method {
            method::INITIALIZE => self.version = protocol_version(result),
            method::LOGGING_SET_LEVEL => self.log_level = Some(request.detached()),
            method::RESOURCES_SUBSCRIBE => {
                if let Some(Subscription { uri }) = request.read() {
                    self.subscriptions.insert(uri, request.detached());
                }
            }
            method::RESOURCES_UNSUBSCRIBE => {
                if let Some(Subscription { uri }) = request.read() {
                    self.subscriptions.remove(&uri);
                }
            }
            _ if method.list_changed().is_some() => {
                let first_page = request.read::<Page>().is_none_or(|page| page.cursor.is_none());
                if first_page {
                    self.lists.insert(method.clone(), digest(result));
                }
            }
            _ => {}
        }
    }

    /// The requests that bring a new session to where the lost one was.
    pub(super) fn restore(&self) -> Vec<Message> {
        self.log_level.iter().chain(self.subscriptions.values()).cloned().collect()
    }

    /// The lists the client has seen.
    pub(super) fn seen_lists(&self) -> Vec<Method> {
        self.lists.keys().cloned().collect()
    }

    /// Compares a list with what the client was told; gives the notification it needs if they differ.
    pub(super) fn compare(&mut self, list: &Method, result: &Message) -> Option<&'static str> {
        let now = digest(result);
        let before = self.lists.insert(list.clone(), now);
        list.list_changed().filter(|_| before != Some(now))
    }
}

/// The version that the result of an `initialize` names.
pub fn protocol_version(result: &Message) -> Option<String> {
    result.read::<InitializeResult>().map(|result| result.protocol_version)
}

fn digest(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.payload().hash(&mut hasher);
    hasher.finish()
}
