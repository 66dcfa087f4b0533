//! One request and its answer: a JSON body, or an event stream that is resumed when it is cut.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use mcpwire_proto::session::backoff::Backoff;
use mcpwire_proto::{Failure, Kind, Lane, Message};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::endpoint::{Endpoint, Refusal, is_event_stream, media_type};
use super::status::refused;
use super::stream::{self, Cursor, Ended};

/// How long the answer to a request may take that the server took with a bare 202: some send it on the listening stream.
const ACCEPTED_LIMIT: Duration = Duration::from_secs(30);
/// The wait before a cut stream is resumed, if the server names none; and the bounds of what it may name.
const RETRY: Duration = Duration::from_millis(500);
const SHORTEST_RETRY: Duration = Duration::from_millis(10);
/// How long a resumed stream may be silent. server-everything sends what comes after the replay nowhere but on the next
/// resumption; asking again costs other servers nothing.
const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

pub(super) async fn run(endpoint: Arc<Endpoint>, request: Message, session: Arc<HeaderMap>) {
    let debt = Debt { endpoint, request: Some(request) };
    let Some(request) = &debt.request else { return };
    let outcome = exchange(&debt.endpoint, request, &session).await;
    debt.settle(outcome).await;
}

/// Sees to it that an exchange has an outcome, even if it is ended from outside or by a fault of our own.
pub(super) struct Debt {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) request: Option<Message>,
}

impl Debt {
    pub(super) async fn settle(mut self, outcome: Result<(), Failure>) {
        if let (Some(request), Err(failure)) = (self.request.take(), outcome) {
            self.endpoint.report_failed(request, failure).await;
        }
    }

    /// Nobody wants to hear of it any more.
    pub(super) fn forgive(mut self) {
        self.request = None;
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        // Without a runtime nobody is left to be told.
        if let (Some(request), Ok(runtime)) = (self.request.take(), Handle::try_current()) {
            let endpoint = Arc::clone(&self.endpoint);
            let failure = Failure::Interrupted("the exchange was ended".into());
            runtime.spawn(async move { endpoint.report_failed(request, failure).await });
        }
    }
}

async fn exchange(endpoint: &Endpoint, request: &Message, session: &HeaderMap) -> Result<(), Failure> {
    let response = endpoint.post(request, session).await?;
    take(endpoint, request, session, response).await
}

/// Takes the answer out of a response.
pub(super) async fn take(
    endpoint: &Endpoint,
    request: &Message,
    session: &HeaderMap,
    response: Response<Incoming>,
) -> Result<(), Failure> {
    if is_event_stream(&response) {
        // Boxed, so that the many requests answered with a plain body do not carry its room around.
        return Box::pin(follow(endpoint, request, session, response)).await;
    }
    let kind = media_type(&response).unwrap_or("no content type").to_owned();
    let body = endpoint.read(response).await?;
    if body.trim_ascii().is_empty() {
        // Answered elsewhere by then, or not at all; whoever keeps the books will know.
        sleep(ACCEPTED_LIMIT).await;
        return Err(refused("the server accepted the request and never answered it", Some(StatusCode::ACCEPTED)));
    }
    let mut answered = false;
    for message in stream::messages(body) {
        let message = message.map_err(|rejected| {
            refused(&format!("expected a JSON-RPC message, got {kind}: {}", rejected.fault), None)
        })?;
        if let Kind::Error { id: None } = message.kind() {
            return Err(Failure::refused_by_server(message.payload().unwrap_or_default()));
        }
        answered |= stream::answers(&message, request.id());
        stream::note_version(endpoint, &message);
        endpoint.emit(lane(request), message).await;
    }
    if answered { Ok(()) } else { Err(refused("the server answered another request than it was asked", None)) }
}

/// Follows an event stream to the answer, across as many connections as it takes (2025-11-25, transports, resumability;
/// a server may end a stream at will and let us poll).
async fn follow(
    endpoint: &Endpoint,
    request: &Message,
    session: &HeaderMap,
    response: Response<Incoming>,
) -> Result<(), Failure> {
    let lane = lane(request);
    let mut cursor = Cursor::default();
    let mut resumptions = Resumptions::new(endpoint.max_empty_resumptions);
    let mut body = response.into_body();
    let mut patience = None;
    loop {
        let ended = stream::follow(endpoint, body, &lane, request.id(), &mut cursor, patience).await;
        match ended {
            Ended::Answered => return Ok(()),
            Ended::TooLarge => return Err(refused(&stream::too_large(endpoint.max_message), None)),
            Ended::Cut(_) | Ended::Silent => {}
        }
        if let Some(garbage) = cursor.garbage.take() {
            return Err(refused(
                &format!("the server sent something that is no message, and no answer: {garbage}"),
                None,
            ));
        }
        if cursor.last_event_id.is_none() {
            return Err(Failure::Interrupted(ended.to_string()));
        }
        let Some(wait) = resumptions.next(&ended, &cursor) else {
            let tries = endpoint.max_empty_resumptions;
            return Err(Failure::Interrupted(format!("{ended}; it was resumed {tries} times and brought nothing new")));
        };
        tracing::debug!(target: "http", "{request}: {ended}; resuming");
        body = resume(endpoint, session, &cursor, wait, &ended).await?.into_body();
        patience = Some(PATIENCE);
    }
}

