//! What the tools and prompts ask clients.

use serde_json::{Map, Value, json};

/// Properties of a schema: strings of these names.
pub fn strings(names: &[&str]) -> Value {
    let properties = names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" })));
    Value::Object(properties.collect::<Map<_, _>>())
}

fn form_with(message: &str, properties: Value, required: Vec<String>) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

/// A form of which every field is required.
pub fn form(message: &str, properties: Value) -> Value {
    let required = properties.as_object().map(|properties| properties.keys().cloned().collect());
    form_with(message, properties, required.unwrap_or_default())
}

/// A form of which no field is required.
pub fn choices(properties: Value) -> Value {
    form_with("Please check and choose", properties, Vec::new())
}

pub fn sampling(prompt: &str, max_tokens: u32) -> Value {
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": prompt } }]);
    json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": max_tokens } })
}

pub fn roots() -> Value {
    json!({ "method": "roots/list" })
}

pub fn name() -> Value {
    form("What is your name?", strings(&["name"]))
}

/// One question of each kind.
pub fn three() -> Vec<(&'static str, Value)> {
    vec![("user_name", name()), ("greeting", sampling("Generate a greeting", 50)), ("client_roots", roots())]
}

pub fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

fn titled(titles: [&str; 3]) -> Vec<Value> {
    let titled = titles.iter().zip(1..);
    titled.map(|(title, number)| json!({ "const": format!("value{number}"), "title": title })).collect()
}

pub fn enums() -> Value {
    let options = ["option1", "option2", "option3"];
    json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"]) },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": {
            "type": "array",
            "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) },
        },
    })
}
