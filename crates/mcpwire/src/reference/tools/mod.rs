//! The tools: which there are, and one plain match to run them.

mod asking;
pub(super) mod content;
mod fixtures;
mod flow;
mod input;
mod plain;
mod state;

use std::sync::LazyLock;

use mcpwire_proto::Fault;
use serde_json::{Value, json};

use super::args::{Args, excerpt};
use super::call::Call;
use super::client::Client;
use super::page::page;
use super::reply::{Refusal, Reply, lacks};
use super::shared::{Item, Shared};

static DEFINITIONS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    // The suite takes the first tool for one that needs no arguments.
    let groups = [fixtures::tools(), plain::tools(), flow::tools(), state::tools(), asking::tools(), input::tools()];
    groups.into_iter().flatten().collect()
});

pub(super) fn list(args: &Args, client: &Client, shared: &Shared) -> Reply {
    let mut tools = DEFINITIONS.clone();
    let extras = shared.extras(Item::Tool).into_iter();
    tools.extend(extras.map(|name| tool(&name, "A tool added at run time", json!({}), &[])));
    for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
        if !client.knows_structure() {
            tool.remove("outputSchema");
            tool.remove("title");
        }
        if !client.knows_audio() {
            tool.remove("annotations");
        }
    }
    page("tools", tools, args, shared.settings().page_size)
}

/// The name, if there is a tool of that name.
pub(super) fn find(name: &str, shared: &Shared) -> Result<String, Fault> {
    if is_built_in(name) || shared.has_extra(Item::Tool, name) {
        return Ok(name.to_owned());
    }
    Err(Fault::Params(format!("expected the name of a tool, came {:?}", excerpt(name))))
}

fn is_built_in(name: &str) -> bool {
    DEFINITIONS.iter().any(|tool| tool["name"] == name)
}

/// Runs a tool whose name was found.
pub(super) async fn call(call: &mut Call, name: &str, args: &Args) -> Reply {
    let result = match name {
        "echo" => plain::echo(args),
        "add" => plain::add(args),
        "big" => plain::big(args),
        "resource_link" => Ok(plain::resource_link()),
        "route" => plain::route(args),
        "slow" => flow::slow(call, args).await,
        "progress" => flow::progress(call, args).await,
        "log" => flow::log(call, args).await,
        "count" => state::count(call, args),
        "info" => Ok(state::info(call)),
        "touch" => state::touch(call, args),
        "register" => state::register(call, args),
        "unregister" => state::unregister(call, args),
        "again" => flow::again(call, args),
        "roots" => asking::roots(call).await,
        "elicit_url" => asking::elicit_url(call, args).await,
        "test_sampling" => asking::sampling(call, args).await,
        "test_elicitation" => asking::elicitation(call, args).await,
        "test_elicitation_sep1034_defaults" => asking::defaults(call).await,
        "test_elicitation_sep1330_enums" => asking::enums(call).await,
        "test_missing_capability" => asking::missing_capability(call),
        "test_simple_text" => Ok(fixtures::simple_text()),
        "test_image_content" => Ok(fixtures::image_content()),
        "test_audio_content" => Ok(fixtures::audio_content()),
        "test_embedded_resource" => Ok(fixtures::embedded_resource()),
        "test_multiple_content_types" => Ok(fixtures::multiple_content_types()),
        "test_error_handling" => Ok(fixtures::error_handling()),
        "test_tool_with_logging" => Ok(fixtures::with_logging(call).await),
        "test_tool_with_progress" => Ok(fixtures::with_progress(call).await),
        "test_logging_tool" => Ok(fixtures::with_logging(call).await),
        "test_trigger_tool_change" => Ok(fixtures::change(call, Item::Tool)),
        "test_trigger_prompt_change" => Ok(fixtures::change(call, Item::Prompt)),
        "test_reconnection" => Ok(fixtures::reconnection().await),
        "json_schema_2020_12_tool" => Ok(fixtures::json_schema(args)),
        "test_streaming_elicitation" | "test_input_required_result_elicitation" => input::elicitation(call).await,
        "test_input_required_result_sampling" => input::sampling(call).await,
        "test_input_required_result_list_roots" => input::roots(call).await,
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            input::request_state(call).await
        }
        "test_input_required_result_multiple_inputs" => input::several(call).await,
        "test_input_required_result_multi_round" => input::rounds(call).await,
        "test_input_required_result_capabilities" => input::offered(call).await,
        // Only tools that exist are called.
        extra => Ok(content::said(format!("This is the extra tool {extra}."))),
    };
    let result = match result {
        Err(Refusal::Failed(why)) => Ok(content::failed(why)),
        // Before the stateless era there was no error for it.
        Err(Refusal::Needs(skills)) if call.session.is_some() => Ok(content::failed(lacks(&skills))),
        result => result,
    };
    result.map(|result| content::suit(result, &call.client))
}

/// The definition of a tool.
fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    json!({ "name": name, "description": description, "inputSchema": schema })
}
