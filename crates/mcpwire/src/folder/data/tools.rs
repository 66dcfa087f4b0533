//! The tools over business data: their definitions, and one plain match to run them.

use serde_json::{Map, Value, json};

use super::ask::{Question, ask};
use super::category::Category;
use super::insight::insight;
use super::pretty::pretty;
use super::search::{Search, search};
use crate::folder::catalog::Catalog;

const DESCRIBE: &str = "relevant-data.describeCategory";
const SEARCH: &str = "relevant-data.searchRecords";
const ASK: &str = "relevant-data.ask";
const INSIGHT: &str = "relevant-data.insight";

/// The most records that may be asked for at once.
const MOST_RECORDS: u64 = 10_000;

/// Why a tool has no result.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::folder) enum ToolFault {
    /// There is no such tool.
    Unknown,
    /// The arguments are not what the tool takes: something the caller can mend.
    Input(String),
    /// The data is not what it should be.
    Failed(String),
}

/// A tool's result: text for any client, and the same as an object.
#[derive(Debug)]
pub(in crate::folder) struct Outcome {
    pub(in crate::folder) texts: Vec<String>,
    /// JSON text of an object.
    pub(in crate::folder) structured: String,
}

pub(in crate::folder) fn names() -> [&'static str; 4] {
    [DESCRIBE, SEARCH, ASK, INSIGHT]
}

/// The definitions for `tools/list`.
pub(in crate::folder) fn definitions() -> Vec<Value> {
    let category = json!({ "type": "string", "description": "The id, name or alias of a category" });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": MOST_RECORDS, "description": "The most records to return" });
    let any = json!({ "type": "object" });
    let list = json!({ "type": "array" });
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    vec![
        tool(
            DESCRIBE,
            "Describe category",
            "Tells what a category of business data holds: its configuration, schemas, relationships, examples and queries.",
            json!({ "categoryId": category }),
            &["categoryId"],
            json!({ "category": any, "relationships": list, "schemas": list, "examples": list, "queries": list }),
            &["category", "relationships", "schemas", "examples", "queries"],
        ),
        tool(
            SEARCH,
            "Search records",
            "Finds records of a category by the exact values of their fields. A field that is a list fits if it holds the value.",
            json!({
                "categoryId": category,
                "filters": { "type": "object", "description": "Field names and the values they must have; all must fit" },
                "sort": { "type": "string", "description": "A field to sort by; with - before it, falling" },
                "limit": limit,
                "cursor": { "type": "string", "description": "The nextCursor of the page before" },
            }),
            &["categoryId"],
            json!({
                "records": { "type": "array", "items": any }, "total": { "type": "integer" },
                "nextCursor": { "type": "string" },
            }),
            &["records", "total"],
        ),
        tool(
            ASK,
            "Ask about the data",
            "Answers a question about business data: what it is made of, which records fit, or what they tell together. Values may be quoted; the answer reports which criteria it used and which words it did not understand.",
            json!({
                "question": { "type": "string", "description": "The question, in plain words" },
                "topic": { "type": "string", "description": "The category it is about: id, name or alias" },
                "criteria": {
                    "type": "object",
                    "description": "What records must have; case does not matter, of a list all must be there",
                },
                "limit": limit,
            }),
            &["question"],
            json!({
                "intent": { "enum": ["metadata", "records", "insight", "clarification"] }, "agent": { "type": "string" },
                "summary": { "type": "string" }, "rationale": { "type": "string" }, "payload": any,
                "markdown": { "type": "string" },
            }),
            &["intent", "agent", "summary", "rationale", "payload", "markdown"],
        ),
        tool(
            INSIGHT,
            "Insight",
            "Sums up a category (counts, distributions, connections, how to go on), or shows all that one record is connected with.",
            json!({
                "categoryId": category,
                "recordId": { "type": "string", "description": "The id of one record" },
            }),
            &["categoryId"],
            json!({
                "category": { "type": "string" }, "name": { "type": "string" }, "count": { "type": "integer" },
                "distributions": any, "relationships": list, "record": any, "related": list, "referredBy": list,
                "narratives": texts, "plan": texts,
            }),
            &["category", "name", "count", "narratives", "plan"],
        ),
    ]
}

#[allow(clippy::too_many_arguments, reason = "a definition has these parts, and each is given once")]
fn tool(
    name: &str,
    title: &str,
    description: &str,
    properties: Value,
    required: &[&str],
    output: Value,
    given: &[&str],
) -> Value {
    json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": { "type": "object", "properties": properties, "required": required },
        "outputSchema": { "type": "object", "properties": output, "required": given },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false },
    })
}

