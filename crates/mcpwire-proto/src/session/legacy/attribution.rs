//! To which request does a message of the server belong, when its transport has one stream for everything (stdio)?
//!
//! Progress says so by its token. A question or a log line does not: it belongs to the one request that is under way, if
//! it is only one. What cannot be told stays on the main lane; a wrong guess would be worse.

use super::{Creditor, Session};
use crate::{Id, IdMap, Lane, Message, meta, method};

/// The most tokens remembered. They are dropped when their request is settled; this is for those that never are.
const MOST: usize = 10_000;

/// Requests by the token of their progress.
#[derive(Debug, Default)]
pub(super) struct Tokens(IdMap<Id>);

impl Tokens {
    pub(super) fn note(&mut self, id: &Id, request: &Message) {
        if let Some(token) = meta::progress_token(request).filter(|_| self.0.len() < MOST) {
            self.0.insert(token, id.clone());
        }
    }

    pub(super) fn forget(&mut self, request: &Message) {
        if !self.0.is_empty()
            && let Some(token) = meta::progress_token(request)
        {
            self.0.remove(&token);
        }
    }
}

impl Session {
    pub(super) fn attribute(&self, lane: Lane, message: &Message) -> Lane {
        let Some(method) = message.method().filter(|_| lane == Lane::Unsorted) else { return lane };
        if self.owed.iter().any(|(_, owed)| owed.listens())
            && let Some(listen) = meta::subscription_id(message)
        {
            return Lane::Request(listen);
        }
        let request = match &**method {
            method::PROGRESS => meta::progress_token(message).and_then(|token| self.tokens.0.get(&token)),
            method::CANCELLED if self.is_stateless() => {
                let id = meta::cancelled_request(message).and_then(|id| self.owed.key(&id));
                return id.map_or(Lane::Main, |id| Lane::Request(id.clone()));
            }
            method::TOOLS_LIST_CHANGED
            | method::PROMPTS_LIST_CHANGED
            | method::RESOURCES_LIST_CHANGED
            | method::RESOURCES_UPDATED => None,
            method::LOG_MESSAGE => self.only_request(wants_logs),
            _ => self.only_request(|_| true),
        };
        request.map_or(Lane::Main, |id| Lane::Request(id.clone()))
    }

    /// The client's one request that is under way and fits. A listen has a stream of its own, and says what is on it.
    fn only_request(&self, fits: impl Fn(&Message) -> bool) -> Option<&Id> {
        let sent = self.owed.iter().filter(|(_, owed)| owed.to == Creditor::Client && !owed.held && !owed.listens());
        let mut sent = sent.filter(|(_, owed)| fits(&owed.message)).map(|(id, _)| id);
        let first = sent.next()?;
        sent.next().is_none().then_some(first)
    }

    fn is_stateless(&self) -> bool {
        self.memory.initialize.is_none()
    }
}

/// A stateless server logs only for requests that say they want it.
fn wants_logs(request: &Message) -> bool {
    meta::declared(request).is_none_or(|declared| declared.log_level.is_some())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::{Config, Effect};
    use super::*;
    use crate::Packet;

    #[allow(clippy::disallowed_methods, reason = "any instant will do")]
    fn lane_of(in_flight: &[(u64, &str)], said: &str) -> Lane {
        let now = Instant::now();
        let mut session = Session::new(Config { attribute: true, ..Config::default() });
        for (id, params) in in_flight {
            session.handle_client(Message::request(&Id::from(*id), method::TOOLS_CALL, Some(params)), now);
        }
        let message = Message::parse(said.to_owned().into()).unwrap();
        session.handle_server(Packet::new(Lane::Unsorted, message), now);
        let mut told = None;
        while let Some(effect) = session.poll_effect() {
            if let Effect::ToClient(packet) = effect {
                told = Some(packet.lane);
            }
        }
        told.expect("it is passed on")
    }

    #[test]
    fn messages_follow_the_request_they_belong_to() {
        let one = [(1, "{}")];
        let two = [(1, r#"{"_meta":{"progressToken":"a"}}"#), (2, r#"{"_meta":{"progressToken":"b"}}"#)];
        let first = || Lane::Request(Id::from(1));
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        let ask = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#;
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let progress =
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"a","progress":1}}"#;
        assert_eq!(lane_of(&one, log), first());
        assert_eq!(lane_of(&one, ask), first());
        assert_eq!(lane_of(&one, changed), Lane::Main);
        assert_eq!(lane_of(&two, progress), first());
        assert_eq!(lane_of(&two, log), Lane::Main, "it may be either's");
        assert_eq!(lane_of(&two, ask), Lane::Main, "it may be either's");
        assert_eq!(lane_of(&[], log), Lane::Main);
    }
}
