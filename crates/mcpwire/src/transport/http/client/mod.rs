//! A Streamable HTTP server (2025-03-26 to 2025-11-25) as a link: each message is POSTed, answers come as JSON or as
//! event streams, and a GET stream brings what the server has to say by itself. A server of the older HTTP+SSE
//! (2024-11-05) is the same link; `opening` finds out, `legacy` speaks it. So is one of 2026-07-28: `stateless` sends the
//! requests that say of themselves to be of that version.
//!
//! Nothing is decided here about trying again: a message that did not get through is reported with what became of it.

mod dial;
mod endpoint;
mod exchange;
mod fault;
mod legacy;
mod listen;
mod opening;
mod probe;
mod stateless;
mod status;
mod stream;
mod tls;
mod verify;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use hyper::body::Body;
use mcpwire_proto::frame::DEFAULT_LIMIT;
use mcpwire_proto::{Failure, Id, Kind, Message, Packet, meta, method};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{self, AbortHandle, JoinHandle, JoinSet};
use tokio::time::timeout;
use url::Url;

use self::endpoint::Endpoint;
use crate::channel::Receiver;
use crate::link::{Link, Port};
use crate::target::without_secrets;
use crate::transport::http::PROTOCOL_VERSION;

pub use self::dial::Proxy;
pub use self::fault::SendError;
pub use self::probe::{Probe, Seen};
pub(crate) use self::status::described;
pub use self::tls::Tls;
pub use self::verify::Distrust;

/// How long an answer may still come for a request that was cancelled.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// How long the server may take to accept a message that has no answer. Those that follow wait for it.
const DELIVERY_LIMIT: Duration = Duration::from_secs(10);
/// How long messages that have no answer may still be on their way when we are done.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long the goodbye may take.
const DELETE_LIMIT: Duration = Duration::from_secs(2);
/// How many ended exchanges may stay on the books; each keeps some kilobytes.
const FEW: usize = 16;
/// The most notifications that wait for their turn; they are sent one after the other, to keep their order.
const NOTIFICATIONS: usize = 256;

/// Where to connect to, and how.
#[derive(Clone)]
pub struct Options {
    pub url: Url,
    /// How to show the URL where it holds what nobody is to see, as the values of variables.
    pub shown_as: Option<String>,
    pub transport: Transport,
    /// Sent with every request.
    pub headers: HeaderMap,
    pub tls: Tls,
    pub proxy: Option<Proxy>,
    /// The largest message taken from the server, in bytes.
    pub max_message: usize,
    /// How long to try to resume a stream that was cut.
    pub resume_for: Duration,
    /// How often in a row a stream may be resumed without anything new before the request fails.
    pub max_empty_resumptions: u32,
}

impl Options {
    /// Whatever it speaks, without further headers, trusting whom the system trusts.
    pub fn new(url: Url) -> Options {
        Options {
            url,
            shown_as: None,
            transport: Transport::Auto,
            headers: HeaderMap::new(),
            tls: Tls::default(),
            proxy: None,
            max_message: DEFAULT_LIMIT,
            resume_for: Duration::from_secs(20),
            max_empty_resumptions: 30,
        }
    }

    /// The URL without what may be secret in it.
    pub fn shown(&self) -> String {
        self.shown_as.clone().unwrap_or_else(|| without_secrets(&self.url))
    }
}

impl fmt::Debug for Options {
    /// URLs and headers hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(http::HeaderName::as_str).collect();
        f.debug_struct("Options")
            .field("url", &self.shown())
            .field("transport", &self.transport)
            .field("headers", &names)
            .field("tls", &self.tls)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

/// What the server at a URL speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP, or HTTP+SSE if the server does not take `initialize` that way.
    Auto,
    Streamable,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("TLS settings: {0}")]
    Tls(rustls::Error),
    #[error("the private key does not belong to the client's certificate")]
    KeyMismatch,
    #[error("expected {0} in PEM form: {1}")]
    Pem(&'static str, String),
    #[error("expected an http or https URL with a host, got {0}")]
    Url(String),
}

