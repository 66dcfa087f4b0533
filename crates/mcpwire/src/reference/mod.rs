//! A reference MCP server for tests and the demo: one loop per client session, on a [`Port`].
//!
//! It shows every feature of the versions that live in a session, and carries the fixtures that the official
//! conformance suite asks of a server. Sockets and HTTP sessions are left to the fronts.

mod args;
mod call;
mod completion;
mod host;
mod initialize;
mod logging;
mod outbox;
mod page;
mod prompts;
mod reply;
mod resources;
mod shared;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::{BTreeSet, HashMap};

use mcpwire_proto::{Fault, Id, Kind, Lane, Message, method};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::link::Port;
use args::Args;
use call::{Answer, Ask, Call};
pub use host::{host, host_quic, host_unix};
use initialize::Client;
use logging::Level;
use outbox::{Gone, Outbox};
use reply::Reply;
use shared::Change;
pub use shared::{Item, Settings, Shared};

/// How long the `test_reconnection` tool is silent. A front that closes response streams which have been silent for
/// less than this makes its client come back for the answer (2025-11-25, transports, "Sending Messages to the Server").
pub const RECONNECTION_PAUSE: std::time::Duration = std::time::Duration::from_millis(1000);

/// How many calls of one session run at a time.
const MOST_CALLS: usize = 1024;
/// How many resources one session may watch.
const MOST_SUBSCRIPTIONS: usize = 1024;
/// How many questions of calls wait for the loop.
const ASK_DEPTH: usize = 16;

/// Serves one client until it closes its end; the calls that still run then are ended without an answer.
pub async fn serve(port: Port, shared: Shared) {
    let Port { tx, mut rx } = port;
    let mut changes = shared.changes();
    let (ask, mut asks) = mpsc::channel(ASK_DEPTH);
    let mut session = Session::open(Outbox::new(tx), ask, shared);
    loop {
        // In order: a change is told before the answer of the call that made it, a question is asked before the call
        // that asked it can end.
        let event = tokio::select! {
            biased;
            change = changes.recv() => Event::Changed(change),
            Some(ask) = asks.recv() => Event::Asked(ask),
            Some(ended) = session.calls.join_next_with_id() => Event::Ended(ended),
            packet = rx.recv() => match packet {
                Some(packet) => Event::Came(packet.message),
                None => break,
            },
        };
        if session.handle(event).await.is_err() {
            break;
        }
    }
    session.calls.shutdown().await;
}

/// What wakes the loop.
enum Event {
    Came(Message),
    Asked(Ask),
    Ended(Result<(tokio::task::Id, Reply), JoinError>),
    Changed(Result<Change, RecvError>),
}

/// The parameters of `notifications/cancelled`; the id is kept as it was written.
#[derive(serde::Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow, rename = "requestId")]
    request_id: &'a RawValue,
}

/// One client's session, owned by its loop.
struct Session {
    shared: Shared,
    number: u64,
    outbox: Outbox,
    /// Who the client is; `None` until it has sent `initialize`.
    client: Option<Client>,
    level: watch::Sender<Level>,
    subscriptions: BTreeSet<String>,
    calls: JoinSet<Reply>,
    /// The calls that are owed an answer. A call that is not here (any more) gets none.
    running: HashMap<Id, AbortHandle>,
    ask: mpsc::Sender<Ask>,
    /// What the client is owing us: our id, and the question.
    asked: HashMap<Id, Ask>,
    last_ask: u64,
}

impl Session {
    fn open(outbox: Outbox, ask: mpsc::Sender<Ask>, shared: Shared) -> Session {
        Session {
            number: shared.open_session(),
            shared,
            outbox,
            client: None,
            level: watch::Sender::new(Level::Info),
            subscriptions: BTreeSet::new(),
            calls: JoinSet::new(),
            running: HashMap::new(),
            ask,
            asked: HashMap::new(),
            last_ask: 0,
        }
    }

