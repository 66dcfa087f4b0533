//! A reference MCP server for tests and the demo: one loop per client, on a [`Port`] or behind a front.
//!
//! It speaks both eras, and tells them apart by the request: `initialize` opens a session, a request that says in its
//! `_meta` who asks is served by that alone. It carries the fixtures that the official conformance suite asks of a
//! server. Each era has a file of its own, what the server does is shared. Sockets and HTTP are left to the fronts.

mod args;
mod call;
mod calls;
mod client;
mod completion;
mod features;
mod host;
mod identity;
mod listen;
mod logging;
mod page;
mod prompts;
mod question;
mod reply;
mod resources;
mod rounds;
mod seal;
mod session_era;
mod shared;
mod stateless;
#[cfg(test)]
mod tests;
mod tools;
mod wire;

use std::time::Duration;

use mcpwire_proto::message::split_batch;
use mcpwire_proto::method::{self, Method};
use mcpwire_proto::{Fault, Id, Kind, Lane, Message, Rejected, meta, version};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::link::{self, Link, Port};
use args::Args;
use call::Ask;
use calls::Calls;
pub use host::{host, host_quic, host_unix};
use listen::Listens;
use session_era::Session;
use shared::Change;
pub use shared::{Eras, Item, Settings, Shared};
use stateless::Served;
use wire::{Gone, Inbox, Outbox};

/// How long the `test_reconnection` tool is silent. A front that closes response streams which have been silent for
/// less than this makes its client come back for the answer (2025-11-25, transports, "Sending Messages to the Server").
pub const RECONNECTION_PAUSE: Duration = Duration::from_millis(1000);

/// How many questions of calls wait for the loop.
const ASK_DEPTH: usize = 16;

/// How long calls may go on when the client sends nothing more: a pipe is closed before its last request is served.
const LAST_CALLS: Duration = Duration::from_millis(100);

/// Serves one client until it closes its end; the calls that still run shortly after are ended without an answer.
pub async fn serve(port: Port, shared: Shared) {
    run(Inbox::Port(port.rx), Outbox::Port(port.tx), shared).await;
}

/// The same for the client behind a front, with nothing in between.
pub async fn serve_front(front: Link, shared: Shared) {
    run(Inbox::Front(front.rx), Outbox::Front(front.tx), shared).await;
}

async fn run(mut inbox: Inbox, outbox: Outbox, shared: Shared) {
    let mut changes = shared.changes();
    let mut closing = shared.closing();
    let (ask, mut asks) = mpsc::channel(ASK_DEPTH);
    let session = Session::new(outbox.clone(), ask, shared.clone());
    let mut server =
        Server { session, outbox, shared, calls: Calls::default(), listens: Listens::default(), closed: false };
    loop {
        // In order: a change is told before the answer of the call that made it, a question is asked before the call
        // that asked it can end.
        let event = tokio::select! {
            biased;
            change = changes.recv() => Event::Changed(change),
            Some(ask) = asks.recv() => Event::Asked(ask),
            (id, answer) = server.calls.ended() => Event::Ended(id, answer),
            event = inbox.recv() => match event {
                Some(event) => Event::Came(event),
                None => break,
            },
            _ = closing.wait_for(|closing| *closing), if !server.closed => Event::Closing,
        };
        if server.handle(event).await.is_err() {
            return;
        }
    }
    let _ = timeout(LAST_CALLS, server.finish()).await;
}

/// What wakes the loop.
enum Event {
    Came(link::Event),
    Asked(Ask),
    /// A call has ended with this answer.
    Ended(Id, Message),
    Changed(Result<Change, RecvError>),
    /// The server stops.
    Closing,
}

/// What there is for one client, owned by its loop.
struct Server {
    session: Session,
    listens: Listens,
    calls: Calls,
    outbox: Outbox,
    shared: Shared,
    /// Whether subscriptions were ended because the server stops.
    closed: bool,
}

impl Server {
    async fn handle(&mut self, event: Event) -> Result<(), Gone> {
        match event {
            Event::Came(link::Event::Packet(packet)) => self.message(packet.message).await,
            Event::Came(link::Event::Batch(text)) => self.batch(&text).await,
            Event::Came(link::Event::Garbage(rejected)) => self.garbage(*rejected).await,
            Event::Came(other) => {
                tracing::debug!(target: "reference", "the client's side: {other:?}");
                Ok(())
            }
            Event::Asked(ask) if self.calls.contains(&ask.call) => self.session.ask_client(ask).await,
            Event::Asked(_) => Ok(()),
            Event::Ended(id, answer) => {
                self.session.withdraw(&id).await?;
                self.answer(id, answer).await
            }
            Event::Changed(Ok(change)) => self.tell(Some(&change)).await,
            Event::Changed(Err(RecvError::Lagged(_))) => self.tell(None).await,
            Event::Changed(Err(RecvError::Closed)) => Ok(()),
            Event::Closing => {
                self.closed = true;
                self.listens.end(&self.outbox).await
            }
        }
    }

