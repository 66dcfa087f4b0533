//! The methods of the protocol over a catalog: a method name and its parameters in, a result or a refusal out.

use mcpwire_proto::version::{V2025_03_26, V2025_06_18, V2025_11_25};
use mcpwire_proto::{Fault, method};
use serde_json::{Map, Value, json};

use super::Places;
use super::catalog::Catalog;
use super::data::{self, Outcome, ToolFault};
use super::reply::{Body, Refusal, Reply, excerpt};
use super::{front, resources};

/// The specification's limit on the values of one completion.
const MOST_VALUES: usize = 100;

/// What the client of a request understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) version: &'static str,
    /// Of the era without sessions.
    pub(super) stateless: bool,
}

impl Dialect {
    /// Titles, output schemas and structured content came with 2025-06-18.
    fn knows_structure(self) -> bool {
        self.version >= V2025_06_18
    }

    /// Tool annotations came with 2025-03-26.
    fn knows_annotations(self) -> bool {
        self.version >= V2025_03_26
    }

    /// Faulty arguments are told by the tool since 2025-11-25, so that a model can mend them.
    fn tells_input_faults(self) -> bool {
        self.version >= V2025_11_25
    }
}

/// Serves a request that needs the catalog.
pub(super) fn answer(
    catalog: &Catalog,
    places: &Places,
    dialect: Dialect,
    method: &str,
    params: &Map<String, Value>,
) -> Reply {
    let unknown = || Err(Fault::UnknownMethod(excerpt(method)).into());
    let page = |key: &str, items: Vec<Value>| page(key, items, params, catalog.config.limits.page);
    match method {
        method::PROMPTS_LIST | method::PROMPTS_GET if catalog.prompts.is_empty() => unknown(),
        method::TOOLS_LIST | method::TOOLS_CALL if catalog.data.is_empty() => unknown(),
        method::RESOURCES_LIST => page("resources", resources::entries(catalog, dialect.knows_structure())),
        method::RESOURCES_TEMPLATES_LIST => page("resourceTemplates", resources::templates(catalog)),
        method::RESOURCES_READ => resources::read(catalog, places, text(params, "uri")?),
        method::PROMPTS_LIST => {
            let entries = catalog.prompts.iter().map(|prompt| prompt.entry(dialect.knows_structure()));
            page("prompts", entries.collect())
        }
        method::PROMPTS_GET => prompt(catalog, places, params),
        method::COMPLETION_COMPLETE => complete(catalog, params),
        method::TOOLS_LIST => page("tools", tools(dialect)),
        method::TOOLS_CALL => call(catalog, dialect, params),
        _ => unknown(),
    }
}

/// The page of a list that the cursor points to.
fn page(key: &str, items: Vec<Value>, params: &Map<String, Value>, size: usize) -> Reply {
    let start = match params.get("cursor") {
        None | Some(Value::Null) => 0,
        Some(cursor) => {
            let at = cursor.as_str().and_then(|cursor| cursor.strip_prefix("from-")?.parse().ok());
            at.filter(|at| (1..items.len()).contains(at))
                .ok_or_else(|| wrong("a nextCursor of this list", "cursor", cursor))?
        }
    };
    let next = start + size;
    let mut result = json!({});
    if next < items.len() {
        result["nextCursor"] = json!(format!("from-{next}"));
    }
    result[key] = items.into_iter().skip(start).take(size).collect();
    Ok(Body::cacheable(result.to_string()))
}

fn prompt(catalog: &Catalog, places: &Places, params: &Map<String, Value>) -> Reply {
    let name = text(params, "name")?;
    let not_found = || Refusal::Params(format!("Prompt {} not found", excerpt(name)));
    let prompt = catalog.prompts.iter().find(|prompt| prompt.name == name).ok_or_else(not_found)?;
    let none = Map::new();
    let given = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(given)) => given,
        Some(other) => return Err(wrong("an object", "arguments", other).into()),
    };
    if let Some((name, value)) = given.iter().find(|(_, value)| !value.is_string()) {
        return Err(wrong("a string", name, value).into());
    }
    if let Some(missing) = prompt.missing(given) {
        let told = format!("Invalid arguments for prompt {name}: the required argument {missing:?} is missing");
        return Err(Refusal::Params(told));
    }
    let text = places.prompts.read_text(&prompt.file, catalog.config.limits.file).map_err(|_| not_found())?;
    let document = front::split(&text).map_err(|_| not_found())?;
    let filled = prompt.fill(document.body, given);
    let message = json!({ "role": "user", "content": { "type": "text", "text": filled } });
    Ok(json!({ "description": prompt.description, "messages": [message] }).into())
}

