//! What happens when messages fail: waiting, a new server session under the same client, giving up.

use std::time::Instant;

use super::memory::protocol_version;
use super::{Creditor, Effect, Session, State, Then};
use crate::method::{self, Method};
use crate::{Cause, Failure, Fault, Id, Kind, Message, Packet, Refusal, error};

impl Session {
    /// A message did not get through.
    pub fn handle_failed(&mut self, message: Message, failure: Failure, now: Instant) {
        if let Kind::Request { id, .. } = message.kind() {
            if self.owed.entry(id).is_some_and(|owed| owed.held) {
                // It is not with the server: a late word of an earlier sending, which the server's end has covered.
                return;
            }
            return self.request_failed(id, failure, now);
        }
        match failure {
            // Who was to have it may be the session before: the new one is not given up for that.
            Failure::SessionLost(why) if self.fruitless => {
                tracing::debug!(target: "bridge", "{message} was for a session that is gone: {why}");
            }
            Failure::SessionLost(why) => {
                tracing::info!(target: "bridge", "{message} found the session gone: {why}");
                self.lose_session(&why, now);
            }
            Failure::Unreachable(why) | Failure::NotConnected(why) if message.is(method::INITIALIZED) => {
                self.hold(message, now);
                self.wait(&why, Then::Flush, now);
            }
            failure => tracing::warn!(target: "bridge", "{message} failed: {failure}"),
        }
    }

    /// The server has forgotten our session, as a stream of it showed.
    pub fn handle_session_lost(&mut self, why: &str, now: Instant) {
        tracing::info!(target: "bridge", "the session is gone: {why}");
        self.lose_session(why, now);
    }

    /// The server is gone, and everything it was working on with it.
    pub fn handle_server_gone(&mut self, why: &str, now: Instant) {
        tracing::warn!(target: "bridge", "the server is gone: {why}");
        let under_way = self.owed.ids_where(|owed| !owed.held);
        // First the session, so that what is repeated waits for the new one. And never at once: a server that dies
        // whenever it has started would keep us busy.
        if self.memory.initialize.is_some() && !matches!(self.state, State::Opening) {
            self.wait(why, Then::Reopen, now);
        } else if self.memory.initialize.is_none() {
            // Its successor may use the same ids, and must not get the answers.
            self.withdraw_server_requests();
            self.asked.clear();
            if !under_way.is_empty() {
                self.wait(why, Then::Flush, now);
            }
        }
        for id in under_way {
            self.request_failed(&id, Failure::Interrupted(why.to_owned()), now);
        }
    }

    /// Takes out the client's messages that the server has not served, `initialize` excepted: another machine serves
    /// them. Requests that are with the server, and so may be executed, are answered with an error.
    pub fn take_unserved(&mut self) -> Vec<Message> {
        let mut unserved = Vec::new();
        for message in self.sent() {
            if let Some((id, _)) = message.id().and_then(|id| self.owed.settle(id)) {
                let fault = interrupted("the server opens no sessions", false);
                self.effects.push_back(Effect::ToClient(fault.to_packet(Some(&id))));
            }
        }
        for message in std::mem::take(&mut self.held) {
            match message.id().filter(|_| message.is_request()) {
                Some(id) if self.owed.settle(id).is_none() => {}
                _ => unserved.push(message),
            }
        }
        unserved
    }

    /// The requests that are with the server, `initialize` excepted.
    pub fn sent(&self) -> Vec<Message> {
        let sent = self.owed.iter().filter(|(_, owed)| !owed.held && !owed.message.is(method::INITIALIZE));
        sent.map(|(_, owed)| owed.message.clone()).collect()
    }

    fn request_failed(&mut self, id: &Id, failure: Failure, now: Instant) {
        let Some(owed) = self.owed.entry(id) else { return };
        if owed.to == Creditor::Client {
            return self.client_request_failed(id, failure, now);
        }
        let Some((_, owed)) = self.owed.settle(id) else { return };
        match (owed.to, failure) {
            (Creditor::Client, _) => {} // seen to above
            (
                Creditor::Reopening,
                Failure::Unreachable(why) | Failure::NotConnected(why) | Failure::Interrupted(why),
            ) => self.wait(&why, Then::Reopen, now),
            (Creditor::Reopening, failure) => self.close(&failure.to_string()),
            (Creditor::Restoring | Creditor::Comparing(_), failure) => {
                tracing::warn!(target: "bridge", "{} failed in the new session: {failure}", owed.message);
            }
        }
    }

