//! HTTP+SSE (2024-11-05, transports): one stream brings everything the server says, and its first event names the address
//! to which everything we say is POSTed. The session lives and dies with the stream.
//!
//! ```text
//!              GET, event `endpoint`, POST initialize             the stream ends: Gone
//!   (nothing) ────────────────────────────────────────► Stream ───────────────────────────► (nothing)
//!                                                                 a POST finds the session unknown: SessionLost
//! ```
//!
//! Every request that is POSTed is in the stream's books until it is answered or reported, so that it is reported once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use mcpwire_proto::frame::sse::{SseDecoder, SseEvent};
use mcpwire_proto::{Failure, Id, Lane, Message};
use tokio::sync::watch;
use tokio::task::{self, AbortHandle};
use tokio::time::timeout;
use url::Url;

use super::endpoint::{Endpoint, beginning, is_event_stream, media_type, to_uri};
use super::fault::chain;
use super::status::{Sent, describe, refused};
use super::stream;
use crate::target::text_without_secrets;

/// How long the server may take to begin the stream, and then to name the address.
const ENDPOINT_LIMIT: Duration = Duration::from_secs(10);
/// How long the rest of a response may take that says nothing but that the message was taken.
const TAKEN_LIMIT: Duration = Duration::from_secs(10);
/// A server that dies cuts its stream and what is being POSTed to it; so long the one may come after the other.
const SAME_DEATH: Duration = Duration::from_millis(500);

/// What we know of the older transport at this server.
#[derive(Debug)]
pub(super) struct Legacy {
    /// The server speaks it, as far as we know.
    spoken: AtomicBool,
    stream: Mutex<Option<Arc<Stream>>>,
}

/// A session.
#[derive(Debug)]
struct Stream {
    /// Where messages are POSTed.
    place: Mutex<Uri>,
    books: Mutex<Books>,
    over: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Books {
    /// Requests without an answer yet.
    pending: HashMap<Id, Message>,
    reading: Option<AbortHandle>,
    closed: bool,
}

/// Why there is no session.
#[derive(Debug)]
pub(super) enum Unopened {
    /// This is no HTTP+SSE server.
    NotOffered(Failure),
    /// It is one, or may become one.
    Failed(Failure),
}

impl From<Unopened> for Failure {
    fn from(unopened: Unopened) -> Failure {
        match unopened {
            Unopened::NotOffered(failure) | Unopened::Failed(failure) => failure,
        }
    }
}

impl Legacy {
    pub(super) fn new(spoken: bool) -> Legacy {
        Legacy { spoken: AtomicBool::new(spoken), stream: Mutex::new(None) }
    }

    pub(super) fn is_spoken(&self) -> bool {
        self.spoken.load(Ordering::Relaxed)
    }

    pub(super) fn unlearn(&self) {
        self.spoken.store(false, Ordering::Relaxed);
    }

    /// Ends the session; gives the requests that will have no answer now.
    pub(super) fn close(&self) -> Vec<Message> {
        self.current().take().and_then(|stream| stream.close()).unwrap_or_default()
    }

