//! The server at the other end: its address, our session with it, and single HTTP requests to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION, PROXY_AUTHORIZATION, USER_AGENT,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mcpwire_proto::headers::Tools;
use mcpwire_proto::method::{self, Method as Rpc};
use mcpwire_proto::{Failure, Fault, Lane, Message, Packet};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::dial::Dial;
use super::fault::{SendError, chain};
use super::legacy::Legacy;
use super::status::{self, Sent};
use super::{ConnectError, Options, Transport};
use crate::channel::Sender;
use crate::link::Event;
use crate::target::{text_without_secrets, without_secrets};
use crate::transport::http::{EVENT_STREAM, JSON, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};

/// Node's and uvicorn's servers close an idle connection after 5 s. A request written to one that is just being closed
/// may or may not have been executed, so we close first.
const IDLE_LIMIT: Duration = Duration::from_secs(4);
/// How long the body of an error may take: it is only an explanation.
const ERROR_BODY_LIMIT: Duration = Duration::from_secs(2);
const MOST_REDIRECTS: usize = 3;
/// How often a request is sent that the server did not process.
const MAX_TRIES: usize = 4;
/// How many characters of a session's id are shown.
const MAX_ID_SHOWN: usize = 8;
const PING_INTERVAL: Duration = Duration::from_secs(30);

pub(super) struct Endpoint {
    http: Client<HttpsConnector<Dial>, Full<Bytes>>,
    /// Where the user said the server is.
    home: Uri,
    /// Moves when the server redirects us, for as long as the session lasts.
    uri: Mutex<Uri>,
    session: Mutex<Session>,
    events: Sender<Event>,
    pub(super) transport: Transport,
    pub(super) legacy: Legacy,
    /// Whose parameters have headers (2026-07-28).
    tools: Mutex<Tools>,
    pub(super) max_message: usize,
    pub(super) resume_for: Duration,
    pub(super) max_empty_resumptions: u32,
}

/// Our session, and the headers that every request in it carries.
#[derive(Debug)]
struct Session {
    headers: Arc<HeaderMap>,
    /// An `initialize` was sent: from then on only its answer names a session.
    opened: bool,
}

impl Endpoint {
    pub(super) fn new(options: Options, events: Sender<Event>) -> Result<Endpoint, ConnectError> {
        let Options {
            url,
            shown_as: _,
            transport,
            mut headers,
            tls,
            proxy,
            max_message,
            resume_for,
            max_empty_resumptions,
        } = options;
        let secure = url.scheme() == "https";
        let uri = to_uri(&url)?;
        if let Some(authorization) = proxy.as_ref().filter(|_| !secure).and_then(|proxy| proxy.authorization.clone()) {
            headers.insert(PROXY_AUTHORIZATION, authorization);
        }
        let user_agent = HeaderValue::from_static(concat!("mcpwire/", env!("CARGO_PKG_VERSION")));
        headers.entry(USER_AGENT).or_insert(user_agent);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        if let Some(host) = host(&url) {
            headers.entry(HOST).or_insert(host);
        }
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls.config(secure)?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(Dial::new(proxy, resume_for));
        let http = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .http2_keep_alive_interval(PING_INTERVAL)
            .build(connector);
        let session = Mutex::new(Session { headers: Arc::new(headers), opened: false });
        let legacy = Legacy::new(transport == Transport::Sse);
        Ok(Endpoint {
            http,
            home: uri.clone(),
            uri: Mutex::new(uri),
            session,
            events,
            transport,
            legacy,
            tools: Mutex::default(),
            max_message,
            resume_for,
            max_empty_resumptions,
        })
    }

    /// Sends a message. An answer that is no success has become a failure.
    pub(super) async fn post(&self, message: &Message, headers: &HeaderMap) -> Result<Response<Incoming>, Failure> {
        self.offer(message, headers).await.map_err(|declined| declined.failure)
    }

    /// The same, and it tells whether a server of the older transport would refuse the message like this.
    pub(super) async fn offer(&self, message: &Message, headers: &HeaderMap) -> Result<Response<Incoming>, Declined> {
        let opens_session = message.is(method::INITIALIZE);
        self.log("client -> server", message);
        let in_session = headers.contains_key(SESSION_ID);
        let response = self.request(Method::POST, headers, message.as_bytes()).await?;
        if response.status().is_success() {
            self.adopt_session(response.headers(), opens_session);
            return Ok(response);
        }
        let sent = Sent { id: message.id(), opens_session, in_session, repeatable: is_repeatable(message) };
        Err(self.refusal(response, &sent).await)
    }

