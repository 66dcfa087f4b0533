//! One request of the client: its options, its deadline, and its withdrawal.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcpwire_proto::{Id, Message, Object, method};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::books::{Books, Pending};
use super::{Answer, Error};
use crate::link::Event;

/// Called with each sign of progress of a request, in order. It must not block.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// How far a request has come (`notifications/progress`).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Progress {
    pub progress: f64,
    #[serde(default)]
    pub total: Option<f64>,
    #[serde(default)]
    pub message: Option<String>,
}

/// What is special about a request. The default is nothing.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// How long the answer may take, in place of [`Options::timeout`](super::Options::timeout); zero is for ever.
    pub timeout: Option<Duration>,
    /// Whether each sign of progress starts that time anew.
    pub reset_on_progress: bool,
    pub on_progress: Option<OnProgress>,
    pub cancel: Option<Cancel>,
}

impl RequestOptions {
    /// The answer may take this long.
    pub fn within(timeout: Duration) -> RequestOptions {
        RequestOptions { timeout: Some(timeout), ..RequestOptions::default() }
    }

    /// The request is withdrawn by this.
    pub fn cancelled_by(mut self, cancel: &Cancel) -> RequestOptions {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Signs of progress are asked for, and given to this function.
    pub fn on_progress(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> RequestOptions {
        self.on_progress = Some(Arc::new(tell));
        self
    }

    fn wants_progress(&self) -> bool {
        self.reset_on_progress || self.on_progress.is_some()
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RequestOptions");
        shown.field("timeout", &self.timeout).field("reset_on_progress", &self.reset_on_progress);
        shown.finish_non_exhaustive()
    }
}

/// Withdraws requests: any number of them, before they are sent or while they are under way. Clones are the same.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<Option<String>>>);

impl Cancel {
    pub fn new() -> Cancel {
        Cancel(Arc::new(watch::Sender::new(None)))
    }

    /// The requests fail with [`Error::Aborted`], and the server is told.
    pub fn cancel(&self) {
        self.cancel_because("Aborted");
    }

    /// The same, with a reason for the caller and the server to read. The first reason counts.
    pub fn cancel_because(&self, reason: &str) {
        self.0.send_if_modified(|given| {
            let first = given.is_none();
            given.get_or_insert_with(|| reason.to_owned());
            first
        });
    }

    fn reason(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    async fn cancelled(&self) -> String {
        let mut given = self.0.subscribe();
        let reason = given.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_default() // its sender lives as long as we do
    }
}

impl Default for Cancel {
    fn default() -> Cancel {
        Cancel::new()
    }
}

/// Sends a request and waits for its answer. If the future is dropped, or ends without the answer, the request is withdrawn.
pub(super) async fn request(
    books: &Books,
    method: &str,
    params: &impl Serialize,
    options: RequestOptions,
    limit: Duration,
) -> Result<Answer, Error> {
    let params = params_text(params)?;
    if let Some(reason) = options.cancel.as_ref().and_then(Cancel::reason) {
        return Err(Error::Aborted(reason));
    }
    let (reply, mut answer) = oneshot::channel();
    let beat = Arc::new(Notify::new());
    let pending = Pending { reply, on_progress: options.on_progress.clone(), beat: Arc::clone(&beat) };
    let (id, tx) = books.enter(pending)?;
    let params = if options.wants_progress() { with_progress_token(&params, &id) } else { params };
    let message = Message::request(&id, method, Some(&params));
    let mut sent = false;
    let mut owed = Owed { books, id, tell: false, reason: "nobody waits for the answer any more".to_owned() };
    let mut sending = pin!(async move { tx.send(Event::Packet(message.into())).await.is_ok() });
    let mut deadline = after(limit);
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => {
                let answer = answer.unwrap_or_else(|_| Err(Error::closed(None)))?;
                return Ok(Answer { method: method.to_owned(), message: answer });
            }
            taken = &mut sending, if !sent => {
                sent = true;
                // The handshake must not be cancelled (2025-11-25, cancellation).
                owed.tell = method != method::INITIALIZE;
                if !taken {
                    return Err(Error::closed(books.why().as_deref()));
                }
            }
            () = beat.notified(), if options.reset_on_progress => deadline = after(limit),
            reason = cancelled(options.cancel.as_ref()) => {
                owed.reason.clone_from(&reason);
                return Err(Error::Aborted(reason));
            }
            () = until(deadline) => {
                owed.reason = "timed out".to_owned();
                return Err(Error::Timeout(limit));
            }
        }
    }
}

/// Withdraws a request that goes without its answer.
struct Owed<'a> {
    books: &'a Books,
    id: Id,
    /// The server has the request, and is to be told.
    tell: bool,
    reason: String,
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        self.books.withdraw(&self.id, self.tell, &self.reason);
    }
}

/// Parameters as they go over the wire: an object always, since some servers insist on one.
pub(super) fn params_text(params: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string(params).map_err(|e| Error::Params(e.to_string()))?;
    match text.as_bytes().first() {
        Some(b'{') => Ok(text),
        _ if text == "null" => Ok("{}".to_owned()),
        _ => Err(Error::Params(text.chars().take(40).collect())),
    }
}

fn with_progress_token(params: &str, token: &Id) -> String {
    let mut params = Object::parse(params).unwrap_or_default();
    let mut meta = params.object("_meta").unwrap_or_default();
    meta.set("progressToken", token.as_json());
    let meta = meta.to_string();
    params.set("_meta", meta);
    params.to_string()
}

/// When this much time has passed; zero is never.
pub(super) fn after(limit: Duration) -> Option<Instant> {
    if limit.is_zero() { None } else { Instant::now().checked_add(limit) }
}

pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

pub(super) async fn cancelled(cancel: Option<&Cancel>) -> String {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}
