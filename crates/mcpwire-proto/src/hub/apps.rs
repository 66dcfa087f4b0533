//! `ui://` addresses that several servers use (the Apps extension): all servers but the first get one of their own for it.
//!
//! A host shows the app at the address that a tool names, so the same address on two servers would show the wrong app. The
//! server's name becomes part of the authority, `ui://server+…`, wherever the server mentions the address: in lists, in
//! `_meta` of tools and results, in contents and links. An app's own data passes unchanged.

use std::collections::{BTreeSet, HashMap, HashSet};

use memchr::memmem;
use serde_json::value::RawValue;

use super::Server;
use super::catalogue::{Item, Part, array};
use super::merged::offered;
use super::names::plain;
use super::upstream::Upstream;
use crate::object::quoted;
use crate::{Message, Object};

const SCHEME: &str = "ui://";
/// Where a tool names its app: nested, and as earlier versions of the extension had it.
const NESTED: (&str, &str) = ("ui", "resourceUri");
const FLAT: &str = "ui/resourceUri";

/// The addresses that are offered in place of a server's own.
#[derive(Debug, Default)]
pub(super) struct Apps {
    offered: HashMap<Server, Addresses>,
    own: HashMap<String, (Server, String)>,
}

/// By the server's own address.
type Addresses = HashMap<String, String>;

impl Apps {
    pub(super) fn new(upstreams: &[Upstream]) -> Apps {
        let mut apps = Apps::default();
        let mentioned: Vec<(&Upstream, BTreeSet<String>)> =
            upstreams.iter().map(|upstream| (upstream, mentioned(upstream))).collect();
        let mut taken: HashSet<String> = mentioned.iter().flat_map(|(_, addresses)| addresses).cloned().collect();
        let mut first: HashSet<&str> = HashSet::new();
        for (upstream, addresses) in &mentioned {
            for address in addresses.iter().filter(|address| !first.insert(address)) {
                let rest = address.strip_prefix(SCHEME).unwrap_or_default();
                let name = plain(&upstream.spec.name);
                let labels = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}_{n}")));
                let mut free = labels.map(|label| format!("{SCHEME}{label}+{rest}")).filter(|new| !taken.contains(new));
                let new = free.next().unwrap_or_default();
                taken.insert(new.clone());
                apps.own.insert(new.clone(), (upstream.server, address.clone()));
                apps.offered.entry(upstream.server).or_default().insert(address.clone(), new);
            }
        }
        apps
    }

    /// Whose an offered address is, and what it is there.
    pub(super) fn own(&self, offered: &str) -> Option<(Server, &str)> {
        self.own.get(offered).map(|(server, own)| (*server, own.as_str()))
    }

    /// Under which address a server's own is offered, if that is another.
    pub(super) fn offered(&self, server: Server, own: &str) -> Option<&str> {
        self.offered.get(&server)?.get(own).map(String::as_str)
    }

    /// An item as it is offered: its key and its text.
    pub(super) fn item(&self, server: Server, part: Part, item: &Item) -> Option<Item> {
        let addresses = self.offered.get(&server)?;
        let mut members = Object::parse(&item.text)?;
        match part {
            Part::Tools | Part::Prompts => {
                let meta = members.get("_meta").and_then(|text| meta(text, addresses))?;
                members.set("_meta", meta);
                Some(Item { key: item.key.clone(), text: members.to_string() })
            }
            Part::Resources | Part::Templates => {
                let key = addresses.get(&item.key)?.clone();
                members.set(part.key(), quoted(&key));
                Some(Item { key, text: members.to_string() })
            }
        }
    }

    /// A server's result as it is passed on.
    pub(super) fn result(&self, server: Server, result: &Message) -> Option<Message> {
        let addresses = self.offered.get(&server)?;
        memmem::find(result.payload()?.as_bytes(), b"ui:")?;
        let mut members = result.members()?;
        let mut edits = Vec::new();
        for (name, edit) in [("_meta", meta as Edit), ("content", blocks), ("contents", blocks), ("messages", messages)]
        {
            edits.extend(members.get(name).and_then(|text| edit(text, addresses)).map(|text| (name, text)));
        }
        if edits.is_empty() {
            return None;
        }
        edits.into_iter().for_each(|(name, text)| members.set(name, text));
        Some(result.with_members(&members))
    }

    /// A server's `notifications/resources/updated` as it is passed on.
    pub(super) fn updated(&self, server: Server, update: &Message) -> Option<Message> {
        let mut params = update.members()?;
        let uri = self.offered(server, &params.string("uri")?)?;
        params.set("uri", quoted(uri));
        Some(update.with_members(&params))
    }
}

