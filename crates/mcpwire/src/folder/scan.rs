//! Makes a [`Catalog`] of what lies in the places, opening only files that have changed since the last one.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::cache::Cache;
use super::catalog::{Catalog, Resource};
use super::config::{self, Config};
use super::flaw::{Flaw, Warning};
use super::layout::{form, is_markdown, stem, top};
use super::matching::{self, Index, Scenarios};
use super::prompts::{self, Prompt};
use super::source::{Entry, Source};
use super::{Places, data, front, uri};

/// How long a match is kept that nobody asks for.
const KEEP_MATCHES: Duration = Duration::from_secs(4 * 3600);
/// How many matches are kept.
const MATCHES: usize = 200;

/// A catalog and the folders to watch for the next.
pub(super) struct Scan {
    pub(super) catalog: Catalog,
    pub(super) folders: Vec<PathBuf>,
}

pub(super) fn scan(places: &Places, last: Option<&Catalog>) -> Scan {
    let mut warnings = Vec::new();
    let config = read_config(places, last, &mut warnings);
    let mut folders: Vec<PathBuf> = places.config.iter().filter_map(Source::folder).collect();
    let mut walk = |source: &Source, warnings: &mut Vec<Warning>| {
        let mut walk = source.walk(warnings);
        folders.append(&mut walk.folders);
        walk.files
    };
    let files = walk(&places.resources, &mut warnings);
    let resources = Resources::read(&places.resources, &config, files, last, &mut warnings);
    let files = walk(&places.prompts, &mut warnings);
    let prompts = read_prompts(&places.prompts, &config, files, last, &mut warnings);
    let files = walk(&places.data, &mut warnings);
    let data = data::read(&places.data, files, &config.limits, last.map_or(&[], |last| &last.data), &mut warnings);
    let fragments = resources.list.iter().filter_map(|resource| resource.fragment.clone()).collect();
    let catalog = Catalog {
        by_path: resources.by_path,
        categories: resources.categories,
        scenarios: resources.scenarios,
        resources: resources.list,
        index: Index::new(fragments),
        config,
        prompts,
        data,
        warnings,
        matches: Cache::new(places.cache_size.unwrap_or(MATCHES), KEEP_MATCHES),
    };
    Scan { catalog, folders }
}

/// The configuration; a bad one leaves the last in force.
fn read_config(places: &Places, last: Option<&Catalog>, warnings: &mut Vec<Warning>) -> Config {
    match load_config(places) {
        Ok(config) => config,
        Err(flaw) => {
            warnings.push(Warning::new(config::FILE, flaw));
            last.map(|last| last.config.clone()).unwrap_or_default()
        }
    }
}

/// Reads the configuration; none at all is the default.
pub(super) fn load_config(places: &Places) -> Result<Config, Flaw> {
    const LONGEST: usize = 1 << 20;
    let Some(source) = &places.config else { return Ok(Config::default()) };
    match source.read_text(config::FILE, LONGEST) {
        Ok(text) => Config::parse(&text),
        Err(flaw) if flaw.reason == "is not there" => Ok(Config::default()),
        Err(flaw) => Err(flaw),
    }
}

struct Resources {
    list: Vec<Arc<Resource>>,
    by_path: HashMap<String, usize>,
    categories: Vec<String>,
    scenarios: Option<Scenarios>,
}

impl Resources {
    fn read(
        source: &Source,
        config: &Config,
        files: Vec<Entry>,
        last: Option<&Catalog>,
        warnings: &mut Vec<Warning>,
    ) -> Resources {
        let scenarios = read_scenarios(source, config, &files, warnings);
        let mut categories = config.categories.clone();
        let mut by_category: HashMap<String, Vec<Entry>> = HashMap::new();
        for entry in files.into_iter().filter(|entry| !entry.path.starts_with(".index/")) {
            match top(&entry.path) {
                None => warnings.push(Warning::new(source.label(&entry.path), Flaw::new("not in a category folder"))),
                Some(category) => by_category.entry(category.to_owned()).or_default().push(entry),
            }
        }
        let mut others: Vec<String> = by_category.keys().filter(|name| !categories.contains(name)).cloned().collect();
        others.sort();
        categories.append(&mut others);
        let known: HashMap<&str, &Arc<Resource>> = match last.filter(|last| last.config == *config) {
            Some(last) => last.resources.iter().map(|resource| (resource.file.as_str(), resource)).collect(),
            None => HashMap::new(),
        };
        let mut found = Resources { list: Vec::new(), by_path: HashMap::new(), categories: Vec::new(), scenarios };
        for category in &categories {
            for entry in by_category.remove(category).unwrap_or_default() {
                let path = found.free_path(&entry.path);
                let uri = uri::write(&config.scheme, &path);
                let same = known.get(entry.path.as_str()).filter(|old| old.stamp == entry.stamp && old.uri == uri);
                let resource = match same {
                    Some(old) => Arc::clone(old),
                    None => match read_resource(source, config, category, &path, uri, entry) {
                        Ok(resource) => Arc::new(resource),
                        Err(warning) => {
                            warnings.push(warning);
                            continue;
                        }
                    },
                };
                found.by_path.insert(resource.file.clone(), found.list.len());
                found.by_path.insert(path, found.list.len());
                found.list.push(resource);
            }
        }
        found.categories = categories;
        found
    }

