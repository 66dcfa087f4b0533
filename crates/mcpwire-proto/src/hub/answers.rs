//! What servers say: each answer, sign of progress and log line goes to the one client it is for, and to nobody else.

use std::collections::VecDeque;
use std::time::Instant;

use super::catalogue::Part;
use super::fetch::Ask;
use super::links::returned;
use super::{Client, Effect, Hub, Place, Server};
use crate::object::quoted;
use crate::{Cause, Fault, Id, Kind, Lane, Message, Packet, meta, method};

/// A request that is with a server, by our id.
#[derive(Debug)]
pub(super) enum Owed {
    Call(Box<Call>),
    /// The hub's own.
    Own {
        server: Server,
        ask: Ask,
    },
    /// The hub's own, which stays open.
    Listen {
        server: Server,
    },
}

impl Owed {
    pub(super) fn server(&self) -> Server {
        match self {
            Owed::Call(call) => call.server,
            Owed::Own { server, .. } | Owed::Listen { server } => *server,
        }
    }
}

/// A client's request.
#[derive(Debug)]
pub(super) struct Call {
    pub client: Client,
    /// The id and the progress token that the client knows.
    pub id: Id,
    pub token: Option<Id>,
    pub server: Server,
    pub wants_logs: bool,
    pub turn: Option<Turn>,
}

/// A request for something that no list names: servers are asked one after the other until one has it.
#[derive(Debug)]
pub(super) struct Turn {
    pub request: Message,
    pub part: Part,
    /// The name or URI that the request asks for.
    pub address: String,
    pub rest: VecDeque<Server>,
    /// What the first server answered, which is the likeliest to know: the client gets it if nobody has it.
    pub refused: Option<Packet>,
}

impl Hub {
    pub fn handle_server(&mut self, server: Server, packet: Packet, now: Instant) {
        match packet.message.kind() {
            Kind::Result { id } | Kind::Error { id: Some(id) } => {
                // An id that another server was given is none of this one's.
                if self.owed.entry(id).is_some_and(|owed| owed.server() == server)
                    && let Some((ours, owed)) = self.owed.settle(id)
                {
                    self.answered(&ours, owed, &packet, now);
                }
            }
            Kind::Notification { .. } => self.heard(server, &packet.lane, packet.message, now),
            // 2026-07-28 has no requests of servers. One that asks all the same must not wait for an answer in vain.
            Kind::Request { id, method } => {
                let refusal = match *method == method::PING {
                    true => Message::result(id, "{}"),
                    false => Fault::UnknownMethod(format!("{method}: clients of this version take no requests"))
                        .to_message(Some(id)),
                };
                self.effects.push_back(Effect::ToServer(server, refusal));
            }
            Kind::Error { id: None } => {
                tracing::debug!(target: "hub", "dropped a server's {}: it belongs to no request", packet.message);
            }
        }
    }

    fn answered(&mut self, ours: &Id, owed: Owed, answer: &Packet, now: Instant) {
        self.count_off(&owed);
        match owed {
            Owed::Call(call) => self.call_answered(*call, answer, now),
            Owed::Own { server, ask } => self.fetched(server, ask, answer, now),
            Owed::Listen { server } => self.listen_ended(server, ours, answer, now),
        }
    }

    fn call_answered(&mut self, mut call: Call, packet: &Packet, now: Instant) {
        let went_well = matches!(packet.message.kind(), Kind::Result { .. });
        // A server that has never listed anything and sends no usable answer may not be an MCP server at all.
        let unseen = self.upstream(call.server).is_some_and(|upstream| !upstream.live);
        let unusable = matches!(packet.cause.as_deref(), Some(Cause::Unusable));
        let failed = packet.is_unanswered() || unseen && unusable;
        self.note_outcome(call.server, failed, now);
        let offered = self.merged.apps().result(call.server, &packet.message).filter(|_| went_well);
        let answer = offered.as_ref().unwrap_or(&packet.message).with_id(&call.id);
        let answer = match self.upstream(call.server).filter(|_| failed) {
            Some(upstream) => naming(&answer, &upstream.spec.name),
            None => answer,
        };
        let answer = Packet::from(answer).because(packet.cause.clone());
        if went_well {
            self.note_links(&call, &answer.message);
        } else if let Some(turn) = call.turn.take() {
            return self.ask_the_next(call, turn, answer, now);
        }
        self.answer(call.client, &call.id, answer);
    }

    /// Remembers which resources the server returned links to, and that it serves what no list names.
    fn note_links(&mut self, call: &Call, result: &Message) {
        if let Some(turn) = &call.turn {
            self.links.note(call.client, turn.part, &turn.address, call.server);
        }
        for uri in returned(result.payload().unwrap_or_default()) {
            self.links.note(call.client, Part::Resources, &uri, call.server);
        }
    }

    /// Counts failures; too many in a row, and calls are refused until the server has told what it offers.
    fn note_outcome(&mut self, server: Server, failed: bool, now: Instant) {
        let Some(upstream) = self.upstream(server) else { return };
        if !failed {
            upstream.breaker.succeeded();
        } else if upstream.breaker.failed(now) {
            tracing::warn!(target: "hub", "{} failed several times: calls are refused for now", upstream.spec.name);
            if upstream.fetch.is_none() && upstream.retry_at.is_none() {
                upstream.retry_at = Some(now + upstream.backoff.next_wait());
            }
        }
    }

