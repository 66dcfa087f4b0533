//! A category of data: what its folder declares, and its records, which are loaded when they are first asked for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::records::{CellType, Form, Records};
use crate::folder::config::Limits;
use crate::folder::flaw::{Flaw, Warning};
use crate::folder::source::{Entry, Source};

/// The largest of the small files of a category.
const SMALL: usize = 1 << 20;

const RECORDS: [(&str, Form); 4] = [
    ("records.json", Form::Json),
    ("records.jsonl", Form::Lines),
    ("records.ndjson", Form::Lines),
    ("records.csv", Form::Csv),
];

/// Other names for fields, as the categories that this layout comes from have them. `fieldAliases` declares more.
const FIELD_ALIASES: [(&str, &str, &str); 9] = [
    ("people", "skill", "skills"),
    ("people", "applicationId", "applicationIds"),
    ("people", "policyId", "policyAcks"),
    ("departments", "applicationId", "applicationIds"),
    ("departments", "policyId", "policyIds"),
    ("applications", "policyId", "relatedPolicyIds"),
    ("companyPolicies", "applicationId", "applicationIds"),
    ("companyResources", "applicationId", "applicationIds"),
    ("companyResources", "policyId", "linkedPolicyIds"),
];

#[derive(Debug)]
pub(in crate::folder) struct Category {
    /// The name of its folder.
    pub(in crate::folder) id: String,
    pub(super) about: About,
    /// `category.json` as it is written.
    pub(super) text: Option<Box<RawValue>>,
    pub(super) relationships: Vec<Relationship>,
    pub(super) relationships_text: Option<Box<RawValue>>,
    /// The files of `schemas/`, `examples/` and `queries/`.
    pub(super) schemas: Vec<Box<RawValue>>,
    pub(super) examples: Vec<Box<RawValue>>,
    pub(super) queries: Vec<Box<RawValue>>,
    pub(super) warnings: Vec<Warning>,
    pub(super) files: Vec<Entry>,
    pub(super) limits: Limits,
    source: Source,
    file: Option<(String, Form)>,
    /// What is loaded, or was before the folder changed; the flag tells which.
    records: Mutex<Option<(bool, Arc<Records>)>>,
    /// Whether it was logged that the records cannot be read.
    warned: AtomicBool,
}

