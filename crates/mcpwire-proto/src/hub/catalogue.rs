//! What one server has to offer, as it told: each item is the text it came in.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::object::quoted;
use crate::{Object, method};

/// One of the lists of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl Part {
    pub const ALL: [Part; 4] = [Part::Tools, Part::Prompts, Part::Resources, Part::Templates];

    pub(super) fn of(list: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.method() == list)
    }

    /// The request that lists it.
    pub(super) fn method(self) -> &'static str {
        match self {
            Part::Tools => method::TOOLS_LIST,
            Part::Prompts => method::PROMPTS_LIST,
            Part::Resources => method::RESOURCES_LIST,
            Part::Templates => method::RESOURCES_TEMPLATES_LIST,
        }
    }

    /// The member of the result that holds it.
    pub(super) fn member(self) -> &'static str {
        match self {
            Part::Tools => "tools",
            Part::Prompts => "prompts",
            Part::Resources => "resources",
            Part::Templates => "resourceTemplates",
        }
    }

    /// The member by which an item is asked for.
    pub(super) fn key(self) -> &'static str {
        match self {
            Part::Tools | Part::Prompts => "name",
            Part::Resources => "uri",
            Part::Templates => "uriTemplate",
        }
    }

    /// The capability of a server that has such.
    pub(super) fn capability(self) -> &'static str {
        match self {
            Part::Tools => "tools",
            Part::Prompts => "prompts",
            Part::Resources | Part::Templates => "resources",
        }
    }

    /// The notification that tells of a change.
    pub(super) fn changed(self) -> &'static str {
        match self {
            Part::Tools => method::TOOLS_LIST_CHANGED,
            Part::Prompts => method::PROMPTS_LIST_CHANGED,
            Part::Resources | Part::Templates => method::RESOURCES_LIST_CHANGED,
        }
    }
}

/// A tool, a prompt, a resource or a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its name, URI or URI template.
    pub key: String,
    /// All of it, as JSON.
    pub text: String,
}

/// What one server has to offer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalogue {
    /// These three as JSON, if the server told.
    pub capabilities: Option<String>,
    pub instructions: Option<String>,
    pub server_info: Option<String>,
    pub tools: Vec<Item>,
    pub prompts: Vec<Item>,
    pub resources: Vec<Item>,
    pub templates: Vec<Item>,
}

impl Catalogue {
    pub fn part(&self, part: Part) -> &Vec<Item> {
        match part {
            Part::Tools => &self.tools,
            Part::Prompts => &self.prompts,
            Part::Resources => &self.resources,
            Part::Templates => &self.templates,
        }
    }

    pub(super) fn part_mut(&mut self, part: Part) -> &mut Vec<Item> {
        match part {
            Part::Tools => &mut self.tools,
            Part::Prompts => &mut self.prompts,
            Part::Resources => &mut self.resources,
            Part::Templates => &mut self.templates,
        }
    }

    /// Whether the server says of itself that it has this, as in `resources`, `subscribe`.
    pub(super) fn has(&self, capability: &str, option: Option<&str>) -> bool {
        let capabilities = self.capabilities.as_deref().and_then(Object::parse).unwrap_or_default();
        match (capabilities.object(capability), option) {
            (Some(found), Some(option)) => found.get(option) == Some("true"),
            (found, _) => found.is_some(),
        }
    }

    /// Takes over what `server/discover` told.
    pub(super) fn describe(&mut self, discovered: &str) {
        let told = Object::parse(discovered).unwrap_or_default();
        let owned = |text: Option<&str>| text.map(str::to_owned);
        self.capabilities = owned(told.get("capabilities"));
        self.instructions = owned(told.get("instructions").filter(|text| text.starts_with('"')));
        self.server_info = owned(told.object("_meta").as_ref().and_then(|m| m.get(crate::meta::key::SERVER_INFO)));
    }

    /// To be kept somewhere, and read by [`Catalogue::from_json`].
    pub fn to_json(&self) -> String {
        let mut whole = Object::new();
        for (name, text) in [
            ("capabilities", &self.capabilities),
            ("instructions", &self.instructions),
            ("serverInfo", &self.server_info),
        ] {
            if let Some(text) = text {
                whole.set(name, text.as_str());
            }
        }
        for part in Part::ALL {
            whole.set(part.member(), array(self.part(part).iter().map(|item| item.text.as_str())));
        }
        whole.to_string()
    }

    /// `None` if this is no catalogue.
    pub fn from_json(text: &str) -> Option<Catalogue> {
        let whole = Object::parse(text)?;
        let owned = |name: &str| whole.get(name).map(str::to_owned);
        let mut catalogue = Catalogue {
            capabilities: owned("capabilities"),
            instructions: owned("instructions"),
            server_info: owned("serverInfo"),
            ..Catalogue::default()
        };
        for part in Part::ALL {
            *catalogue.part_mut(part) = items(part, whole.get(part.member())?)?;
        }
        Some(catalogue)
    }
}

