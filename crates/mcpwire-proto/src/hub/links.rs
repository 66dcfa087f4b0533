//! Which server returned or served what no list names: hints for routing, per client and bounded in bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::catalogue::Part;
use super::{Client, Server};

/// The most memory that the addresses of all clients take; the oldest are dropped first.
const MAX_BYTES: usize = 1 << 20;
/// The longest address that is remembered.
const MAX_ADDRESS: usize = 8 << 10;
/// What an entry takes besides its address.
const OVERHEAD: usize = 96;

type Key = (Client, Part, Arc<str>);

/// Addresses that a server returned to a client, or served although no list has them.
#[derive(Debug, Default)]
pub(super) struct Links {
    servers: HashMap<Key, Server>,
    /// Oldest first; each key of `servers` is in it once.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Links {
    pub(super) fn note(&mut self, client: Client, part: Part, address: &str, server: Server) {
        if address.len() > MAX_ADDRESS {
            return;
        }
        let key = (client, part, Arc::from(address));
        if self.servers.insert(Key::clone(&key), server).is_none() {
            self.bytes += cost(&key);
            self.order.push_back(key);
        }
        while self.bytes > MAX_BYTES {
            let Some(oldest) = self.order.pop_front() else { return };
            self.bytes -= cost(&oldest);
            self.servers.remove(&oldest);
        }
    }

    pub(super) fn server(&self, client: Client, part: Part, address: &str) -> Option<Server> {
        self.servers.get(&(client, part, Arc::from(address))).copied()
    }

    /// Drops the entries of a client that left.
    pub(super) fn forget(&mut self, client: Client) {
        self.order.retain(|key| key.0 != client);
        self.servers.retain(|key, _| key.0 != client);
        self.bytes = self.order.iter().map(cost).sum();
    }
}

fn cost(key: &Key) -> usize {
    key.2.len() + OVERHEAD
}

/// The members of a result in which a server returns links to resources; the rest is skipped.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Returned<'a> {
    /// Of a tool.
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    /// Of a prompt.
    #[serde(borrow)]
    messages: Vec<PromptMessage<'a>>,
}

#[derive(Deserialize)]
struct PromptMessage<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

/// A resource link, or an embedded resource.
#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    resource: Option<Embedded>,
}

#[derive(Deserialize)]
struct Embedded {
    uri: String,
}

/// The resources that the result of a call names.
pub(super) fn returned(result: &str) -> Vec<String> {
    // Nearly all results name none, and are not parsed.
    if memmem::find(result.as_bytes(), br#""resource"#).is_none() {
        return Vec::new();
    }
    let Ok(Returned { content, messages }) = serde_json::from_str(result) else { return Vec::new() };
    let blocks = content.into_iter().chain(messages.iter().map(|message| message.content));
    let blocks = blocks.filter_map(|block| serde_json::from_str::<Block>(block.get()).ok());
    blocks.flat_map(|block| block.uri.into_iter().chain(block.resource.map(|resource| resource.uri))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_embedded_resources_are_found_in_results_of_tools_and_prompts() {
        for (result, found) in [
            (
                r#"{"content":[{"type":"text","text":"x"},{"type":"resource_link","uri":"a://1","name":"n"}]}"#,
                &["a://1"][..],
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"a://2","blob":"AAAA"}},"odd",{"uri":1}]}"#,
                &["a://2"],
            ),
            (r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"a:\/\/3"}}]}"#, &["a://3"]),
            (r#"{"content":[{"type":"text","text":"\"resource\" a://4"}]}"#, &[]),
            (r#"{"content":"\"resource"}"#, &[]),
            (r#"{"content":[{"type":"text","uri":"a://5"}]}"#, &[]),
        ] {
            assert_eq!(returned(result), found, "{result}");
        }
    }

    #[test]
    fn the_oldest_links_make_room_and_those_of_a_client_go_with_it() {
        let mut links = Links::default();
        let address = |n: usize| format!("a://{n:01000}");
        for n in 0..2_000 {
            links.note(Client(1), Part::Resources, &address(n), Server(1));
        }
        assert!(links.bytes <= MAX_BYTES && links.order.len() == links.servers.len());
        assert_eq!(links.server(Client(1), Part::Resources, &address(0)), None);
        assert_eq!(links.server(Client(1), Part::Resources, &address(1_999)), Some(Server(1)));
        links.note(Client(2), Part::Resources, &address(1_999), Server(2));
        links.note(Client(2), Part::Resources, &"x".repeat(MAX_ADDRESS + 1), Server(2));
        links.forget(Client(1));
        assert_eq!(links.server(Client(1), Part::Resources, &address(1_999)), None);
        assert_eq!(links.server(Client(2), Part::Resources, &address(1_999)), Some(Server(2)));
        assert_eq!((links.order.len(), links.bytes), (1, 1_004 + OVERHEAD));
    }
}
