//! HTTP responses: the session's answers and our refusals, each turned into one in one place.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::{Frame, SizeHint};
use mcpwire_proto::{Fault, Id, Message};

use super::stateless::Presence;
use super::stream::{Chunk, EventStream, chunk};
use crate::transport::http::{EVENT_STREAM, JSON};

/// The code under which the official SDKs report a session they do not know.
const SESSION_NOT_FOUND: i32 = -32001;
/// The code under which they report what is wrong with the HTTP request rather than with its message.
const SERVER_ERROR: i32 = -32000;

/// What a session has to say to an HTTP request.
#[derive(Debug)]
pub(super) enum Answer {
    /// Notifications and responses were taken.
    Accepted,
    Json(Bytes),
    Events(EventStream),
    /// The stream to resume has ended, and its client has all of it.
    NothingLeft,
    Refused(Refusal),
}

/// A request that is not served: its status, and a JSON-RPC error that says why.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    text: Bytes,
    header: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, text: &str) -> Refusal {
        Refusal::error(status, &Message::error(None, SERVER_ERROR, text))
    }

    pub(super) fn fault(status: StatusCode, id: Option<&Id>, fault: &Fault) -> Refusal {
        Refusal::error(status, &fault.to_message(id))
    }

    pub(super) fn session_not_found() -> Refusal {
        let text = "session not found: it ended or never was; start a new one with initialize";
        Refusal::error(StatusCode::NOT_FOUND, &Message::error(None, SESSION_NOT_FOUND, text))
    }

    fn error(status: StatusCode, message: &Message) -> Refusal {
        Refusal { status, text: message.as_bytes().clone(), header: None }
    }

    pub(super) fn with(mut self, name: HeaderName, value: &'static str) -> Refusal {
        self.header = Some((name, value));
        self
    }
}

impl Answer {
    pub(super) fn into_response(self) -> Response<Body> {
        match self {
            Answer::Accepted => empty(StatusCode::ACCEPTED),
            Answer::NothingLeft => empty(StatusCode::NO_CONTENT),
            Answer::Json(text) => json(StatusCode::OK, text),
            Answer::Events(stream) => events(Body::Events(stream)),
            Answer::Refused(refusal) => refusal.into_response(),
        }
    }
}

impl Refusal {
    pub(super) fn into_response(self) -> Response<Body> {
        tracing::debug!(target: "http", status = self.status.as_u16(), "refused a request");
        let mut response = json(self.status, self.text);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

pub(super) fn json(status: StatusCode, text: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

pub(super) fn text(kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn events(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // nginx holds streams back unless told not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The body of a response: a text that is there, or events as they come.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Bytes),
    Events(EventStream),
    /// The same, and it is noticed when nobody reads them any more.
    Watched {
        stream: EventStream,
        _reader: Presence,
    },
}

impl hyper::body::Body for Body {
    type Data = Chunk;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Chunk>, Infallible>>> {
        match self.get_mut() {
            Body::Whole(text) if text.is_empty() => Poll::Ready(None),
            Body::Whole(text) => {
                let whole = chunk(std::mem::take(text), Bytes::new(), Bytes::new());
                Poll::Ready(Some(Ok(Frame::data(whole))))
            }
            Body::Events(stream) | Body::Watched { stream, .. } => {
                stream.poll_chunk(cx).map(|next| next.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(text) if text.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(text) => SizeHint::with_exact(text.remaining() as u64),
            Body::Events(_) | Body::Watched { .. } => SizeHint::default(),
        }
    }
}
