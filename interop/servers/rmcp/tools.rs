//! The tools.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::call::{Call, Stop};
use crate::lists::{audio, embedded, image, text};
use crate::questions::{choices, defaults, enums, form, name, roots, sampling, strings, three};

const STEP: Duration = Duration::from_millis(50);

/// Names and descriptions of the tools without arguments.
const PLAIN: [(&str, &str); 24] = [
    ("test_simple_text", "Answers with a text"),
    ("test_image_content", "Answers with an image"),
    ("test_audio_content", "Answers with a sound"),
    ("test_embedded_resource", "Answers with a resource"),
    ("test_multiple_content_types", "Answers with a text, an image and a resource"),
    ("test_tool_with_logging", "Logs three messages"),
    ("test_logging_tool", "Logs three messages"),
    ("test_tool_with_progress", "Reports progress three times"),
    ("test_error_handling", "Always fails"),
    ("test_missing_capability", "Answers only clients with a model"),
    ("test_elicitation_sep1034_defaults", "Asks the user, with defaults"),
    ("test_elicitation_sep1330_enums", "Asks the user, with choices"),
    ("test_reconnection", "Takes a moment"),
    ("test_streaming_elicitation", "Asks the user"),
    ("test_input_required_result_elicitation", "Asks the user"),
    ("test_input_required_result_sampling", "Asks the model"),
    ("test_input_required_result_list_roots", "Asks for the roots"),
    ("test_input_required_result_request_state", "Asks to confirm"),
    ("test_input_required_result_tampered_state", "Asks to confirm"),
    ("test_input_required_result_multiple_inputs", "Asks three things at once"),
    ("test_input_required_result_multi_round", "Asks twice"),
    ("test_input_required_result_capabilities", "Asks what the client can answer"),
    ("test_trigger_tool_change", "Adds a tool, or takes it away"),
    ("test_trigger_prompt_change", "Adds a prompt, or takes it away"),
];

fn described(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "description": description, "inputSchema": schema })
}

