//! Tools and prompts of the target, as Orchestra lists and calls them.

use mcpwire_proto::method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::caller::{Caller, Failed};
use super::content::{failure, failure_code, response, shown};
use super::orchestra::Client;
use crate::transport::quic::proto::{
    ListPromptsResponse, ListToolsResponse, PromptArgument, PromptContent, PromptDefinition, PromptGetRequest,
    PromptGetResponse, PromptMessage, Response, Struct, ToolDefinition, ToolRequest, ToolResponse,
};
use crate::transport::quic::value;

/// How many pages of one list are asked for.
const MOST_PAGES: usize = 1000;

/// All items of a list; none if the server does not have that kind.
pub(super) async fn list<T: DeserializeOwned>(session: &Caller, method: &str, kind: &str) -> Result<Vec<T>, Failed> {
    let mut items = Vec::new();
    let mut params = json!({});
    for _ in 0..if session.offers(kind) { MOST_PAGES } else { 0 } {
        let mut page = session.request(method, params).await?;
        if let Some(Value::Array(found)) = page.get_mut(kind).map(Value::take) {
            // One that does not look as it should costs only itself.
            items.extend(found.into_iter().filter_map(|item| serde_json::from_value(item).ok()));
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    Ok(items)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    input_schema: Map<String, Value>,
}

pub(super) async fn list_tools(client: &Client) -> Response {
    let found = async { list::<Tool>(&*client.session().await?, method::TOOLS_LIST, "tools").await };
    match found.await {
        Ok(tools) => Response::ListTools(ListToolsResponse { tools: tools.into_iter().map(tool).collect() }),
        Err(failed) => Response::ToolCall(failure("list_tools_error", failed.to_string())),
    }
}

fn tool(Tool { name, description, input_schema }: Tool) -> ToolDefinition {
    // A schema that cannot be told is left out; the tool can be called all the same.
    let input_schema = value::to_struct(input_schema)
        .inspect_err(|fault| tracing::warn!(target: "quic", "the schema of tool {name} is left out: {fault}"))
        .ok();
    ToolDefinition { name, description, input_schema }
}

/// The parameters of a call.
pub(super) fn call_params(name: &str, arguments: Option<Struct>) -> Value {
    json!({ "name": name, "arguments": value::to_object(arguments.unwrap_or_default()) })
}

pub(super) async fn call_tool(client: &Client, call: ToolRequest) -> Response {
    let params = call_params(&call.tool_name, call.arguments);
    let answered = async {
        let session = client.session().await?;
        let mut under_way = session.start(method::TOOLS_CALL, params, false).await?;
        under_way.answer().await
    };
    Response::ToolCall(match answered.await {
        Ok(answer) => response(answer.payload().unwrap_or("{}")),
        Err(failed) => refused(client, &call.tool_name, &failed).await,
    })
}

/// What a caller is told whose tool could not be called: servers do not say alike that there is none of that name.
pub(super) async fn refused(client: &Client, name: &str, failed: &Failed) -> ToolResponse {
    if let (Failed::Refused { .. }, Ok(session)) = (failed, client.session().await)
        && let Ok(tools) = list::<Tool>(&session, method::TOOLS_LIST, "tools").await
        && !tools.iter().any(|tool| tool.name == name)
    {
        return failure("tool_not_found", format!("tool {name:?} not found"));
    }
    failure(failure_code(failed), failed.to_string())
}

#[derive(Deserialize)]
struct Prompt {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    arguments: Vec<Argument>,
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: bool,
}

pub(super) async fn list_prompts(client: &Client) -> Response {
    let found = async { list::<Prompt>(&*client.session().await?, method::PROMPTS_LIST, "prompts").await };
    match found.await {
        Ok(prompts) => {
            Response::ListPrompts(ListPromptsResponse { prompts: prompts.into_iter().map(offered).collect() })
        }
        Err(failed) => Response::ToolCall(failure("list_prompts_error", failed.to_string())),
    }
}

fn offered(prompt: Prompt) -> PromptDefinition {
    let arguments = prompt.arguments.into_iter().map(|argument| PromptArgument {
        name: argument.name,
        description: argument.description,
        required: argument.required,
    });
    PromptDefinition { name: prompt.name, description: prompt.description, arguments: arguments.collect() }
}

/// A failure is told as orchestrators do: a description without messages.
pub(super) async fn prompt(client: &Client, request: PromptGetRequest) -> Response {
    let params = json!({ "name": request.prompt_name, "arguments": request.arguments });
    let answered = async { client.session().await?.request(method::PROMPTS_GET, params).await };
    Response::PromptGet(match answered.await {
        Ok(result) => {
            let messages = result["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
            let description = result["description"].as_str().unwrap_or_default().to_owned();
            PromptGetResponse { description, messages: messages.iter().map(message).collect() }
        }
        Err(failed) => PromptGetResponse { description: failed.to_string(), messages: Vec::new() },
    })
}

fn message(said: &Value) -> PromptMessage {
    let content = PromptContent { r#type: "text".to_owned(), text: shown(&said["content"]) };
    PromptMessage { role: said["role"].as_str().unwrap_or_default().to_owned(), content: Some(content) }
}
