//! Searching records: filters, an order, and pages.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::category::Category;
use super::filter::{is_blank, lenient, resolve, strict};
use super::question::Understood;
use super::records::Records;
use super::tools::ToolFault;

/// What is searched for.
#[derive(Debug, Default)]
pub(super) struct Search<'a> {
    pub(super) filters: Option<&'a Value>,
    /// A field; with `-` before it the other way round.
    pub(super) sort: Option<&'a str>,
    pub(super) limit: Option<usize>,
    pub(super) cursor: Option<&'a str>,
}

/// What was found: one page of it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) records: Arc<Records>,
    pub(super) numbers: Vec<u32>,
    pub(super) total: usize,
    pub(super) next: Option<String>,
}

impl Found {
    /// The records as a JSON array.
    pub(super) fn json(&self) -> String {
        let mut text = String::from("[");
        for (at, number) in self.numbers.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&self.records.text(*number as usize));
        }
        text.push(']');
        text
    }
}

/// Searches by the strict rules.
pub(super) fn search(category: &Category, search: &Search<'_>) -> Result<Found, ToolFault> {
    let records = category.records().map_err(ToolFault::Failed)?;
    let none = Map::new();
    let filters = match search.filters {
        None | Some(Value::Null) => Some(&none),
        Some(Value::Object(filters)) => Some(filters),
        // A text has no fields that a record could have.
        Some(Value::String(_)) => None,
        Some(_) => return Err(ToolFault::Input("'filters' must be an object.".to_owned())),
    };
    let Some(filters) = filters else { return page(records, "none", Arc::default(), search, &category.limits) };
    let key = format!("strict {}", Value::Object(filters.clone()));
    let hint = filters.iter().find(|(_, wanted)| !is_blank(wanted)).map(|(field, wanted)| (field.as_str(), wanted));
    let numbers = match hint {
        None => Arc::new((0..records.len() as u32).collect()),
        Some(_) => records.answer(key.clone(), || records.select(hint, |record| strict(filters, record))),
    };
    page(records, &key, numbers, search, &category.limits)
}

/// Searches by the lenient rules among the records that a question asks for; names of fields may be their aliases.
pub(super) fn query(
    category: &Category,
    criteria: &Map<String, Value>,
    question: &Understood,
    search: &Search<'_>,
) -> Result<Found, ToolFault> {
    let records = category.records().map_err(ToolFault::Failed)?;
    let first = if records.len() > 0 { records.record(0) } else { Map::new() };
    let schema = category.record_schema().unwrap_or_default();
    let is_known = |field: &str| first.contains_key(field) || schema["properties"].get(field).is_some();
    let criteria = resolve(criteria, |name| category.field_name(name, is_known));
    let key = format!("lenient {}", Value::Object(criteria.clone()));
    let mut numbers = records.answer(key.clone(), || records.select(None, |record| lenient(&criteria, record)));
    if !question.is_empty() {
        numbers = Arc::new(numbers.iter().copied().filter(|at| question.admits(*at)).collect());
    }
    page(records, &key, numbers, search, &category.limits)
}

fn page(
    records: Arc<Records>,
    key: &str,
    mut numbers: Arc<Vec<u32>>,
    search: &Search<'_>,
    limits: &crate::folder::config::Limits,
) -> Result<Found, ToolFault> {
    if let Some(sort) = search.sort.filter(|sort| !sort.trim_start_matches('-').is_empty()) {
        numbers = records.answer(format!("sorted {sort} {key}"), || sorted(&records, &numbers, sort));
    }
    let start = match search.cursor {
        None => 0,
        Some(cursor) => position(cursor, &records.hash)?,
    };
    let limit = search.limit.unwrap_or(limits.records).max(1);
    let total = numbers.len();
    let end = start.saturating_add(limit).min(total);
    let next = (end < total).then(|| format!("{}-{end}", records.hash));
    let numbers = numbers.get(start..end).unwrap_or_default().to_vec();
    Ok(Found { records, numbers, total, next })
}

/// Where a cursor points to; it is good only for the records it was made for.
fn position(cursor: &str, hash: &str) -> Result<usize, ToolFault> {
    let (known, at) = cursor.split_once('-').unwrap_or_default();
    match at.parse() {
        Ok(at) if known == hash => Ok(at),
        Ok(_) => {
            Err(ToolFault::Input("'cursor' is of records that have changed since: search again without it.".into()))
        }
        Err(_) => Err(ToolFault::Input("'cursor' must be a nextCursor of this search.".into())),
    }
}

fn sorted(records: &Records, numbers: &[u32], sort: &str) -> Vec<u32> {
    let (field, falling) = sort.strip_prefix('-').map_or((sort, false), |field| (field, true));
    let mut keyed: Vec<(Option<Value>, u32)> =
        numbers.iter().map(|at| (records.field(*at as usize, field).filter(|v| !v.is_null()), *at)).collect();
    keyed.sort_by(|(a, _), (b, _)| match (a, b) {
        (Some(a), Some(b)) if falling => compare(b, a),
        (Some(a), Some(b)) => compare(a, b),
        // What has no value comes last either way.
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    keyed.into_iter().map(|(_, at)| at).collect()
}

/// Numbers before texts, and both before the rest.
fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default())
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