    /// Sends a message with these headers; what the answer means is left to the caller.
    pub(super) async fn post_as_it_is(
        &self,
        message: &Message,
        headers: &HeaderMap,
    ) -> Result<Response<Incoming>, Failure> {
        self.log("client -> server", message);
        Ok(self.request(Method::POST, headers, message.as_bytes()).await?)
    }

    /// Sends a message to an address that the server named (2024-11-05).
    pub(super) async fn post_at(&self, place: &Mutex<Uri>, message: &Message) -> Result<Response<Incoming>, Failure> {
        self.log("client -> server", message);
        let response = self.request_at(place, Method::POST, &self.headers(), message.as_bytes()).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let opens_session = message.is(method::INITIALIZE);
        let sent = Sent { id: message.id(), opens_session, in_session: true, repeatable: is_repeatable(message) };
        Err(self.refusal(response, &sent).await.failure)
    }

    /// Asks for the stream of an HTTP+SSE server; whether it is one, its first event will tell.
    pub(super) async fn get_legacy(&self) -> Result<Response<Incoming>, Failure> {
        let mut headers = self.headers().as_ref().clone();
        ask_for_stream(&mut headers);
        Ok(self.request(Method::GET, &headers, &Bytes::new()).await?)
    }

    /// Opens a stream: the listening one, or the rest of the one that the event id belongs to.
    pub(super) async fn get(
        &self,
        session: &HeaderMap,
        last_event_id: Option<&HeaderValue>,
    ) -> Result<Response<Incoming>, Refusal> {
        let in_session = session.contains_key(SESSION_ID);
        let mut headers = session.clone();
        ask_for_stream(&mut headers);
        if let Some(id) = last_event_id {
            headers.insert(LAST_EVENT_ID, id.clone());
        }
        let response =
            self.request(Method::GET, &headers, &Bytes::new()).await.map_err(|error| Refusal::Failed(error.into()))?;
        match response.status() {
            StatusCode::OK if is_event_stream(&response) => Ok(response),
            StatusCode::CONFLICT => Err(Refusal::Taken),
            status if status.is_server_error() => Err(Refusal::Failed(Failure::Unreachable(format!("HTTP {status}")))),
            status => {
                let sent = Sent { id: None, opens_session: false, in_session, repeatable: true };
                match self.refusal(response, &sent).await.failure {
                    Failure::SessionLost(why) => Err(Refusal::SessionLost(why)),
                    _ => Err(Refusal::NotOffered(status)),
                }
            }
        }
    }

    /// Tells the server that we are done. Whether it listens is its own affair.
    pub(super) async fn delete_session(&self) {
        if !self.headers().contains_key(SESSION_ID) {
            return;
        }
        match self.request(Method::DELETE, &self.headers(), &Bytes::new()).await {
            Ok(response) => tracing::debug!(target: "http", "session deleted: HTTP {}", response.status()),
            Err(failure) => tracing::debug!(target: "http", "session not deleted: {failure}"),
        }
    }

    pub(super) fn forget_session(&self) {
        *self.uri.lock().unwrap_or_else(PoisonError::into_inner) = self.home.clone();
        let mut session = self.session();
        let headers = Arc::make_mut(&mut session.headers);
        headers.remove(SESSION_ID);
        headers.remove(PROTOCOL_VERSION);
        session.opened = true;
    }

    pub(super) fn awaits_version(&self) -> bool {
        let session = self.session();
        session.opened && !session.headers.contains_key(PROTOCOL_VERSION)
    }

    /// The answer to `initialize` says which version is spoken from now on.
    pub(super) fn note_version(&self, version: &str) {
        if let Ok(version) = HeaderValue::from_str(version) {
            Arc::make_mut(&mut self.session().headers).insert(PROTOCOL_VERSION, version);
        }
    }

    pub(super) async fn emit(&self, lane: Lane, message: Message) {
        self.log("server -> client", &message);
        let _ = self.events.send(Event::Packet(Packet::new(lane, message))).await;
    }