    /// Asks the next server that may have what a call asks for; if there is none, gives the client the first refusal.
    fn ask_the_next(&mut self, call: Call, mut turn: Turn, refused: Packet, now: Instant) {
        let refused = turn.refused.take().unwrap_or(refused);
        let Ok(server) = self.admit_first(&mut turn.rest, now) else {
            return self.answer(call.client, &call.id, refused);
        };
        let ours = self.fresh_id();
        let message = turn.request.with_id(&ours);
        let message = if call.token.is_some() { meta::with_progress_token(&message, &ours) } else { message };
        if let Some(guest) = self.clients.get_mut(&call.client) {
            guest.under_way.insert(call.id.clone(), Place::Server(ours.clone()));
        }
        let turn = Some(Turn { refused: Some(refused), ..turn });
        let _ = self.owed.open(ours, Owed::Call(Box::new(Call { server, turn, ..call })));
        self.effects.push_back(Effect::ToServer(server, message));
    }

    /// A call is with its server no more.
    pub(super) fn count_off(&mut self, owed: &Owed) {
        if let Owed::Call(call) = owed
            && let Some(upstream) = self.upstream(call.server)
        {
            upstream.calls = upstream.calls.saturating_sub(1);
        }
    }

    /// Answers everything that a server owes: nothing more will come from it.
    pub(super) fn lose(&mut self, server: Server, why: &str) {
        for id in self.owed.ids_where(|owed| owed.server() == server) {
            let Some((_, owed)) = self.owed.settle(&id) else { continue };
            self.count_off(&owed);
            if let Owed::Call(call) = owed {
                self.refuse(call.client, &call.id, &Fault::NoAnswer(Cause::Interrupted, why.to_owned()));
            }
        }
        if let Some(upstream) = self.upstream(server) {
            upstream.fetch = None;
            upstream.listening.clear();
        }
    }

    fn heard(&mut self, server: Server, lane: &Lane, message: Message, now: Instant) {
        let Some(method) = message.method() else { return };
        match &**method {
            method::PROGRESS => self.pass_progress(server, &message),
            method::ACKNOWLEDGED => self.listen_acknowledged(server, &message, now),
            method::TOOLS_LIST_CHANGED => self.list_changed(server, &message, &[Part::Tools], now),
            method::PROMPTS_LIST_CHANGED => self.list_changed(server, &message, &[Part::Prompts], now),
            method::RESOURCES_LIST_CHANGED => {
                self.list_changed(server, &message, &[Part::Resources, Part::Templates], now);
            }
            method::RESOURCES_UPDATED => {
                if let Some(identity) = self.listening_for(server, &message) {
                    let offered = self.merged.apps().updated(server, &message);
                    self.publish(offered.as_ref().unwrap_or(&message), Some((server, &identity)));
                }
            }
            method::CANCELLED => self.listen_cancelled(server, &message, now),
            method::LOG_MESSAGE => self.pass(server, lane, message, |call| call.wants_logs),
            _ => self.pass(server, lane, message, |_| true),
        }
    }

    fn list_changed(&mut self, server: Server, message: &Message, parts: &[Part], now: Instant) {
        if self.listening_for(server, message).is_some() {
            self.fetch_parts(server, parts.iter().copied().collect(), now);
        }
    }

    fn pass_progress(&mut self, server: Server, message: &Message) {
        let Some(Owed::Call(call)) = meta::progress_token(message).and_then(|token| self.owed.entry(&token)) else {
            return;
        };
        let Some(token) = call.token.clone().filter(|_| call.server == server) else { return };
        let (client, id) = (call.client, call.id.clone());
        self.tell(client, &id, meta::with_progress_token(message, &token));
    }

    /// Something that names no request goes to the one whose stream it came on, or else to the only one it can be for.
    fn pass(&mut self, server: Server, lane: &Lane, message: Message, fits: impl Fn(&Call) -> bool) {
        let call = |owed: &Owed| match owed {
            Owed::Call(call) if call.server == server && fits(call) => Some((call.client, call.id.clone())),
            _ => None,
        };
        let whose = match lane {
            Lane::Request(ours) => self.owed.entry(ours).and_then(|owed| call(owed)),
            Lane::Main | Lane::Unsorted => {
                let mut calls = self.owed.iter().filter_map(|(_, owed)| call(owed));
                calls.next().filter(|_| calls.next().is_none())
            }
        };
        match whose {
            Some((client, id)) => self.tell(client, &id, message),
            None => tracing::debug!(target: "hub", "dropped {message}: it cannot be told whose it is"),
        }
    }
}

/// The same error, saying whose it is.
fn naming(error: &Message, server: &str) -> Message {
    let Some(mut members) = error.members() else { return error.clone() };
    let text = members.string("message").unwrap_or_default();
    members.set("message", quoted(&format!("MCP server not connected: {server}: {text}")));
    error.with_members(&members)
}
