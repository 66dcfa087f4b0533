//! Calling a tool: at once, or in pieces that are told as progress when the client wants to hear of it and the tool can.

use std::sync::Arc;

use mcpwire_proto::{Failure, Id, Lane, Message, meta, method};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::methods::params;
use super::reply::{Refusal, Stop, no_answer, unexpected};
use super::{EVERY_TOOL, Orchestrator, Streaming, lists, request_id};
use crate::transport::quic::call::{self, Answers};
use crate::transport::quic::frame::LONGEST;
use crate::transport::quic::proto::{
    Kind, Request, Response, StreamCancel, StreamChunk, StreamEnd, StreamStart, Struct, ToolRequest, ToolResponse,
};
use crate::transport::quic::{CALLER, MCP_RESULT, PROGRESS_TYPE, RESULT_TYPE, TEXT_TYPE, uuid, value};

/// The code of an error that says that nothing was called.
const NO_SUCH_TOOL: &str = "tool_not_found";

#[derive(Deserialize)]
struct Params {
    #[serde(default)]
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

pub(super) async fn call(orchestrator: &Orchestrator, id: &Id, message: &Message) -> Result<String, Stop> {
    let Params { name, arguments } = params(message)?;
    if name.is_empty() {
        return Err(Refusal::missing("name").into());
    }
    let arguments = arguments.map(value::to_struct).transpose()?;
    let token = meta::progress_token(message);
    let streaming = orchestrator.streaming(&name);
    let pieces_first = token.is_some() && streaming == Streaming::Unknown;
    if pieces_first && let Some(result) = in_pieces(orchestrator, id, &name, arguments.clone(), token.as_ref()).await? {
        return Ok(result);
    }
    let request = Request::ToolCall(ToolRequest {
        tool_name: name.clone(),
        arguments: arguments.clone(),
        caller_plugin: CALLER.to_owned(),
        session_id: orchestrator.session.clone(),
        ..Default::default()
    });
    match orchestrator.call("tc", id, request).await.map_err(no_answer("tool_call"))? {
        // A plugin has tools that answer in pieces and in no other way.
        Response::ToolCall(response)
            if response.error_code == NO_SUCH_TOOL && !pieces_first && streaming != Streaming::Never =>
        {
            let pieces = in_pieces(orchestrator, id, &name, arguments, token.as_ref()).await?;
            Ok(pieces.unwrap_or_else(|| result(response)))
        }
        Response::ToolCall(response) => Ok(result(response)),
        other => Err(unexpected("tool_call", other).into()),
    }
}

/// A tool's answer as a result of MCP.
fn result(response: ToolResponse) -> String {
    let mut result = response.result;
    if let Some(verbatim) = result.as_mut().and_then(|result| take_text(result, MCP_RESULT, is_object)) {
        return verbatim;
    }
    if response.success {
        return content(&result.map(text).unwrap_or_default(), false);
    }
    content(&failure(response.error_code, response.error_message), true)
}

fn failure(code: String, message: String) -> String {
    if message.is_empty() { format!("tool error: {code}") } else { message }
}

/// The member `text`, if there is one; otherwise all of it as JSON.
fn text(mut result: Struct) -> String {
    let text = take_text(&mut result, "text", |_| true);
    text.unwrap_or_else(|| Value::Object(value::to_object(result)).to_string())
}

/// The text of a member, if it is a text that `fits`.
fn take_text(result: &mut Struct, name: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    match result.fields.get_mut(name)?.kind.as_mut()? {
        Kind::String(text) if fits(text) => Some(std::mem::take(text)),
        _ => None,
    }
}

fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn content(text: &str, is_error: bool) -> String {
    let mut result = json!({ "content": [{ "type": "text", "text": text }] });
    if is_error {
        result["isError"] = json!(true);
    }
    result.to_string()
}

/// Calls a tool for an answer in pieces; `None` if it has none to give, in which case it was not called.
async fn in_pieces(
    orchestrator: &Orchestrator,
    id: &Id,
    tool: &str,
    arguments: Option<Struct>,
    token: Option<&Id>,
) -> Result<Option<String>, Stop> {
    let stream_id = uuid();
    let request = Request::StreamStart(StreamStart {
        stream_id: stream_id.clone(),
        tool_name: tool.to_owned(),
        arguments,
        caller_plugin: CALLER.to_owned(),
    });
    let started = call::start(&orchestrator.peer, &orchestrator.budget, request_id("ss", id), request).await;
    let mut answers = started.map_err(no_answer("stream_start"))?;
    let connection = orchestrator.peer.dialled();
    let mut call = Pieces { orchestrator, id, token, count: 0, text: Vec::new(), whole: None };
    let mut cancel = Cancel { orchestrator, stream_id: Some(stream_id) };
    let gathered = call.gather(&mut answers, tool).await;
    cancel.stream_id = None;
    let closed = call.count == 0 && matches!(gathered, Err(Stop::Failed(Failure::Interrupted(_))));
    if closed {
        // An orchestrator that does not know StreamStart may close the stream. What nobody offers was not executed; another
        // connection may lead to another orchestrator, which cannot tell.
        orchestrator.note_streaming(tool, Streaming::Closes);
        let offered = lists::offers_tool(orchestrator, id, tool).await;
        if offered == Some(false) && orchestrator.peer.dialled() == connection {
            return Ok(Some(content(&format!("no plugin provides tool {tool:?}"), true)));
        }
    }
    gathered
}

/// Tells the tool to stop when its call is dropped before it has ended.
struct Cancel<'a> {
    orchestrator: &'a Orchestrator,
    stream_id: Option<String>,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        let Some(stream_id) = self.stream_id.take() else { return };
        let peer = Arc::clone(&self.orchestrator.peer);
        tokio::spawn(async move { call::tell(&peer, Request::StreamCancel(StreamCancel { stream_id })).await });
    }
}

