//! Relationships between categories: from the values of a field to the records of another category.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::category::{Category, Relationship};
use super::records::{Records, plain_text};
use crate::folder::catalog::Catalog;

/// A relationship whose target was found, and the target's records.
pub(super) struct Relation<'a> {
    pub(super) of: &'a Relationship,
    pub(super) target: &'a Arc<Category>,
    pub(super) records: Arc<Records>,
}

/// The relationships of a category that lead to records.
pub(super) fn relations<'a>(catalog: &'a Catalog, category: &'a Category) -> Vec<Relation<'a>> {
    let relation = |of: &'a Relationship| {
        let target = catalog.category(&of.target_category)?;
        Some(Relation { of, target, records: target.records().ok()? })
    };
    category.relationships.iter().filter_map(relation).collect()
}

impl Relation<'_> {
    /// The records that a record refers to, by their numbers.
    pub(super) fn resolve(&self, record: &Map<String, Value>) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        for value in references(record.get(&self.of.source_field)) {
            for at in self.records.with_text(&self.of.target_field, &value) {
                if !found.contains(&at) {
                    found.push(at);
                }
            }
        }
        found
    }

    /// One line: who, by which relationship, to whom.
    pub(super) fn narrative(&self, record: &Map<String, Value>) -> Option<String> {
        let targets = self.resolve(record);
        if targets.is_empty() {
            return None;
        }
        let names: Vec<String> = targets.iter().map(|at| title(&self.records.record(*at as usize))).collect();
        Some(format!("{} → {}: {}", title(record), self.of.key, names.join(", ")))
    }

    pub(super) fn json(&self, record: &Map<String, Value>) -> Value {
        let targets = self.resolve(record);
        let records: Vec<Value> = targets.iter().map(|at| Value::Object(self.records.record(*at as usize))).collect();
        json!({ "key": self.of.key, "name": self.of.name, "targetCategory": self.target.id, "records": records })
    }
}

/// The values of a field that may refer to records: texts and numbers, alone or in a list.
pub(super) fn references(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(members)) => members.iter().filter_map(plain_text).collect(),
        Some(value) => plain_text(value).into_iter().collect(),
        None => Vec::new(),
    }
}

/// What a record is called.
pub(super) fn title(record: &Map<String, Value>) -> String {
    let text = |field: &str| record.get(field).and_then(plain_text);
    text("name").or_else(|| text("title")).or_else(|| text("id")).unwrap_or_else(|| "a record".to_owned())
}
