//! An Orchestra orchestrator as a link: an MCP server in this process that answers by calls over QUIC.
//!
//! Each request is a task of its own, so a slow call holds nothing up. The orchestrator keeps no session of ours: after a
//! lost connection the next call makes a new one, and the client is told that lists may have changed.

mod era;
mod lists;
mod methods;
mod reply;
mod resources;
mod tools;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mcpwire_proto::{Failure, Id, Kind, Lane, Message, Packet, meta, method};
use tokio::task::{self, AbortHandle, JoinError, JoinHandle, JoinSet};

use self::reply::{Outcome, Refusal};
use super::call::{self, NoAnswer};
use super::dial::Peer;
use super::frame::{Budget, LONGEST};
use super::proto::{Request, Response};
use super::{ORCHESTRA_ALPN, TargetOptions, Unusable, tls};
use crate::channel::Sender;
use crate::link::{Event, Link, Port};

/// Memory for answers that are still arriving.
const ARRIVING: usize = 8 * LONGEST;

/// Makes the link. No connection is made before the first message. When the link is dropped the connection is closed; the
/// handle completes when it is.
pub fn connect(options: TargetOptions) -> Result<(Link, JoinHandle<()>), Unusable> {
    let config = tls::client(&options.identity, ORCHESTRA_ALPN)?;
    let (link, port) = Link::pair();
    let orchestrator = Orchestrator {
        peer: Arc::new(Peer::new("orchestrator", options.address, config, options.wait)),
        budget: Budget::new(ARRIVING),
        session: super::uuid(),
        streaming: Mutex::default(),
        events: port.tx.clone(),
    };
    Ok((link, task::spawn(run(Arc::new(orchestrator), port))))
}

/// What the requests of one link share.
#[derive(Debug)]
struct Orchestrator {
    peer: Arc<Peer>,
    budget: Budget,
    /// Told with every tool call.
    session: String,
    /// What is known of tools and answers in pieces, on the connection of that number.
    streaming: Mutex<(u64, HashMap<String, Streaming>)>,
    events: Sender<Event>,
}

impl Orchestrator {
    /// One call; `kind` tells in the request's id what it is for.
    async fn call(&self, kind: &str, id: &Id, request: Request) -> Result<Response, NoAnswer> {
        call::call(&self.peer, &self.budget, request_id(kind, id), request).await
    }

    /// Whether a tool answers in pieces.
    fn streaming(&self, tool: &str) -> Streaming {
        let mut known = self.streaming.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != self.peer.dialled() {
            *known = (self.peer.dialled(), HashMap::new());
        }
        let known = known.1.get(EVERY_TOOL).or_else(|| known.1.get(tool));
        known.copied().unwrap_or(Streaming::Unknown)
    }

    fn note_streaming(&self, tool: &str, streaming: Streaming) {
        let mut known = self.streaming.lock().unwrap_or_else(PoisonError::into_inner);
        known.1.insert(tool.to_owned(), streaming);
    }

    async fn tell(&self, lane: Lane, message: Message) {
        // If nobody listens any more, nobody misses it.
        let _ = self.events.send(Event::Packet(Packet::new(lane, message))).await;
    }
}

/// What was seen of a tool that was asked for an answer in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streaming {
    Unknown,
    /// The peer closed the stream: pieces are asked for only when there is no other way to call the tool.
    Closes,
    /// It said that it has none to give.
    Never,
}

/// Stands for all tools: the peer does not know calls in pieces at all. No tool has an empty name.
const EVERY_TOOL: &str = "";

/// An id as the peers' own bridge makes it.
fn request_id(kind: &str, id: &Id) -> String {
    let id = id.as_json();
    format!("stdio-{kind}-{}", id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or(id))
}

async fn run(orchestrator: Arc<Orchestrator>, Port { tx, mut rx }: Port) {
    let mut server = Server {
        orchestrator,
        calls: JoinSet::new(),
        running: HashMap::new(),
        listening: Vec::new(),
        in_session: false,
        seen: 0,
    };
    loop {
        tokio::select! {
            biased;
            Some(ended) = server.calls.join_next_with_id() => server.end(ended).await,
            packet = rx.recv() => match packet {
                Some(packet) => server.handle(packet.message).await,
                None => break,
            },
            () = tx.closed() => break,
        }
    }
    server.calls.shutdown().await;
    server.orchestrator.peer.close().await;
}

