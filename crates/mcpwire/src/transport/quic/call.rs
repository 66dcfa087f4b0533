//! Calls of the Orchestra protocol over a connection: a stream for each, and what became of those that failed.

use bytes::Bytes;
use quinn::{ReadError, RecvStream, WriteError};

use super::dial::{Peer, lost};
use super::frame::{self, Budget, LONGEST, Unread};
use super::proto::{PluginRequest, PluginResponse, Request, Response};
use super::uuid;

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// It was not executed.
    Unreachable(String),
    /// It was not executed, as there is no connection.
    NotConnected(String),
    /// It may have been executed.
    Interrupted(String),
    /// It was executed or refused, and trying again would not help.
    Useless(String),
}

/// A call under way.
#[derive(Debug)]
pub(super) struct Answers {
    stream: RecvStream,
    budget: Budget,
}

impl Answers {
    /// The next frame.
    pub(super) async fn next(&mut self) -> Result<Response, NoAnswer> {
        let answer: PluginResponse = frame::read(&mut self.stream, &self.budget).await.map_err(unread)?;
        answer.response.ok_or_else(|| NoAnswer::Useless(UNEXPECTED.to_owned()))
    }
}

/// An answer of a kind that does not fit the call.
pub(super) const UNEXPECTED: &str = "unexpected response type from orchestrator";

/// Sends a request; its answers come one by one.
pub(super) async fn start(
    peer: &Peer,
    budget: &Budget,
    request_id: String,
    request: Request,
) -> Result<Answers, NoAnswer> {
    let frame = encode(request_id, request)?;
    let connection = peer.connection().await.map_err(NoAnswer::NotConnected)?;
    let (mut output, stream) = connection.open_bi().await.map_err(|error| NoAnswer::Unreachable(lost(&error)))?;
    match output.write_all(&frame).await {
        Ok(()) => {}
        // It answers without having read all of it: the answer says why.
        Err(WriteError::Stopped(_)) => {}
        Err(WriteError::ConnectionLost(error)) => return Err(NoAnswer::Unreachable(lost(&error))),
        Err(error) => return Err(NoAnswer::Interrupted(error.to_string())),
    }
    let _ = output.finish();
    Ok(Answers { stream, budget: budget.clone() })
}

/// Sends what is not answered, if there is a connection to send it on.
pub(super) async fn tell(peer: &Peer, request: Request) {
    let (Some(connection), Ok(frame)) = (peer.live().await, encode(uuid(), request)) else { return };
    if let Ok((mut output, _)) = connection.open_bi().await {
        // Whoever is gone need not be told.
        let _ = output.write_all(&frame).await;
        let _ = output.finish();
    }
}

fn encode(request_id: String, request: Request) -> Result<Bytes, NoAnswer> {
    frame::encode(&PluginRequest { request_id, request: Some(request) })
        .ok_or_else(|| NoAnswer::Useless(format!("expected a request of at most {LONGEST} bytes, came a longer one")))
}

/// Sends a request and waits for its one answer.
pub(super) async fn call(
    peer: &Peer,
    budget: &Budget,
    request_id: String,
    request: Request,
) -> Result<Response, NoAnswer> {
    start(peer, budget, request_id, request).await?.next().await
}

fn unread(error: Unread) -> NoAnswer {
    match error {
        Unread::Broken(ReadError::ConnectionLost(error)) => NoAnswer::Interrupted(lost(&error)),
        Unread::Broken(ReadError::Reset(_)) | Unread::Nothing => {
            NoAnswer::Interrupted("it closed the stream without an answer".to_owned())
        }
        Unread::Truncated | Unread::Slow | Unread::Broken(_) => NoAnswer::Interrupted(error.to_string()),
        Unread::TooLong(_) | Unread::Garbage(_) => NoAnswer::Useless(error.to_string()),
    }
}