    async fn handle(&mut self, event: Event) -> Result<(), Gone> {
        match event {
            Event::Came(message) => match message.kind() {
                Kind::Request { id, .. } => match self.request(id, &message) {
                    Some(reply) => self.answer(id, reply).await,
                    None => Ok(()),
                },
                Kind::Notification { .. } => {
                    self.notification(&message);
                    Ok(())
                }
                Kind::Result { id } | Kind::Error { id: Some(id) } => {
                    self.client_answer(id, &message);
                    Ok(())
                }
                Kind::Error { id: None } => Ok(()),
            },
            Event::Asked(ask) => self.ask_client(ask).await,
            Event::Ended(ended) => self.end(ended).await,
            Event::Changed(change) => self.tell(change).await,
        }
    }

    /// Serves a request; `None` if a call was started that answers later.
    fn request(&mut self, id: &Id, message: &Message) -> Option<Reply> {
        let method = message.method()?;
        let args = match Args::of_params(message) {
            Ok(args) => args,
            Err(fault) => return Some(Err(fault.into())),
        };
        let shared = &self.shared;
        let Some(client) = &self.client else {
            return Some(match &**method {
                method::PING => Ok(json!({})),
                method::INITIALIZE => self.initialize(&args),
                other => Err(Fault::Shape(format!("expected initialize first, came {other}")).into()),
            });
        };
        Some(match &**method {
            method::PING => Ok(json!({})),
            method::INITIALIZE => Err(Fault::Shape("expected one initialize, came a second".into()).into()),
            method::TOOLS_LIST => tools::list(&args, client, shared),
            method::TOOLS_CALL => return self.start(id, &args).err().map(Err),
            method::RESOURCES_LIST => resources::list(&args, shared),
            method::RESOURCES_TEMPLATES_LIST => resources::list_templates(&args, shared),
            method::RESOURCES_READ => resources::read(&args, shared),
            method::RESOURCES_SUBSCRIBE => self.subscribe(&args),
            method::RESOURCES_UNSUBSCRIBE => self.unsubscribe(&args),
            method::PROMPTS_LIST => prompts::list(&args, shared),
            method::PROMPTS_GET => prompts::prompt(&args, shared),
            method::COMPLETION_COMPLETE => completion::complete(&args),
            method::LOGGING_SET_LEVEL => self.set_level(&args),
            other => Err(Fault::UnknownMethod(other.to_owned()).into()),
        })
    }

    fn notification(&mut self, message: &Message) {
        if !message.is(method::CANCELLED) {
            return;
        }
        let id = message.read::<Cancelled<'_>>().and_then(|params| Id::from_json(params.request_id.get()));
        if let Some((id, handle)) = id.and_then(|id| self.running.remove_entry(&id)) {
            handle.abort();
            self.asked.retain(|_, ask| ask.call != id);
        }
    }

    fn initialize(&mut self, args: &Args) -> Reply {
        let client = Client::read(args)?;
        let result = initialize::result(&client);
        self.client = Some(client);
        Ok(result)
    }

    fn set_level(&mut self, args: &Args) -> Reply {
        self.level.send_replace(Level::read(args)?);
        Ok(json!({}))
    }

    fn subscribe(&mut self, args: &Args) -> Reply {
        let uri = args.text("uri")?;
        resources::contents(uri, &self.shared)?;
        if self.subscriptions.len() >= MOST_SUBSCRIPTIONS {
            return Err(Fault::Upstream(format!("a session may watch {MOST_SUBSCRIPTIONS} resources")).into());
        }
        self.subscriptions.insert(uri.to_owned());
        Ok(json!({}))
    }

    fn unsubscribe(&mut self, args: &Args) -> Reply {
        self.subscriptions.remove(args.text("uri")?);
        Ok(json!({}))
    }

