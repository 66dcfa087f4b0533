//! Tools that ask the client: sampling, elicitation, roots.

use mcpwire_proto::method;
use serde_json::{Value, json};

use super::{content, tool};
use crate::reference::args::Args;
use crate::reference::call::Call;
use crate::reference::reply::Reply;

const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

pub(super) fn tools() -> Vec<Value> {
    vec![
        tool("roots", "Asks the client for its roots", json!({}), &[]),
        tool(
            "elicit_url",
            "Asks the user to open a web page",
            json!({ "url": { "type": "string", "format": "uri" } }),
            &["url"],
        ),
        tool(
            "test_sampling",
            "Asks the client's model",
            json!({ "prompt": { "type": "string", "description": "The prompt to send to the model" } }),
            &["prompt"],
        ),
        tool(
            "test_elicitation",
            "Asks the user for a name and an address",
            json!({ "message": { "type": "string", "description": "The message to show to the user" } }),
            &["message"],
        ),
        tool("test_elicitation_sep1034_defaults", "Asks the user with a form that has default values", json!({}), &[]),
        tool("test_elicitation_sep1330_enums", "Asks the user with every kind of choice", json!({}), &[]),
    ]
}

/// Asks if the client declared that it can answer.
async fn ask(call: &Call, capability: &str, method: &'static str, params: Value) -> Result<Value, String> {
    if !call.client.offers(capability) {
        return Err(format!("the client does not offer {}", capability.trim_start_matches('/').replace('/', " by ")));
    }
    call.ask(method, params).await
}

pub(super) async fn roots(call: &Call) -> Value {
    match ask(call, "/roots", method::ROOTS_LIST, json!({})).await {
        Ok(answer) => content::said(format!("Roots: {}", answer["roots"])),
        Err(why) => content::failed(why),
    }
}

pub(super) async fn sampling(call: &Call, args: &Args) -> Reply {
    let messages = json!([{ "role": "user", "content": content::text(args.text("prompt")?) }]);
    let params = json!({ "messages": messages, "maxTokens": 100 });
    Ok(match ask(call, "/sampling", method::SAMPLING_CREATE_MESSAGE, params).await {
        Ok(answer) => {
            // From 2025-11-25 on the content may be a list.
            let first = answer.pointer("/content/0").unwrap_or(&answer["content"]);
            content::said(format!("LLM response: {}", first["text"].as_str().unwrap_or("no text")))
        }
        Err(why) => content::failed(why),
    })
}

/// Asks with a form. Before 2025-11-25 there was no other mode and no name for it.
async fn form(call: &Call, message: &str, schema: Value) -> Result<(String, Value), String> {
    let params = json!({ "message": message, "requestedSchema": schema });
    let answer = ask(call, "/elicitation", method::ELICITATION_CREATE, params).await?;
    let action = answer["action"].as_str().unwrap_or("none").to_owned();
    Ok((action, answer.get("content").cloned().unwrap_or_else(|| json!({}))))
}

pub(super) async fn elicitation(call: &Call, args: &Args) -> Reply {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    });
    Ok(match form(call, args.text("message")?, schema).await {
        Ok((action, answer)) => content::said(format!("User response: <action: {action}, content: {answer}>")),
        Err(why) => content::failed(why),
    })
}

async fn completed(call: &Call, message: &str, schema: Value) -> Value {
    match form(call, message, schema).await {
        Ok((action, answer)) => content::said(format!("Elicitation completed: action={action}, content={answer}")),
        Err(why) => content::failed(why),
    }
}

pub(super) async fn defaults(call: &Call) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        },
        "required": [],
    });
    completed(call, "Please review and update the form fields with defaults", schema).await
}

pub(super) async fn enums(call: &Call) -> Value {
    let titled = |kind: &str| {
        json!([
            { "const": "value1", "title": format!("First {kind}") },
            { "const": "value2", "title": format!("Second {kind}") },
            { "const": "value3", "title": format!("Third {kind}") },
        ])
    };
    let plain = json!(["option1", "option2", "option3"]);
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "description": "Select one option", "enum": plain },
            "titledSingle": {
                "type": "string", "description": "Select one option with titles", "oneOf": titled("Option"),
            },
            "legacyEnum": {
                "type": "string",
                "description": "Select one option, with titles as before 2025-11-25",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "description": "Select several options",
                "minItems": 1,
                "maxItems": 3,
                "items": { "type": "string", "enum": plain },
            },
            "titledMulti": {
                "type": "array",
                "description": "Select several options with titles",
                "minItems": 1,
                "maxItems": 3,
                "items": { "anyOf": titled("Choice") },
            },
        },
        "required": [],
    });
    completed(call, "Please select options from the enum fields", schema).await
}

/// Asks for a visit to a web page, and tells when the server takes it as done (2025-11-25, client/elicitation).
pub(super) async fn elicit_url(call: &Call, args: &Args) -> Reply {
    let id = format!("{}-{}", call.shared.instance(), call.shared.calls());
    let params = json!({
        "mode": "url",
        "message": "Please open this page",
        "url": args.text("url")?,
        "elicitationId": id,
    });
    Ok(match ask(call, "/elicitation/url", method::ELICITATION_CREATE, params).await {
        Ok(answer) if answer["action"] == "accept" => {
            call.notify(ELICITATION_COMPLETE, json!({ "elicitationId": id })).await;
            content::said("The user opened the page.")
        }
        Ok(answer) => content::said(format!("The user did not open the page: {}", answer["action"])),
        Err(why) => content::failed(why),
    })
}