    fn stream(&self) -> Option<Arc<Stream>> {
        self.current().clone()
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Stream>>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the stream, and with `initialize` the session.
pub(super) async fn open(endpoint: &Arc<Endpoint>, initialize: &Message) -> Result<(), Unopened> {
    let limit = ENDPOINT_LIMIT.min(endpoint.resume_for);
    let response = match timeout(limit, endpoint.get_legacy()).await {
        Ok(Ok(response)) => begin(endpoint, response).await?,
        // A GET does nothing, so it does not matter how far it came.
        Ok(Err(Failure::Interrupted(why))) => return Err(Unopened::Failed(Failure::Unreachable(why))),
        Ok(Err(failure)) => return Err(Unopened::Failed(failure)),
        Err(_) => return Err(Unopened::Failed(Failure::Unreachable(format!("no answer to GET within {limit:?}")))),
    };
    let mut body = response.into_body();
    let mut decoder = SseDecoder::new(endpoint.max_message);
    let address = match timeout(limit, first_event(&mut body, &mut decoder)).await {
        Ok(Ok(address)) => address,
        Ok(Err(why)) => return Err(Unopened::Failed(Failure::Unreachable(why))),
        Err(_) => {
            let text = format!("expected an event named endpoint on the stream, came none within {limit:?}");
            return Err(Unopened::NotOffered(refused(&text, None)));
        }
    };
    let place = resolve(&endpoint.uri(), &address).map_err(Unopened::Failed)?;
    tracing::info!(target: "http", "the server speaks HTTP+SSE");

    let stream =
        Arc::new(Stream { place: Mutex::new(place), books: Mutex::default(), over: watch::Sender::new(false) });
    stream.enter(initialize);
    let reading = task::spawn(read(Arc::clone(endpoint), Arc::clone(&stream), body, decoder));
    stream.books().reading = Some(reading.abort_handle());
    // Before the POST: the answer may be there before the POST is through.
    let before = endpoint.legacy.current().replace(Arc::clone(&stream));
    endpoint.legacy.spoken.store(true, Ordering::Relaxed);
    interrupt(endpoint, before.and_then(|before| before.close()).unwrap_or_default(), "another session was opened")
        .await;

    match stream.post(endpoint, initialize).await {
        Err(failure) if stream.settle(initialize.id()) => {
            stream.close();
            Err(Unopened::Failed(failure))
        }
        _ => Ok(()),
    }
}

/// Whether this is the beginning of a stream.
async fn begin(endpoint: &Endpoint, response: Response<Incoming>) -> Result<Response<Incoming>, Unopened> {
    let status = response.status();
    if status.is_success() && is_event_stream(&response) {
        return Ok(response);
    }
    if status.is_success() {
        let text = format!("expected an event stream, got {}", media_type(&response).unwrap_or("no content type"));
        return Err(Unopened::NotOffered(refused(&text, Some(status))));
    }
    // mcp-hub answers 500 in the first moments after its start.
    if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED {
        let body = beginning(response.into_body()).await;
        let text = describe(status, &String::from_utf8_lossy(&body));
        return Err(Unopened::Failed(Failure::Unreachable(text)));
    }
    let sent = Sent { id: None, opens_session: true, in_session: false, repeatable: true };
    Err(Unopened::NotOffered(endpoint.refusal(response, &sent).await.failure))
}

/// Reads up to the event that names the address for messages.
async fn first_event(body: &mut Incoming, decoder: &mut SseDecoder) -> Result<Bytes, String> {
    loop {
        while let Some(event) = decoder.next_event() {
            match event {
                SseEvent::Event { name, data } if name == "endpoint" => return Ok(data),
                other => tracing::debug!(target: "http", "skipped what came before the endpoint: {other:?}"),
            }
        }
        match body.frame().await {
            None => return Err("the stream ended before it named the endpoint".into()),
            Some(Err(e)) => return Err(chain(&e)),
            Some(Ok(frame)) => decoder.push(frame.data_ref().map_or(&[][..], |data| data)),
        }
    }
}

/// The address is relative to that of the stream. Only on the same origin: what we send may hold credentials, and goes
/// nowhere the user did not name.
fn resolve(from: &Uri, address: &[u8]) -> Result<Uri, Failure> {
    let address = String::from_utf8_lossy(address.trim_ascii());
    let refuse = || {
        let text = format!(
            "expected an endpoint on the origin of the stream, got {:?}; connect to that server if you trust it",
            text_without_secrets(&address)
        );
        refused(&text, None)
    };
    let base: Url = from.to_string().parse().map_err(|_| refuse())?;
    let place = base.join(&address).ok().filter(|place| place.origin() == base.origin()).ok_or_else(refuse)?;
    to_uri(&place).map_err(|_| refuse())
}

/// Passes on what the stream brings, until it ends.
async fn read(endpoint: Arc<Endpoint>, stream: Arc<Stream>, mut body: Incoming, mut decoder: SseDecoder) {
    let why = 'reading: loop {
        while let Some(event) = decoder.next_event() {
            match event {
                SseEvent::Event { name, data } if name.is_empty() || name == "message" => {
                    pass_on(&endpoint, &stream, data).await;
                }
                SseEvent::Event { name, .. } => tracing::debug!(target: "http", "skipped an event named {name:?}"),
                // Whose answer it was nobody can tell; unless nobody waits for one.
                SseEvent::TooLarge if stream.books().pending.is_empty() => {
                    tracing::warn!(target: "http", "skipped an event over the message limit");
                }
                SseEvent::TooLarge => break 'reading stream::too_large(endpoint.max_message),
            }
        }
        match body.frame().await {
            None => break "the stream ended".to_owned(),
            Some(Err(e)) => break chain(&e),
            Some(Ok(frame)) => decoder.push(frame.data_ref().map_or(&[][..], |data| data)),
        }
    };
    if stream.close().is_some() {
        endpoint.report_gone(why).await;
    }
}

async fn pass_on(endpoint: &Endpoint, stream: &Stream, data: Bytes) {
    for message in stream::messages(data) {
        match message {
            Ok(message) => {
                if message.is_response() {
                    stream.settle(message.id());
                }
                stream::note_version(endpoint, &message);
                endpoint.emit(Lane::Unsorted, message).await;
            }
            Err(rejected) => tracing::warn!(target: "http", "skipped what the server sent: {}", rejected.fault),
        }
    }
}

/// Sends a message; its answer, if it has one, comes on the stream.
pub(super) async fn send(endpoint: Arc<Endpoint>, message: Message) {
    let stream = endpoint.legacy.stream().filter(|stream| stream.enter(&message));
    let Some(stream) = stream else {
        let failure = Failure::SessionLost("there is no stream; expected initialize to open one".into());
        return endpoint.report_failed(message, failure).await;
    };
    let Err(failure) = stream.post(&endpoint, &message).await else { return };
    if matches!(failure, Failure::Interrupted(_)) {
        let _ = timeout(SAME_DEATH, stream.over.subscribe().wait_for(|over| *over)).await;
    }
    // Answered all the same, or reported with the end of the stream.
    if message.is_request() && !stream.settle(message.id()) {
        return;
    }
    let lost = match &failure {
        Failure::SessionLost(why) => stream.close().map(|rest| (rest, why.clone())),
        _ => None,
    };
    endpoint.report_failed(message, failure).await;
    if let Some((rest, why)) = lost {
        interrupt(&endpoint, rest, &why).await;
    }
}

/// Ends the session to make room for a new one.
pub(super) async fn abandon(endpoint: &Endpoint) {
    interrupt(endpoint, endpoint.legacy.close(), "the session was ended").await;
}

/// Stops waiting for the answer to a request that was cancelled: nobody else does.
pub(super) fn forget(endpoint: &Endpoint, id: &Id) {
    if let Some(stream) = endpoint.legacy.stream() {
        stream.books().pending.remove(id);
    }
}

async fn interrupt(endpoint: &Endpoint, requests: impl IntoIterator<Item = Message>, why: &str) {
    for request in requests {
        endpoint.report_failed(request, Failure::Interrupted(why.to_owned())).await;
    }
}

impl Stream {
    async fn post(&self, endpoint: &Endpoint, message: &Message) -> Result<(), Failure> {
        let response = endpoint.post_at(&self.place, message).await?;
        // Read to the end, so that the connection serves the next message; whatever it says is no answer.
        let _ = timeout(TAKEN_LIMIT, endpoint.read(response)).await;
        Ok(())
    }

