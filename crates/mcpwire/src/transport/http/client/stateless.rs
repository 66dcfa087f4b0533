//! Requests of 2026-07-28, each of which stands for itself: its headers repeat its body, its answer comes on its own
//! response and nowhere else, and closing that response cancels it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use mcpwire_proto::frame::sse::{SseDecoder, SseEvent};
use mcpwire_proto::headers::Invalid;
use mcpwire_proto::{Failure, Fault, Id, Kind, Message, Object, code, method};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::endpoint::{Endpoint, beginning, is_event_stream, is_repeatable, media_type};
use super::exchange::{Debt, lane};
use super::fault::chain;
use super::status::{describe, refused, refused_with};
use super::stream::{self, LINGER};

/// How long it may take to learn what headers a tool wants, and how many pages of the list are read for it.
const LEARN_LIMIT: Duration = Duration::from_secs(10);
const MOST_PAGES: usize = 64;

/// Sees a request through, until its answer or until `cancelled` is ready. Of a cancelled one nothing more is heard.
pub(super) async fn run(endpoint: Arc<Endpoint>, request: Message, cancelled: oneshot::Receiver<()>) {
    let debt = Debt { endpoint: Arc::clone(&endpoint), request: Some(request.clone()) };
    tokio::select! {
        outcome = exchange(&endpoint, &request) => debt.settle(outcome).await,
        _ = cancelled => debt.forgive(),
    }
}

/// An answer, and what is left of the stream it came on.
struct Answer {
    message: Message,
    rest: Option<Incoming>,
}

async fn exchange(endpoint: &Endpoint, request: &Message) -> Result<(), Failure> {
    let headers = endpoint.stateless_headers(request);
    let mut answer = ask(endpoint, request, &headers, true).await?;
    // A call whose headers are refused was not executed.
    if request.is(method::TOOLS_CALL) && is_header_mismatch(&answer.message) {
        let _ = timeout(LEARN_LIMIT, learn_anew(endpoint, request)).await;
        let learned = endpoint.stateless_headers(request);
        if learned != headers {
            tracing::debug!(target: "http", "{request}: sent again with the headers that its tool wants now");
            answer = ask(endpoint, request, &learned, true).await?;
        }
    }
    let message = if request.is(method::TOOLS_LIST) { learn(endpoint, &answer.message) } else { answer.message };
    endpoint.emit(lane(request), message).await;
    if let Some(mut rest) = answer.rest {
        // Read to its end, so that the connection serves the next request.
        let _ = timeout(LINGER, async { while let Some(Ok(_)) = rest.frame().await {} }).await;
    }
    Ok(())
}

/// Sends a request and waits for its answer. What comes before it is passed on if `tell` says so.
async fn ask(endpoint: &Endpoint, request: &Message, headers: &HeaderMap, tell: bool) -> Result<Answer, Failure> {
    let response = endpoint.post_as_it_is(request, headers).await?;
    let status = response.status();
    if !status.is_success() {
        let (head, body) = response.into_parts();
        return answer_of_refusal(request, &head, beginning(body).await.into());
    }
    if is_event_stream(&response) {
        return Box::pin(follow(endpoint, request, response.into_body(), tell)).await;
    }
    answer_of_body(endpoint, request, response).await
}

/// A JSON-RPC error is the answer, whatever the status: it tells what the server speaks. Anything else is a refusal by
/// somebody who may not even know what was asked.
fn answer_of_refusal(request: &Message, head: &Parts, body: Bytes) -> Result<Answer, Failure> {
    let status = head.status;
    let error = Message::parse(body.clone()).ok().filter(|error| matches!(error.kind(), Kind::Error { .. }));
    let ours = error.as_ref().is_some_and(|error| stream::answers(error, request.id()));
    let why = || describe(status, &String::from_utf8_lossy(&body));
    match (status, error) {
        // Not yet, rather than no, if the sender says when. A gateway cannot know whether the request was executed: Envoy
        // gives 503 also when the server's connection broke under it.
        (StatusCode::SERVICE_UNAVAILABLE, _) if !ours && head.headers.contains_key(RETRY_AFTER) => {
            Err(Failure::Unreachable(why()))
        }
        (StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT, _) if !ours => {
            Err(if is_repeatable(request) { Failure::Unreachable(why()) } else { Failure::Interrupted(why()) })
        }
        (_, Some(error)) => Ok(Answer { message: addressed(&error, request), rest: None }),
        (_, None) => Err(refused_with(status, &head.headers, &String::from_utf8_lossy(&body))),
    }
}