    /// A request for which there is no connection has waited for the server ever since it was sent.
    fn count_connecting(&mut self, id: &Id) {
        let Some(owed) = self.owed.entry(id) else { return };
        let Some(sent) = owed.sent else { return };
        let give_up = *owed.give_up.get_or_insert(sent + self.config.wait);
        self.alarm_at(Some(give_up));
    }

    fn client_request_failed(&mut self, id: &Id, failure: Failure, now: Instant) {
        if matches!(failure, Failure::NotConnected(_)) {
            self.count_connecting(id);
        }
        let Some(owed) = self.owed.entry(id) else { return };
        let message = owed.message.clone();
        let opens = message.is(method::INITIALIZE);
        match failure {
            Failure::Unreachable(why) | Failure::NotConnected(why) => {
                if owed.give_up.is_some_and(|give_up| give_up <= now) {
                    return self.give_up(id, &why);
                }
                if opens {
                    owed.held = true;
                    self.wait(&why, Then::Initialize(id.clone()), now);
                } else {
                    self.hold(message, now);
                    self.wait(&why, Then::Flush, now);
                }
            }
            Failure::SessionLost(why) => {
                let late = owed.generation != self.generation;
                if opens || owed.reopened || self.memory.initialize.is_none() {
                    let fault =
                        Fault::NoAnswer(Cause::SessionLost, format!("the server does not know the session: {why}"));
                    return self.fail(id, fault);
                }
                owed.reopened = true;
                tracing::info!(target: "bridge", "{message} found the session gone: {why}");
                if late {
                    return self.forward(message, now);
                }
                self.hold(message, now);
                self.lose_session(&why, now);
            }
            Failure::Interrupted(why) if owed.listens() => {
                tracing::info!(target: "bridge", "listening again: {why}");
                self.listen_interrupted(id, now);
                self.wait(&why, Then::Flush, now);
            }
            Failure::Interrupted(why) => {
                owed.give_up = None;
                if owed.repeated || !message.method().is_some_and(Method::is_repeatable) {
                    let fault = interrupted(&why, owed.repeated);
                    return self.fail(id, fault);
                }
                owed.repeated = true;
                tracing::info!(target: "bridge", "repeating {message}: {why}");
                if opens { self.send_again(id, now) } else { self.forward(message, now) }
            }
            Failure::Refused(Refusal { error, cause }) => {
                self.fail_with(id, Packet::from(Message::error_object(Some(id), &error)).because(cause));
            }
        }
    }

    /// The server cannot be reached: tries again a little later.
    fn wait(&mut self, why: &str, then: Then, now: Instant) {
        if matches!(self.state, State::Opening) && then == Then::Flush {
            // The handshake decides how it goes on.
            return self.limit_waits(now);
        }
        if let State::Waiting { then: planned, .. } = &mut self.state {
            // A handshake that is due outweighs a mere flush.
            if *planned == Then::Flush {
                *planned = then;
            }
        } else {
            let wait = self.backoff.next_wait();
            tracing::warn!(target: "bridge", "cannot reach the server: {why}; next try in {} ms", wait.as_millis());
            self.state = State::Waiting { until: now + wait, then };
        }
        self.trouble = why.to_owned();
        self.limit_waits(now);
    }

    /// Nothing that is held waits for an unreachable server without an end.
    pub(super) fn limit_waits(&mut self, now: Instant) {
        let give_up = now + self.config.wait;
        self.owed.for_each(|owed| {
            if owed.held {
                owed.give_up.get_or_insert(give_up);
            }
        });
        self.alarm_at(Some(give_up));
    }

    fn lose_session(&mut self, why: &str, now: Instant) {
        if self.memory.initialize.is_none() {
            return;
        }
        match &mut self.state {
            // A server that forgets every session it opens would keep us busy.
            State::Open | State::Closed if self.fruitless => self.wait(why, Then::Reopen, now),
            State::Open | State::Closed => self.reopen(now),
            State::Waiting { then, .. } if *then == Then::Flush => *then = Then::Reopen,
            State::Opening | State::Waiting { .. } => {}
        }
    }

    /// Replays the client's `initialize`; the answer stays with us.
    pub(super) fn reopen(&mut self, now: Instant) {
        let Some(initialize) = self.memory.initialize.clone() else { return self.open(now) };
        tracing::info!(target: "bridge", "opening a new session");
        self.withdraw_server_requests();
        self.fruitless = true;
        self.generation += 1;
        self.state = State::Opening;
        self.request(&initialize, Creditor::Reopening, now);
    }

