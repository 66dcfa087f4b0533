//! Tools and prompts as lists, and single prompts. Orchestrators ask their plugins in any order and keep what two of them
//! offer under one name: here lists are sorted, and the first of a name counts.

use std::collections::HashMap;
use std::time::Duration;

use mcpwire_proto::{Id, Message};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Orchestrator;
use super::methods::params;
use super::reply::{Refusal, Stop, no_answer, unexpected};
use crate::transport::quic::proto::{
    ListPromptsRequest, ListToolsRequest, PromptDefinition, PromptGetRequest, Request, Response, ToolDefinition,
};
use crate::transport::quic::value;

/// How long a list may take that only serves to tell what became of a call. An orchestrator asks all its plugins for it,
/// dead ones included.
const OFFERS_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn tools(orchestrator: &Orchestrator, id: &Id) -> Result<Value, Stop> {
    let request = Request::ListTools(ListToolsRequest {});
    let mut tools = match orchestrator.call("lt", id, request).await.map_err(no_answer("list_tools"))? {
        Response::ListTools(list) => list.tools,
        other => return Err(unexpected("list_tools", other).into()),
    };
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools.dedup_by(|later, first| later.name == first.name);
    Ok(json!({ "tools": tools.into_iter().map(tool).collect::<Vec<_>>() }))
}

/// Whether somebody offers a tool of this name; `None` if the orchestrator does not say, at least not soon.
pub(super) async fn offers_tool(orchestrator: &Orchestrator, id: &Id, name: &str) -> Option<bool> {
    let request = Request::ListTools(ListToolsRequest {});
    match timeout(OFFERS_WITHIN, orchestrator.call("lt", id, request)).await {
        Ok(Ok(Response::ListTools(list))) => Some(list.tools.iter().any(|tool| tool.name == name)),
        _ => None,
    }
}

fn tool(definition: ToolDefinition) -> Value {
    let mut schema = value::to_object(definition.input_schema.unwrap_or_default());
    // MCP asks for it, and clients drop the whole list if it is missing.
    schema.entry("type").or_insert_with(|| json!("object"));
    let mut tool = json!({ "name": definition.name, "inputSchema": schema });
    describe(&mut tool, definition.description);
    tool
}

pub(super) async fn prompts(orchestrator: &Orchestrator, id: &Id) -> Result<Value, Stop> {
    let request = Request::ListPrompts(ListPromptsRequest {});
    let mut prompts = match orchestrator.call("lp", id, request).await.map_err(no_answer("list_prompts"))? {
        Response::ListPrompts(list) => list.prompts,
        other => return Err(unexpected("list_prompts", other).into()),
    };
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    prompts.dedup_by(|later, first| later.name == first.name);
    Ok(json!({ "prompts": prompts.into_iter().map(offered).collect::<Vec<_>>() }))
}

fn offered(definition: PromptDefinition) -> Value {
    let arguments = definition.arguments.into_iter().map(|argument| {
        let mut shown = json!({ "name": argument.name, "required": argument.required });
        describe(&mut shown, argument.description);
        shown
    });
    let mut prompt = json!({ "name": definition.name, "arguments": arguments.collect::<Vec<_>>() });
    describe(&mut prompt, definition.description);
    prompt
}

fn describe(item: &mut Value, description: String) {
    if !description.is_empty() {
        item["description"] = description.into();
    }
}

pub(super) async fn prompt(orchestrator: &Orchestrator, id: &Id, message: &Message) -> Result<Value, Stop> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        name: String,
        #[serde(default)]
        arguments: HashMap<String, String>,
    }
    let Params { name, arguments } = params(message)?;
    if name.is_empty() {
        return Err(Refusal::missing("name").into());
    }
    let request = Request::PromptGet(PromptGetRequest { prompt_name: name, arguments });
    let prompt = match orchestrator.call("pg", id, request).await.map_err(no_answer("prompt_get"))? {
        Response::PromptGet(prompt) => prompt,
        other => return Err(unexpected("prompt_get", other).into()),
    };
    if prompt.messages.is_empty() {
        // This is how orchestrators tell that they could not get it.
        return Err(Refusal::internal(format!("orchestrator prompt_get failed: {}", prompt.description)).into());
    }
    let messages = prompt.messages.into_iter().map(|message| {
        let text = message.content.unwrap_or_default().text;
        json!({ "role": message.role, "content": { "type": "text", "text": text } })
    });
    let mut result = json!({ "messages": messages.collect::<Vec<_>>() });
    describe(&mut result, prompt.description);
    Ok(result)
}