fn complete(catalog: &Catalog, params: &Map<String, Value>) -> Reply {
    let subject = object(params, "ref")?;
    let argument = object(params, "argument")?;
    let (name, value) = (text(argument, "name")?, text(argument, "value")?);
    let known: Vec<String> = match text(subject, "type")? {
        "ref/prompt" => {
            let prompt = text(subject, "name")?;
            let found = catalog.prompts.iter().find(|known| known.name == prompt);
            let found = found.ok_or_else(|| Refusal::Params(format!("Prompt {} not found", excerpt(prompt))))?;
            let argument = found.arguments.iter().find(|argument| argument.name == name);
            argument.map(|argument| argument.values.clone()).unwrap_or_default()
        }
        "ref/resource" if name == "resourceId" => resources::completions(catalog, text(subject, "uri")?),
        "ref/resource" => Vec::new(),
        other => return Err(wrong("ref/prompt or ref/resource", "type", &json!(other)).into()),
    };
    let start = value.to_lowercase();
    let mut values: Vec<String> = known.into_iter().filter(|known| known.to_lowercase().starts_with(&start)).collect();
    let total = values.len();
    values.truncate(MOST_VALUES);
    Ok(json!({ "completion": { "values": values, "total": total, "hasMore": total > MOST_VALUES } }).into())
}

fn tools(dialect: Dialect) -> Vec<Value> {
    let mut tools = data::definitions();
    for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
        if !dialect.knows_structure() {
            tool.remove("title");
            tool.remove("outputSchema");
        }
        if !dialect.knows_annotations() {
            tool.remove("annotations");
        }
    }
    tools
}

fn call(catalog: &Catalog, dialect: Dialect, params: &Map<String, Value>) -> Reply {
    let name = match params.get("name") {
        Some(Value::String(name)) => name,
        _ => return Err(Refusal::Params("Invalid params: tool name is required".into())),
    };
    let none = Map::new();
    let args = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(args)) => args,
        Some(other) => return Err(wrong("an object", "arguments", other).into()),
    };
    let failed = |told: String| Err(Refusal::Tool { tool: name.clone(), told });
    match data::call(catalog, name, args) {
        Ok(outcome) => Ok(result(&outcome, dialect)),
        Err(ToolFault::Unknown) => {
            let known = data::names().join(", ");
            let told = format!("Invalid params: unknown tool '{}'. Available tools: {known}", excerpt(name));
            Err(Refusal::Params(told))
        }
        Err(ToolFault::Input(told)) if dialect.tells_input_faults() => Ok(faulty(&told)),
        Err(ToolFault::Failed(told)) if dialect.stateless => Ok(faulty(&told)),
        Err(ToolFault::Input(told) | ToolFault::Failed(told)) => failed(told),
    }
}

fn faulty(told: &str) -> Body {
    let text = format!("Tool execution error: {told}");
    json!({ "content": [{ "type": "text", "text": text }], "isError": true }).into()
}

/// Written as text, because records pass as they are.
fn result(outcome: &Outcome, dialect: Dialect) -> Body {
    let texts: Vec<String> =
        outcome.texts.iter().map(|text| format!(r#"{{"type":"text","text":{}}}"#, json!(text))).collect();
    let mut body = format!(r#"{{"content":[{}]"#, texts.join(","));
    if dialect.knows_structure() {
        body.push_str(r#","structuredContent":"#);
        body.push_str(&outcome.structured);
    }
    body.push('}');
    Body::new(body)
}

pub(super) fn text<'a>(params: &'a Map<String, Value>, name: &str) -> Result<&'a str, Fault> {
    let value = params.get(name).unwrap_or(&Value::Null);
    value.as_str().ok_or_else(|| wrong("a string", name, value))
}

pub(super) fn object<'a>(params: &'a Map<String, Value>, name: &str) -> Result<&'a Map<String, Value>, Fault> {
    let value = params.get(name).unwrap_or(&Value::Null);
    value.as_object().ok_or_else(|| wrong("an object", name, value))
}

pub(super) fn wrong(expected: &str, name: &str, came: &Value) -> Fault {
    let came = if came.is_null() { "nothing".to_owned() } else { excerpt(&came.to_string()) };
    Fault::Params(format!("expected {expected} as {name}, came {came}"))
}