/// One page of a list.
pub(super) struct Page {
    pub items: Vec<Item>,
    /// The cursor of the next page, as JSON.
    pub next: Option<String>,
    pub reuse: Reuse,
}

/// How long a list may be given out again; the shorter is the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reuse {
    /// Not at all: it has no time to live, or is not for everybody.
    Never,
    /// For its time to live (2026-07-28, Caching).
    For(Duration),
    /// Until the server announces a change, which is the rule of the session era.
    UntilChanged,
}

/// Reads a page of a server; the session era says nothing of caching, and the members that a translation adds do not count.
pub(super) fn page(part: Part, result: &str, of_session: bool) -> Option<Page> {
    let result = Object::parse(result)?;
    let items = items(part, result.get(part.member())?)?;
    let next = result.get("nextCursor").filter(|cursor| *cursor != "null").map(str::to_owned);
    let ttl = result.get("ttlMs").and_then(|ttl| ttl.parse().ok()).filter(|ttl| *ttl > 0);
    let reuse = match ttl {
        _ if of_session => Reuse::UntilChanged,
        Some(ttl) if result.get("cacheScope") == Some(r#""public""#) => Reuse::For(Duration::from_millis(ttl)),
        _ => Reuse::Never,
    };
    Some(Page { items, next, reuse })
}

fn items(part: Part, array: &str) -> Option<Vec<Item>> {
    let texts: Vec<&RawValue> = serde_json::from_str(array).ok()?;
    let item = |text: &&RawValue| {
        let key = Object::parse(text.get()).and_then(|item| item.string(part.key()));
        if key.is_none() {
            tracing::warn!(target: "hub", "left out one of a server's {}: it has no {}", part.member(), part.key());
        }
        Some(Item { key: key?, text: text.get().to_owned() })
    };
    Some(texts.iter().filter_map(item).collect())
}

pub(super) fn array<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut array = String::from("[");
    for text in texts {
        if array.len() > 1 {
            array.push(',');
        }
        array.push_str(text);
    }
    array.push(']');
    array
}

/// The same item under another name.
pub(super) fn renamed(item: &Item, name: &str) -> String {
    match Object::parse(&item.text) {
        Some(mut members) if item.key != name => {
            members.set("name", quoted(name));
            members.to_string()
        }
        _ => item.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_is_read_as_it_was_written() {
        let mut catalogue = Catalogue::default();
        catalogue.describe(
            r#"{"capabilities":{"tools":{"listChanged":true},"x":1.10},"instructions":"do \"so\"","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#,
        );
        catalogue.tools =
            items(Part::Tools, r#"[{"name":"a","inputSchema":{ "n": 1.0 }},{"no":"name"},{"name":"b"}]"#).unwrap();
        catalogue.templates = items(Part::Templates, r#"[{"uriTemplate":"x://{y}"}]"#).unwrap();
        assert_eq!(catalogue.tools.len(), 2);
        let read = Catalogue::from_json(&catalogue.to_json()).unwrap();
        assert_eq!(read, catalogue);
        assert!(read.has("tools", Some("listChanged")) && !read.has("prompts", None));
        for damaged in ["", "{}", "[]", r#"{"tools":1}"#, r#"{"tools":[],"prompts":[],"resources":[]}"#] {
            assert_eq!(Catalogue::from_json(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn a_renamed_item_keeps_everything_else() {
        let text = r#"{"name":"a","inputSchema":{ "n": 1.0 },"_meta":{"z":12345678901234567890}}"#;
        let item = Item { key: "a".into(), text: text.into() };
        assert_eq!(renamed(&item, "s__a"), text.replacen(r#""a""#, r#""s__a""#, 1));
        assert_eq!(renamed(&item, "a"), text);
    }

    #[test]
    fn only_public_lists_with_a_time_to_live_are_reused() {
        for (said, reuse) in [
            (r#""ttlMs":5,"cacheScope":"public""#, Some(5)),
            (r#""ttlMs":0,"cacheScope":"public""#, None),
            (r#""ttlMs":5,"cacheScope":"private""#, None),
            (r#""ttlMs":-5,"cacheScope":"public""#, None),
            (r#""ttlMs":"5","cacheScope":"public""#, None),
            (r#""ttlMs":5"#, None),
            (r#""cacheScope":"public""#, None),
        ] {
            let text = format!(r#"{{"tools":[],{said}}}"#);
            let reuse = reuse.map_or(Reuse::Never, |ms| Reuse::For(Duration::from_millis(ms)));
            assert_eq!(page(Part::Tools, &text, false).unwrap().reuse, reuse, "{said}");
            assert_eq!(page(Part::Tools, &text, true).unwrap().reuse, Reuse::UntilChanged, "{said}");
        }
    }
}