    /// The server that asked is gone: the client may stop working on it. Its ids stay known for as long as an answer
    /// may still come, so that none is taken for the answer to a new request under the same id.
    fn withdraw_server_requests(&mut self) {
        let lost = self.generation;
        self.asked.retain(|_, asked| asked.generation == lost);
        for id in self.asked.keys() {
            let params = format!(r#"{{"requestId":{id},"reason":"the server's session was lost"}}"#);
            let cancelled = Message::notification(method::CANCELLED, Some(&params));
            self.effects.push_back(Effect::ToClient(cancelled.into()));
        }
    }

    pub(super) fn reopened(&mut self, result: &Message, now: Instant) {
        let (knows, is) = (self.memory.version.take(), protocol_version(result));
        if knows.is_some() && knows != is {
            let (is, knows) = (is.as_deref().unwrap_or("none"), knows.as_deref().unwrap_or("none"));
            tracing::warn!(target: "bridge", "the new session has protocol version {is}, the client knows {knows}");
        }
        self.memory.version = knows.or(is);
        tracing::info!(target: "bridge", "the new session is open");
        if self.memory.initialized {
            self.tell_server(Message::notification(method::INITIALIZED, None));
        }
        for message in self.memory.restore() {
            self.request(&message, Creditor::Restoring, now);
        }
        self.open(now);
        for list in self.memory.seen_lists() {
            let message = Message::request(&Id::from(0), &list, None);
            self.request(&message, Creditor::Comparing(list), now);
        }
    }

    /// There is no session and the server refuses a new one. The next request tries again.
    pub(super) fn close(&mut self, why: &str) {
        tracing::error!(target: "bridge", "no session: {why}");
        self.trouble = why.to_owned();
        self.state = State::Closed;
        for message in std::mem::take(&mut self.held) {
            if let Some(id) = message.id() {
                let text = format!("there is no session with the server: {why}");
                self.fail(id, Fault::NoAnswer(Cause::SessionLost, text));
            }
        }
    }

    pub(super) fn open(&mut self, now: Instant) {
        self.state = State::Open;
        for message in std::mem::take(&mut self.held) {
            self.send(message, now);
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.alarm.is_some_and(|alarm| alarm <= now) {
            self.expire(now);
        }
        let State::Waiting { until, then } = &self.state else { return };
        if *until > now {
            return;
        }
        match then.clone() {
            Then::Flush => self.open(now),
            Then::Reopen => self.reopen(now),
            Then::Initialize(id) if self.owed.contains(&id) => {
                self.state = State::Opening;
                self.send_again(&id, now);
            }
            Then::Initialize(_) => self.close("initialize was withdrawn"),
        }
    }

    fn expire(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for id in self.owed.ids_where(|owed| owed.held && due(owed.give_up)) {
            let why = self.trouble.clone();
            self.give_up(&id, &why);
        }
        for id in self.owed.ids_where(|owed| due(owed.deadline)) {
            self.time_out(&id, now);
        }
        let next = self.owed.iter().flat_map(|(_, owed)| [owed.give_up.filter(|_| owed.held), owed.deadline]);
        self.alarm = next.flatten().min();
    }

    fn give_up(&mut self, id: &Id, why: &str) {
        let waited = self.config.wait;
        let text = format!("cannot reach the server: {why}; gave up after {waited:?}");
        self.fail(id, Fault::NoAnswer(Cause::Unreachable, text));
    }

    fn time_out(&mut self, id: &Id, now: Instant) {
        let Some(owed) = self.owed.entry(id) else { return };
        if !owed.message.is(method::INITIALIZE) {
            let params = format!(r#"{{"requestId":{id},"reason":"timed out"}}"#);
            self.tell_server(Message::notification(method::CANCELLED, Some(&params)));
        }
        let timeout = self.config.timeout.unwrap_or_default();
        let text = format!("timed out: no answer and no progress for {timeout:?}");
        let error = serde_json::json!({"code": error::code::INTERNAL_ERROR, "message": text});
        self.request_failed(id, Failure::refused(error.to_string(), Cause::TimedOut), now);
    }

    pub(super) fn alarm_at(&mut self, at: Option<Instant>) {
        self.alarm = self.alarm.into_iter().chain(at).min();
    }
}

fn interrupted(why: &str, repeated: bool) -> Fault {
    let outcome = match repeated {
        true => "so was it when the request was repeated",
        false => "the request may have been executed and was not sent again",
    };
    let text = format!("the connection to the server was lost before the answer came: {why}; {outcome}");
    Fault::NoAnswer(Cause::Interrupted, text)
}
