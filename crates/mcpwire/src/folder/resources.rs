//! Resources: their list, their templates, and what is read at a URI.

use std::sync::Arc;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

use super::Places;
use super::catalog::{Catalog, Resource};
use super::matching::{self, Mode, Query, Tokens};
use super::reply::{Body, Refusal, Reply, excerpt};
use super::uri::{self, Target};
use super::{front, layout};

/// The categories as their listings are listed, and as their templates are; others follow.
const LISTED: [&str; 6] = ["workflows", "agents", "skills", "patterns", "examples", "guides"];
const TEMPLATES: [&str; 7] = ["agents", "skills", "examples", "patterns", "guides", "best-practices", "workflows"];
/// A match that is longer is not kept.
const LONGEST_KEPT: usize = 256 * 1024;

/// All entries of the list: the registry, the listings, the files.
pub(super) fn entries(catalog: &Catalog, with_title: bool) -> Vec<Value> {
    let scheme = &catalog.config.scheme;
    let mut entries = vec![json!({
        "uri": uri::write(scheme, uri::REGISTRY),
        "name": uri::REGISTRY,
        "description": "What there is: how many resources in which categories, and how to search them",
        "mimeType": "application/json",
    })];
    for category in listed(catalog) {
        entries.push(json!({
            "uri": uri::write(scheme, &category),
            "name": category,
            "description": format!("All resources of the category {category}"),
            "mimeType": "application/json",
        }));
    }
    entries.extend(catalog.resources.iter().map(|resource| {
        let mut entry = json!({
            "uri": resource.uri,
            "name": resource.uri,
            "description": described(resource),
            "mimeType": resource.mime,
            "size": resource.stamp.size,
        });
        if let Some(title) = resource.title.as_ref().filter(|_| with_title) {
            entry["title"] = json!(title);
        }
        entry
    }));
    entries
}

fn described(resource: &Resource) -> String {
    resource.description.clone().unwrap_or_else(|| format!("Resource: {}", resource.uri))
}

/// The categories in the order of their listings.
fn listed(catalog: &Catalog) -> Vec<String> {
    let usual = LISTED.iter().filter(|name| catalog.categories.iter().any(|known| known == *name));
    let others = catalog.categories.iter().filter(|name| !LISTED.contains(&name.as_str()));
    usual.map(|name| (*name).to_owned()).chain(others.cloned()).collect()
}

pub(super) fn templates(catalog: &Catalog) -> Vec<Value> {
    let scheme = &catalog.config.scheme;
    let others = catalog.categories.iter().map(String::as_str).filter(|name| !TEMPLATES.contains(name));
    let mut templates = Vec::new();
    for category in TEMPLATES.into_iter().chain(others) {
        let start = uri::write(scheme, category);
        templates.push(template(
            &format!("{category}-dynamic"),
            &format!("{start}/match{{+rest}}"),
            &format!("What fits a query among {category}: ?query=…, with maxTokens, tags, categories, mode, maxResults, minScore"),
        ));
        templates.push(template(
            &format!("{category}-static"),
            &format!("{start}/{{+resourceId}}"),
            &format!("A resource of the category {category}, by its path"),
        ));
    }
    templates.push(template(
        "global-dynamic",
        &format!("{scheme}://match{{+rest}}"),
        "What fits a query among all resources: ?query=…, with maxTokens, tags, categories, mode, maxResults, minScore",
    ));
    templates
}

fn template(name: &str, uri: &str, description: &str) -> Value {
    json!({ "uriTemplate": uri, "name": name, "description": description, "mimeType": "text/markdown" })
}

/// The URIs of a static template's category that begin with a text, as values of its variable.
pub(super) fn completions(catalog: &Catalog, template: &str) -> Vec<String> {
    let scheme = &catalog.config.scheme;
    let of = |category: &&String| template == format!("{}/{{+resourceId}}", uri::write(scheme, category));
    let Some(category) = catalog.categories.iter().find(of) else { return Vec::new() };
    let start = format!("{}/", uri::write(scheme, category));
    let uris = catalog.resources.iter().map(|resource| resource.uri.as_str());
    uris.filter_map(|uri| uri.strip_prefix(&start)).map(str::to_owned).collect()
}

/// Reads what a URI names.
pub(super) fn read(catalog: &Catalog, places: &Places, uri: &str) -> Reply {
    let not_found = || Refusal::NoResource(uri.to_owned());
    let json = |text: String| Ok(contents(uri, "application/json", "text", &text));
    match uri::read(&catalog.config.scheme, uri).ok_or_else(not_found)? {
        Target::Name(name) if name == uri::REGISTRY => json(registry(catalog)),
        Target::Name(name) if catalog.categories.contains(&name) => json(listing(catalog, &name)),
        Target::Name(_) => Err(not_found()),
        Target::Path(path) => file(catalog.resource(&path).ok_or_else(not_found)?, catalog, places, uri),
        Target::Match { category, query } => {
            if category.as_ref().is_some_and(|name| !knows(catalog, name)) {
                return Err(not_found());
            }
            let query = Query::read(category.as_deref(), query.as_deref()).map_err(Refusal::Params)?;
            Ok(contents(uri, "text/markdown", "text", &found(catalog, places, uri, &query)))
        }
    }
}

/// Whether reading a URI has any chance: what is subscribed to must be there.
pub(super) fn exists(catalog: &Catalog, uri: &str) -> bool {
    match uri::read(&catalog.config.scheme, uri) {
        None => false,
        Some(Target::Name(name)) => name == uri::REGISTRY || catalog.categories.contains(&name),
        Some(Target::Path(path)) => catalog.resource(&path).is_some(),
        Some(Target::Match { category, query }) => {
            category.as_ref().is_none_or(|name| knows(catalog, name)) && Query::read(None, query.as_deref()).is_ok()
        }
    }
}

