//! What all servers offer together: the answers to lists, prepared, and who serves what.

use std::collections::{BTreeSet, HashMap};

use super::Server;
use super::apps::Apps;
use super::catalogue::{Item, Part, array, renamed};
use super::extensions::Extensions;
use super::names::{Prefix, assign};
use super::pattern::{literal_length, made_from};
use super::upstream::Upstream;
use crate::meta::key;
use crate::object::quoted;
use crate::version::ALL;
use crate::{Id, Message, Object};

/// Who serves a tool or a prompt, and how it is called there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub server: Server,
    pub name: String,
}

/// What a name in a request may mean.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named<'a> {
    /// The name under which it is listed.
    Offered(&'a Owner),
    /// The name it has at its server, which no other server uses.
    Bare(&'a Owner),
    /// The name that several servers use.
    Contested,
    Unlisted,
}

/// Tools or prompts by their names.
#[derive(Debug, Default)]
struct Names {
    offered: HashMap<String, Owner>,
    /// By the name at the server; none if several servers use it.
    bare: HashMap<String, Option<Owner>>,
}

#[derive(Debug)]
pub(super) struct Merged {
    /// The answers, under an id that is to be replaced, in the order of [`Part::ALL`].
    lists: [Message; 4],
    discovered: Message,
    extensions: Extensions,
    apps: Apps,
    tools: Names,
    prompts: Names,
    resources: HashMap<String, Server>,
    templates: Vec<(String, Server)>,
    /// What is not offered as its server has it.
    collisions: BTreeSet<String>,
}

impl Merged {
    pub(super) fn new(prefix: Prefix, upstreams: &[Upstream], info: &str) -> Merged {
        let info = match upstreams {
            // One server is shown as what it is.
            [only] => only.catalogue.as_ref().and_then(|catalogue| catalogue.server_info.as_deref()).unwrap_or(info),
            _ => info,
        };
        let extensions = Extensions::new(upstreams);
        let mut collisions = BTreeSet::new();
        let apps = Apps::new(upstreams);
        let (tools, tool_texts) = named(prefix, upstreams, &apps, Part::Tools, &mut collisions);
        let (prompts, prompt_texts) = named(prefix, upstreams, &apps, Part::Prompts, &mut collisions);
        let (resources, resource_texts) = addressed(upstreams, &apps, Part::Resources, &mut collisions);
        let (templates, template_texts) = addressed(upstreams, &apps, Part::Templates, &mut collisions);
        let list = |part: Part, texts: &[String]| {
            let items = array(texts.iter().map(String::as_str));
            complete(&format!(r#""{}":{items}"#, part.member()), info)
        };
        Merged {
            lists: [
                list(Part::Tools, &tool_texts),
                list(Part::Prompts, &prompt_texts),
                list(Part::Resources, &resource_texts),
                list(Part::Templates, &template_texts),
            ],
            discovered: discovered(upstreams, &extensions, info),
            extensions,
            apps,
            tools,
            prompts,
            resources: resources.into_iter().collect(),
            templates,
            collisions,
        }
    }

    pub(super) fn warn_of_what_is_new_since(&self, before: &Merged) {
        for collision in self.collisions.difference(&before.collisions) {
            tracing::warn!(target: "hub", "{collision}");
        }
    }

    /// The answer to a list, under an id that is to be replaced.
    pub(super) fn list(&self, part: Part) -> &Message {
        &self.lists[part as usize]
    }

    pub(super) fn discovered(&self, id: &Id) -> Message {
        self.discovered.with_id(id)
    }

    /// Who serves the tool or prompt that a client calls by this name.
    pub(super) fn named(&self, part: Part, name: &str) -> Named<'_> {
        let names = if part == Part::Tools { &self.tools } else { &self.prompts };
        match (names.offered.get(name), names.bare.get(name)) {
            (Some(owner), _) => Named::Offered(owner),
            (None, Some(Some(owner))) => Named::Bare(owner),
            (None, Some(None)) => Named::Contested,
            (None, None) => Named::Unlisted,
        }
    }

    /// Who has a method that is not one of the protocol itself.
    pub(super) fn method(&self, method: &str) -> Option<Server> {
        self.extensions.owner(method)
    }

    pub(super) fn apps(&self) -> &Apps {
        &self.apps
    }

    /// Who has listed this resource.
    pub(super) fn resource(&self, uri: &str) -> Option<Server> {
        self.resources.get(uri).copied()
    }

    /// Who lists this template, or one that the URI may be made from, with the length of the template's literal text;
    /// none for templates that fit every URI.
    pub(super) fn templates<'a>(&'a self, uri: &'a str) -> impl Iterator<Item = (Option<usize>, Server)> + 'a {
        self.templates.iter().filter_map(move |(template, server)| match template == uri {
            true => Some((Some(usize::MAX), *server)),
            false => made_from(template, uri).then(|| (literal_length(template), *server)),
        })
    }

    /// Whether both answer the lists of this part with the same.
    pub(super) fn lists_the_same(&self, other: &Merged, part: Part) -> bool {
        self.lists[part as usize].payload() == other.lists[part as usize].payload()
    }
}

/// Items under new names, by server and in its order.
fn named(
    prefix: Prefix,
    upstreams: &[Upstream],
    apps: &Apps,
    part: Part,
    collisions: &mut BTreeSet<String>,
) -> (Names, Vec<String>) {
    let items: Vec<(&Upstream, &Item)> = offered(upstreams, part).collect();
    let pairs: Vec<(&str, &str)> = items.iter().map(|(upstream, item)| (&*upstream.spec.name, &*item.key)).collect();
    let names = assign(prefix, &pairs, collisions);
    let text = |((upstream, item), name): (&(&Upstream, &Item), &String)| match apps.item(upstream.server, part, item) {
        Some(item) => renamed(&item, name),
        None => renamed(item, name),
    };
    let texts = items.iter().zip(&names).map(text).collect();
    let mut known = Names::default();
    for ((upstream, item), name) in items.iter().zip(names) {
        let owner = Owner { server: upstream.server, name: item.key.clone() };
        let bare = known.bare.entry(item.key.clone()).or_insert_with(|| Some(owner.clone()));
        bare.take_if(|other| other.server != owner.server);
        known.offered.insert(name, owner);
    }
    (known, texts)
}

/// Items that keep their addresses: the first to have one keeps it.
fn addressed(
    upstreams: &[Upstream],
    apps: &Apps,
    part: Part,
    collisions: &mut BTreeSet<String>,
) -> (Vec<(String, Server)>, Vec<String>) {
    let mut owners: HashMap<String, &str> = HashMap::new();
    let (mut addresses, mut texts) = (Vec::new(), Vec::new());
    for (upstream, item) in offered(upstreams, part) {
        let name = upstream.spec.name.as_str();
        let item = apps.item(upstream.server, part, item).unwrap_or_else(|| item.clone());
        match owners.get(item.key.as_str()) {
            Some(first) => {
                collisions.insert(format!("{} of {name} is left out: {first} has it already", item.key));
            }
            None => {
                owners.insert(item.key.clone(), name);
                addresses.push((item.key, upstream.server));
                texts.push(item.text);
            }
        }
    }
    (addresses, texts)
}

pub(super) fn offered(upstreams: &[Upstream], part: Part) -> impl Iterator<Item = (&Upstream, &Item)> {
    upstreams.iter().flat_map(move |upstream| {
        let items = upstream.catalogue.iter().flat_map(move |catalogue| catalogue.part(part));
        items
            .filter(move |item| part != Part::Tools || upstream.spec.policy.allows(&item.key))
            .map(move |item| (upstream, item))
    })
}

fn complete(members: &str, info: &str) -> Message {
    let result = format!(
        r#"{{"resultType":"complete",{members},"ttlMs":0,"cacheScope":"private","_meta":{{"{}":{info}}}}}"#,
        key::SERVER_INFO
    );
    Message::result(&Id::from(0), &result)
}

fn discovered(upstreams: &[Upstream], extensions: &Extensions, info: &str) -> Message {
    let versions = serde_json::json!(ALL);
    let mut members =
        format!(r#""supportedVersions":{versions},"capabilities":{}"#, capabilities(upstreams, extensions));
    if let Some(text) = instructions(upstreams) {
        members.push_str(r#","instructions":"#);
        members.push_str(&text);
    }
    complete(&members, info)
}

/// What at least one server can do. One of which nothing is known yet may turn out to have everything: clients of the
/// session era are told once.
fn capabilities(upstreams: &[Upstream], extensions: &Extensions) -> String {
    let known: Vec<Object<'_>> = upstreams
        .iter()
        .filter_map(|upstream| upstream.catalogue.as_ref()?.capabilities.as_deref())
        .filter_map(Object::parse)
        .collect();
    let unknown = upstreams.is_empty() || upstreams.iter().any(|upstream| upstream.catalogue.is_none());
    let mut merged: Object<'_> = Object::new();
    if let ([_], [only]) = (upstreams, &*known) {
        merged = only.clone();
    } else {
        extensions.add_to(&mut merged);
    }
    let has = |name: &str| unknown || known.iter().any(|capabilities| capabilities.get(name).is_some());
    for name in ["tools", "prompts"] {
        if has(name) {
            merged.set(name, r#"{"listChanged":true}"#);
        }
    }
    if has("resources") {
        let subscribe = |one: &Object<'_>| one.object("resources").is_some_and(|r| r.get("subscribe") == Some("true"));
        let subscribe = unknown || known.iter().any(subscribe);
        let options = if subscribe { r#"{"listChanged":true,"subscribe":true}"# } else { r#"{"listChanged":true}"# };
        merged.set("resources", options);
    }
    for name in ["completions", "logging"] {
        if has(name) {
            merged.set(name, "{}");
        }
    }
    merged.to_string()
}

/// The instructions of all servers, each under its name.
fn instructions(upstreams: &[Upstream]) -> Option<String> {
    let told = |upstream: &Upstream| {
        let text: String = serde_json::from_str(upstream.catalogue.as_ref()?.instructions.as_deref()?).ok()?;
        (!text.trim().is_empty()).then_some(text)
    };
    if let [only] = upstreams {
        return told(only).map(|text| quoted(&text));
    }
    let texts: Vec<String> = upstreams
        .iter()
        .filter_map(|upstream| told(upstream).map(|text| format!("# {}\n\n{}", upstream.spec.name, text.trim())))
        .collect();
    (!texts.is_empty()).then(|| quoted(&texts.join("\n\n")))
}
