//! An MCP client on a link: requests in, answers out, opened when first needed.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpwire_proto::version::V2025_11_25;
use mcpwire_proto::{Fault, Id, Kind, Message, Packet, meta, method};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{self, AbortHandle};
use tokio::time::timeout;

use super::Service;
use crate::channel::{Receiver, Sender};
use crate::link::{Event, Link, Port};

/// How many messages of progress wait to be sent on; of more, some are lost.
const PROGRESS_DEPTH: usize = 64;

/// Why a request has no result.
#[derive(Debug, Clone)]
pub(super) enum Failed {
    /// The server's error.
    Refused { code: i64, message: String },
    /// There is no session any more, or none could be had.
    NoSession(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Refused { message, .. } | Failed::NoSession(message) => f.write_str(message),
        }
    }
}

/// A session with the target.
#[derive(Debug)]
pub(super) struct Caller {
    to_server: Sender<Event>,
    waiting: Arc<Mutex<HashMap<Id, Waiting>>>,
    next: AtomicU64,
    reader: AbortHandle,
    capabilities: Value,
}

#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Message>,
    progress: Option<mpsc::Sender<Message>>,
}

impl Caller {
    /// Opens a session.
    pub(super) async fn open(service: &Service) -> Result<Caller, Failed> {
        let (link, Port { tx, rx }) = Link::pair();
        if !matches!(timeout(service.options.session_timeout, service.links.send(link)).await, Ok(Ok(()))) {
            return Err(Failed::NoSession("nobody takes a new session".to_owned()));
        }
        let waiting = Arc::default();
        let reader = task::spawn(read(rx, tx.clone(), Arc::clone(&waiting))).abort_handle();
        let mut caller = Caller { to_server: tx, waiting, next: AtomicU64::new(1), reader, capabilities: Value::Null };
        let params = json!({
            "protocolVersion": V2025_11_25,
            "capabilities": {},
            "clientInfo": { "name": "mcpwire", "version": env!("CARGO_PKG_VERSION") },
        });
        let mut answer = caller.request(method::INITIALIZE, params).await?;
        caller.capabilities = answer["capabilities"].take();
        caller.send(Message::notification(method::INITIALIZED, None)).await?;
        Ok(caller)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.reader.is_finished()
    }

    /// Whether the server has tools, prompts or resources at all.
    pub(super) fn offers(&self, what: &str) -> bool {
        self.capabilities.get(what).is_some_and(Value::is_object)
    }

    /// The result of a request, read.
    pub(super) async fn request(&self, method: &str, params: Value) -> Result<Value, Failed> {
        let answer = self.start(method, params, false).await?.answer().await?;
        Ok(answer.read().unwrap_or_default())
    }

    /// A request under way; dropping it cancels it. With `progress`, what the server tells of it can be heard.
    pub(super) async fn start(&self, method: &str, mut params: Value, progress: bool) -> Result<Call<'_>, Failed> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = Id::from(number);
        let (answer, answered) = oneshot::channel();
        let (tell, told) = mpsc::channel(PROGRESS_DEPTH);
        if progress {
            params["_meta"] = json!({ "progressToken": number });
        }
        let message = Message::request(&id, method, Some(&params.to_string()));
        lock(&self.waiting).insert(id.clone(), Waiting { answer, progress: progress.then_some(tell) });
        let cancellable = method != method::INITIALIZE;
        let call = Call { caller: self, id, answered, progress: told, cancellable };
        self.send(message).await?;
        // The reader may have ended, and cleared the table, just before we were entered in it.
        if self.is_open() { Ok(call) } else { Err(ended()) }
    }

    async fn send(&self, message: Message) -> Result<(), Failed> {
        self.to_server.send(Event::Packet(message.into())).await.map_err(|_| ended())
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Call<'a> {
    caller: &'a Caller,
    id: Id,
    answered: oneshot::Receiver<Message>,
    pub(super) progress: mpsc::Receiver<Message>,
    cancellable: bool,
}

impl Call<'_> {
    /// Waits for the result.
    pub(super) async fn answer(&mut self) -> Result<Message, Failed> {
        answered(&mut self.answered).await
    }

    /// What comes next: progress, in order and before the answer, or the answer.
    pub(super) async fn next(&mut self) -> Result<Step, Failed> {
        tokio::select! {
            biased;
            Some(progress) = self.progress.recv() => Ok(Step::Progress(progress)),
            answer = answered(&mut self.answered) => answer.map(Step::Answer),
        }
    }
}

/// What a call has to tell.
pub(super) enum Step {
    Progress(Message),
    Answer(Message),
}

async fn answered(answer: &mut oneshot::Receiver<Message>) -> Result<Message, Failed> {
    #[derive(Deserialize)]
    struct Error {
        code: i64,
        #[serde(default)]
        message: String,
    }
    let answer = answer.await.map_err(|_| ended())?;
    if let Kind::Result { .. } = answer.kind() {
        return Ok(answer);
    }
    let error = answer.read().unwrap_or(Error { code: 0, message: "the server failed".to_owned() });
    Err(Failed::Refused { code: error.code, message: error.message })
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let unanswered = lock(&self.caller.waiting).remove(&self.id).is_some();
        if unanswered && self.cancellable {
            let params = format!(r#"{{"requestId":{},"reason":"the caller is gone"}}"#, self.id);
            let cancelled = Message::notification(method::CANCELLED, Some(&params));
            // With no room the server is so busy that it would not hear it in time either.
            let _ = self.caller.to_server.try_send(Event::Packet(cancelled.into()));
        }
    }
}

/// Hands answers and progress to those who wait for them. We offer the server nothing, so its questions are refused.
async fn read(mut packets: Receiver<Packet>, to_server: Sender<Event>, waiting: Arc<Mutex<HashMap<Id, Waiting>>>) {
    while let Some(Packet { message, .. }) = packets.recv().await {
        match message.kind() {
            Kind::Result { id } | Kind::Error { id: Some(id) } => {
                let found = lock(&waiting).remove(id);
                if let Some(found) = found {
                    // Whoever asked may have gone in this moment.
                    let _ = found.answer.send(message);
                }
            }
            Kind::Notification { method } if *method == method::PROGRESS => {
                let known = lock(&waiting);
                let listener = meta::progress_token(&message).and_then(|token| known.get(&token)?.progress.as_ref());
                if let Some(listener) = listener {
                    let _ = listener.try_send(message.clone());
                }
            }
            Kind::Request { id, method } => {
                let answer = match &**method {
                    method::PING => Message::result(id, "{}"),
                    other => Fault::UnknownMethod(other.to_owned()).to_message(Some(id)),
                };
                if to_server.send(Event::Packet(answer.into())).await.is_err() {
                    break;
                }
            }
            Kind::Notification { .. } | Kind::Error { id: None } => {}
        }
    }
    // Nobody is answered any more: the senders go, and tell by that.
    lock(&waiting).clear();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended() -> Failed {
    Failed::NoSession("the session with the server has ended".to_owned())
}
