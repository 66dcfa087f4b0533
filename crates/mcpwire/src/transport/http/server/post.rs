//! POST: a body is read within its limits, parsed, and given to its session; `initialize` opens one.

use std::future::poll_fn;
use std::mem::replace;
use std::pin::pin;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming};
use mcpwire_proto::message::split_batch;
use mcpwire_proto::version::allows_batches;
use mcpwire_proto::{Fault, Message, Rejected, method};
use tokio::time::error::Elapsed;
use tokio::time::{Duration, timeout};

use super::answer::{Answer, Body, Refusal};
use super::exchange::Accepts;
use super::router::{accepts, find_session, find_session_by, text_of};
use super::session::{self, Handle, Manner, Post, Text};
use super::table::{Full, SessionId};
use super::{Front, Stage, stateless};
use crate::transport::http::{EVENT_STREAM, JSON, SESSION_ID_HEADER};

/// The most messages taken in one batch.
const LARGEST_BATCH: usize = 1000;
/// How long a body that is refused for its size is read on, so that its sender gets to read why.
const DISCARD: Duration = Duration::from_secs(2);

pub(super) async fn serve(front: &Front, head: &Parts, body: Incoming) -> Result<Response<Body>, Refusal> {
    let accepts = accepts(head);
    if !accepts.json && !accepts.events {
        let text = format!("expected Accept to name {JSON} and {EVENT_STREAM}");
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, &text));
    }
    let session = text_of(head, &SESSION_ID_HEADER)?.map(|id| find_session_by(front, head, id));
    let text = read(front, head, body).await?;
    if let Some(parts) = split_batch(&text) {
        if stateless::is_named(head) {
            let fault = Fault::Shape("expected a single message, came a batch".into());
            return Err(Refusal::fault(StatusCode::BAD_REQUEST, None, &fault));
        }
        return serve_batch(find_session(front, head)?, parts, accepts).await;
    }
    let message = parse(text)?;
    if !matches!(session, Some(Ok(_))) && stateless::claims(head, &message) {
        return stateless::serve(front, head, message, accepts).await;
    }
    let session = session.transpose()?;
    let opens = message.is_request() && message.is(method::INITIALIZE);
    let (session, id) = match session {
        Some(_) if opens => {
            let fault = Fault::Shape("expected initialize without Mcp-Session-Id: this session is open".into());
            return Err(Refusal::fault(StatusCode::BAD_REQUEST, message.id(), &fault));
        }
        Some(session) => (session, None),
        None if opens => open_session(front, |_| Manner::Streamable).await.map(|(session, id)| (session, Some(id)))?,
        None => (find_session(front, head)?, None),
    };
    let answer = session.post(Post { text: Text::Message(message), accepts }).await;
    let opened = matches!(answer, Answer::Events(_)) || session.version().is_some();
    let mut response = answer.into_response();
    if let Some(id) = id.filter(|_| opened)
        && let Ok(id) = HeaderValue::from_str(id.as_str())
    {
        response.headers_mut().insert(&SESSION_ID_HEADER, id);
    }
    Ok(response)
}

async fn serve_batch(session: Handle, parts: Vec<Bytes>, accepts: Accepts) -> Result<Response<Body>, Refusal> {
    let refuse = |text: String| Err(Refusal::fault(StatusCode::BAD_REQUEST, None, &Fault::Shape(text)));
    if !session.version().is_some_and(allows_batches) {
        return refuse("expected a single message, came a batch; only version 2025-03-26 has them".into());
    }
    if parts.is_empty() || parts.len() > LARGEST_BATCH {
        return refuse(format!("expected a batch of 1 to {LARGEST_BATCH} messages, came {}", parts.len()));
    }
    let mut messages = Vec::with_capacity(parts.len());
    let mut rejected = Vec::new();
    for part in parts {
        match Message::parse(part) {
            // 2025-03-26, Lifecycle, Initialization: it must not be part of a batch.
            Ok(message) if message.is(method::INITIALIZE) => {
                let fault = Fault::Shape("expected no initialize in a batch".into());
                rejected.push(fault.to_message(message.id()).as_bytes().clone());
            }
            Ok(message) => messages.push(message),
            Err(Rejected { id, fault }) => rejected.push(fault.to_message(id.as_ref()).as_bytes().clone()),
        }
    }
    Ok(session.post(Post { text: Text::Batch { messages, rejected }, accepts }).await.into_response())
}

