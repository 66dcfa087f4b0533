//! Whether the data is sound: records against their schema, required fields, ids, and references that lead nowhere.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::category::Category;
use super::records::{Records, plain_text};
use super::relations::references;
use super::schema;
use crate::folder::catalog::Catalog;
use crate::folder::flaw::{Flaw, Warning};

/// The most findings told of one category.
const MOST: usize = 100;

/// What the check of a category came to.
#[derive(Debug)]
pub(in crate::folder) struct Finding {
    pub(in crate::folder) category: String,
    pub(in crate::folder) records: usize,
    pub(in crate::folder) faults: Vec<Warning>,
}

pub(in crate::folder) fn check(catalog: &Catalog) -> Vec<Finding> {
    catalog.data.iter().map(|category| check_category(catalog, category)).collect()
}

fn check_category(catalog: &Catalog, category: &Category) -> Finding {
    let mut faults = Vec::new();
    let records = match category.records() {
        Ok(records) => records,
        Err(told) => {
            faults.push(Warning::new(category.id.clone(), Flaw::new(told)));
            return Finding { category: category.id.clone(), records: 0, faults };
        }
    };
    check_relationships(catalog, category, &mut faults);
    check_records(category, &records, &mut faults);
    check_references(catalog, category, &records, &mut faults);
    if faults.len() > MOST {
        let rest = faults.len() - MOST;
        faults.truncate(MOST);
        faults.push(Warning::new(category.records_label(), Flaw::new(format!("{rest} more faults"))));
    }
    Finding { category: category.id.clone(), records: records.len(), faults }
}

fn check_relationships(catalog: &Catalog, category: &Category, faults: &mut Vec<Warning>) {
    let mut fault = |reason: String| faults.push(Warning::new(category.label("relationships.json"), Flaw::new(reason)));
    for link in &category.relationships {
        if catalog.category(&link.target_category).is_none() {
            fault(format!("{}: there is no category {:?}", link.key, link.target_category));
        }
    }
    for field in &category.about.config.requirements.required_relationship_fields {
        if !category.relationships.iter().any(|link| link.source_field == *field || link.key == *field) {
            fault(format!("no relationship has the required field {field:?}"));
        }
    }
}

fn check_records(category: &Category, records: &Records, faults: &mut Vec<Warning>) {
    let schema = category.record_schema();
    let required = &category.about.config.requirements.required_record_fields;
    let mut seen: HashSet<String> = HashSet::new();
    for at in 0..records.len() {
        let record = records.record(at);
        let id = record.get("id").and_then(plain_text);
        let mut told = Vec::new();
        match &id {
            None => told.push("has no id".to_owned()),
            Some(id) if !seen.insert(id.clone()) => told.push("another record has the same id".to_owned()),
            Some(_) => {}
        }
        told.extend(
            required.iter().filter(|field| !record.contains_key(*field)).map(|field| format!("{field} is missing")),
        );
        if let Some(schema) = &schema {
            let more = schema::faults(schema, &Value::Object(record));
            told.extend(
                more.into_iter().filter(|fault| !required.iter().any(|field| *fault == format!("{field} is missing"))),
            );
        }
        let who = id.unwrap_or_else(|| format!("record {}", at + 1));
        let flaw = |reason: String| Flaw::at(records.line(at), format!("{who}: {reason}"));
        faults.extend(told.into_iter().map(|reason| Warning::new(category.records_label(), flaw(reason))));
        if faults.len() > 10 * MOST {
            return;
        }
    }
}

fn check_references(catalog: &Catalog, category: &Category, records: &Records, faults: &mut Vec<Warning>) {
    let mut targets: HashMap<(String, String), HashSet<String>> = HashMap::new();
    for link in &category.relationships {
        let Some(target) = catalog.category(&link.target_category) else { continue };
        let Ok(theirs) = target.records() else { continue };
        let known = targets.entry((target.id.clone(), link.target_field.clone())).or_insert_with(|| {
            (0..theirs.len()).flat_map(|at| references(theirs.field(at, &link.target_field).as_ref())).collect()
        });
        for at in 0..records.len() {
            let values = references(records.field(at, &link.source_field).as_ref());
            for value in values.iter().filter(|value| !known.contains(*value)) {
                let who = records
                    .field(at, "id")
                    .as_ref()
                    .and_then(plain_text)
                    .unwrap_or_else(|| format!("record {}", at + 1));
                let reason = format!("{who}: {} refers to {value:?}, which is not in {}", link.source_field, target.id);
                faults.push(Warning::new(category.records_label(), Flaw::at(records.line(at), reason)));
                if faults.len() > 10 * MOST {
                    return;
                }
            }
        }
    }
}