/// What has come of an answer in pieces.
struct Pieces<'a> {
    orchestrator: &'a Orchestrator,
    id: &'a Id,
    token: Option<&'a Id>,
    count: u64,
    text: Vec<u8>,
    /// A result of MCP, as it was.
    whole: Option<String>,
}

impl Pieces<'_> {
    async fn gather(&mut self, answers: &mut Answers, tool: &str) -> Result<Option<String>, Stop> {
        loop {
            match answers.next().await.map_err(no_answer("stream_start"))? {
                Response::StreamChunk(chunk) => self.take(chunk).await?,
                Response::StreamEnd(end) => return Ok(self.end(end, tool)),
                // The peer does not know calls in pieces.
                Response::ToolCall(answer) if !answer.success && answer.error_code == "unknown_request" => {
                    self.orchestrator.note_streaming(EVERY_TOOL, Streaming::Never);
                    return Ok(None);
                }
                other => return Err(unexpected("stream_start", other).into()),
            }
        }
    }

    async fn take(&mut self, chunk: StreamChunk) -> Result<(), Stop> {
        self.count += 1;
        let text = String::from_utf8_lossy(&chunk.data).into_owned();
        match chunk.content_type.as_str() {
            RESULT_TYPE if is_object(&text) => self.whole = Some(text),
            PROGRESS_TYPE => {
                if let Ok(Value::Object(progress)) = serde_json::from_str(&text) {
                    self.tell(progress).await;
                }
            }
            kind => {
                if self.text.len() + chunk.data.len() > LONGEST {
                    return Err(Refusal::internal("orchestrator stream_start failed: the answer is too long").into());
                }
                self.text.extend_from_slice(&chunk.data);
                if kind != TEXT_TYPE {
                    let told = [("progress".to_owned(), json!(self.count)), ("message".to_owned(), text.into())];
                    self.tell(told.into_iter().collect()).await;
                }
            }
        }
        Ok(())
    }

    /// Tells of progress, if the client wants to hear of it.
    async fn tell(&self, mut progress: Map<String, Value>) {
        let Some(token) = self.token else { return };
        progress.insert("progressToken".to_owned(), json!(0));
        let message = Message::notification(method::PROGRESS, Some(&Value::Object(progress).to_string()));
        // Tokens are kept as they were written.
        let message = meta::with_progress_token(&message, token);
        self.orchestrator.tell(Lane::Request(self.id.clone()), message).await;
    }

    fn end(&mut self, end: StreamEnd, tool: &str) -> Option<String> {
        if !end.success && end.error_code == NO_SUCH_TOOL && self.count == 0 {
            self.orchestrator.note_streaming(tool, Streaming::Never);
            return None;
        }
        if !end.success {
            return Some(content(&failure(end.error_code, end.error_message), true));
        }
        let text = String::from_utf8_lossy(&self.text).into_owned();
        Some(self.whole.take().unwrap_or_else(|| content(&text, false)))
    }
}