    /// The path of a URI: without the extension where the type goes without saying, unless another file has that name.
    fn free_path(&self, file: &str) -> String {
        let bare = stem(file);
        let reserved = bare.split('/').count() == 2 && bare.ends_with("/match");
        match form(file).bare && !reserved && !self.by_path.contains_key(bare) {
            true => bare.to_owned(),
            false => file.to_owned(),
        }
    }
}

fn read_resource(
    source: &Source,
    config: &Config,
    category: &str,
    path: &str,
    uri: String,
    entry: Entry,
) -> Result<Resource, Warning> {
    let form = form(&entry.path);
    let warn = |flaw| Warning::new(source.label(&entry.path), flaw);
    if entry.stamp.size > config.limits.file as u64 {
        return Err(warn(Flaw::new(format!("larger than the limit of {} bytes", config.limits.file))));
    }
    let (mut title, mut description, mut fragment) = (None, None, None);
    if form.is_text {
        let text = source.read_text(&entry.path, config.limits.file).map_err(warn)?;
        if form.mime == "application/json" {
            serde_json::from_str::<serde::de::IgnoredAny>(&text).map_err(|e| warn(Flaw::json(&e)))?;
        }
        if is_markdown(&entry.path) {
            let document = front::split(&text).map_err(warn)?;
            title = front::text(&document.fields, "title");
            description = front::text(&document.fields, "description");
            fragment = Some(Arc::new(matching::read_fragment(path, &uri, &document)));
        }
    }
    let Entry { path: file, stamp } = entry;
    let (category, mime, is_text) = (category.to_owned(), form.mime, form.is_text);
    Ok(Resource { uri, file, category, mime, is_text, title, description, stamp, fragment })
}

fn read_scenarios(source: &Source, config: &Config, files: &[Entry], warnings: &mut Vec<Warning>) -> Option<Scenarios> {
    let [use_when, by_keyword] = matching::SCENARIO_FILES;
    if !files.iter().any(|entry| entry.path == use_when) {
        return None;
    }
    let read = |path: &str| source.read_text(path, config.limits.file);
    let scenarios = read(use_when).and_then(|first| Scenarios::read(&first, &read(by_keyword)?));
    scenarios.map_err(|flaw| warnings.push(Warning::new(source.label(".index"), flaw))).ok()
}

fn read_prompts(
    source: &Source,
    config: &Config,
    files: Vec<Entry>,
    last: Option<&Catalog>,
    warnings: &mut Vec<Warning>,
) -> Vec<Arc<Prompt>> {
    let known: HashMap<&str, &Arc<Prompt>> =
        last.map(|last| last.prompts.iter().map(|prompt| (prompt.file.as_str(), prompt)).collect()).unwrap_or_default();
    let mut found: Vec<Arc<Prompt>> = Vec::new();
    for entry in files.into_iter().filter(|entry| is_markdown(&entry.path)) {
        let warn = |flaw| Warning::new(source.label(&entry.path), flaw);
        let prompt = match known.get(entry.path.as_str()).filter(|old| old.stamp == entry.stamp) {
            Some(old) => Arc::clone(old),
            None => {
                let text = source.read_text(&entry.path, config.limits.file);
                match text.and_then(|text| prompts::read(&entry, &text)) {
                    Ok(prompt) => Arc::new(prompt),
                    Err(flaw) => {
                        warnings.push(warn(flaw));
                        continue;
                    }
                }
            }
        };
        match found.iter().find(|other| other.name == prompt.name) {
            Some(other) => {
                let reason = format!("another prompt is called {:?}, too: {}", prompt.name, source.label(&other.file));
                warnings.push(warn(Flaw::new(reason)));
            }
            None => found.push(prompt),
        }
    }
    prompts::sort(&mut found);
    found
}