/// Makes the link. No connection is opened before the first message.
///
/// When the link is dropped the session is deleted on the server; the handle completes when that is done.
pub fn connect(options: Options) -> Result<(Link, JoinHandle<()>), ConnectError> {
    let (link, Port { tx, rx }) = Link::pair();
    let endpoint = Arc::new(Endpoint::new(options, tx)?);
    let (notify, notifications) = mpsc::channel(NOTIFICATIONS);
    let mut deliveries = JoinSet::new();
    deliveries.spawn(send_in_order(Arc::clone(&endpoint), notifications));
    let outbox = Outbox {
        endpoint,
        notify,
        deliveries,
        under_way: HashMap::new(),
        prune_at: FEW,
        listening: None,
        opening: None,
        stateless: HashMap::new(),
        prune_stateless_at: FEW,
        version: None,
    };
    Ok((link, task::spawn(outbox.run(rx))))
}

/// Takes messages and sees to it that each is sent.
struct Outbox {
    endpoint: Arc<Endpoint>,
    notify: mpsc::Sender<(Message, Arc<HeaderMap>)>,
    /// Messages without an answer that are on their way.
    deliveries: JoinSet<()>,
    /// The exchanges whose answers are awaited, and some that have ended since the last look.
    under_way: HashMap<Id, AbortHandle>,
    /// How many there are before the next look.
    prune_at: usize,
    listening: Option<AbortHandle>,
    /// The last `initialize`.
    opening: Option<AbortHandle>,
    /// The requests that stand for themselves and are awaited, and some that are no more: dropping one cancels it.
    stateless: HashMap<Id, oneshot::Sender<()>>,
    prune_stateless_at: usize,
    /// The version that the last of them named.
    version: Option<HeaderValue>,
}

impl Outbox {
    async fn run(mut self, mut packets: Receiver<Packet>) {
        while let Some(packet) = packets.recv().await {
            self.send(packet.message).await;
        }
        self.stop_listening();
        self.under_way.values().for_each(AbortHandle::abort);
        self.stateless.clear();
        drop(self.notify);
        let last_words = async { while self.deliveries.join_next().await.is_some() {} };
        let _ = timeout(LAST_WORDS, last_words).await;
        self.endpoint.legacy.close();
        let _ = timeout(DELETE_LIMIT, self.endpoint.delete_session()).await;
    }

    async fn send(&mut self, message: Message) {
        if let Some(version) = version_of(&message) {
            self.version = Some(version);
            return self.send_stateless(message).await;
        }
        match message.kind() {
            Kind::Request { id, method } => {
                self.prune();
                let endpoint = Arc::clone(&self.endpoint);
                let exchange = if *method == method::INITIALIZE {
                    self.stop_listening();
                    // Whatever an earlier one is still answered with names a session that nobody wants.
                    if let Some(earlier) = self.opening.take() {
                        earlier.abort();
                    }
                    legacy::abandon(&endpoint).await;
                    endpoint.forget_session();
                    let opening = task::spawn(opening::run(endpoint, message.clone()));
                    self.opening = Some(opening.abort_handle());
                    opening
                } else if endpoint.legacy.is_spoken() {
                    task::spawn(legacy::send(endpoint, message.clone()))
                } else {
                    let session = endpoint.headers();
                    task::spawn(exchange::run(endpoint, message.clone(), session))
                };
                self.under_way.insert(id.clone(), exchange.abort_handle());
            }
            Kind::Notification { method } if *method == method::INITIALIZED => {
                // Servers refuse requests until they have seen this one.
                deliver(&self.endpoint, message, &self.endpoint.headers()).await;
                self.stop_listening();
                if self.endpoint.legacy.is_spoken() {
                    return;
                }
                self.listening = Some(task::spawn(listen::run(Arc::clone(&self.endpoint))).abort_handle());
            }
            Kind::Notification { method } if *method == method::CANCELLED => self.cancel(message),
            Kind::Notification { .. } => {
                let headers = self.headers_of(&message);
                if let Err(error) = self.notify.try_send((message, headers)) {
                    tracing::warn!(target: "http", "dropped {}: too many wait already", error.into_inner().0);
                }
            }
            Kind::Result { .. } | Kind::Error { .. } => {
                self.deliver(message);
            }
        }
    }

