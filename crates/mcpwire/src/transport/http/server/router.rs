//! Which request is served by what: a plain match on path and method.

use std::sync::Arc;

use http::header::{ACCEPT, ALLOW, HeaderName, ORIGIN};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use mcpwire_proto::version::SESSION_ERA;

use super::answer::{Body, Refusal, empty};
use super::exchange::Accepts;
use super::session::Handle;
use super::{Front, answer, cors, guard, legacy, post, stateless};
use crate::health::{Board, Overall};
use crate::transport::http::{EVENT_STREAM, JSON, LAST_EVENT_ID_HEADER, PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER};

/// What the official SDKs send, to be known at a glance.
const USUAL_ACCEPT: &str = "application/json, text/event-stream";
const HEALTH_PATH: &str = "/health";
const METRICS_PATH: &str = "/metrics";
const PROMETHEUS: &str = "text/plain; version=0.0.4";

pub(super) async fn route(front: Arc<Front>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    if let Err(refusal) = guard::check_source(&head, &front.options) {
        return refusal.into_response();
    }
    let origin = head.headers.get(ORIGIN).cloned();
    let outcome = match guard::check_token(&head, &front.options) {
        _ if cors::is_preflight(&head) => Ok(cors::preflight(&head)),
        Ok(()) => serve(&front, &head, body).await,
        Err(refusal) => Err(refusal),
    };
    let mut response = outcome.unwrap_or_else(Refusal::into_response);
    if let Some(origin) = origin {
        cors::open_to(origin, response.headers_mut());
    }
    response
}

async fn serve(front: &Front, head: &Parts, body: Incoming) -> Result<Response<Body>, Refusal> {
    match head.uri.path() {
        path if path == front.options.path => match head.method {
            Method::POST => post::serve(front, head, body).await,
            // 2026-07-28 has no other method (Streamable HTTP, Compatibility).
            _ if stateless::is_named(head) && !head.headers.contains_key(&SESSION_ID_HEADER) => not_allowed("POST"),
            Method::GET => listen(front, head).await,
            Method::DELETE => end(front, head),
            _ => not_allowed("POST, GET, DELETE"),
        },
        legacy::STREAM_PATH if front.options.http_with_sse => match head.method {
            Method::GET => legacy::listen(front, head).await,
            _ => not_allowed("GET"),
        },
        legacy::MESSAGES_PATH if front.options.http_with_sse => match head.method {
            Method::POST => legacy::post(front, head, body).await,
            _ => not_allowed("POST"),
        },
        path @ (HEALTH_PATH | METRICS_PATH) => match &front.options.health {
            Some(_) if head.method != Method::GET => not_allowed("GET"),
            Some(board) if path == HEALTH_PATH => Ok(health(board)),
            Some(board) => Ok(answer::text(PROMETHEUS, board.to_prometheus())),
            None => nothing_here(front),
        },
        _ => nothing_here(front),
    }
}

fn nothing_here(front: &Front) -> Result<Response<Body>, Refusal> {
    let text = format!("there is nothing at this path; MCP is at {}", front.options.path);
    Err(Refusal::new(StatusCode::NOT_FOUND, &text))
}

/// Tells how the targets are: 200 unless all are down, then 503.
fn health(board: &Board) -> Response<Body> {
    let status = if board.overall() == Overall::Down { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    answer::json(status, board.to_json().to_string().into())
}

fn not_allowed(methods: &'static str) -> Result<Response<Body>, Refusal> {
    let text = format!("this method is not allowed here; expected {methods}");
    Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, &text).with(ALLOW, methods))
}

async fn listen(front: &Front, head: &Parts) -> Result<Response<Body>, Refusal> {
    if !accepts(head).events {
        let text = format!("expected Accept to name {EVENT_STREAM}");
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, &text));
    }
    let session = find_session(front, head)?;
    let after = match text_of(head, &LAST_EVENT_ID_HEADER)? {
        None | Some("") => None,
        Some(id) => Some(id.parse().map_err(|_| {
            Refusal::new(StatusCode::BAD_REQUEST, "expected Last-Event-ID to be the id of an event of this session")
        })?),
    };
    Ok(session.listen(after).await.into_response())
}

fn end(front: &Front, head: &Parts) -> Result<Response<Body>, Refusal> {
    let session = find_session(front, head)?;
    if let Some(id) = text_of(head, &SESSION_ID_HEADER)? {
        front.table.remove(id);
    }
    session.end();
    Ok(empty(StatusCode::NO_CONTENT))
}

/// The session that a request names, if the version it names fits.
pub(super) fn find_session(front: &Front, head: &Parts) -> Result<Handle, Refusal> {
    let Some(id) = text_of(head, &SESSION_ID_HEADER)? else {
        let text = "expected the header Mcp-Session-Id with the session that initialize opened";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
    };
    find_session_by(front, head, id)
}

pub(super) fn find_session_by(front: &Front, head: &Parts, id: &str) -> Result<Handle, Refusal> {
    let session = front.table.find(id).ok_or_else(Refusal::session_not_found)?;
    match text_of(head, &PROTOCOL_VERSION_HEADER)? {
        Some(version) if !SESSION_ERA.contains(&version) && session.version() != Some(version) => {
            let text = format!("unsupported MCP-Protocol-Version; supported here: {}", SESSION_ERA.join(", "));
            Err(Refusal::new(StatusCode::BAD_REQUEST, &text))
        }
        _ => Ok(session),
    }
}

/// What the client takes as an answer; a client that does not say takes anything.
pub(super) fn accepts(head: &Parts) -> Accepts {
    let mut accepts = Accepts { json: false, events: false };
    let mut values = head.headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none_or(|value| *value == USUAL_ACCEPT) {
        return Accepts { json: true, events: true };
    }
    let types = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    for name in types.map(|part| part.split(';').next().unwrap_or_default().trim()) {
        let is_one_of = |names: [&str; 3]| names.iter().any(|n| name.eq_ignore_ascii_case(n));
        accepts.json |= is_one_of([JSON, "application/*", "*/*"]);
        accepts.events |= is_one_of([EVENT_STREAM, "text/*", "*/*"]);
    }
    accepts
}

/// The text of a header that may be there once.
pub(super) fn text_of<'a>(head: &'a Parts, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let refuse = || {
        let text = format!("expected at most one header {name}, in ASCII");
        Refusal::new(StatusCode::BAD_REQUEST, &text)
    };
    let mut values = head.headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| refuse()),
        (Some(_), Some(_)) => Err(refuse()),
    }
}
