//! The seam between the eras: clients and servers that share no handshake understand each other through here.
//!
//! Versions up to 2025-11-25 open a session with `initialize`; since 2026-07-28 every request stands for itself. Inside,
//! requests have the stateless shape, and each side that is of the session era has a machine that adapts it:
//!
//! ```text
//!   stateless client ──────────────┐             ┌──► Relay ───────────► stateless server
//!                                  ├─ stateless ─┤
//!   session client ──► OldClient ──┘             └──► OldServer ───────► session server
//!                                                     (a pool of Relays)
//!   session client ──────────────────► Relay ──────────────────────────► session server
//! ```
//!
//! Equal eras are joined by a [`Relay`](crate::session::legacy::Session) alone, which passes payloads byte for byte.
//! Which it is, the [`Conversation`](crate::conversation::Conversation) finds out.

mod old_client;
mod old_server;
#[cfg(test)]
mod tests;
mod translate;

pub(crate) use old_client::{OldClient, Out};
pub(crate) use old_server::{Config as OldServerConfig, OldServer, Seat, Sort, opener};
pub(crate) use translate::subscribed;

use crate::identity::Identity;
use crate::{Cause, Id, Kind, Message, Object, Packet, Refusal, code, method};

/// How versions of the protocol open a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With `initialize`: 2024-11-05 to 2025-11-25.
    Session,
    /// Not at all, every request stands for itself: 2026-07-28.
    Stateless,
}

/// What the answer to `server/discover` tells of the server (2026-07-28, stdio, Backward Compatibility). An error that a
/// session-era server may give, whatever its code, says that it is one.
pub fn era_by(answer: &Message) -> Era {
    let stateless = match answer.kind() {
        Kind::Result { .. } => answer.members().is_some_and(|result| result.get("supportedVersions").is_some()),
        _ => answer.read::<translate::ErrorObject<'_>>().is_some_and(|error| code::is_modern(error.code)),
    };
    if stateless { Era::Stateless } else { Era::Session }
}

/// Whether a transport's refusal is not about the message: without credentials nothing is answered, in any era.
pub(crate) fn refuses_everything(refusal: &Refusal) -> bool {
    match refusal.cause.as_deref() {
        Some(Cause::Http(http)) => refuses_all(http.status),
        // Who was not there for one message need not be looked for with another.
        Some(Cause::Unreachable) => true,
        _ => false,
    }
}

/// Whether an error that answers an opening says something about the server's era: it is the server's own, or a refusal
/// of this message in particular.
pub(crate) fn tells_of_era(error: &Packet) -> bool {
    match error.cause.as_deref() {
        None | Some(Cause::SessionLost | Cause::Unusable) => true,
        Some(Cause::Http(http)) => !refuses_all(http.status),
        Some(Cause::Unreachable | Cause::Interrupted | Cause::TimedOut | Cause::Us) => false,
    }
}

fn refuses_all(status: u16) -> bool {
    matches!(status, 401 | 403 | 407 | 429 | 500..)
}

/// A `server/discover` on behalf of a client that sent `initialize`.
pub(crate) fn discover_for(id: &Id, initialize: &Message, version: &'static str) -> Message {
    translate::identity(initialize, version).sign(&Message::request(id, method::DISCOVER, None), None)
}

/// Whether an answer to `server/discover` leaves the server's era open. Invalid params may be the sender's mistake, which
/// says nothing of the server; session-era servers (Python SDK 1.x) refuse unknown methods that way, too.
pub(crate) fn is_inconclusive(answer: &Message) -> bool {
    answer.read::<translate::ErrorObject<'_>>().is_some_and(|error| error.code == i64::from(code::INVALID_PARAMS))
}

/// A `server/discover` of our own. It repeats nothing that a client sent: a mistake of one client must not decide which
/// era the server is of for all.
pub(crate) fn probe(id: &Id, version: &'static str) -> Message {
    let info = format!(r#"{{"name":"mcpwire","version":"{}"}}"#, env!("CARGO_PKG_VERSION"));
    Identity::new(version, Some(&info), &Object::new()).sign(&Message::request(id, method::DISCOVER, None), None)
}