    /// Answers the calls that are under way.
    async fn finish(&mut self) -> Result<(), Gone> {
        while !self.calls.is_empty() {
            let (id, answer) = self.calls.ended().await;
            self.handle(Event::Ended(id, answer)).await?;
        }
        Ok(())
    }

    async fn message(&mut self, message: Message) -> Result<(), Gone> {
        match message.kind() {
            Kind::Request { id, method } => self.request(id, method, &message).await,
            Kind::Notification { .. } => {
                self.notification(&message);
                Ok(())
            }
            Kind::Result { id } | Kind::Error { id: Some(id) } => {
                self.session.client_answer(id, &message);
                Ok(())
            }
            Kind::Error { id: None } => Ok(()),
        }
    }

    /// Serves a request by the era it belongs to.
    async fn request(&mut self, id: &Id, method: &Method, message: &Message) -> Result<(), Gone> {
        let eras = self.shared.settings().eras;
        let params = match Args::of_params(message) {
            Ok(params) => params,
            Err(fault) => return self.answer(id.clone(), fault.to_message(Some(id))).await,
        };
        let answer = match eras {
            Eras::Both if stateless::claims(method, &params) => self.stateless(id, method, params),
            Eras::Both | Eras::Session => self.session.request(id, method, params, &mut self.calls),
            Eras::Stateless if *method == method::INITIALIZE && !stateless::claims(method, &params) => {
                // Its sender knows no other way, and can only show this to a person.
                let requested = params.optional_text("protocolVersion").ok().flatten().unwrap_or_default().to_owned();
                Some(Fault::Version { requested, supported: eras.versions() }.to_message(Some(id)))
            }
            Eras::Stateless => self.stateless(id, method, params),
        };
        if let Some(answer) = answer {
            self.answer(id.clone(), answer).await?;
        }
        if self.closed { self.listens.end(&self.outbox).await } else { Ok(()) }
    }

    /// What is to be said at once to a request of the stateless era, if anything.
    fn stateless(&mut self, id: &Id, method: &Method, params: Args) -> Option<Message> {
        if self.listens.contains(id) {
            let fault = Fault::Shape(format!("expected an id that is not in use, came {id}"));
            return Some(fault.to_message(Some(id)));
        }
        match stateless::request(id, method, params, &mut self.calls, &self.outbox, &self.shared) {
            Served::Answered(answer) => Some(answer),
            Served::Started => None,
            Served::Listens(params) => {
                let opened = self.calls.admit(id).and_then(|()| self.listens.open(id, &params, &self.shared));
                Some(opened.unwrap_or_else(|fault| fault.to_message(Some(id))))
            }
        }
    }

    fn notification(&mut self, message: &Message) {
        if !message.is(method::CANCELLED) {
            return;
        }
        if let Some(id) = meta::cancelled_request(message) {
            if self.calls.cancel(&id) {
                self.session.forget(&id);
            }
            self.listens.cancel(&id);
        }
    }

    /// Serves the messages of a batch one by one, where the version has batches.
    async fn batch(&mut self, text: &bytes::Bytes) -> Result<(), Gone> {
        let allowed = self.session.version().is_some_and(version::allows_batches);
        let parts = split_batch(text).filter(|parts| allowed && !parts.is_empty());
        for part in parts.unwrap_or_else(|| vec![text.clone()]) {
            match Message::parse(part) {
                Ok(message) => self.message(message).await?,
                Err(rejected) => self.garbage(rejected).await?,
            }
        }
        Ok(())
    }

    async fn garbage(&mut self, Rejected { id, fault }: Rejected) -> Result<(), Gone> {
        // An id that is under way belongs to the request that came first.
        let id = id.filter(|id| !self.calls.contains(id) && !self.listens.contains(id));
        let lane = id.clone().map_or(Lane::Main, Lane::Request);
        self.outbox.send(lane, fault.to_message(id.as_ref())).await
    }

    async fn answer(&self, id: Id, answer: Message) -> Result<(), Gone> {
        self.outbox.send(Lane::Request(id), answer).await
    }

    /// Tells the client of a change in what all clients share.
    async fn tell(&self, change: Option<&Change>) -> Result<(), Gone> {
        self.session.tell(change).await?;
        self.listens.tell(change, &self.outbox).await
    }
}