pub(in crate::folder) fn call(catalog: &Catalog, name: &str, args: &Map<String, Value>) -> Result<Outcome, ToolFault> {
    match name {
        DESCRIBE => {
            let text = describe(category(catalog, args)?);
            Ok(Outcome { texts: vec![pretty(&text)], structured: text })
        }
        SEARCH => search_records(catalog, args),
        ASK => {
            let question = Question {
                text: text(args, "question")?.ok_or_else(|| required("question"))?,
                topic: text(args, "topic")?,
                criteria: match args.get("criteria") {
                    None | Some(Value::Null) => Map::new(),
                    Some(Value::Object(criteria)) => criteria.clone(),
                    Some(_) => return Err(ToolFault::Input("'criteria' must be an object.".into())),
                },
                limit: limit(args)?,
            };
            Ok(plain(&ask(catalog, &question)?))
        }
        INSIGHT => Ok(plain(&insight(catalog, category(catalog, args)?, text(args, "recordId")?)?)),
        _ => Err(ToolFault::Unknown),
    }
}

fn plain(value: &Value) -> Outcome {
    let text = value.to_string();
    Outcome { texts: vec![pretty(&text)], structured: text }
}

fn search_records(catalog: &Catalog, args: &Map<String, Value>) -> Result<Outcome, ToolFault> {
    let wanted = Search {
        filters: args.get("filters"),
        sort: text(args, "sort")?,
        limit: limit(args)?,
        cursor: text(args, "cursor")?,
    };
    let found = search(category(catalog, args)?, &wanted)?;
    let records = found.json();
    let mut texts = vec![pretty(&records)];
    let mut structured = format!(r#"{{"records":{records},"total":{}"#, found.total);
    if let Some(next) = &found.next {
        // Clients that know no structured content learn of it here.
        texts.push(format!("{} of {} records. The next ones: cursor {next:?}", found.numbers.len(), found.total));
        structured.push_str(&format!(r#","nextCursor":{next:?}"#));
    }
    structured.push('}');
    Ok(Outcome { texts, structured })
}

/// Everything that is declared about a category, as it is written.
pub(super) fn describe(category: &Category) -> String {
    let list = |parts: &[Box<serde_json::value::RawValue>]| {
        let parts: Vec<&str> = parts.iter().map(|part| part.get()).collect();
        format!("[{}]", parts.join(","))
    };
    let about = match category.text.as_ref().map(|text| text.get()).filter(|text| text.starts_with('{')) {
        Some(text) => text.to_owned(),
        None => json!({ "id": category.id, "name": category.name() }).to_string(),
    };
    let links = category.relationships_text.as_ref().map(|text| text.get()).filter(|text| text.starts_with('['));
    format!(
        r#"{{"category":{about},"relationships":{},"schemas":{},"examples":{},"queries":{}}}"#,
        links.unwrap_or("[]"),
        list(&category.schemas),
        list(&category.examples),
        list(&category.queries)
    )
}

fn category<'a>(catalog: &'a Catalog, args: &Map<String, Value>) -> Result<&'a Category, ToolFault> {
    let id = text(args, "categoryId")?.filter(|id| !id.trim().is_empty()).ok_or_else(|| required("categoryId"))?;
    match catalog.category(id) {
        Some(category) => Ok(category),
        None => {
            let known: Vec<&str> = catalog.data.iter().map(|category| category.id.as_str()).collect();
            Err(ToolFault::Input(format!("Unknown category: {}. Known are: {}", excerpt(id), known.join(", "))))
        }
    }
}

fn required(name: &str) -> ToolFault {
    ToolFault::Input(format!("'{name}' is required."))
}

fn text<'a>(args: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ToolFault> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ToolFault::Input(format!("'{name}' must be a string."))),
    }
}

fn limit(args: &Map<String, Value>) -> Result<Option<usize>, ToolFault> {
    match args.get("limit") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|limit| (1..=MOST_RECORDS).contains(limit)) {
            Some(limit) => Ok(Some(limit as usize)),
            None => Err(ToolFault::Input(format!("'limit' must be a whole number from 1 to {MOST_RECORDS}."))),
        },
    }
}

/// The beginning of a peer's text, short enough for an error message.
pub(super) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