    /// Starts a call in a task of its own, so that nothing waits for it.
    fn start(&mut self, id: &Id, params: &Args) -> Result<(), reply::Refusal> {
        let Some(client) = &self.client else { return Ok(()) };
        let name = tools::find(params.text("name")?, &self.shared)?;
        let args = params.object("arguments")?;
        let token = params.object("_meta")?.progress_token()?;
        if self.running.contains_key(id) {
            return Err(Fault::Shape(format!("expected an id that is not in use, came {id}")).into());
        }
        if self.running.len() >= MOST_CALLS {
            return Err(Fault::Upstream(format!("a session may have {MOST_CALLS} calls running")).into());
        }
        let call = Call {
            id: id.clone(),
            token,
            session: self.number,
            client: client.clone(),
            level: self.level.subscribe(),
            outbox: self.outbox.clone(),
            ask: self.ask.clone(),
            shared: self.shared.clone(),
            _running: self.shared.start_call(),
        };
        let handle = self.calls.spawn(async move { tools::call(&call, &name, &args).await });
        self.running.insert(id.clone(), handle);
        Ok(())
    }

    /// Answers the call that has ended, unless it was cancelled in the meantime.
    async fn end(&mut self, ended: Result<(tokio::task::Id, Reply), JoinError>) -> Result<(), Gone> {
        let (task, reply) = match ended {
            Ok(ended) => ended,
            Err(e) => (e.id(), Err(Fault::Upstream("the tool failed".into()).into())),
        };
        let Some(id) = self.running.iter().find(|(_, handle)| handle.id() == task).map(|(id, _)| id.clone()) else {
            return Ok(());
        };
        self.running.remove(&id);
        let unanswered: Vec<Id> =
            self.asked.iter().filter(|(_, ask)| ask.call == id).map(|(ask, _)| ask.clone()).collect();
        for ask in unanswered {
            self.asked.remove(&ask);
            let params = format!(r#"{{"requestId":{ask},"reason":"the call that asked has ended"}}"#);
            let message = Message::notification(method::CANCELLED, Some(&params));
            self.outbox.send(Lane::Request(id.clone()), message).await?;
        }
        self.answer(&id, reply).await
    }

    async fn answer(&self, id: &Id, reply: Reply) -> Result<(), Gone> {
        self.outbox.send(Lane::Request(id.clone()), reply::to_message(id, reply)).await
    }

    /// Passes a call's question to the client, on the stream of that call.
    async fn ask_client(&mut self, ask: Ask) -> Result<(), Gone> {
        if !self.running.contains_key(&ask.call) {
            return Ok(());
        }
        self.last_ask += 1;
        let id = Id::from(self.last_ask);
        let message = Message::request(&id, ask.method, Some(&ask.params.to_string()));
        let lane = Lane::Request(ask.call.clone());
        self.asked.insert(id, ask);
        self.outbox.send(lane, message).await
    }

    fn client_answer(&mut self, id: &Id, message: &Message) {
        let Some(ask) = self.asked.remove(id) else {
            tracing::debug!(target: "reference", "an answer nobody waits for: {message}");
            return;
        };
        let payload = message.read().unwrap_or(Value::Null);
        let failed = matches!(message.kind(), Kind::Error { .. });
        // The call may have given up in this moment; then nobody is told.
        let _ = ask.answer.send(if failed { Answer::Refused(payload) } else { Answer::Given(payload) });
    }

    /// Tells the client of a change in what all sessions share.
    async fn tell(&mut self, change: Result<Change, RecvError>) -> Result<(), Gone> {
        if self.client.is_none() {
            return Ok(());
        }
        let changes = match change {
            Ok(change) => vec![change],
            Err(RecvError::Lagged(_)) => Change::all(&self.subscriptions),
            Err(RecvError::Closed) => Vec::new(),
        };
        for change in changes {
            let message = match &change {
                Change::Resource(uri) if !self.subscriptions.contains(uri) => continue,
                Change::Resource(uri) => {
                    Message::notification(method::RESOURCES_UPDATED, Some(&json!({ "uri": uri }).to_string()))
                }
                Change::List(item) => Message::notification(item.list_changed(), None),
            };
            self.outbox.send(Lane::Main, message).await?;
        }
        Ok(())
    }
}
