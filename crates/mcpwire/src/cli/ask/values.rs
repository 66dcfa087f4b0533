//! `name=value` arguments as JSON, typed by the tool's schema.

use mcpwire_proto::Object;
use serde_json::Value;

/// How deep references in a schema are followed.
const DEPTH: usize = 16;

/// An argument as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    /// `name=value`
    Text(String, String),
    /// `name:=json`
    Json(String, String),
}

/// Reads one argument.
pub(super) fn argument(text: &str) -> Result<Argument, String> {
    let expected = || format!("expected NAME=VALUE or NAME:=JSON, came {text:?}");
    let (name, value) = text.split_once('=').ok_or_else(expected)?;
    let (name, json) = name.strip_suffix(':').map_or((name, false), |name| (name, true));
    if name.is_empty() {
        return Err(expected());
    }
    if !json {
        return Ok(Argument::Text(name.to_owned(), value.to_owned()));
    }
    match serde_json::from_str::<&serde_json::value::RawValue>(value) {
        Ok(value) => Ok(Argument::Json(name.to_owned(), value.get().to_owned())),
        Err(e) => Err(format!("{name}: expected JSON behind ':=': {e}")),
    }
}

/// Whether a schema is needed to know what is meant.
pub(super) fn need_schema(arguments: &[Argument]) -> bool {
    arguments.iter().any(|argument| matches!(argument, Argument::Text(..)))
}

/// Adds the arguments to an object. A name that comes more than once is a list.
pub(super) fn fill<'a>(object: &mut Object<'a>, arguments: &'a [Argument], schema: &Value) -> Result<(), String> {
    let mut names: Vec<&str> = Vec::new();
    for argument in arguments {
        let (Argument::Text(name, _) | Argument::Json(name, _)) = argument;
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let values: Vec<&Argument> = arguments.iter().filter(|argument| argument.name() == name).collect();
        let kind = resolved(&schema["properties"][name], schema);
        let fault = |e: String| format!("{name}: {e}");
        let value = match values.as_slice() {
            [one] => one.typed(kind, schema).map_err(fault)?,
            many => {
                let items = resolved(&kind["items"], schema);
                let items: Result<Vec<String>, String> = many.iter().map(|one| one.typed(items, schema)).collect();
                format!("[{}]", items.map_err(fault)?.join(","))
            }
        };
        object.set(name, value);
    }
    Ok(())
}

impl Argument {
    fn name(&self) -> &str {
        let (Argument::Text(name, _) | Argument::Json(name, _)) = self;
        name
    }

    /// The value as JSON text.
    fn typed(&self, kind: &Value, root: &Value) -> Result<String, String> {
        match self {
            Argument::Json(_, json) => Ok(json.clone()),
            Argument::Text(_, text) => typed(text, kind, root),
        }
    }
}

/// A text as the JSON that a schema asks for: text where it asks for nothing.
pub(super) fn typed(text: &str, schema: &Value, root: &Value) -> Result<String, String> {
    let kinds = kinds(schema, root, DEPTH);
    let mut expected = Vec::new();
    for (kind, schema) in &kinds {
        match as_kind(text, kind, schema, root) {
            Ok(json) => return Ok(json),
            Err(what) => expected.push(what),
        }
    }
    match expected.is_empty() {
        true => Ok(quoted(text)),
        false => Err(format!("expected {}, came {text:?}", expected.join(" or "))),
    }
}

fn as_kind(text: &str, kind: &str, schema: &Value, root: &Value) -> Result<String, String> {
    let json: Option<&serde_json::value::RawValue> = serde_json::from_str(text).ok();
    let starts = |starts: fn(char) -> bool| json.map(|json| json.get()).filter(|json| json.starts_with(starts));
    let number = |c: char| c == '-' || c.is_ascii_digit();
    let found = match kind {
        "integer" => starts(number).filter(|json| !json.contains(['.', 'e', 'E'])),
        "number" => starts(number),
        "boolean" => starts(|c| c == 't' || c == 'f'),
        "null" => starts(|c| c == 'n'),
        "object" => starts(|c| c == '{'),
        "array" => match starts(|c| c == '[') {
            None => return typed(text, resolved(&schema["items"], root), root).map(|one| format!("[{one}]")),
            list => list,
        },
        _ => return Ok(quoted(text)),
    };
    let article = if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    found.map(str::to_owned).ok_or_else(|| format!("{article} {kind}"))
}