struct Server {
    orchestrator: Arc<Orchestrator>,
    calls: JoinSet<(Message, Outcome)>,
    /// Requests that are owed an answer, by their task.
    running: HashMap<task::Id, (Id, AbortHandle)>,
    /// Open `subscriptions/listen` requests.
    listening: Vec<era::Listening>,
    /// The client has sent `initialize`.
    in_session: bool,
    /// How many connections there had been when the client was last told of changes.
    seen: u64,
}

impl Server {
    async fn handle(&mut self, message: Message) {
        match message.kind() {
            Kind::Request { id, method } if *method == method::LISTEN => self.listen(id.clone(), &message).await,
            Kind::Request { id, method } => {
                self.in_session |= *method == method::INITIALIZE;
                let (id, orchestrator) = (id.clone(), Arc::clone(&self.orchestrator));
                let handle = self.calls.spawn(async move {
                    let outcome = methods::answer(&orchestrator, &message).await;
                    (message, outcome)
                });
                self.running.insert(handle.id(), (id, handle));
            }
            Kind::Notification { method } if *method == method::CANCELLED => self.cancel(&message),
            // Other notifications mean nothing to an orchestrator, and we ask the client nothing.
            _ => {}
        }
    }

    fn cancel(&mut self, message: &Message) {
        let Some(cancelled) = meta::cancelled_request(message) else { return };
        if let Some(at) = self.listening.iter().position(|listening| listening.id == cancelled) {
            self.listening.swap_remove(at);
            return;
        }
        let task = self.running.iter().find(|(_, (id, _))| *id == cancelled).map(|(task, _)| *task);
        // Dropping the stream tells the orchestrator that nobody waits any more.
        if let Some((_, handle)) = task.and_then(|task| self.running.remove(&task)) {
            handle.abort();
        }
    }

    async fn listen(&mut self, id: Id, message: &Message) {
        match era::Listening::open(id.clone(), message) {
            Ok((listening, acknowledged)) => {
                self.listening.push(listening);
                self.orchestrator.tell(Lane::Request(id), acknowledged).await;
            }
            Err(refusal) => self.orchestrator.tell(Lane::Request(id.clone()), refusal.to_message(&id)).await,
        }
    }

    async fn end(&mut self, ended: Result<(task::Id, (Message, Outcome)), JoinError>) {
        let (task, outcome) = match ended {
            Ok((task, (message, outcome))) => (task, Some((message, outcome))),
            Err(error) => (error.id(), None),
        };
        // A request that was cancelled is not here any more, and gets no answer.
        let Some((id, _)) = self.running.remove(&task) else { return };
        self.tell_changes().await;
        match outcome {
            Some((message, Outcome::Failed(failure))) => self.failed(message, failure).await,
            Some((message, Outcome::Reply(reply))) => {
                let answer = era::dress(&message, reply).to_message(&id);
                self.orchestrator.tell(Lane::Request(id), answer).await;
            }
            None => {
                let refusal = Refusal::internal("the request could not be served");
                self.orchestrator.tell(Lane::Request(id.clone()), refusal.to_message(&id)).await;
            }
        }
    }

    async fn failed(&self, message: Message, failure: Failure) {
        let _ = self.orchestrator.events.send(Event::Failed { message, failure }).await;
    }

    /// After a new connection it may be another orchestrator than the one that the client's lists came from.
    async fn tell_changes(&mut self) {
        let dialled = self.orchestrator.peer.dialled();
        let before = std::mem::replace(&mut self.seen, dialled);
        if before == 0 || before == dialled {
            return;
        }
        for changed in [method::TOOLS_LIST_CHANGED, method::PROMPTS_LIST_CHANGED] {
            if self.in_session {
                self.orchestrator.tell(Lane::Main, Message::notification(changed, None)).await;
            }
            for listening in &self.listening {
                if let Some(message) = listening.notification(changed) {
                    self.orchestrator.tell(Lane::Request(listening.id.clone()), message).await;
                }
            }
        }
    }
}
