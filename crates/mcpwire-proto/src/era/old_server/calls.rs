//! Requests that are with the server, and what it says while it works on them.

use std::time::Instant;

use super::OldServer;
use super::seats::Whose;
use crate::conversation::Upstream;
use crate::era::translate;
use crate::identity::Logs;
use crate::method::{self, LOG_LEVELS, Method};
use crate::version::ALL;
use crate::{Fault, Id, Kind, Lane, Message, Packet, meta};

/// A request of the client's that is with the server.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub upstream: Upstream,
    /// Under which id the server knows it.
    pub id: Id,
    pub method: Method,
    /// As the client first sent it, but for a sender beside it.
    pub request: Message,
    /// The token that the server puts on progress, and the one that the client expects. They differ because clients
    /// that share a session choose the same ones, and a server may still report on a call that was cancelled.
    pub server_token: Option<Id>,
    pub client_token: Option<Id>,
    /// The least severe log message that the client wants.
    pub log_level: Option<usize>,
    /// Its sender stands beside it, and takes the result as the server gives it.
    pub plain: bool,
    /// The ids of its elicitations out of band, as JSON text, if its client knows them.
    pub elicitations: Vec<String>,
}

impl OldServer {
    /// Serves a request in a session that is open.
    pub(super) fn start(&mut self, upstream: Upstream, request: Message, now: Instant) {
        let (Some(id), Some(method)) = (request.id().cloned(), request.method().cloned()) else { return };
        match &*method {
            method::DISCOVER => {
                let Some(seat) = self.seat(upstream) else { return };
                let result = translate::discover_result(&id, &seat.server(), &ALL);
                self.tell(&id, result);
            }
            method::LISTEN => self.listen(upstream, &request, now),
            _ => self.call(upstream, id, method, request, now),
        }
    }

    fn call(&mut self, upstream: Upstream, id: Id, method: Method, request: Message, now: Instant) {
        let log_level = self.want_logs(upstream, &request, now);
        let Some(seat) = self.seats.iter().find(|seat| seat.upstream == upstream) else { return };
        // In a session the first id belongs to `initialize`, and 0 is no id to some: servers on the Python SDK 1.x do not
        // tell to which request their messages belong if it is that one.
        let unfit = seat.under_way.contains_key(&id) || seat.relay.knows(&id) || id.as_json() == "0";
        let server_id = if unfit { self.fresh_id() } else { id.clone() };
        let client_token = meta::progress_token(&request);
        let server_token = client_token.as_ref().map(|_| self.fresh_id());
        let plain = request.sender().is_some();
        let request = request.unsigned();
        let message = match (plain, &server_token) {
            (true, None) => request.clone(),
            (true, Some(token)) => meta::with_progress_token(&request, token),
            (false, token) => translate::unsigned(&request, token.as_ref()),
        };
        let call = Call {
            upstream,
            id: server_id.clone(),
            method,
            request,
            server_token,
            client_token,
            log_level,
            plain,
            elicitations: Vec::new(),
        };
        self.calls.insert(id.clone(), call);
        let message = if server_id == id { message } else { message.with_id(&server_id) };
        if let Some(seat) = self.seat(upstream) {
            seat.under_way.insert(server_id, Whose::Call(id));
        }
        self.on_relay(upstream, now, |relay| relay.handle_client(message, now));
    }

    /// Brings the session's log level to what a request wants, and others that are under way in it. Gives the least
    /// severe level that it wants itself.
    pub(super) fn want_logs(&mut self, upstream: Upstream, request: &Message, now: Instant) -> Option<usize> {
        let wanted = meta::declared(request).and_then(|declared| declared.log_level)?.rank()?;
        let by_default = request.sender().is_some_and(|sender| sender.logs == Logs::Default);
        if by_default && self.seat(upstream).is_some_and(|seat| seat.log_level.is_none()) {
            // A session-era client that set no level gets what the server sends of its own accord.
            return Some(wanted);
        }
        let others = self.calls.values().filter(|call| call.upstream == upstream).filter_map(|call| call.log_level);
        let least = others.chain([wanted]).min().unwrap_or(wanted);
        self.set_level(upstream, LOG_LEVELS[least], now);
        Some(wanted)
    }

