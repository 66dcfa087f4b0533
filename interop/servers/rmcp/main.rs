//! A server on the Rust SDK 3.x with everything that the conformance suite's scenarios of 2026-07-28 ask a server for, and
//! those of 2025-11-25: on stdin and stdout, for clients of both eras.

// Sampling, roots and logging are deprecated, and still asked for by the suite.
#![allow(deprecated)]

mod call;
mod lists;
mod questions;
mod tools;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, RequestStateCodec, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext, SubscriptionSink};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call::{Call, Stop};

/// The server, of one connection.
pub struct Fixture {
    codec: RequestStateCodec,
    state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    tool_added: bool,
    prompt_added: bool,
    /// Resources that a client of the session era watches.
    watched: HashSet<String>,
    /// The subscriptions of clients of the stateless era.
    sinks: Vec<SubscriptionSink>,
}

impl Fixture {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A result that is written as JSON; for clients of the session era, the SDK takes its type out.
fn result<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    result["resultType"] = json!("complete");
    typed(result)
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let info = json!({
            "protocolVersion": "2025-11-25",
            "serverInfo": { "name": "fixture-rmcp", "version": "1.0.0" },
            "capabilities": {
                "tools": { "listChanged": true },
                "resources": { "subscribe": true, "listChanged": true },
                "prompts": { "listChanged": true },
                "logging": {},
                "completions": {},
            },
        });
        typed(info).unwrap_or_default()
    }

    async fn list_tools(&self, _: Page, _: Context) -> Result<ListToolsResult, ErrorData> {
        result(json!({ "tools": tools::list(self.state().tool_added) }))
    }

    async fn call_tool(&self, params: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let mut call = Call::new(self, context, params.input_responses, params.request_state.as_deref())?;
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let answer = match tools::run(&params.name, &arguments, &mut call).await {
            Ok(content) => json!({ "content": content }),
            Err(Stop::Tool(error)) => json!({ "content": [lists::text(error)], "isError": true }),
            Err(Stop::Input(wanted)) => return Ok(wanted.into()),
            Err(Stop::Request(error)) => return Err(error),
        };
        result::<CallToolResult>(answer).map(Into::into)
    }

    async fn list_prompts(&self, _: Page, _: Context) -> Result<ListPromptsResult, ErrorData> {
        result(json!({ "prompts": lists::prompts(self.state().prompt_added) }))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let mut call = Call::new(self, context, params.input_responses, params.request_state.as_deref())?;
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let contents = match lists::prompt(&params.name, &arguments, &mut call).await {
            Ok(contents) => contents,
            Err(Stop::Input(wanted)) => return Ok(wanted.into()),
            Err(Stop::Request(error)) => return Err(error),
            Err(Stop::Tool(error)) => return Err(ErrorData::internal_error(error, None)),
        };
        let messages = contents.iter().map(|content| json!({ "role": "user", "content": content }));
        result::<GetPromptResult>(json!({ "messages": messages.collect::<Vec<_>>() })).map(Into::into)
    }

    async fn list_resources(&self, _: Page, _: Context) -> Result<ListResourcesResult, ErrorData> {
        result(json!({ "resources": lists::resources() }))
    }

    async fn list_resource_templates(&self, _: Page, _: Context) -> Result<ListResourceTemplatesResult, ErrorData> {
        result(json!({ "resourceTemplates": [lists::template()] }))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(contents) = lists::resource(&params.uri) else {
            return Err(ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": params.uri }))));
        };
        result::<ReadResourceResult>(json!({ "contents": [contents] })).map(Into::into)
    }

    async fn complete(&self, params: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        let mut values = vec!["testValue1", "testValue2"];
        values.retain(|value| value.starts_with(&params.argument.value));
        result(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, params: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.state().watched.insert(params.uri);
        Ok(())
    }

    async fn unsubscribe(&self, params: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.state().watched.remove(&params.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.state().sinks.push(context.sink().clone());
        context.cancelled().await;
        self.state().sinks.retain(|sink| sink.id() != context.sink().id());
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let codec = RequestStateCodec::try_new(b"interop-fixture-key-of-at-least-32-bytes")?;
    let fixture = Fixture { codec, state: Mutex::default() };
    fixture.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
