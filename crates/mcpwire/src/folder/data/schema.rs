//! Whether a value fits a JSON Schema, as far as records need it: types, required fields, enumerations and bounds.
//!
//! Keywords that are not known are passed over, as the specification has it.

use serde_json::Value;

/// How deep a value is looked into.
const DEEPEST: usize = 32;

/// What does not fit: where, and why.
pub(super) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, value, "", 0, &mut faults);
    faults
}

fn check(schema: &Value, value: &Value, at: &str, depth: usize, faults: &mut Vec<String>) {
    if depth > DEEPEST {
        return;
    }
    let mut fault = |text: String| faults.push(if at.is_empty() { text } else { format!("{at}: {text}") });
    if let Some(kinds) = schema.get("type")
        && !is_a(kinds, value)
    {
        return fault(format!("expected {}, came {}", said(kinds), kind(value)));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        fault(format!("expected one of {}, came {value}", Value::Array(allowed.clone())));
    }
    if let Some(constant) = schema.get("const")
        && constant != value
    {
        fault(format!("expected {constant}, came {value}"));
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let outside = |size: f64, least: &str, most: &str| {
        bound(least).is_some_and(|least| size < least) || bound(most).is_some_and(|most| size > most)
    };
    if let Some(number) = value.as_f64().filter(|number| outside(*number, "minimum", "maximum")) {
        fault(format!("{number} is out of bounds"));
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as f64;
        if outside(length, "minLength", "maxLength") {
            fault(format!("a text of {length} characters is too short or too long"));
        }
    }
    if let Some(object) = value.as_object() {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                fault(format!("{name} is missing"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, value) in object {
            match properties.and_then(|properties| properties.get(name)) {
                Some(schema) => check(schema, value, &join(at, name), depth + 1, faults),
                None if closed => faults.push(format!("{}: not in the schema", join(at, name))),
                None => {}
            }
        }
    }
    if let (Some(members), Some(schema)) = (value.as_array(), schema.get("items")) {
        for (number, member) in members.iter().enumerate() {
            check(schema, member, &format!("{at}[{number}]"), depth + 1, faults);
        }
    }
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

fn is_a(kinds: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        name => kind(value) == name,
    };
    match kinds {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

fn said(kinds: &Value) -> String {
    match kinds {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let schema = json!({
            "type": "object", "required": ["id", "tags"], "additionalProperties": false,
            "properties": {
                "id": {"type": "string", "minLength": 1}, "level": {"type": "integer", "maximum": 5},
                "tags": {"type": "array", "items": {"enum": ["a", "b"]}}, "boss": {"type": ["string", "null"]},
            },
        });
        assert_eq!(faults(&schema, &json!({"id": "x", "level": 3, "tags": ["a"], "boss": null})), [""; 0]);
        let told = faults(&schema, &json!({"id": "", "level": 7.5, "boss": 1, "extra": 1, "tags": ["c"]}));
        let expected = ["id", "level", "boss", "extra", "tags[0]"];
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for place in expected {
            assert!(told.iter().any(|fault| fault.starts_with(place)), "{place}: {told:?}");
        }
        assert_eq!(faults(&schema, &json!({"id": "x"})), ["tags is missing"]);
        assert_eq!(faults(&schema, &json!([])), ["expected object, came array"]);
    }
}
