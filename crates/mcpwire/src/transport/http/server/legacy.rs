//! HTTP with SSE, the transport of 2024-11-05: a GET opens the session and its one stream, POSTs are only accepted.

use http::request::Parts;
use http::{Response, StatusCode};
use hyper::body::Incoming;

use super::Front;
use super::answer::{Body, Refusal};
use super::exchange::Accepts;
use super::post::{open_session, parse, read};
use super::router::{accepts, find_session_by};
use super::session::{Manner, Post, Text};
use super::table::SessionId;
use crate::transport::http::EVENT_STREAM;

pub(super) const STREAM_PATH: &str = "/sse";
pub(super) const MESSAGES_PATH: &str = "/messages";

/// The parameter that names the session in the endpoint we announce; clients take the endpoint as it is.
const SESSION: &str = "sessionId=";

pub(super) async fn listen(front: &Front, head: &Parts) -> Result<Response<Body>, Refusal> {
    if !accepts(head).events {
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, &format!("expected Accept to name {EVENT_STREAM}")));
    }
    let manner = |id: &SessionId| Manner::OneStream { endpoint: format!("{MESSAGES_PATH}?{SESSION}{}", id.as_str()) };
    let (session, _) = open_session(front, manner).await?;
    Ok(session.listen(None).await.into_response())
}

pub(super) async fn post(front: &Front, head: &Parts, body: Incoming) -> Result<Response<Body>, Refusal> {
    let query = head.uri.query().unwrap_or_default();
    let mut ids = query.split('&').filter_map(|part| part.strip_prefix(SESSION));
    let (Some(id), None) = (ids.next(), ids.next()) else {
        let text = format!("expected the endpoint that {STREAM_PATH} announced, with its {SESSION}…");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, &text));
    };
    let session = find_session_by(front, head, id)?;
    let message = parse(read(front, head, body).await?)?;
    let accepts = Accepts { json: true, events: false };
    Ok(session.post(Post { text: Text::Message(message), accepts }).await.into_response())
}