/// The types that a schema allows, those that any text fits at the end.
fn kinds<'s>(schema: &'s Value, root: &'s Value, depth: usize) -> Vec<(String, &'s Value)> {
    let schema = resolved(schema, root);
    let mut kinds: Vec<(String, &Value)> = match &schema["type"] {
        Value::String(kind) => vec![(kind.clone(), schema)],
        Value::Array(kinds) => kinds.iter().filter_map(|kind| Some((kind.as_str()?.to_owned(), schema))).collect(),
        _ => {
            let values = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
            values.map(|value| (kind_of(value).to_owned(), schema)).collect()
        }
    };
    if kinds.is_empty() && depth > 0 {
        let parts = ["anyOf", "oneOf", "allOf"].iter().filter_map(|several| schema[several].as_array()).flatten();
        kinds = parts.flat_map(|part| self::kinds(part, root, depth - 1)).collect();
    }
    kinds.sort_by_key(|(kind, _)| match kind.as_str() {
        "string" => 2,
        "array" => 1,
        _ => 0,
    });
    kinds.dedup_by(|a, b| a.0 == b.0);
    kinds
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The schema that a reference within the same document leads to.
pub(super) fn resolved<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    let mut schema = schema;
    for _ in 0..DEPTH {
        let Some(path) = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) else { return schema };
        schema = root.pointer(path).unwrap_or(&Value::Null);
    }
    schema
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(arguments: &[&str], schema: &Value) -> Result<String, String> {
        let arguments = arguments.iter().map(|text| argument(text)).collect::<Result<Vec<Argument>, String>>()?;
        let mut object = Object::new();
        fill(&mut object, &arguments, schema)?;
        Ok(object.to_string())
    }

    #[test]
    fn values_get_the_type_that_the_schema_asks_for() {
        let schema = json!({
            "$defs": {"level": {"type": "integer"}},
            "properties": {
                "text": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"}, "on": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}}, "sizes": {"type": "array", "items": {"type": "integer"}},
                "where": {"type": "object"}, "level": {"$ref": "#/$defs/level"}, "maybe": {"type": ["string", "null"]},
                "either": {"anyOf": [{"type": "string"}, {"type": "number"}]}, "one": {"enum": [1, 2]},
            },
        });
        for (typed, expected) in [
            (vec!["text=5"], r#"{"text":"5"}"#),
            (vec!["text=a=b \"c\""], r#"{"text":"a=b \"c\""}"#),
            (vec!["count=-5"], r#"{"count":-5}"#),
            (vec!["count=123456789012345678901234567890"], r#"{"count":123456789012345678901234567890}"#),
            (vec!["ratio=1.50", "on=true"], r#"{"ratio":1.50,"on":true}"#),
            (vec!["tags=a"], r#"{"tags":["a"]}"#),
            (vec!["tags=a", "tags=5"], r#"{"tags":["a","5"]}"#),
            (vec!["tags=[\"x\"]"], r#"{"tags":["x"]}"#),
            (vec!["sizes=1", "sizes=2"], r#"{"sizes":[1,2]}"#),
            (vec!["where={\"a\":1}"], r#"{"where":{"a":1}}"#),
            (vec!["level=3"], r#"{"level":3}"#),
            (vec!["maybe=null"], r#"{"maybe":null}"#),
            (vec!["maybe=x"], r#"{"maybe":"x"}"#),
            (vec!["either=5"], r#"{"either":5}"#),
            (vec!["either=x"], r#"{"either":"x"}"#),
            (vec!["one=2"], r#"{"one":2}"#),
            (vec!["unknown=5"], r#"{"unknown":"5"}"#),
            (vec!["unknown:=[1, {\"a\": 1.10}]"], r#"{"unknown":[1, {"a": 1.10}]}"#),
            (vec!["text="], r#"{"text":""}"#),
        ] {
            assert_eq!(filled(&typed, &schema).as_deref(), Ok(expected), "{typed:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let schema = json!({"properties": {"count": {"type": "integer"}, "sizes": {"type": "array", "items": {"type": "number"}}}});
        for (typed, said) in [
            ("count=many", "count: expected an integer, came \"many\""),
            ("count=1.5", "expected an integer"),
            ("sizes=x", "expected a number"),
            ("count", "expected NAME=VALUE"),
            ("=5", "expected NAME=VALUE"),
            ("a:={", "expected JSON"),
        ] {
            let error = filled(&[typed], &schema).unwrap_err();
            assert!(error.contains(said), "{typed}: {error}");
        }
        let round = json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}});
        assert!(filled(&["x=1"], &round).is_ok());
    }
}
