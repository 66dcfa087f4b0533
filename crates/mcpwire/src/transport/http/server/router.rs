//! Which request is served by what: a plain match on path and method.

use std::sync::Arc;

use http::header::{ACCEPT, ALLOW, HeaderName};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use mcpwire_proto::version::SESSION_ERA;

use super::answer::{Answer, Body, Refusal, empty};
use super::exchange::Accepts;
use super::session::{Command, Handle};
use super::{Front, guard, post};
use crate::transport::http::{EVENT_STREAM, JSON, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};

pub(super) async fn route(front: Arc<Front>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let outcome = match guard::check(&head, &front.options) {
        Err(refusal) => Err(refusal),
        Ok(()) if head.uri.path() != front.options.path => {
            let text = format!("there is nothing at this path; MCP is at {}", front.options.path);
            Err(Refusal::new(StatusCode::NOT_FOUND, &text))
        }
        Ok(()) => match head.method {
            Method::POST => post::serve(&front, &head, body).await,
            Method::GET => listen(&front, &head).await,
            Method::DELETE => end(&front, &head),
            _ => {
                let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "expected POST, GET or DELETE");
                Err(refusal.with(ALLOW, "POST, GET, DELETE"))
            }
        },
    };
    outcome.unwrap_or_else(Refusal::into_response)
}

async fn listen(front: &Front, head: &Parts) -> Result<Response<Body>, Refusal> {
    if !accepts(head).events {
        let text = format!("expected Accept to name {EVENT_STREAM}");
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, &text));
    }
    let session = find_session(front, head)?;
    let after = match text_of(head, LAST_EVENT_ID)? {
        None | Some("") => None,
        Some(id) => Some(id.parse().map_err(|_| {
            Refusal::new(StatusCode::BAD_REQUEST, "expected Last-Event-ID to be the id of an event of this session")
        })?),
    };
    let answer: Answer = session.ask(|reply| Command::Listen { after, reply }).await;
    Ok(answer.into_response())
}

fn end(front: &Front, head: &Parts) -> Result<Response<Body>, Refusal> {
    let session = find_session(front, head)?;
    if let Some(id) = text_of(head, SESSION_ID)? {
        front.table.remove(id);
    }
    session.end();
    Ok(empty(StatusCode::NO_CONTENT))
}

/// The session that a request names, if the version it names fits.
pub(super) fn find_session(front: &Front, head: &Parts) -> Result<Handle, Refusal> {
    let Some(id) = text_of(head, SESSION_ID)? else {
        let text = "expected the header Mcp-Session-Id with the session that initialize opened";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
    };
    let session = front.table.find(id).ok_or_else(Refusal::session_not_found)?;
    match text_of(head, PROTOCOL_VERSION)? {
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
    if values.peek().is_none() {
        return Accepts { json: true, events: true };
    }
    let types = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    for name in types.map(|part| part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()) {
        accepts.json |= matches!(&*name, JSON | "application/*" | "*/*");
        accepts.events |= matches!(&*name, EVENT_STREAM | "text/*" | "*/*");
    }
    accepts
}

/// The text of a header that may be there once.
pub(super) fn text_of<'a>(head: &'a Parts, name: &'static str) -> Result<Option<&'a str>, Refusal> {
    let refuse = || {
        let text = format!("expected at most one header {name}, in ASCII");
        Refusal::new(StatusCode::BAD_REQUEST, &text)
    };
    let mut values = head.headers.get_all(HeaderName::from_static(name)).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| refuse()),
        (Some(_), Some(_)) => Err(refuse()),
    }
}