/// Whether a URI stands for many files, so that any change may change it.
pub(super) fn is_collective(scheme: &str, uri: &str) -> bool {
    matches!(uri::read(scheme, uri), Some(Target::Name(_) | Target::Match { .. }))
}

/// Categories that templates speak of are known even when they are empty.
fn knows(catalog: &Catalog, category: &str) -> bool {
    TEMPLATES.contains(&category) || catalog.categories.iter().any(|known| known == category)
}

fn contents(uri: &str, mime: &str, field: &str, text: &str) -> Body {
    Body::cacheable(json!({ "contents": [{ "uri": uri, "mimeType": mime, field: text }] }).to_string())
}

fn file(resource: &Resource, catalog: &Catalog, places: &Places, uri: &str) -> Reply {
    let bytes = places.resources.read(&resource.file, catalog.config.limits.file).map_err(|flaw| {
        tracing::warn!(target: "folder", "{}: {}", places.resources.label(&resource.file), flaw.reason);
        Refusal::NoResource(uri.to_owned())
    })?;
    match String::from_utf8(bytes) {
        Ok(text) if resource.is_text => Ok(contents(uri, resource.mime, "text", &text)),
        Ok(text) => Ok(contents(uri, resource.mime, "blob", &STANDARD.encode(text))),
        Err(e) => Ok(contents(uri, resource.mime, "blob", &STANDARD.encode(e.as_bytes()))),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Registry<'a> {
    version: &'a str,
    total_resources: usize,
    categories: Counts<'a>,
    search_uri: String,
    usage: String,
}

/// Categories and their counts, in order.
struct Counts<'a>(Vec<(&'a str, usize)>);

impl Serialize for Counts<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

fn registry(catalog: &Catalog) -> String {
    const ORDER: [&str; 6] = ["agents", "skills", "patterns", "examples", "guides", "workflows"];
    let others = catalog.categories.iter().map(String::as_str).filter(|name| !ORDER.contains(name));
    let known = ORDER.into_iter().filter(|name| catalog.categories.iter().any(|known| known == name));
    let count = |category: &str| catalog.resources.iter().filter(|resource| resource.category == category).count();
    let scheme = &catalog.config.scheme;
    let registry = Registry {
        version: &catalog.config.version,
        total_resources: catalog.resources.len(),
        categories: Counts(known.chain(others).map(|category| (category, count(category))).collect()),
        search_uri: format!("{scheme}://match?query=<words>"),
        usage: format!(
            "Read {scheme}://<category> for a listing, the searchUri for what fits a query, and a URI for its text"
        ),
    };
    serde_json::to_string_pretty(&registry).unwrap_or_default()
}

#[derive(Serialize)]
struct Listing<'a> {
    category: &'a str,
    count: usize,
    resources: Vec<Line<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    name: &'a str,
    uri: &'a str,
    description: String,
    mime_type: &'a str,
}

fn listing(catalog: &Catalog, category: &str) -> String {
    let resources: Vec<Line<'_>> = catalog
        .resources
        .iter()
        .filter(|resource| resource.category == category)
        .map(|resource| Line {
            name: layout::stem(&resource.file).split_once('/').map_or(resource.file.as_str(), |(_, name)| name),
            uri: &resource.uri,
            description: described(resource),
            mime_type: resource.mime,
        })
        .collect();
    serde_json::to_string_pretty(&Listing { category, count: resources.len(), resources }).unwrap_or_default()
}

/// The text for a query: kept from the last time, or made now.
fn found(catalog: &Catalog, places: &Places, uri: &str, query: &Query) -> Arc<str> {
    tracing::info!(target: "folder", "Dynamic resource request: {}", excerpt(uri));
    let now = Instant::now();
    if let Some(known) = catalog.matches.as_ref().and_then(|kept| kept.get(uri, now)) {
        return known;
    }
    let text: Arc<str> = matched(catalog, places, query).into();
    if let Some(kept) = catalog.matches.as_ref().filter(|_| uri.len() + text.len() <= LONGEST_KEPT) {
        kept.put(uri.to_owned(), Arc::clone(&text), now);
    }
    text
}

fn matched(catalog: &Catalog, places: &Places, query: &Query) -> String {
    let scheme = &catalog.config.scheme;
    let tokens = match query.mode {
        Mode::Index => match catalog.scenarios.as_ref().and_then(|scenarios| scenarios.answer(query, scheme)) {
            Some(text) => return text,
            None => Tokens::Declared,
        },
        Mode::Catalog | Mode::Full => Tokens::Counted,
    };
    let index = &catalog.index;
    let mut hits = index.search(query, tokens);
    if query.mode == Mode::Full {
        hits = matching::within_budget(&hits, query.max_tokens, |at| index.fragment(at).tokens);
    } else {
        hits.truncate(query.max_results);
    }
    let total: u64 = hits.iter().map(|hit| u64::from(tokens.of(index.fragment(hit.fragment)))).sum();
    tracing::info!(target: "folder", "Assembled {} fragments ({total} tokens)", hits.len());
    match query.mode {
        Mode::Full => matching::full(index, &hits, |fragment| body(catalog, places, &fragment.id)),
        Mode::Catalog | Mode::Index => matching::catalog(index, &hits, tokens, scheme),
    }
}

/// The body of a fragment; one that went away since is empty.
fn body(catalog: &Catalog, places: &Places, id: &str) -> String {
    let text = catalog
        .resource(id)
        .and_then(|resource| places.resources.read_text(&resource.file, catalog.config.limits.file).ok());
    text.and_then(|text| front::split(&text).ok().map(|document| document.body.to_owned())).unwrap_or_default()
}
