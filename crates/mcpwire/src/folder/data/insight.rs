//! What the records of a category tell together: counts, distributions, connections, and how to go on.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::category::Category;
use super::records::Records;
use super::relations::{references, relations, title};
use super::tools::ToolFault;
use crate::folder::catalog::Catalog;

/// A field with more different values says nothing by their counts.
const MOST_VALUES: usize = 12;
/// How many records are looked at for distributions and connections.
const MOST_RECORDS: usize = 50_000;
/// How many lines of connections are told.
const MOST_LINES: usize = 10;
/// How many values of a field are counted before it is given up.
const MOST_COUNTED: usize = 1000;

/// The insight into a category, or into one of its records.
pub(super) fn insight(catalog: &Catalog, category: &Category, record: Option<&str>) -> Result<Value, ToolFault> {
    let records = category.records().map_err(ToolFault::Failed)?;
    match record {
        None => Ok(overview(catalog, category, &records)),
        Some(id) => match records.with_text("id", id).first() {
            Some(at) => Ok(related(catalog, category, &records.record(*at as usize))),
            None => Err(ToolFault::Input(format!("Unknown record: {}", super::tools::excerpt(id)))),
        },
    }
}

fn overview(catalog: &Catalog, category: &Category, records: &Records) -> Value {
    let distributions = distributions(records);
    let links = links(catalog, category, records);
    let narratives = narratives(catalog, category, records);
    let plan = plan(category, records.len(), &distributions, &links);
    json!({
        "category": category.id,
        "name": category.name(),
        "count": records.len(),
        "distributions": distributions,
        "relationships": links,
        "narratives": narratives,
        "plan": plan,
    })
}

/// Everything that one record is connected with, in either direction.
fn related(catalog: &Catalog, category: &Category, record: &Map<String, Value>) -> Value {
    let outward: Vec<Value> = relations(catalog, category).iter().map(|relation| relation.json(record)).collect();
    let mut inward = Vec::new();
    for other in &catalog.data {
        let Ok(records) = other.records() else { continue };
        for relationship in &other.relationships {
            if !category.answers_to(&relationship.target_category) {
                continue;
            }
            let mut found: Vec<Value> = Vec::new();
            for value in references(record.get(&relationship.target_field)) {
                let from = records.with_text(&relationship.source_field, &value);
                found.extend(from.iter().take(MOST_COUNTED).map(|at| Value::Object(records.record(*at as usize))));
            }
            if !found.is_empty() {
                inward.push(json!({ "key": relationship.key, "sourceCategory": other.id, "records": found }));
            }
        }
    }
    let narratives: Vec<String> =
        relations(catalog, category).iter().filter_map(|relation| relation.narrative(record)).collect();
    json!({
        "category": category.id,
        "name": title(record),
        "count": 1,
        "record": record,
        "related": outward,
        "referredBy": inward,
        "narratives": narratives,
        "plan": [],
    })
}

/// How often each value of a field occurs, for fields that have only a few.
fn distributions(records: &Records) -> Map<String, Value> {
    let mut counts: BTreeMap<String, Option<BTreeMap<String, usize>>> = BTreeMap::new();
    for at in 0..records.len().min(MOST_RECORDS) {
        for (field, value) in records.record(at) {
            let of_field = counts.entry(field).or_insert_with(|| Some(BTreeMap::new()));
            let Some(of_value) = of_field else { continue };
            for value in countable(&value) {
                *of_value.entry(value).or_default() += 1;
            }
            if of_value.len() > MOST_COUNTED {
                *of_field = None;
            }
        }
    }
    let telling = |values: &BTreeMap<String, usize>| {
        (1..=MOST_VALUES).contains(&values.len()) && values.values().any(|count| *count > 1)
    };
    let mut found = Map::new();
    for (field, values) in counts {
        let Some(values) = values.filter(telling) else { continue };
        let mut sorted: Vec<(String, usize)> = values.into_iter().collect();
        sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let listed: Vec<Value> =
            sorted.iter().map(|(value, count)| json!({ "value": value, "count": count })).collect();
        found.insert(field, Value::Array(listed));
    }
    found
}

fn countable(value: &Value) -> Vec<String> {
    match value {
        Value::Bool(value) => vec![value.to_string()],
        other => references(Some(other)),
    }
}

/// For each relationship how many records have it, and how many references lead nowhere.
fn links(catalog: &Catalog, category: &Category, records: &Records) -> Vec<Value> {
    let mut found = Vec::new();
    for relation in relations(catalog, category) {
        let (mut linked, mut dangling) = (0, 0);
        for at in 0..records.len().min(MOST_RECORDS) {
            let value = records.field(at, &relation.of.source_field);
            let values = references(value.as_ref());
            let hits =
                values.iter().filter(|value| !relation.records.with_text(&relation.of.target_field, value).is_empty());
            let hits = hits.count();
            linked += usize::from(hits > 0);
            dangling += values.len() - hits;
        }
        found.push(json!({
            "key": relation.of.key, "targetCategory": relation.target.id, "linkedRecords": linked, "danglingReferences": dangling,
        }));
    }
    found
}

fn narratives(catalog: &Catalog, category: &Category, records: &Records) -> Vec<String> {
    let relations = relations(catalog, category);
    let mut lines = Vec::new();
    for at in 0..records.len() {
        let record = records.record(at);
        lines.extend(relations.iter().filter_map(|relation| relation.narrative(&record)));
        if lines.len() >= MOST_LINES {
            break;
        }
    }
    lines.truncate(MOST_LINES);
    lines
}

/// How to go on.
fn plan(category: &Category, count: usize, distributions: &Map<String, Value>, links: &[Value]) -> Vec<String> {
    let name = category.name();
    let mut steps = vec![format!("Read the description of {name}: its fields, schemas and relationships.")];
    if let Some((field, values)) = distributions.iter().next() {
        let value = values[0]["value"].as_str().unwrap_or_default();
        steps.push(format!("Narrow the {count} records down, for example to those with {field} = {value}."));
    }
    for link in links.iter().take(3) {
        let (key, target) =
            (link["key"].as_str().unwrap_or_default(), link["targetCategory"].as_str().unwrap_or_default());
        steps.push(format!("Follow {key} to {target}."));
    }
    if links.iter().any(|link| link["danglingReferences"].as_u64().is_some_and(|n| n > 0)) {
        steps.push("Mend the references that lead nowhere: `mcpwire check` lists them.".to_owned());
    }
    steps
}
