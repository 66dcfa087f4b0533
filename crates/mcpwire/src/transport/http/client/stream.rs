//! Answers as they come: whole bodies and event streams become messages.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use mcpwire_proto::frame::sse::{SseDecoder, SseEvent};
use mcpwire_proto::message::split_batch;
use mcpwire_proto::{Fault, Id, Kind, Lane, Message, Rejected};
use tokio::time::{Instant, timeout_at};

use super::endpoint::{Endpoint, is_event_stream};
use super::fault::chain;

/// How long a stream may stay open after its answer came. Ending it ourselves costs the connection.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// Where a stream stands, to go on from there when it was cut.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// What goes into `Last-Event-ID`. An id that no header can carry is as good as none.
    pub(super) last_event_id: Option<HeaderValue>,
    pub(super) retry: Option<Duration>,
    /// What was wrong with an event that was no message; it may have been the answer.
    pub(super) garbage: Option<String>,
    /// The connection that was followed last delivered something: the id moved on, or messages came on a stream that
    /// has no ids. A server that repeats the same events every time delivers nothing.
    pub(super) advanced: bool,
    /// A message came on this connection.
    pub(super) received: bool,
}

/// How a stream ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The awaited answer came.
    Answered,
    /// It ended before that, for this reason.
    Cut(String),
    /// It stayed open and nothing came for as long as we are patient.
    Silent,
    /// It held an event over the limit, which may have been the answer.
    TooLarge,
}

/// Why a stream ended, for logs and errors.
impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ended::Answered => "it was answered",
            Ended::Cut(why) => why,
            Ended::Silent => "the stream is silent",
            Ended::TooLarge => "it held an event over the message limit",
        })
    }
}

/// Passes on the messages of an event stream until it ends, or is silent for longer than `patience`.
pub(super) async fn follow(
    endpoint: &Endpoint,
    body: Incoming,
    lane: &Lane,
    awaited: Option<&Id>,
    cursor: &mut Cursor,
    patience: Option<Duration>,
) -> Ended {
    let before = cursor.last_event_id.clone();
    cursor.received = false;
    let mut decoder = SseDecoder::new(endpoint.max_message);
    let ended = read(endpoint, body, &mut decoder, lane, awaited, cursor, patience).await;
    cursor.advanced = cursor.last_event_id != before || (cursor.received && decoder.last_event_id().is_none());
    ended
}

async fn read(
    endpoint: &Endpoint,
    mut body: Incoming,
    decoder: &mut SseDecoder,
    lane: &Lane,
    awaited: Option<&Id>,
    cursor: &mut Cursor,
    patience: Option<Duration>,
) -> Ended {
    let mut answered = false;
    let mut linger_until = None;
    loop {
        let limit = match linger_until {
            Some(until) => Some(until),
            None => patience.map(|patience| Instant::now() + patience),
        };
        let frame = match limit {
            None => body.frame().await,
            Some(limit) => match timeout_at(limit, body.frame()).await {
                Ok(frame) => frame,
                Err(_) if answered => return Ended::Answered,
                Err(_) => return Ended::Silent,
            },
        };
        let cut = match frame {
            None => Some("the stream ended".to_owned()),
            Some(Err(e)) => Some(chain(&e)),
            Some(Ok(frame)) => {
                decoder.push(frame.data_ref().map_or(&[][..], |data| data));
                None
            }
        };
        while let Some(event) = decoder.next_event() {
            match event {
                SseEvent::TooLarge if awaited.is_some() && !answered => return Ended::TooLarge,
                SseEvent::TooLarge => tracing::warn!(target: "http", "skipped an event over the message limit"),
                SseEvent::Event { name, data } if name.is_empty() || name == "message" => {
                    answered |= pass_on(endpoint, lane, awaited, data, cursor).await;
                }
                SseEvent::Event { name, .. } => tracing::debug!(target: "http", "skipped an event named {name:?}"),
            }
        }
        if let Some(id) = decoder.last_event_id() {
            cursor.last_event_id = HeaderValue::from_bytes(id).ok().filter(|id| !id.is_empty());
        }
        cursor.retry = decoder.retry().or(cursor.retry);
        if answered {
            linger_until.get_or_insert_with(|| Instant::now() + LINGER);
        }
        match cut {
            Some(_) if answered => return Ended::Answered,
            Some(why) => return Ended::Cut(why),
            None => {}
        }
    }
}

/// Passes on the messages in an event's data; tells whether the awaited answer is among them.
async fn pass_on(endpoint: &Endpoint, lane: &Lane, awaited: Option<&Id>, data: Bytes, cursor: &mut Cursor) -> bool {
    if data.trim_ascii().is_empty() {
        return false; // a priming event (2025-11-25, transports, sending messages)
    }
    let mut answered = false;
    for message in messages(data) {
        match message {
            Ok(message) => {
                answered |= answers(&message, awaited);
                note_version(endpoint, &message);
                endpoint.emit(lane.clone(), message).await;
                cursor.received = true;
            }
            Err(rejected) => {
                tracing::warn!(target: "http", "skipped what the server sent: {}", rejected.fault);
                // server-everything replays its priming events as `data: {}`.
                if !matches!(rejected.fault, Fault::Shape(_)) {
                    cursor.garbage = Some(rejected.fault.to_string());
                }
            }
        }
    }
    answered
}

/// The messages of a text: one, or the elements of an array.
pub(super) fn messages(text: Bytes) -> Vec<Result<Message, Rejected>> {
    match split_batch(&text) {
        Some(parts) => parts.into_iter().map(Message::parse).collect(),
        None => vec![Message::parse(text)],
    }
}

pub(super) fn answers(message: &Message, awaited: Option<&Id>) -> bool {
    message.is_response() && message.id().is_some() && message.id() == awaited
}

/// A result that names a protocol version is the answer to `initialize`.
pub(super) fn note_version(endpoint: &Endpoint, message: &Message) {
    if endpoint.awaits_version()
        && matches!(message.kind(), Kind::Result { .. })
        && let Some(version) = mcpwire_proto::session::legacy::protocol_version(message)
    {
        endpoint.note_version(&version);
    }
}

/// Reads what came back for a message that has no answer. Mostly nothing; some servers use the chance to talk.
pub(super) async fn drain(endpoint: &Endpoint, response: Response<Incoming>) {
    if is_event_stream(&response) {
        follow(endpoint, response.into_body(), &Lane::Main, None, &mut Cursor::default(), None).await;
        return;
    }
    match endpoint.read(response).await {
        Ok(body) if body.trim_ascii().is_empty() => {}
        Ok(body) => {
            for message in messages(body).into_iter().flatten() {
                endpoint.emit(Lane::Main, message).await;
            }
        }
        Err(failure) => tracing::debug!(target: "http", "an answer to a notification broke off: {failure}"),
    }
}

pub(super) fn too_large(limit: usize) -> String {
    Fault::TooLarge { limit }.to_string()
}
