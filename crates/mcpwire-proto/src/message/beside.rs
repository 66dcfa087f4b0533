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
            Some(sender) => sender.identity.sign(&self.unsigned(), sender.logs.level()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Identity, Logs};
    use crate::meta::Level;
    use crate::{Id, Object, meta};

    fn signed() -> Message {
        let text =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"n"}}"#;
        let capabilities = Object::parse(r#"{"roots":{}}"#).unwrap();
        let identity = Arc::new(Identity::new("2026-07-28", Some(r#"{"name":"c"}"#), &capabilities));
        let message = Message::parse(text.to_owned().into()).unwrap();
        message.signed_beside(Sender { identity, logs: Logs::From("info"), is_retry: false })
    }

    #[test]
    fn what_stands_beside_is_read_as_if_it_were_inside() {
        let beside = signed();
        let inside = beside.clone().written_down();
        assert!(inside.sender().is_none());
        for message in [&beside, &inside] {
            let declared = meta::declared(message).unwrap();
            assert_eq!(declared.version.as_deref(), Some("2026-07-28"));
            assert_eq!(declared.client_info.map(|info| info.get()), Some(r#"{"name":"c"}"#));
            assert_eq!(declared.capabilities.map(|told| told.get()), Some(r#"{"roots":{}}"#));
            assert_eq!(declared.log_level.and_then(Level::rank), Some(1));
            assert_eq!(meta::progress_token(message), Some(Id::from(7)));
        }
        assert!(meta::declared(&beside.unsigned()).is_none());
    }

    #[test]
    fn it_stays_with_every_form_of_the_message() {
        let message = signed();
        let name = message.member("name").unwrap();
        let forms = [
            message.clone(),
            message.detached(),
            message.with_id(&Id::from("x")),
            message.rewritten(&Id::from(2), &[(name, r#""other""#)]),
            message.replace(name, r#""other""#),
            message.with_members(&message.members().unwrap()),
        ];
        assert!(forms.iter().all(|form| form.sender().is_some()));
        assert!(!forms[0].as_bytes().windows(10).any(|part| part == b"2026-07-28"), "it is in no text");
    }
}