pub(super) fn parse(text: Bytes) -> Result<Message, Refusal> {
    let refuse = |Rejected { id, fault }| Refusal::fault(StatusCode::BAD_REQUEST, id.as_ref(), &fault);
    Message::parse(text).map_err(refuse)
}

/// Opens a session and gives its link away.
pub(super) async fn open_session(
    front: &Front,
    manner: impl FnOnce(&SessionId) -> Manner,
) -> Result<(Handle, SessionId), Refusal> {
    let unavailable = |text: &str| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text);
    if *front.stage.borrow() != Stage::Running {
        return Err(unavailable("the server is shutting down"));
    }
    let id = SessionId::random().map_err(|_| unavailable("no session id could be made"))?;
    let (handle, link) = session::open(front.options.clone(), manner(&id), front.stage.clone());
    let limit = front.options.max_sessions;
    match front.table.insert(id.clone(), handle.clone()) {
        Ok(None) => {}
        Ok(Some((id, idle))) => {
            tracing::info!(target: "http", session = ?id, "ended an idle session: there are {limit} (--max-sessions)");
            idle.evict();
        }
        Err(Full) => {
            let text = format!("too many sessions: all {limit} are connected (--max-sessions sets the limit)");
            return Err(unavailable(&text));
        }
    }
    let (table, alive, key, session) = (front.table.clone(), front.alive.clone(), id.clone(), handle.clone());
    tokio::spawn(async move {
        tracing::debug!(target: "http", session = ?key, "session opened");
        session.run().await;
        table.remove(key.as_str());
        tracing::debug!(target: "http", session = ?key, "session ended");
        drop(alive);
    });
    match timeout(front.options.session_timeout, front.sessions.send(link)).await {
        Ok(Ok(())) => Ok((handle, id)),
        // The link is dropped, and with it the session ends.
        Ok(Err(_)) | Err(_) => Err(unavailable("the server takes no new sessions now")),
    }
}

fn is_json(head: &Parts) -> bool {
    let Some(value) = head.headers.get(CONTENT_TYPE) else { return false };
    value.as_bytes() == JSON.as_bytes() || {
        let name = value.to_str().ok().and_then(|value| value.split(';').next());
        name.is_some_and(|name| name.trim().eq_ignore_ascii_case(JSON))
    }
}

/// Reads a body within the limits on its size and on its pauses. One that comes in one piece is not copied.
pub(super) async fn read(front: &Front, head: &Parts, mut body: Incoming) -> Result<Bytes, Refusal> {
    if !is_json(head) {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, &format!("expected Content-Type {JSON}")));
    }
    let limit = front.options.max_message;
    let too_large = || Refusal::fault(StatusCode::PAYLOAD_TOO_LARGE, None, &Fault::TooLarge { limit });
    let announced = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        // A client that asked first has sent nothing yet.
        if !head.headers.contains_key(EXPECT) {
            discard(body).await;
        }
        return Err(too_large());
    }
    let mut whole = Bytes::new();
    let mut pieces = BytesMut::new();
    loop {
        let frame = match next_frame(&mut body, front.options.body_timeout).await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => return Err(Refusal::new(StatusCode::BAD_REQUEST, "the body is not whole")),
            Err(_) => return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to come")),
        };
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + pieces.len() + data.len() > limit {
            drop((whole, pieces));
            discard(body).await;
            return Err(too_large());
        }
        if whole.is_empty() && pieces.is_empty() {
            whole = data;
        } else {
            if pieces.is_empty() {
                pieces.reserve(announced.unwrap_or(whole.len() + data.len()));
                pieces.extend_from_slice(&std::mem::take(&mut whole));
            }
            pieces.extend_from_slice(&data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if pieces.is_empty() { whole } else { pieces.freeze() })
}

/// The next part of a body, if it comes in time.
async fn next_frame(body: &mut Incoming, limit: Duration) -> Result<Option<hyper::Result<Frame<Bytes>>>, Elapsed> {
    let mut frame = pin!(body.frame());
    let mut asked = false;
    let come = poll_fn(|cx| match frame.as_mut().poll(cx) {
        // hyper reads a body only when it was asked for, and then mostly has it at once: to see that takes another look,
        // which it wants anyway, and no timer.
        Poll::Pending if !replace(&mut asked, true) => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        come => Poll::Ready(come),
    });
    match come.await {
        Poll::Ready(frame) => Ok(frame),
        Poll::Pending => timeout(limit, frame).await,
    }
}

async fn discard(mut body: Incoming) {
    let _ = timeout(DISCARD, async { while let Some(Ok(_)) = body.frame().await {} }).await;
}
