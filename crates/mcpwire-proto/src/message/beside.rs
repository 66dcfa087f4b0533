//! What a message says beyond its text, between parts of one process that know of it.
//!
//! To write it into a text only for the next to take it out again would be most of what a message costs where a client
//! of one era reaches a server of the same era through a hub, which speaks another.

use std::sync::Arc;

use super::Message;
use crate::identity::Sender;

#[derive(Clone, Default)]
pub(super) enum Beside {
    #[default]
    Nothing,
    /// Of a request: who sends it.
    Sender(Sender),
    /// Of a result: that it is complete, and as a client of the session era takes it.
    Plain,
}

impl Message {
    /// The same request with its sender beside it. It must be [written down](Message::written_down) before it leaves us.
    pub(crate) fn signed_beside(mut self, sender: Sender) -> Message {
        Arc::make_mut(&mut self.0).beside = Beside::Sender(sender);
        self
    }

    /// Who sends this request, if that is not in its text.
    pub(crate) fn sender(&self) -> Option<&Sender> {
        match &self.0.beside {
            Beside::Sender(sender) => Some(sender),
            _ => None,
        }
    }

    /// The request as it stands, without its sender.
    pub(crate) fn unsigned(mut self) -> Message {
        if self.sender().is_some() {
            Arc::make_mut(&mut self.0).beside = Beside::Nothing;
        }
        self
    }

    /// The request with everything it says in its text.
    pub(crate) fn written_down(self) -> Message {
        match self.sender().cloned() {
            Some(sender) => sender.identity.sign(&self.unsigned(), sender.log_level),
            None => self,
        }
    }

    /// The same result for one who knows what a plain one is.
    pub(crate) fn into_plain(mut self) -> Message {
        Arc::make_mut(&mut self.0).beside = Beside::Plain;
        self
    }

    /// Whether this result is one of the session era, and complete.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.0.beside, Beside::Plain)
    }

    /// This message with what another says beyond its text.
    pub(super) fn beside_as(mut self, other: &Message) -> Message {
        if !matches!(other.0.beside, Beside::Nothing) {
            Arc::make_mut(&mut self.0).beside = other.0.beside.clone();
        }
        self
    }
}
