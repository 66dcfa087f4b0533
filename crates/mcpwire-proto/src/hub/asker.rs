//! In whose name the hub asks its servers: what a client says of itself, and in which era.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::identity::{Logs, Sender};
use crate::{Id, Message};

/// A sort of client. Those that are equal share what the hub asks for them.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    /// The members of `_meta` that name the client.
    meta: Arc<str>,
    /// A session-era client: a server of both eras is to be asked in sessions.
    sender: Option<Sender>,
}

impl Asker {
    /// The sender of this request, of which `_meta` says this.
    pub(super) fn of(request: &Message, meta: String) -> Asker {
        let sender = request.sender().map(|sender| Sender { logs: Logs::Off, is_retry: false, ..sender.clone() });
        Asker { meta: meta.into(), sender }
    }

    /// The hub itself.
    pub(super) fn hub(meta: String) -> Asker {
        Asker { meta: meta.into(), sender: None }
    }

    /// A request in this name, with these members in its params: none, or each after a comma.
    pub(super) fn request(&self, id: &Id, method: &str, members: &str) -> Message {
        match &self.sender {
            Some(sender) => {
                let params = format!("{{{}}}", members.strip_prefix(',').unwrap_or(members));
                Message::request(id, method, Some(&params)).signed_beside(sender.clone())
            }
            None => Message::request(id, method, Some(&format!(r#"{{"_meta":{}{members}}}"#, self.meta))),
        }
    }

    fn key(&self) -> (&str, bool) {
        (&self.meta, self.sender.is_some())
    }
}

impl PartialEq for Asker {
    fn eq(&self, other: &Asker) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Asker {}

impl PartialOrd for Asker {
    fn partial_cmp(&self, other: &Asker) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Asker {
    fn cmp(&self, other: &Asker) -> Ordering {
        self.key().cmp(&other.key())
    }
}
