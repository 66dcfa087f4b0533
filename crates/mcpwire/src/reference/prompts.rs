//! Prompts: without and with arguments, with an embedded resource, with an image, one that asks, and those added at run time.

use mcpwire_proto::Fault;
use serde_json::{Value, json};

use super::args::{Args, excerpt};
use super::call::Call;
use super::page::page;
use super::question::Question;
use super::reply::Reply;
use super::shared::{Item, Shared};
use super::tools::content::{image, resource, text};

pub(super) const SIMPLE: &str = "test_simple_prompt";
pub(super) const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";
pub(super) const WITH_RESOURCE: &str = "test_prompt_with_embedded_resource";
pub(super) const WITH_IMAGE: &str = "test_prompt_with_image";
const ASKING: &str = "test_input_required_result_prompt";

pub(super) fn list(args: &Args, shared: &Shared) -> Reply {
    let mut prompts = vec![
        json!({ "name": SIMPLE, "description": "A prompt without arguments" }),
        json!({
            "name": WITH_ARGUMENTS,
            "description": "A prompt with two arguments",
            "arguments": [
                { "name": "arg1", "description": "First test argument", "required": true },
                { "name": "arg2", "description": "Second test argument", "required": true },
            ],
        }),
        json!({
            "name": WITH_RESOURCE,
            "description": "A prompt that embeds a resource",
            "arguments": [
                { "name": "resourceUri", "description": "URI of the resource to embed", "required": true },
            ],
        }),
        json!({ "name": WITH_IMAGE, "description": "A prompt with an image" }),
        json!({ "name": ASKING, "description": "A prompt that asks the user for its context" }),
    ];
    let extras = shared.extras(Item::Prompt).into_iter();
    prompts.extend(extras.map(|name| json!({ "name": name, "description": "A prompt added at run time" })));
    page("prompts", prompts, args, shared.settings().page_size)
}

pub(super) fn exists(name: &str) -> bool {
    [SIMPLE, WITH_ARGUMENTS, WITH_RESOURCE, WITH_IMAGE, ASKING].contains(&name)
}

/// Answers `prompts/get`.
pub(super) async fn prompt(call: &mut Call, params: &Args) -> Reply {
    let args = params.object("arguments")?;
    let messages = match params.text("name")? {
        SIMPLE => vec![user(text("This is a simple prompt for testing."))],
        WITH_ARGUMENTS => {
            let (arg1, arg2) = (args.text("arg1")?, args.text("arg2")?);
            vec![user(text(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")))]
        }
        WITH_RESOURCE => vec![
            user(resource(args.text("resourceUri")?, "text/plain", "Embedded resource content for testing.")),
            user(text("Please process the embedded resource above.")),
        ],
        WITH_IMAGE => vec![user(image()), user(text("Please analyze the image above."))],
        ASKING => {
            let question = "What context should the prompt use?";
            let answer = call.ask(Question::field("user_context", question, "context", "string")).await?;
            let context = answer.pointer("/content/context").and_then(Value::as_str).unwrap_or("none");
            vec![user(text(format!("Prompt with context: {context}")))]
        }
        name if call.shared.has_extra(Item::Prompt, name) => {
            vec![user(text(format!("This is the extra prompt {name}.")))]
        }
        other => return Err(Fault::Params(format!("expected the name of a prompt, came {:?}", excerpt(other))).into()),
    };
    Ok(json!({ "messages": messages }))
}

fn user(content: Value) -> Value {
    json!({ "role": "user", "content": content })
}