/// What `category.json` says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct About {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) aliases: Vec<String>,
    pub(super) config: Setup,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Setup {
    pub(super) purpose: Option<String>,
    pub(super) requirements: Requirements,
    pub(super) orchestration: Orchestration,
    pub(super) field_aliases: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Requirements {
    pub(super) required_record_fields: Vec<String>,
    pub(super) required_relationship_fields: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Orchestration {
    pub(super) agents: Agents,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Agents {
    pub(super) relevant_data_manager: Agent,
    pub(super) database_agent: Agent,
    pub(super) data_agent: Agent,
}

/// Words by which a question is recognised as one for this agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Agent {
    pub(super) focus: String,
    pub(super) signals: Vec<String>,
    pub(super) prompt_starters: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Relationship {
    pub(super) key: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    pub(super) target_category: String,
    pub(super) source_field: String,
    #[serde(default = "id")]
    pub(super) target_field: String,
}

fn id() -> String {
    "id".to_owned()
}

impl Category {
    pub(super) fn read(
        source: &Source,
        id: String,
        files: Vec<Entry>,
        limits: &Limits,
        last: Option<&Arc<Category>>,
    ) -> Category {
        let mut warnings = Vec::new();
        let has = |name: &str| files.iter().any(|entry| entry.path == format!("{id}/{name}"));
        let mut read = |path: &str| match read_json(source, path) {
            Ok(raw) => Some(raw),
            Err(flaw) => {
                warnings.push(Warning::new(source.label(path), flaw));
                None
            }
        };
        let text = if has("category.json") { read(&format!("{id}/category.json")) } else { None };
        let relationships_text =
            if has("relationships.json") { read(&format!("{id}/relationships.json")) } else { None };
        let mut folder = |name: &str| -> Vec<Box<RawValue>> {
            let start = format!("{id}/{name}/");
            let inside = files.iter().filter(|entry| entry.path.starts_with(&start) && entry.path.ends_with(".json"));
            inside.filter_map(|entry| read(&entry.path)).collect()
        };
        let (schemas, examples, queries) = (folder("schemas"), folder("examples"), folder("queries"));
        let about = take(&text, &format!("{id}/category.json"), source, &mut warnings).unwrap_or_default();
        let relationships = take(&relationships_text, &format!("{id}/relationships.json"), source, &mut warnings);
        let file = RECORDS.iter().find(|(name, _)| has(name)).map(|(name, form)| (format!("{id}/{name}"), *form));
        let before = last.and_then(|last| last.loaded()).map(|records| (false, records));
        Category {
            about,
            text,
            relationships: relationships.unwrap_or_default(),
            relationships_text,
            schemas,
            examples,
            queries,
            warnings,
            limits: limits.clone(),
            source: source.clone(),
            file,
            records: Mutex::new(before),
            warned: AtomicBool::new(false),
            files,
            id,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.about.name.as_deref().unwrap_or(&self.id)
    }

    /// Its id, its name and its aliases.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let aliases = self.about.aliases.iter().map(String::as_str).filter(|alias| !alias.trim().is_empty());
        [self.id.as_str(), self.name()].into_iter().chain(aliases)
    }

    /// Whether this is one of its names, however it is spelt.
    pub(in crate::folder) fn answers_to(&self, topic: &str) -> bool {
        let topic = topic.trim().to_lowercase();
        self.names().any(|name| name.trim().to_lowercase() == topic)
    }

    /// The records; read from the file the first time.
    pub(super) fn records(&self) -> Result<Arc<Records>, String> {
        let mut known = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((true, records)) = &*known {
            return Ok(Arc::clone(records));
        }
        let fresh = self.load().map_err(|flaw| {
            let warning = Warning::new(self.records_label(), flaw).to_string();
            // Once for each state of the file: a category is read again when one of its files changes.
            if !self.warned.swap(true, Ordering::Relaxed) {
                tracing::warn!(target: "folder", "skipped {warning}");
            }
            warning
        })?;
        // The same content again: everything that was found out about it still holds.
        let records = match known.take() {
            Some((_, before)) if before.hash == fresh.hash => before,
            _ => Arc::new(fresh),
        };
        *known = Some((true, Arc::clone(&records)));
        Ok(records)
    }

    /// Loads the records now if their file is small, so that a broken one is reported before somebody asks for it.
    pub(in crate::folder) fn preload(&self) {
        let path = self.file.as_ref().map(|(path, _)| path);
        let is_small = |entry: &Entry| Some(&entry.path) == path && entry.stamp.size <= SMALL as u64;
        if self.files.iter().any(is_small) {
            // Whoever asks for the records gets the error again.
            let _ = self.records();
        }
    }

    fn loaded(&self) -> Option<Arc<Records>> {
        let known = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|(_, records)| Arc::clone(records))
    }

    fn load(&self) -> Result<Records, Flaw> {
        let Some((path, form)) = &self.file else { return Ok(Records::empty()) };
        let text = self.source.read_text(path, self.limits.records_file)?;
        let properties = self.record_schema().and_then(|schema| schema.get("properties")?.as_object().cloned());
        Records::read(text, *form, |column| cell_type(properties.as_ref(), column))
    }

    /// Where the records are, for messages.
    pub(super) fn records_label(&self) -> String {
        self.source.label(self.file.as_ref().map_or(self.id.as_str(), |(path, _)| path))
    }

    pub(super) fn label(&self, name: &str) -> String {
        self.source.label(&format!("{}/{name}", self.id))
    }

    /// The schema that records are to fit: the one called `record`, or the only one.
    pub(super) fn record_schema(&self) -> Option<Value> {
        let parsed = self.schemas.iter().filter_map(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let all: Vec<Value> = parsed.collect();
        let named = all.iter().find(|schema| {
            schema["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("record") || name == self.id)
        });
        let only = if all.len() == 1 { all.first() } else { None };
        named.or(only).map(|schema| schema["schema"].clone())
    }

    /// Other names for a field.
    pub(super) fn field_aliases(&self, field: &str) -> Vec<&str> {
        let declared =
            self.about.config.field_aliases.iter().filter(|(_, of)| *of == field).map(|(alias, _)| alias.as_str());
        let usual = FIELD_ALIASES.iter().filter(|(category, _, of)| *category == self.id && *of == field);
        declared.chain(usual.map(|(_, alias, _)| *alias)).collect()
    }

    /// The name that records use for a field.
    pub(super) fn field_name(&self, name: &str, is_known: impl Fn(&str) -> bool) -> String {
        let declared = self.about.config.field_aliases.get(name).map(String::as_str);
        let usual = || {
            let mut known = FIELD_ALIASES.iter().filter(|(category, alias, _)| *category == self.id && *alias == name);
            known.next().map(|(_, _, field)| *field)
        };
        if let Some(field) = declared {
            return field.to_owned();
        }
        if is_known(name) {
            return name.to_owned();
        }
        let plural = format!("{name}s");
        match usual() {
            Some(field) => field.to_owned(),
            None if is_known(&plural) => plural,
            None => name.to_owned(),
        }
    }
}

/// Reads a small JSON file as it is written.
fn read_json(source: &Source, path: &str) -> Result<Box<RawValue>, Flaw> {
    let text = source.read_text(path, SMALL)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    serde_json::from_str(text).map_err(|e| Flaw::json(&e))
}

fn take<T: for<'a> Deserialize<'a>>(
    text: &Option<Box<RawValue>>,
    path: &str,
    source: &Source,
    warnings: &mut Vec<Warning>,
) -> Option<T> {
    let text = text.as_ref()?;
    serde_json::from_str(text.get()).map_err(|e| warnings.push(Warning::new(source.label(path), Flaw::json(&e)))).ok()
}

fn cell_type(properties: Option<&Map<String, Value>>, column: &str) -> CellType {
    let declared = properties.and_then(|properties| properties.get(column)?.get("type"));
    let is = |name: &str| match declared {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        _ => false,
    };
    match () {
        () if is("number") || is("integer") => CellType::Number,
        () if is("boolean") => CellType::Boolean,
        () if is("array") => CellType::List,
        () => CellType::Text,
    }
}