    /// Completes when nobody is left to be told anything.
    pub(super) async fn link_gone(&self) {
        self.events.closed().await;
    }

    pub(super) async fn report_failed(&self, message: Message, failure: Failure) {
        let _ = self.events.send(Event::Failed { message, failure }).await;
    }

    pub(super) async fn report_gone(&self, why: String) {
        let _ = self.events.send(Event::Gone(why)).await;
    }

    pub(super) async fn report_session_lost(&self, why: String) {
        let _ = self.events.send(Event::SessionLost(why)).await;
    }

    /// Reads a whole body, up to the largest message taken.
    pub(super) async fn read(&self, response: Response<Incoming>) -> Result<Bytes, Failure> {
        let announced = response.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
        let too_large = || status::refused(&Fault::TooLarge { limit: self.max_message }.to_string(), None);
        if announced.is_some_and(|length| length > self.max_message) {
            return Err(too_large());
        }
        let mut body = response.into_body();
        let mut whole = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| Failure::Interrupted(chain(&e)))?;
            let Ok(data) = frame.into_data() else { continue };
            if whole.is_empty() && body.is_end_stream() {
                return if data.len() > self.max_message { Err(too_large()) } else { Ok(data) };
            }
            if whole.is_empty() {
                whole.reserve(announced.unwrap_or(data.len()));
            }
            if whole.len() + data.len() > self.max_message {
                return Err(too_large());
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.freeze())
    }

    pub(super) async fn request(
        &self,
        method: Method,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<Incoming>, SendError> {
        self.request_at(&self.uri, method, headers, body).await
    }

    async fn request_at(
        &self,
        place: &Mutex<Uri>,
        method: Method,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<Incoming>, SendError> {
        for _ in 0..=MOST_REDIRECTS {
            let uri = place.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let response = self.send(&uri, &method, headers, body).await?;
            match redirect(&uri, &response)? {
                None => return Ok(response),
                Some(moved) => {
                    // The path may hold a secret.
                    tracing::info!(target: "http", "the server redirects to another path: HTTP {}", response.status());
                    *place.lock().unwrap_or_else(PoisonError::into_inner) = moved;
                }
            }
        }
        Err(SendError::RedirectLoop)
    }

    /// One request. A connection that closes in good order leaves requests behind that it did not process: they go to the next
    /// one at once, as a message without an answer would otherwise be lost. Whether to go on after that is for others to decide.
    async fn send(
        &self,
        uri: &Uri,
        method: &Method,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<Incoming>, SendError> {
        let mut tries = 0;
        loop {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            tries += 1;
            match self.http.request(request).await.map_err(SendError::from) {
                Err(SendError::NotProcessed(why)) if tries < MAX_TRIES => {
                    tracing::debug!(target: "http", "the server did not process a request: {why}; sending it again");
                }
                outcome => return outcome,
            }
        }
    }

    /// Where the server is, as far as redirects have told.
    pub(super) fn uri(&self) -> Uri {
        self.uri.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn refusal(&self, response: Response<Incoming>, sent: &Sent<'_>) -> Declined {
        let (head, body) = response.into_parts();
        let shown = beginning(body).await;
        Declined {
            failure: status::failure(head.status, &head.headers, &shown, sent),
            by_older: status::by_older(head.status, &shown, sent),
        }
    }

    fn adopt_session(&self, headers: &HeaderMap, opens_session: bool) {
        let Some(id) = headers.get(SESSION_ID) else { return };
        let mut session = self.session();
        if opens_session || (!session.opened && !session.headers.contains_key(SESSION_ID)) {
            Arc::make_mut(&mut session.headers).insert(SESSION_ID, id.clone());
        }
    }

    fn log(&self, direction: &str, message: &Message) {
        if tracing::enabled!(target: "wire", tracing::Level::DEBUG) {
            let session = self.session().headers.get(SESSION_ID).map_or_else(|| "none".to_owned(), abbreviated);
            tracing::debug!(target: "wire", "{direction} {message} session={session}");
            tracing::trace!(target: "wire", "{}", String::from_utf8_lossy(message.as_bytes()));
        }
    }

    /// Whether this is still our session; what a lost one reports late is of no interest.
    pub(super) fn is_current(&self, session: &HeaderMap) -> bool {
        self.session().headers.get(SESSION_ID) == session.get(SESSION_ID)
    }

    /// The headers of the session as it is now. A message keeps those it was taken with: it must not end up in another
    /// session, or in none, while a new one is being opened.
    pub(super) fn headers(&self) -> Arc<HeaderMap> {
        Arc::clone(&self.session().headers)
    }

    /// The headers of a message that stands for itself.
    pub(super) fn stateless_headers(&self, message: &Message) -> HeaderMap {
        let mut headers = self.headers().as_ref().clone();
        headers.remove(SESSION_ID);
        headers.remove(PROTOCOL_VERSION);
        for (name, value) in mcpwire_proto::headers::derive(message, &self.tools()) {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(&*name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        headers
    }

    pub(super) fn tools(&self) -> MutexGuard<'_, Tools> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an `initialize` was ever sent.
    pub(super) fn has_sessions(&self) -> bool {
        self.session().opened
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a message was not taken.
#[derive(Debug)]
pub(super) struct Declined {
    pub(super) failure: Failure,
    /// A server that speaks only HTTP+SSE declines `initialize` like this.
    pub(super) by_older: bool,
}

impl From<SendError> for Declined {
    fn from(error: SendError) -> Declined {
        Declined { failure: error.into(), by_older: false }
    }
}

/// Why there is no stream.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The server has none (405), or not for us.
    NotOffered(StatusCode),
    /// Another one is open (409).
    Taken,
    SessionLost(String),
    Failed(Failure),
}

/// Whether a message does no harm when it is sent twice. Of those without an answer none is ever sent again.
pub(super) fn is_repeatable(message: &Message) -> bool {
    !message.is_request() || message.method().is_some_and(Rpc::is_repeatable)
}

fn ask_for_stream(headers: &mut HeaderMap) {
    headers.remove(CONTENT_TYPE);
    headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
}

pub(super) fn is_event_stream(response: &Response<Incoming>) -> bool {
    media_type(response).is_some_and(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM))
}

pub(super) fn media_type(response: &Response<Incoming>) -> Option<&str> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

pub(super) fn to_uri(url: &Url) -> Result<Uri, ConnectError> {
    let mut url = url.clone();
    url.set_fragment(None);
    let usable = matches!(url.scheme(), "http" | "https") && url.has_host();
    url.as_str().parse().ok().filter(|_| usable).ok_or_else(|| ConnectError::Url(without_secrets(&url)))
}

/// What the `Host` header says: no port where it goes without saying.
fn host(url: &Url) -> Option<HeaderValue> {
    let name = url.host_str()?;
    let host = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
    HeaderValue::from_str(&host).ok()
}

/// Enough of a session's id to tell it from others. Who knows all of it can use the session.
fn abbreviated(id: &HeaderValue) -> String {
    let id = String::from_utf8_lossy(id.as_bytes());
    let shown = MAX_ID_SHOWN.min(id.chars().count() / 2);
    id.chars().take(shown).chain("…".chars()).collect()
}

/// As much of a body as an error is judged by.
pub(super) async fn beginning(mut body: Incoming) -> Vec<u8> {
    let mut read = Vec::new();
    let until = Instant::now() + ERROR_BODY_LIMIT;
    while read.len() < status::MOST_READ
        && let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await
    {
        read.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
    }
    read.truncate(status::MOST_READ);
    read
}

/// Where a redirect that keeps method and body (307, 308) leads. Only on the same origin: what we send may hold
/// credentials, and goes nowhere the user did not name.
fn redirect(from: &Uri, response: &Response<Incoming>) -> Result<Option<Uri>, SendError> {
    let status = response.status();
    if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default();
    let shown = || text_without_secrets(location).chars().take(300).collect();
    let refuse = || SendError::Redirected { status, location: shown() };
    let base: Url = from.to_string().parse().map_err(|_| refuse())?;
    let moved = base.join(location).map_err(|_| refuse())?;
    let keeps = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if !keeps || location.is_empty() || moved.origin() != base.origin() {
        return Err(refuse());
    }
    to_uri(&moved).map(Some).map_err(|_| refuse())
}
