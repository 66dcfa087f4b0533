//! The prompts and resources, and what contents are made of.

use rmcp::ErrorData;
use serde_json::{Value, json};

use crate::call::{Call, Stop};
use crate::questions::{form, strings};

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// One sample of silence.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

pub fn text(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

pub fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

pub fn audio() -> Value {
    json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" })
}

pub fn embedded(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "text": text } })
}

const RESOURCES: [(&str, &str); 3] =
    [("static-text", "text/plain"), ("static-binary", "image/png"), ("watched-resource", "text/plain")];

pub fn resources() -> Vec<Value> {
    let listed = RESOURCES.iter();
    listed.map(|(name, mime)| json!({ "uri": format!("test://{name}"), "name": name, "mimeType": mime })).collect()
}

pub fn template() -> Value {
    json!({ "uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json" })
}

/// The contents of a resource.
pub fn resource(uri: &str) -> Option<Value> {
    let mut contents = match uri.strip_prefix("test://")? {
        "static-text" => {
            json!({ "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        "static-binary" => json!({ "mimeType": "image/png", "blob": PNG }),
        "watched-resource" => json!({ "mimeType": "text/plain", "text": "Watched resource content." }),
        other => {
            let id = other.strip_prefix("template/")?.strip_suffix("/data")?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "mimeType": "application/json", "text": data.to_string() })
        }
    };
    contents["uri"] = json!(uri);
    Some(contents)
}

/// The names of the prompts, and of their arguments.
const PROMPTS: [(&str, &[&str]); 5] = [
    ("test_simple_prompt", &[]),
    ("test_prompt_with_arguments", &["arg1", "arg2"]),
    ("test_prompt_with_embedded_resource", &["resourceUri"]),
    ("test_prompt_with_image", &[]),
    ("test_input_required_result_prompt", &[]),
];

pub fn prompts(one_added: bool) -> Vec<Value> {
    let added: Option<(&str, &[&str])> = one_added.then_some(("test_dynamic_item", &[]));
    let described = |(name, arguments): (&str, &[&str])| {
        let argument = |name| json!({ "name": name, "description": format!("the {name}"), "required": true });
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        json!({ "name": name, "description": name.replace('_', " "), "arguments": arguments })
    };
    PROMPTS.into_iter().chain(added).map(described).collect()
}

/// The contents of the messages of a prompt.
pub async fn prompt(name: &str, arguments: &Value, call: &mut Call<'_>) -> Result<Vec<Value>, Stop> {
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
    Ok(match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (arg1, arg2) = (argument("arg1"), argument("arg2"));
            vec![text(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            embedded(argument("resourceUri"), "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
        "test_input_required_result_prompt" => {
            let question = form("What context should the prompt use?", strings(&["context"]));
            let answers = call.ask(&[("user_context", question)]).await?;
            let context = answers["user_context"]["content"]["context"].as_str().unwrap_or("none");
            vec![text(format!("Prompt with context: {context}"))]
        }
        _ => return Err(ErrorData::invalid_params(format!("no prompt {name}"), None).into()),
    })
}