fn taking(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

fn every_keyword() -> Value {
    let mut properties = strings(&["name", "phone", "email"]);
    properties["address"] = json!({ "$ref": "#/$defs/address" });
    properties["contactMethod"] = json!({ "type": "string", "enum": ["phone", "email"] });
    let address = json!({ "$anchor": "addressDef", "type": "object", "properties": strings(&["street", "city"]) });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": address },
        "properties": properties,
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn in_headers() -> Value {
    taking(json!({
        "region": { "type": "string", "x-mcp-header": "Region" },
        "priority": { "type": "integer", "x-mcp-header": "Priority" },
        "query": { "type": "string" },
    }))
}

pub fn list(one_added: bool) -> Vec<Value> {
    let plain = PLAIN.iter().map(|(name, description)| described(name, description, taking(json!({}))));
    let mut tools: Vec<Value> = plain.collect();
    tools.extend([
        described("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", every_keyword()),
        described("route", "Has arguments that go into headers", in_headers()),
        described("test_sampling", "Asks the client's model", taking(strings(&["prompt"]))),
        described("test_elicitation", "Asks the user", taking(strings(&["message"]))),
        described("touch", "Changes the watched resource", taking(json!({}))),
        described("echo", "Returns its argument", taking(strings(&["message"]))),
    ]);
    if one_added {
        tools.push(described("test_dynamic_item", "Added at run time", taking(json!({}))));
    }
    tools
}

pub async fn run(tool: &str, arguments: &Value, call: &mut Call<'_>) -> Result<Vec<Value>, Stop> {
    Ok(match tool {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![image()],
        "test_audio_content" => vec![audio()],
        "test_embedded_resource" => {
            vec![embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            image(),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        "test_error_handling" => return Err(Stop::Tool("This tool intentionally returns an error for testing")),
        "json_schema_2020_12_tool" | "route" => vec![text(arguments.to_string())],
        "echo" => vec![text(argument(arguments, "message")?)],
        "test_missing_capability" => {
            if !call.offers(&sampling("", 1)) {
                let required = json!({ "requiredCapabilities": { "sampling": {} } });
                let code = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
                return Err(ErrorData::new(code, "the client has no model", Some(required)).into());
            }
            vec![text("The client has a model.")]
        }
        "test_trigger_tool_change" | "test_trigger_prompt_change" | "touch" => vec![change(tool, call).await?],
        "test_tool_with_logging" | "test_logging_tool" | "test_tool_with_progress" | "test_reconnection" => {
            vec![take_time(tool, call).await?]
        }
        _ => vec![text(ask(tool, arguments, call).await?)],
    })
}

fn argument<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, Stop> {
    let missing = || ErrorData::invalid_params(format!("no argument {name}"), None).into();
    arguments[name].as_str().ok_or_else(missing)
}

/// The tools that change something.
async fn change(tool: &str, call: &Call<'_>) -> Result<Value, Stop> {
    match tool {
        "test_trigger_tool_change" => {
            let notification = json!({ "method": "notifications/tools/list_changed" });
            call.change(notification, |state| state.tool_added = !state.tool_added).await?;
        }
        "test_trigger_prompt_change" => {
            let notification = json!({ "method": "notifications/prompts/list_changed" });
            call.change(notification, |state| state.prompt_added = !state.prompt_added).await?;
        }
        _ => {
            let params = json!({ "uri": "test://watched-resource" });
            call.change(json!({ "method": "notifications/resources/updated", "params": params }), |_| {}).await?;
            return Ok(text("touched"));
        }
    }
    Ok(text("The list has changed."))
}

/// The tools that send something while they run.
async fn take_time(tool: &str, call: &Call<'_>) -> Result<Value, Stop> {
    match tool {
        "test_reconnection" => {
            sleep(10 * STEP).await;
            Ok(text("Reconnection test completed successfully."))
        }
        "test_tool_with_progress" => {
            for progress in [0.0, 50.0, 100.0] {
                call.progress(progress).await?;
                sleep(STEP).await;
            }
            Ok(text("Tool with progress executed successfully"))
        }
        _ => {
            for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                call.log(line).await?;
                sleep(STEP).await;
            }
            Ok(text("Tool with logging executed successfully"))
        }
    }
}

/// The tools that ask the client something.
async fn ask(tool: &str, arguments: &Value, call: &mut Call<'_>) -> Result<String, Stop> {
    Ok(match tool {
        "test_sampling" => {
            let answers = call.ask(&[("model", sampling(argument(arguments, "prompt")?, 100))]).await?;
            format!("LLM response: {}", sampled(&answers["model"]))
        }
        "test_elicitation" => {
            let question = form(argument(arguments, "message")?, strings(&["username", "email"]));
            let user = &call.ask(&[("user", question)]).await?["user"];
            format!("User response: <action: {}, content: {}>", string(&user["action"]), user["content"])
        }
        "test_elicitation_sep1034_defaults" => choose(defaults(), call).await?,
        "test_elicitation_sep1330_enums" => choose(enums(), call).await?,
        "test_streaming_elicitation" | "test_input_required_result_elicitation" => {
            let answers = call.ask(&[("user_name", name())]).await?;
            format!("Hello, {}!", field(&answers["user_name"], "name"))
        }
        "test_input_required_result_sampling" => {
            let question = sampling("What is the capital of France?", 100);
            let answers = call.ask(&[("capital_question", question)]).await?;
            format!("The model said: {}", sampled(&answers["capital_question"]))
        }
        "test_input_required_result_list_roots" => {
            let answers = call.ask(&[("client_roots", roots())]).await?;
            format!("Roots: {}", answers["client_roots"]["roots"])
        }
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            let question = form("Please confirm", json!({ "ok": { "type": "boolean" } }));
            let answers = call.ask_sealed(&[("confirm", question)]).await?;
            format!("state-ok: {}", answers["confirm"]["content"]["ok"])
        }
        "test_input_required_result_multiple_inputs" => {
            let answers = call.ask_sealed(&three()).await?;
            format!("{} {}", sampled(&answers["greeting"]), field(&answers["user_name"], "name"))
        }
        "test_input_required_result_multi_round" => {
            let (first, second) = ("Step 1: What is your name?", "Step 2: What is your favorite color?");
            let one = call.ask_sealed(&[("step1", form(first, strings(&["name"])))]).await?;
            let two = call.ask(&[("step2", form(second, strings(&["color"])))]).await?;
            format!("{} likes {}.", field(&one["step1"], "name"), field(&two["step2"], "color"))
        }
        "test_input_required_result_capabilities" => {
            let mut questions = three();
            questions.retain(|(_, question)| call.offers(question));
            format!("The client answered {} questions.", call.ask(&questions).await?.len())
        }
        _ => return Err(ErrorData::invalid_params(format!("no tool {tool}"), None).into()),
    })
}

async fn choose(properties: Value, call: &mut Call<'_>) -> Result<String, Stop> {
    let user = &call.ask(&[("user", choices(properties))]).await?["user"];
    let content = user.get("content").unwrap_or(&Value::Null);
    Ok(format!("Elicitation completed: action={}, content={content}", string(&user["action"])))
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn field<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer["content"][name].as_str().unwrap_or("nobody")
}

fn sampled(answer: &Value) -> &str {
    let content = &answer["content"];
    string(&content.get(0).unwrap_or(content)["text"])
}
