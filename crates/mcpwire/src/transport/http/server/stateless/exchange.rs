//! One request of a client without a session: first a response that is owed, then, if need be, a stream.

use std::time::Duration;

use http::StatusCode;
use mcpwire_proto::{Kind, Message, code, meta, method};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::names::Name;
use super::presence::Key;
use crate::transport::http::server::answer::Refusal;
use crate::transport::http::server::exchange::Accepts;
use crate::transport::http::server::options::Options;
use crate::transport::http::server::stream::{self, EventStream, Outlet};

/// How long a listening stream waits to begin for its first message: the acknowledgement, or an error, which has a
/// status of its own.
const LISTEN_AFTER: Duration = Duration::from_millis(250);

/// What becomes of the HTTP request.
#[derive(Debug)]
pub(super) enum Reply {
    Json(StatusCode, Message),
    Events(EventStream),
    Refused(Refusal),
}

/// ```text
/// Waiting --- the answer, nothing before it ---> one JSON text, over
///    |
///    +------- anything else, or too long ------> Streaming --- the answer ---> over
/// ```
#[derive(Debug)]
enum State {
    Waiting(oneshot::Sender<Reply>),
    Streaming(Outlet),
    Over,
}

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) key: Key,
    pub(super) id: Name,
    pub(super) token: Option<Name>,
    pub(super) is_listen: bool,
    /// Whether the client asked for log messages.
    pub(super) wants_log: bool,
    /// Whether the answer tells something that we have to know.
    pub(super) teaches: bool,
    accepts: Accepts,
    since: Instant,
    state: State,
}

impl Exchange {
    pub(super) fn new(
        key: Key,
        id: Name,
        token: Option<Name>,
        request: &Message,
        wants_log: bool,
        accepts: Accepts,
        reply: oneshot::Sender<Reply>,
    ) -> Exchange {
        Exchange {
            key,
            id,
            token,
            is_listen: request.is(method::LISTEN),
            wants_log,
            teaches: super::known::Known::matters(request),
            accepts,
            since: Instant::now(),
            state: State::Waiting(reply),
        }
    }

    /// Passes on a message that is no answer; `false` if the client has gone, or reads too slowly to be there.
    pub(super) fn tell(&mut self, message: &Message, options: &Options) -> bool {
        self.start_streaming(options);
        match &self.state {
            State::Streaming(outlet) => outlet.offer_plain(self.restored(message).as_bytes().clone()),
            // It takes the answer only.
            State::Waiting(reply) => !reply.is_closed(),
            State::Over => false,
        }
    }

    /// Passes on the answer, and with it ends.
    pub(super) fn answer(mut self, answer: &Message, options: &Options) {
        if !self.accepts.json {
            self.start_streaming(options);
        }
        let answer = self.restored(answer);
        match self.state {
            State::Waiting(reply) => drop(reply.send(Reply::Json(status_of(&answer), answer))),
            State::Streaming(outlet) => drop(outlet.offer_plain(answer.as_bytes().clone())),
            State::Over => {}
        }
    }

    /// Turns the response into a stream, if it is not one yet and the client takes one.
    pub(super) fn start_streaming(&mut self, options: &Options) {
        if !self.accepts.events || !matches!(self.state, State::Waiting(_)) {
            return;
        }
        let (outlet, events) = stream::open(options);
        if let State::Waiting(reply) = std::mem::replace(&mut self.state, State::Over)
            && reply.send(Reply::Events(events)).is_ok()
        {
            self.state = State::Streaming(outlet);
        }
    }

    /// When the response becomes a stream if nothing else happens.
    pub(super) fn streams_at(&self, options: &Options) -> Option<Instant> {
        let waits = matches!(self.state, State::Waiting(_)) && self.accepts.events;
        let after = if self.is_listen { options.stream_after.min(LISTEN_AFTER) } else { options.stream_after };
        waits.then(|| self.since + after)
    }

    /// The message as the client knows its names: its id, its token, its subscription.
    fn restored(&self, message: &Message) -> Message {
        let mut message = message.clone();
        if let Some(id) = message.id()
            && id.as_json() != self.id.theirs.as_json()
        {
            message = message.with_id(&self.id.theirs);
        }
        if let Some(token) = self.token.as_ref().filter(|token| token.is_renamed() && message.is(method::PROGRESS)) {
            message = meta::with_progress_token(&message, &token.theirs);
        }
        if self.is_listen {
            if meta::subscription_id(&message).is_some_and(|id| id.as_json() != self.id.theirs.as_json()) {
                message = meta::with_subscription_id(&message, &self.id.theirs);
            }
            if message.is(method::CANCELLED) {
                message = meta::with_cancelled_request(&message, &self.id.theirs);
            }
        }
        message
    }
}

/// 2026-07-28, Streamable HTTP: errors of the protocol have a status; those of the method called have none.
pub(super) fn status_of(answer: &Message) -> StatusCode {
    #[derive(Deserialize)]
    struct Error {
        code: i64,
    }
    let Kind::Error { .. } = answer.kind() else { return StatusCode::OK };
    match answer.read::<Error>().map_or(0, |error| error.code) {
        error if error == i64::from(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        error if code::is_modern(error) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
