//! Clients of 2026-07-28, which have no sessions: every request stands for itself. This side of it speaks HTTP; the actor
//! moves the messages of all of them over one link.

mod actor;
mod exchange;
mod known;
mod names;
mod outbound;
mod presence;

use std::sync::{Arc, Mutex, PoisonError};

use http::request::Parts;
use http::{Response, StatusCode};
use mcpwire_proto::headers::{self, Given, Said};
use mcpwire_proto::version::V2025_11_25;
use mcpwire_proto::{Fault, Kind, Message, meta, method};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use self::actor::{Actor, Ask, Command};
use self::exchange::{Reply, status_of};
use self::known::Known;
use self::presence::Exits;
pub(super) use self::presence::Presence;
use super::answer::{self, Body, Refusal, empty};
use super::exchange::Accepts;
use super::{Front, Stage};
use crate::link::Link;
use crate::transport::http::EVENT_STREAM;

/// How many commands wait for the actor before their connections do.
const MAILBOX: usize = 64;

/// What the front keeps of its clients without sessions.
#[derive(Debug, Default)]
pub(super) struct Stateless {
    current: Mutex<Option<Handle>>,
    known: Arc<Known>,
}

/// How connections reach the actor.
#[derive(Debug, Clone)]
struct Handle {
    commands: mpsc::Sender<Command>,
    exits: Arc<Exits>,
}

/// Whether a message that names no open session is of the stateless era. `Mcp-Method` tells nothing: older clients send
/// it, too.
pub(super) fn claims(head: &Parts, message: &Message) -> bool {
    if message.is_request() && meta::declared(message).is_some() {
        return true;
    }
    // Some clients name their newest version while they ask for an older one.
    !message.is(method::INITIALIZE) && is_named(head)
}

/// Whether the headers name a version that has no sessions, or that we do not know and is newer than those that have.
pub(super) fn is_named(head: &Parts) -> bool {
    matches!(given(head, headers::PROTOCOL_VERSION), Given::Text(version) if version > V2025_11_25)
}

fn given<'h>(head: &'h Parts, name: &str) -> Given<'h> {
    let mut values = head.headers.get_all(name).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => Given::Absent,
        (Some(Ok(text)), None) => Given::Text(text.trim_ascii()),
        _ => Given::Unreadable,
    }
}

pub(super) async fn serve(
    front: &Front,
    head: &Parts,
    message: Message,
    accepts: Accepts,
) -> Result<Response<Body>, Refusal> {
    match message.kind() {
        Kind::Request { .. } => ask(front, head, message, accepts).await,
        Kind::Notification { .. } => tell(front, message).await,
        Kind::Result { id } | Kind::Error { id: Some(id) } => Err(no_response(Some(id))),
        Kind::Error { id: None } => Err(no_response(None)),
    }
}

fn no_response(id: Option<&mcpwire_proto::Id>) -> Refusal {
    let fault = Fault::Shape("expected a request or a notification, came a response: nothing was asked".into());
    Refusal::fault(StatusCode::BAD_REQUEST, id, &fault)
}

async fn ask(front: &Front, head: &Parts, request: Message, accepts: Accepts) -> Result<Response<Body>, Refusal> {
    let said = Said::by(&request);
    let checked = {
        let facts = front.stateless.known.facts();
        headers::check(&request, &said, |name| given(head, name), &facts.tools, facts.supported())
    };
    if let Err(fault) = checked {
        let status = match status_of(&fault.to_message(None)) {
            StatusCode::OK => StatusCode::BAD_REQUEST,
            status => status,
        };
        return Err(Refusal::fault(status, request.id(), &fault));
    }
    if request.is(method::LISTEN) && !accepts.events {
        let text = format!("expected Accept to name {EVENT_STREAM}");
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, &text));
    }
    // The receiver is dropped before the presence: who is reported to have gone is seen to have gone.
    let (presence, answer) = loop {
        let actor = actor(front)?;
        let presence = Presence::new(&actor.exits);
        let (reply, answer) = oneshot::channel();
        let (request, progress_token) = (request.clone(), said.progress_token.clone());
        let ask = Ask { request, progress_token, wants_log: said.wants_log, accepts, key: presence.key, reply };
        // One that is just ending takes no more.
        if actor.commands.send(Command::Ask(ask)).await.is_ok() {
            break (presence, answer);
        }
    };
    match answer.await {
        Ok(Reply::Json(status, message)) => {
            presence.dismiss();
            Ok(answer::json(status, message.as_bytes().clone()))
        }
        Ok(Reply::Events(stream)) => Ok(answer::events(Body::Watched { stream, _reader: presence })),
        Ok(Reply::Refused(refusal)) => Err(refusal),
        Err(_) => Err(unavailable("the server takes no requests now")),
    }
}

/// Takes a notification. Those that 2026-07-28 took away go no further; nor does `notifications/cancelled`: closing the
/// response cancels, and an id alone does not tell whose request it means.
async fn tell(front: &Front, notification: Message) -> Result<Response<Body>, Refusal> {
    let gone = [method::CANCELLED, method::INITIALIZED, method::ROOTS_LIST_CHANGED];
    if !gone.iter().any(|name| notification.is(name)) {
        while actor(front)?.commands.send(Command::Tell(notification.clone())).await.is_err() {}
    }
    Ok(empty(StatusCode::ACCEPTED))
}

/// The way to the actor. Without one, one is started, and its link is given away like that of a session.
fn actor(front: &Front) -> Result<Handle, Refusal> {
    let mut current = front.stateless.current.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = current.as_ref().filter(|handle| !handle.commands.is_closed()) {
        return Ok(handle.clone());
    }
    if *front.stage.borrow() != Stage::Running {
        return Err(unavailable("the server is shutting down"));
    }
    let (link, port) = Link::pair();
    let (commands, rx) = mpsc::channel(MAILBOX);
    let exits = Arc::new(Exits::default());
    let known = front.stateless.known.clone();
    let actor = Actor::new(front.options.clone(), rx, exits.clone(), known, front.stage.clone(), port);
    let (sessions, alive, patience) = (front.sessions.clone(), front.alive.clone(), front.options.session_timeout);
    tokio::spawn(async move {
        let given = timeout(patience, sessions.send(link)).await;
        drop(sessions);
        // If nobody takes the link, those who wait find the actor gone.
        if let Ok(Ok(())) = given {
            tracing::debug!(target: "http", "clients without a session are served");
            actor.run().await;
            tracing::debug!(target: "http", "clients without a session are served no more");
        }
        drop(alive);
    });
    Ok(current.insert(Handle { commands, exits }).clone())
}

fn unavailable(text: &str) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text)
}