    /// Puts a request into the books; `false` when they are closed.
    fn enter(&self, message: &Message) -> bool {
        let mut books = self.books();
        if let Some(id) = message.id().filter(|_| message.is_request() && !books.closed) {
            books.pending.insert(id.clone(), message.clone());
        }
        !books.closed
    }

    /// Takes a request out of the books; `false` when it was not there.
    fn settle(&self, id: Option<&Id>) -> bool {
        id.is_some_and(|id| self.books().pending.remove(id).is_some())
    }

    /// Ends the stream, if it has not ended; gives the requests that will have no answer now.
    fn close(&self) -> Option<Vec<Message>> {
        let mut books = self.books();
        if books.closed {
            return None;
        }
        books.closed = true;
        let reading = books.reading.take();
        let pending = books.pending.drain().map(|(_, request)| request).collect();
        drop(books);
        self.over.send_replace(true);
        // The reader that closes the stream itself has only to say so before it ends.
        if let Some(reading) = reading.filter(|reading| Some(reading.id()) != task::try_id()) {
            reading.abort();
        }
        Some(pending)
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_relative_to_the_stream_and_on_its_origin() {
        let from: Uri = "http://h.example:8080/a/sse?x=1".parse().unwrap();
        let check = |address: &str| resolve(&from, address.as_bytes()).map(|uri| uri.to_string());
        for (address, place) in [
            ("/messages?sessionId=1", "http://h.example:8080/messages?sessionId=1"),
            ("messages?sessionId=1", "http://h.example:8080/a/messages?sessionId=1"),
            ("?sessionId=1", "http://h.example:8080/a/sse?sessionId=1"),
            (" /m#there\n", "http://h.example:8080/m"),
            ("http://h.example:8080/m", "http://h.example:8080/m"),
        ] {
            assert_eq!(check(address).as_deref(), Ok(place), "{address}");
        }
        for address in [
            "//evil.example/m",
            "http://h.example/m",
            "https://h.example:8080/m",
            "file:///m",
            "http://[",
            "\\\\evil/m",
        ] {
            assert!(check(address).unwrap_err().to_string().contains("on the origin of the stream"), "{address}");
        }
    }
}