    async fn send_stateless(&mut self, request: Message) {
        if self.endpoint.transport == Transport::Sse {
            let failure = status::refused("HTTP+SSE has no requests of this version", None);
            return self.endpoint.report_failed(request, failure).await;
        }
        let Some(id) = request.id().cloned() else { return };
        self.prune();
        let (cancel, cancelled) = oneshot::channel();
        self.stateless.insert(id, cancel);
        task::spawn(stateless::run(Arc::clone(&self.endpoint), request, cancelled));
    }

    /// What a notification is sent with: it says by itself neither its session nor its version.
    fn headers_of(&self, notification: &Message) -> Arc<HeaderMap> {
        match &self.version {
            Some(version) if !self.endpoint.has_sessions() => {
                let mut headers = self.endpoint.stateless_headers(notification);
                headers.insert(PROTOCOL_VERSION, version.clone());
                Arc::new(headers)
            }
            _ => self.endpoint.headers(),
        }
    }

    fn deliver(&mut self, message: Message) {
        let (endpoint, session) = (Arc::clone(&self.endpoint), self.endpoint.headers());
        self.deliveries.spawn(async move { deliver(&endpoint, message, &session).await });
    }

    /// Closing its stream cancels a request that stands for itself. Of others the server is told; and some servers never
    /// end their stream: we do.
    fn cancel(&mut self, notification: Message) {
        let id = meta::cancelled_request(&notification);
        if let Some(cancel) = id.as_ref().and_then(|id| self.stateless.remove(id))
            && (!cancel.is_closed() || !id.as_ref().is_some_and(|id| self.under_way.contains_key(id)))
        {
            return;
        }
        // One that was answered long ago is on no book; without sessions it can only have been of that kind.
        if self.version.is_some() && !self.endpoint.has_sessions() {
            return;
        }
        let exchange = id.as_ref().and_then(|id| self.under_way.remove(id));
        self.deliver(notification);
        if let (Some(id), Some(exchange)) = (id, exchange) {
            let endpoint = Arc::clone(&self.endpoint);
            task::spawn(async move {
                tokio::time::sleep(CANCEL_GRACE).await;
                exchange.abort();
                legacy::forget(&endpoint, &id);
            });
        }
    }

    /// Forgets exchanges that have ended, now and then.
    fn prune(&mut self) {
        while self.deliveries.try_join_next().is_some() {}
        if self.under_way.len() >= self.prune_at {
            self.under_way.retain(|_, exchange| !exchange.is_finished());
            self.prune_at = self.under_way.len() + FEW;
        }
        if self.stateless.len() >= self.prune_stateless_at {
            self.stateless.retain(|_, cancel| !cancel.is_closed());
            self.prune_stateless_at = self.stateless.len() + FEW;
        }
    }

    fn stop_listening(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
    }
}

/// The version that a request says it is of, if it is one that stands for itself.
fn version_of(message: &Message) -> Option<HeaderValue> {
    let request = Some(message).filter(|message| message.is_request())?;
    HeaderValue::from_str(meta::declared(request)?.version.as_deref()?).ok()
}

async fn send_in_order(endpoint: Arc<Endpoint>, mut notifications: mpsc::Receiver<(Message, Arc<HeaderMap>)>) {
    while let Some((message, session)) = notifications.recv().await {
        deliver(&endpoint, message, &session).await;
    }
}

/// Sends a message that has no answer. What the server says in return, if anything, is not waited for.
async fn deliver(endpoint: &Arc<Endpoint>, message: Message, session: &HeaderMap) {
    if endpoint.legacy.is_spoken() {
        return legacy::send(Arc::clone(endpoint), message).await;
    }
    match timeout(DELIVERY_LIMIT, endpoint.post(&message, session)).await {
        Ok(Ok(response)) => {
            if !response.body().is_end_stream() {
                let endpoint = Arc::clone(endpoint);
                task::spawn(async move {
                    tokio::select! {
                        () = stream::drain(&endpoint, response) => {}
                        () = endpoint.link_gone() => {}
                    }
                });
            }
        }
        Ok(Err(Failure::SessionLost(why))) if !endpoint.is_current(session) => {
            tracing::debug!(target: "http", "{message} came too late for its session: {why}");
        }
        Ok(Err(failure)) => endpoint.report_failed(message, failure).await,
        Err(_) => {
            let failure = Failure::Interrupted(format!("the server did not take it within {DELIVERY_LIMIT:?}"));
            endpoint.report_failed(message, failure).await;
        }
    }
}
