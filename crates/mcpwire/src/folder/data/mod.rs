//! Business data: categories of records with their schemas and relationships, and the tools over them.

mod ask;
mod category;
mod check;
mod classify;
mod field;
mod filter;
mod insight;
mod pretty;
mod question;
mod records;
mod relations;
mod schema;
mod search;
mod tools;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub(super) use category::Category;
pub(super) use check::{Finding, check};
pub(super) use tools::{Outcome, ToolFault, call, definitions, names};

use super::config::Limits;
use super::flaw::{Flaw, Warning};
use super::layout;
use super::source::{Entry, Source};

/// Reads all categories; those whose files have not changed are taken from the last time, with all they have loaded.
pub(super) fn read(
    source: &Source,
    files: Vec<Entry>,
    limits: &Limits,
    last: &[Arc<Category>],
    warnings: &mut Vec<Warning>,
) -> Vec<Arc<Category>> {
    let mut folders: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for entry in files {
        match layout::top(&entry.path) {
            Some(top) if !top.starts_with('.') => folders.entry(top.to_owned()).or_default().push(entry),
            Some(_) => {}
            None => warnings.push(Warning::new(source.label(&entry.path), Flaw::new("not in a category folder"))),
        }
    }
    let known: HashMap<&str, &Arc<Category>> = last.iter().map(|category| (category.id.as_str(), category)).collect();
    let mut found = Vec::new();
    for (id, files) in folders {
        let old = known.get(id.as_str()).copied();
        match old.filter(|old| old.files == files && old.limits == *limits) {
            Some(old) => {
                warnings.extend(old.warnings.iter().cloned());
                found.push(Arc::clone(old));
            }
            None => {
                let category = Category::read(source, id, files, limits, old);
                warnings.extend(category.warnings.iter().cloned());
                found.push(Arc::new(category));
            }
        }
    }
    found
}