async fn answer_of_body(
    endpoint: &Endpoint,
    request: &Message,
    response: Response<Incoming>,
) -> Result<Answer, Failure> {
    let status = response.status();
    let kind = media_type(&response).unwrap_or("no content type").to_owned();
    let body = endpoint.read(response).await?;
    if body.trim_ascii().is_empty() {
        return Err(refused("the server accepted the request without an answer", Some(status)));
    }
    for message in stream::messages(body) {
        let message = message.map_err(|rejected| {
            refused(&format!("expected a JSON-RPC message, got {kind}: {}", rejected.fault), Some(status))
        })?;
        if is_answer(&message, request) {
            return Ok(Answer { message: addressed(&message, request), rest: None });
        }
    }
    Err(refused("the server answered another request than it was asked", Some(status)))
}

/// Follows an event stream to the answer. One that is cut before is not resumed: there is nothing to resume.
async fn follow(endpoint: &Endpoint, request: &Message, mut body: Incoming, tell: bool) -> Result<Answer, Failure> {
    let mut decoder = SseDecoder::new(endpoint.max_message);
    let mut garbage = None;
    let why = loop {
        while let Some(event) = decoder.next_event() {
            let data = match event {
                SseEvent::TooLarge => return Err(refused(&stream::too_large(endpoint.max_message), None)),
                SseEvent::Event { name, data } if name.is_empty() || name == "message" => data,
                SseEvent::Event { name, .. } => {
                    tracing::debug!(target: "http", "skipped an event named {name:?}");
                    continue;
                }
            };
            if data.trim_ascii().is_empty() {
                continue;
            }
            for message in stream::messages(data) {
                match message {
                    Ok(message) if is_answer(&message, request) => {
                        return Ok(Answer { message: addressed(&message, request), rest: Some(body) });
                    }
                    Ok(message) if matches!(message.kind(), Kind::Notification { .. }) => {
                        if tell {
                            endpoint.emit(lane(request), message).await;
                        }
                    }
                    Ok(message) => tracing::warn!(target: "http", "skipped {message}: {request} was asked"),
                    Err(rejected) => garbage = Some(rejected.fault),
                }
            }
        }
        match body.frame().await {
            None => break "the stream ended".to_owned(),
            Some(Err(error)) => break chain(&error),
            Some(Ok(frame)) => decoder.push(frame.data_ref().map_or(&[][..], |data| data)),
        }
    };
    match garbage {
        Some(fault @ Fault::Syntax(_)) => {
            Err(refused(&format!("the server sent something that is no message, and no answer: {fault}"), None))
        }
        _ => Err(Failure::Interrupted(why)),
    }
}

/// An error without an id can only mean the one request that was sent.
fn is_answer(message: &Message, request: &Message) -> bool {
    stream::answers(message, request.id()) || matches!(message.kind(), Kind::Error { id: None })
}

/// An answer under the id of its request, whatever id an error came with.
fn addressed(answer: &Message, request: &Message) -> Message {
    match (answer.kind(), request.id()) {
        (Kind::Error { id }, Some(asked)) if id.as_ref() != Some(asked) => {
            Message::error_object(Some(asked), answer.payload().unwrap_or("{}"))
        }
        _ => answer.clone(),
    }
}

fn is_header_mismatch(answer: &Message) -> bool {
    #[derive(Deserialize)]
    struct Error {
        code: i64,
    }
    matches!(answer.kind(), Kind::Error { .. })
        && answer.read::<Error>().is_some_and(|error| error.code == i64::from(code::HEADER_MISMATCH))
}

/// Learns from a list of tools that passes by, and leaves out those that must not be used.
fn learn(endpoint: &Endpoint, list: &Message) -> Message {
    let (list, invalid) = endpoint.tools().learn(list);
    for Invalid { tool, why } in invalid {
        tracing::warn!(target: "http", "left out the tool {tool:?}: {why}");
    }
    list
}

/// Asks for the list of tools, page by page, as the sender of this call would (2026-07-28, Streamable HTTP, Client
/// Behavior).
async fn learn_anew(endpoint: &Endpoint, call: &Message) -> Option<()> {
    let params = Object::parse(call.payload()?)?;
    let mut meta = params.object("_meta")?;
    meta.remove("progressToken");
    let meta = meta.to_string();
    let mut cursor = String::new();
    for page in 0..MOST_PAGES {
        let id = Id::from(format!("mcpwire:tools:{page}:{}", call.id()?).as_str());
        let list = Message::request(&id, method::TOOLS_LIST, Some(&format!(r#"{{{cursor}"_meta":{meta}}}"#)));
        let headers = endpoint.stateless_headers(&list);
        let answer = ask(endpoint, &list, &headers, false).await.ok()?.message;
        learn(endpoint, &answer);
        let next = Object::parse(answer.payload()?)?.get("nextCursor").map(str::to_owned);
        cursor = next.filter(|next| next != "null").map(|next| format!(r#""cursor":{next},"#))?;
    }
    Some(())
}