    fn set_level(&mut self, upstream: Upstream, level: &str, now: Instant) {
        let id = self.fresh_id();
        let Some(seat) = self.seat(upstream) else { return };
        if seat.log_level.as_deref() == Some(level) || !seat.server_has("logging", None) {
            return;
        }
        seat.log_level = Some(level.to_owned());
        seat.under_way.insert(id.clone(), Whose::Nobody);
        let params = format!(r#"{{"level":"{level}"}}"#);
        let request = Message::request(&id, method::LOGGING_SET_LEVEL, Some(&params));
        self.on_relay(upstream, now, |relay| relay.handle_client(request, now));
    }

    /// What the relay of a session has for its client, which is us.
    pub(super) fn heard(&mut self, upstream: Upstream, packet: Packet, now: Instant) {
        if let Kind::Result { id } | Kind::Error { id: Some(id) } = packet.message.kind() {
            let id = id.clone();
            if !self.opens(upstream, &packet, now) {
                self.answered(upstream, &id, packet, now);
            }
            return;
        }
        let Packet { lane, message, .. } = packet;
        match message.kind() {
            Kind::Request { id, method } => self.asked(upstream, &lane, &id.clone(), &method.clone(), &message, now),
            Kind::Notification { method } => match &**method {
                method::PROGRESS => self.pass_progress(upstream, &lane, message),
                method::LOG_MESSAGE => self.pass_log(upstream, &lane, message),
                method::CANCELLED => self.question_withdrawn(upstream, &message),
                method::TOOLS_LIST_CHANGED
                | method::PROMPTS_LIST_CHANGED
                | method::RESOURCES_LIST_CHANGED
                | method::RESOURCES_UPDATED => self.publish(upstream, &message),
                method::ELICITATION_COMPLETE => self.pass_completion(upstream, &lane, message),
                _ => self.pass_other(upstream, &lane, message),
            },
            Kind::Result { .. } | Kind::Error { .. } => {
                tracing::warn!(target: "era", "the server reports an error of no request")
            }
        }
    }

    fn answered(&mut self, upstream: Upstream, server_id: &Id, packet: Packet, now: Instant) {
        let Packet { message: answer, cause, .. } = packet;
        let Some(seat) = self.seat(upstream) else { return };
        match seat.under_way.remove(server_id) {
            Some(Whose::Call(id)) => {
                let Some(call) = self.calls.remove(&id) else { return };
                if self.wants_urls_opened(&id, &call, &answer, now) {
                    return;
                }
                let told = match answer.kind() {
                    Kind::Result { .. } if call.plain => {
                        let renamed = answer.with_id(&id);
                        drop(answer);
                        renamed.into_plain()
                    }
                    _ => self.in_new_words(upstream, &answer, &call.method).with_id(&id),
                };
                self.tell_packet(&id, Packet::from(told).because(cause).of_session());
            }
            Some(Whose::Parked(number)) => {
                // It did not wait for the input after all; the retry will have it.
                let method = self.parked.get(&number).map(|parked| parked.call.method.clone());
                let told =
                    method.map(|method| Packet::from(self.in_new_words(upstream, &answer, &method)).because(cause));
                self.parked.get_mut(&number).into_iter().for_each(|parked| parked.answer = told.clone());
            }
            Some(Whose::Subscribe { uri }) => {
                let granted = matches!(answer.kind(), Kind::Result { .. });
                self.subscription_answered(upstream, server_id, &uri, granted);
            }
            Some(Whose::Nobody) | None => {}
        }
        self.touch(upstream, now);
        self.seat_waiting(now);
    }

    /// Tells the server to stop; nothing more is said of the call.
    pub(super) fn cancel_upstream(&mut self, call: &Call, now: Instant) {
        let (upstream, id) = (call.upstream, call.id.clone());
        let params = format!(r#"{{"requestId":{id}}}"#);
        let cancelled = Message::notification(method::CANCELLED, Some(&params));
        if let Some(seat) = self.seat(upstream) {
            seat.under_way.remove(&id);
        }
        self.leave_off(upstream, std::slice::from_ref(&call.id));
        self.on_relay(upstream, now, |relay| relay.handle_client(cancelled, now));
        self.touch(upstream, now);
    }

    /// Notes calls that may still be heard of. Where that can be confused, no other that may be asked gets their session,
    /// until the server has answered them all the same.
    pub(super) fn leave_off(&mut self, upstream: Upstream, calls: &[Id]) {
        let unsorted = self.config.relay.attribute;
        if let Some(seat) = self.seat(upstream).filter(|seat| unsorted && seat.sort.answers_questions) {
            seat.left_off.extend(calls.iter().cloned());
        }
    }

    fn pass_progress(&mut self, upstream: Upstream, lane: &Lane, message: Message) {
        let token = meta::progress_token(&message);
        let belongs = |call: &Call| token.is_some() && call.server_token == token;
        let found = match self.call_on(upstream, lane) {
            Some((id, call)) if belongs(call) => Some((id, call)),
            _ => self.calls.iter().find(|(_, call)| belongs(call)),
        };
        let Some((id, client_token)) = found.and_then(|(id, call)| Some((id.clone(), call.client_token.clone()?)))
        else {
            // A call that waits for its retry has nobody who listens yet.
            let parked = self.parked.values_mut().find(|parked| belongs(&parked.call));
            return parked.into_iter().for_each(|parked| parked.progress = Some(message.clone()));
        };
        self.tell(&id, meta::with_progress_token(&message, &client_token));
    }

    /// A log message goes to the request that asked for such, if it is clear which.
    fn pass_log(&mut self, upstream: Upstream, lane: &Lane, message: Message) {
        let level = message.members().and_then(|params| params.string("level"));
        let Some(level) = level.and_then(|level| LOG_LEVELS.iter().position(|known| *known == level)) else { return };
        let wants = |call: &Call| call.log_level.is_some_and(|least| least <= level);
        let id = match self.call_on(upstream, lane) {
            Some((id, call)) => Some(id.clone()).filter(|_| wants(call)),
            None => self.only_call(upstream, wants),
        };
        if let Some(id) = id {
            self.tell(&id, message);
        }
    }

    fn pass_other(&mut self, upstream: Upstream, lane: &Lane, message: Message) {
        let id = match self.call_on(upstream, lane) {
            Some((id, _)) => Some(id.clone()),
            None => self.only_call(upstream, |_| true),
        };
        match id {
            Some(id) => self.tell(&id, message),
            None => tracing::debug!(target: "era", "dropped {message}: it belongs to no request"),
        }
    }

    /// The end of an elicitation out of band concerns session-era clients only: a stateless client retries when its
    /// user is done.
    fn pass_completion(&mut self, upstream: Upstream, lane: &Lane, message: Message) {
        let completed = message.member("elicitationId");
        let asked =
            |call: &Call| call.upstream == upstream && call.elicitations.iter().any(|id| Some(&**id) == completed);
        if let Some(parked) = self.parked.values_mut().find(|parked| asked(&parked.call)) {
            return parked.complete(message.clone());
        }
        let call = self.calls.iter().find(|(_, call)| asked(call)).or_else(|| self.call_on(upstream, lane));
        match call.filter(|(_, call)| call.plain).map(|(id, _)| id.clone()) {
            Some(id) => self.tell(&id, message),
            None => tracing::debug!(target: "era", "dropped {message}: no client waits for it"),
        }
    }

    /// The call whose stream a message came on.
    fn call_on(&self, upstream: Upstream, lane: &Lane) -> Option<(&Id, &Call)> {
        let Lane::Request(server_id) = lane else { return None };
        let seat = self.seats.iter().find(|seat| seat.upstream == upstream)?;
        match seat.under_way.get(server_id)? {
            Whose::Call(id) => self.calls.get_key_value(id),
            _ => None,
        }
    }

    fn only_call(&self, upstream: Upstream, fits: impl Fn(&Call) -> bool) -> Option<Id> {
        let mut calls = self.calls.iter().filter(|(_, call)| call.upstream == upstream && fits(call));
        let (id, _) = calls.next()?;
        calls.next().is_none().then(|| id.clone())
    }

    /// A question of the server's: which call is it for?
    fn asked(&mut self, upstream: Upstream, lane: &Lane, id: &Id, method: &Method, question: &Message, now: Instant) {
        if *method == method::PING {
            return self.answer_server(upstream, Message::result(id, "{}"), now);
        }
        if !translate::is_question(method) {
            let fault = Fault::UnknownMethod(method.to_string());
            return self.answer_server(upstream, fault.to_message(Some(id)), now);
        }
        if self.seat(upstream).is_some_and(|seat| !seat.sort.answers(question)) {
            let fault = Fault::UnknownMethod(format!("{method}, which the client does not offer"));
            return self.answer_server(upstream, fault.to_message(Some(id)), now);
        }
        match self.asks(upstream, lane) {
            Some(Whose::Call(call)) => self.park(&call, id, question, now),
            Some(Whose::Parked(number)) => self.ask_more(number, id, question, now),
            _ => {
                let fault = Fault::Upstream("the client can only be asked during one call that it is clear for".into());
                self.answer_server(upstream, fault.to_message(Some(id)), now);
            }
        }
    }

    fn asks(&self, upstream: Upstream, lane: &Lane) -> Option<Whose> {
        let seat = self.seats.iter().find(|seat| seat.upstream == upstream)?;
        if let Lane::Request(server_id) = lane
            && let Some(whose) = seat.under_way.get(server_id).filter(|whose| self.may_be_asked(whose))
        {
            return Some(whose.clone());
        }
        let mut candidates = seat.under_way.values().filter(|whose| self.may_be_asked(whose));
        let first = candidates.next()?;
        candidates.next().is_none().then(|| first.clone())
    }

    /// An answer of the server's as one of the stateless era.
    fn in_new_words(&self, upstream: Upstream, answer: &Message, method: &Method) -> Message {
        if let Kind::Error { .. } = answer.kind() {
            return translate::stateless_error(answer);
        }
        let seat = self.seats.iter().find(|seat| seat.upstream == upstream);
        translate::complete(answer, method, seat.and_then(|seat| seat.server_info.as_deref()))
    }

    pub(super) fn answer_server(&mut self, upstream: Upstream, answer: Message, now: Instant) {
        self.on_relay(upstream, now, |relay| relay.handle_client(answer, now));
    }
}