async fn resume(
    endpoint: &Endpoint,
    session: &HeaderMap,
    cursor: &Cursor,
    mut wait: Duration,
    cut: &Ended,
) -> Result<Response<Incoming>, Failure> {
    let started = Instant::now();
    let mut backoff = Backoff::new(fastrand::u64(..));
    loop {
        sleep(wait).await;
        let left = endpoint.resume_for.saturating_sub(started.elapsed()).max(RETRY);
        let opened = timeout(left, endpoint.get(session, cursor.last_event_id.as_ref())).await;
        let silent = || Refusal::Failed(Failure::Unreachable("the server does not answer".into()));
        let why = match opened.unwrap_or_else(|_| Err(silent())) {
            Ok(response) => return Ok(response),
            Err(Refusal::SessionLost(why)) => {
                if endpoint.is_current(session) {
                    endpoint.report_session_lost(why.clone()).await;
                }
                return Err(Failure::Interrupted(format!("{cut}; the session is gone: {why}")));
            }
            Err(Refusal::NotOffered(status)) => {
                return Err(Failure::Interrupted(format!("{cut}; the server cannot resume it: HTTP {status}")));
            }
            Err(Refusal::Taken) => "another stream is open".to_owned(),
            Err(Refusal::Failed(failure)) => failure.to_string(),
        };
        if started.elapsed() >= endpoint.resume_for {
            return Err(Failure::Interrupted(format!("{cut}; and it could not be resumed: {why}")));
        }
        wait = backoff.next_wait();
    }
}

/// Decides when a stream that ended is resumed, and when no more.
///
/// A server that lets us poll names the wait and sends something new now and then. Streams that end again and again without
/// anything new are asked for less and less often, and in the end not at all. A stream that stays open and is silent does
/// not count: the call may take as long as it likes.
#[derive(Debug)]
struct Resumptions {
    resumed: bool,
    /// Resumptions in a row that delivered nothing.
    empty: u32,
    max_empty: u32,
    backoff: Backoff,
}

impl Resumptions {
    fn new(max_empty: u32) -> Resumptions {
        Resumptions { resumed: false, empty: 0, max_empty, backoff: Backoff::new(fastrand::u64(..)) }
    }

    /// How long to wait before the next resumption; `None` if there is to be none.
    fn next(&mut self, ended: &Ended, cursor: &Cursor) -> Option<Duration> {
        let asked = cursor.retry.unwrap_or(RETRY).clamp(SHORTEST_RETRY, LONGEST_RETRY);
        if cursor.advanced || !self.resumed {
            self.resumed = true;
            self.empty = 0;
            self.backoff.reset();
            return Some(asked);
        }
        if matches!(ended, Ended::Silent) {
            return Some(asked);
        }
        self.empty += 1;
        (self.empty < self.max_empty).then(|| asked.max(self.backoff.next_wait()))
    }
}

pub(super) fn lane(request: &Message) -> Lane {
    request.id().cloned().map_or(Lane::Main, Lane::Request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumptions_that_deliver_nothing_slow_down_and_end() {
        let mut resumptions = Resumptions::new(30);
        let cut = Ended::Cut("the stream ended".into());
        let cursor = |advanced| Cursor { advanced, retry: Some(Duration::from_millis(10)), ..Cursor::default() };
        assert_eq!(resumptions.next(&cut, &cursor(true)), Some(SHORTEST_RETRY));
        let waits: Vec<Duration> = std::iter::from_fn(|| resumptions.next(&cut, &cursor(false))).take(100).collect();
        assert_eq!(waits.len(), 29);
        assert!(waits.iter().sum::<Duration>() > Duration::from_secs(60), "{waits:?}");
    }

    #[test]
    fn a_server_that_lets_us_poll_is_polled_for_as_long_as_it_takes() {
        let mut resumptions = Resumptions::new(3);
        let cut = Ended::Cut("the stream ended".into());
        let asked = Duration::from_secs(7);
        let cursor = |advanced| Cursor { advanced, retry: Some(asked), ..Cursor::default() };
        for _ in 0..100 {
            assert_eq!(resumptions.next(&cut, &cursor(true)), Some(asked));
            assert_eq!(resumptions.next(&cut, &cursor(false)), Some(asked));
            assert_eq!(resumptions.next(&Ended::Silent, &cursor(false)), Some(asked));
        }
    }
}
