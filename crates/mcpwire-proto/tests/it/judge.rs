//! Watches both ends of a conversation: every message is one of its side's version, every request is answered once.

use std::collections::HashMap;

use mcpwire_proto::{Id, Kind, Message, code, meta, method};
use serde_json::Value;

use crate::schema::{self, Side};

const STATELESS: &str = "2026-07-28";

/// One end: the client, or one connection to the server.
#[derive(Debug, Default)]
struct End {
    /// What `initialize` settled on.
    version: Option<String>,
    /// Requests of the client side under way here, with their era's version and their method.
    client_requests: HashMap<Id, (String, String)>,
    /// Requests of the server side under way here.
    server_requests: HashMap<Id, (String, String)>,
    /// Requests that were cancelled: an answer may come and may not.
    cancelled: HashMap<Id, (String, String)>,
}

/// Panics when something is wrong.
#[derive(Debug, Default)]
pub struct Judge {
    client: End,
    servers: HashMap<u32, End>,
}

/// Whether we sent a message, or a peer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Us,
    Peer,
    /// A peer that is not to be measured by the schema.
    Rogue,
}

impl Judge {
    pub fn at_client(&mut self, by: By, message: &Message) {
        let sender = if by == By::Us { Side::Server } else { Side::Client };
        self.client.watch(by, sender, message);
    }

    pub fn at_server(&mut self, upstream: u32, by: By, message: &Message) {
        let sender = if by == By::Us { Side::Client } else { Side::Server };
        self.servers.entry(upstream).or_default().watch(by, sender, message);
    }

    /// The client sent something under this id that is no request.
    pub fn garbage_from_client(&mut self, id: &Id) {
        self.client.client_requests.entry(id.clone()).or_insert_with(|| (STATELESS.into(), "x/garbage".into()));
    }

    /// The server has lost its memory, or the connection is new.
    pub fn server_lost(&mut self, upstream: u32) {
        self.servers.remove(&upstream);
    }

    /// The answer to this request will not come.
    pub fn request_lost(&mut self, upstream: u32, id: &Id) {
        if let Some(end) = self.servers.get_mut(&upstream) {
            end.client_requests.remove(id);
        }
    }

    /// What the client still waits for, listens not counted.
    pub fn owed_to_client(&self) -> Vec<String> {
        let open = self.client.client_requests.iter().filter(|(_, (_, method))| method != method::LISTEN);
        open.map(|(id, (_, method))| format!("{method} {id}")).collect()
    }
}

impl End {
    fn watch(&mut self, by: By, sender: Side, message: &Message) {
        let value: Value = serde_json::from_slice(message.as_bytes()).unwrap();
        let stateless = meta::declared(message).is_some();
        let version =
            if stateless { STATELESS.to_owned() } else { self.version.clone().unwrap_or("2025-11-25".into()) };
        match message.kind() {
            Kind::Request { id, method } => {
                by.check(&version, sender, &value, None);
                let table = if sender == Side::Client { &mut self.client_requests } else { &mut self.server_requests };
                self.cancelled.remove(id);
                let before = table.insert(id.clone(), (version, method.to_string()));
                assert!(by != By::Us || before.is_none(), "we sent a second request under an id in use: {value}");
            }
            Kind::Notification { method } => {
                let version = match (&self.version, sender) {
                    (None, Side::Server) => STATELESS.to_owned(),
                    (None, Side::Client) if self.client_requests.values().any(|(version, _)| version == STATELESS) => {
                        STATELESS.to_owned()
                    }
                    _ if meta::subscription_id(message).is_some() => STATELESS.to_owned(),
                    _ => version,
                };
                by.check(&version, sender, &value, None);
                if *method == method::CANCELLED {
                    self.cancel(sender, message);
                }
            }
            Kind::Result { id } | Kind::Error { id: Some(id) } => {
                let table = if sender == Side::Server { &mut self.client_requests } else { &mut self.server_requests };
                let asked = table.remove(id);
                let cancelled = self.cancelled.remove(id);
                if by == By::Us {
                    assert!(asked.is_some(), "we answered what nobody asks, or asks any more: {value}");
                }
                let Some((version, method)) = asked.or(cancelled) else { return };
                if method == method::INITIALIZE
                    && let Some(version) = value["result"]["protocolVersion"].as_str()
                {
                    self.version = Some(version.to_owned());
                }
                let version =
                    if method == method::INITIALIZE { self.version.clone().unwrap_or(version) } else { version };
                by.check(&version, sender, &value, Some(&method));
                if by == By::Us && sender == Side::Server && version.as_str() < STATELESS {
                    assert_is_of_the_session_era(&value["result"]);
                }
            }
            Kind::Error { id: None } => {}
        }
    }

    fn cancel(&mut self, sender: Side, message: &Message) {
        let Some(id) = meta::cancelled_request(message) else { return };
        // In the stateless era a server ends a listen this way.
        let listens = self.client_requests.get(&id).is_some_and(|(_, method)| method == method::LISTEN);
        let table = match sender {
            Side::Server if !listens => &mut self.server_requests,
            _ => &mut self.client_requests,
        };
        if table.get(&id).is_some_and(|(_, method)| method == method::INITIALIZE) {
            return; // this cannot be cancelled
        }
        if let Some(entry) = table.remove(&id) {
            self.cancelled.insert(id, entry);
        }
    }
}

/// Validators of session-era clients reject what only the stateless era has, and the schema leaves room for it.
fn assert_is_of_the_session_era(result: &Value) {
    let leaked = ["resultType", "ttlMs", "cacheScope"].into_iter().find(|name| result.get(name).is_some());
    assert_eq!(leaked, None, "leaked to a session-era client: {result}");
    assert_eq!(result["_meta"].get(meta::key::SERVER_INFO), None, "leaked to a session-era client: {result}");
}

impl By {
    /// Methods that no version knows are carried as they are.
    fn check(self, version: &str, sender: Side, value: &Value, answers: Option<&str>) {
        let foreign = |method: &str| method.contains("x/");
        let new = value["error"]["code"].as_i64().is_some_and(code::is_modern);
        if new && version < STATELESS {
            // A code that this version does not know is a code all the same.
            schema::assert_valid("2025-11-25", "JSONRPCErrorResponse", value);
        } else if self != By::Rogue && !value["method"].as_str().is_some_and(foreign) && !answers.is_some_and(foreign) {
            schema::assert_message(version, sender, value, answers);
        }
    }
}
