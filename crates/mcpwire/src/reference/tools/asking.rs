//! Tools that ask the client: sampling, elicitation, roots.

use mcpwire_proto::method;
use serde_json::{Value, json};

use super::{content, tool};
use crate::reference::args::Args;
use crate::reference::call::Call;
use crate::reference::client::Skill;
use crate::reference::question::Question;
use crate::reference::reply::{Refusal, Reply};

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
        tool("test_missing_capability", "Answers only clients that offer sampling", json!({}), &[]),
        tool("test_elicitation_sep1330_enums", "Asks the user with every kind of choice", json!({}), &[]),
    ]
}

pub(super) async fn roots(call: &mut Call) -> Reply {
    let answer = call.ask(Question::roots("roots")).await?;
    Ok(content::said(format!("Roots: {}", answer["roots"])))
}

pub(super) async fn sampling(call: &mut Call, args: &Args) -> Reply {
    let answer = call.ask(Question::sampling("sampling", args.text("prompt")?, 100)).await?;
    Ok(content::said(format!("LLM response: {}", sampled(&answer))))
}

/// The text of a sampling answer. From 2025-11-25 on the content may be a list.
pub(super) fn sampled(answer: &Value) -> &str {
    let first = answer.pointer("/content/0").unwrap_or(&answer["content"]);
    first["text"].as_str().unwrap_or("no text")
}

/// Answers only those who could be asked.
pub(super) fn missing_capability(call: &Call) -> Reply {
    call.need([Skill::Sampling])?;
    Ok(content::said("The client offers sampling."))
}

async fn form(call: &mut Call, message: &str, schema: Value) -> Result<(String, Value), Refusal> {
    let answer = call.ask(Question::form("form", message, schema)).await?;
    let action = answer["action"].as_str().unwrap_or("none").to_owned();
    Ok((action, answer.get("content").cloned().unwrap_or_else(|| json!({}))))
}

pub(super) async fn elicitation(call: &mut Call, args: &Args) -> Reply {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    });
    let (action, answer) = form(call, args.text("message")?, schema).await?;
    Ok(content::said(format!("User response: <action: {action}, content: {answer}>")))
}

async fn completed(call: &mut Call, message: &str, schema: Value) -> Reply {
    let (action, answer) = form(call, message, schema).await?;
    Ok(content::said(format!("Elicitation completed: action={action}, content={answer}")))
}

pub(super) async fn defaults(call: &mut Call) -> Reply {
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

pub(super) async fn enums(call: &mut Call) -> Reply {
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

/// Asks for a visit to a web page. In a session it tells when it takes that as done (2025-11-25, client/elicitation).
pub(super) async fn elicit_url(call: &mut Call, args: &Args) -> Reply {
    let mut question = Question::page("page", "Please open this page", args.text("url")?);
    let id = format!("{}-{}", call.shared.instance(), call.shared.calls());
    if call.session.is_some() {
        question.params["elicitationId"] = json!(id);
    }
    let answer = call.ask(question).await?;
    if answer["action"] != "accept" {
        return Ok(content::said(format!("The user did not open the page: {}", answer["action"])));
    }
    if call.session.is_some() {
        call.notify(method::ELICITATION_COMPLETE, json!({ "elicitationId": id })).await;
    }
    Ok(content::said("The user opened the page."))
}