/// JSON text with addresses replaced; none if there is nothing to replace.
type Edit = fn(&str, &Addresses) -> Option<String>;

/// The `ui://` addresses in the lists of a server. Tools may name resources that no list has.
fn mentioned(upstream: &Upstream) -> BTreeSet<String> {
    let one = std::slice::from_ref(upstream);
    let lists = [Part::Resources, Part::Templates].into_iter().flat_map(|part| offered(one, part));
    let listed = lists.map(|(_, item)| item.key.clone());
    let tools = offered(one, Part::Tools).filter(|(_, item)| item.text.contains("ui:"));
    let named = tools.filter_map(|(_, item)| {
        let tool = Object::parse(&item.text)?;
        let meta = tool.object("_meta")?;
        let nested = meta.object(NESTED.0).and_then(|ui| ui.string(NESTED.1));
        Some(nested.into_iter().chain(meta.string(FLAT)).collect::<Vec<String>>())
    });
    listed.chain(named.flatten()).filter(|address| address.starts_with(SCHEME)).collect()
}

fn address(object: &Object<'_>, name: &str, addresses: &Addresses) -> Option<String> {
    addresses.get(&object.string(name)?).map(|address| quoted(address))
}

fn meta(text: &str, addresses: &Addresses) -> Option<String> {
    let mut meta = Object::parse(text)?;
    let nested = meta.object(NESTED.0).and_then(|mut ui| {
        ui.set(NESTED.1, address(&ui, NESTED.1, addresses)?);
        Some(ui.to_string())
    });
    let flat = address(&meta, FLAT, addresses);
    let edits = [(NESTED.0, nested), (FLAT, flat)];
    replaced(&mut meta, edits)
}

/// A part of a result: a link, an embedded resource, or the contents of a resource.
fn block(text: &str, addresses: &Addresses) -> Option<String> {
    let mut block = Object::parse(text)?;
    let uri = address(&block, "uri", addresses);
    let resource = block.get("resource").and_then(|text| self::block(text, addresses));
    let about = block.get("_meta").and_then(|text| meta(text, addresses));
    let edits = [("uri", uri), ("resource", resource), ("_meta", about)];
    replaced(&mut block, edits)
}

fn blocks(text: &str, addresses: &Addresses) -> Option<String> {
    each(text, addresses, block)
}

fn messages(text: &str, addresses: &Addresses) -> Option<String> {
    each(text, addresses, |text, addresses| {
        let mut message = Object::parse(text)?;
        let content = message.get("content").and_then(|text| block(text, addresses));
        replaced(&mut message, [("content", content)])
    })
}

fn each(text: &str, addresses: &Addresses, edit: Edit) -> Option<String> {
    let texts: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let edited: Vec<Option<String>> = texts.iter().map(|text| edit(text.get(), addresses)).collect();
    let all = texts.iter().zip(&edited).map(|(text, edited)| edited.as_deref().unwrap_or(text.get()));
    edited.iter().any(Option::is_some).then(|| array(all))
}

fn replaced<const N: usize>(object: &mut Object<'_>, edits: [(&'static str, Option<String>); N]) -> Option<String> {
    let changed = edits.iter().any(|(_, text)| text.is_some());
    for (name, text) in edits {
        text.into_iter().for_each(|text| object.set(name, text));
    }
    changed.then(|| object.to_string())
}
