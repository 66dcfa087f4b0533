//! Input that a stateless server requires: asked from the client as requests of its own era, within its one call.

use std::time::Instant;

use super::{ANSWER_WITHIN, OldClient, Out};
use crate::era::translate;
use crate::method::{self, Method};
use crate::object::quoted;
use crate::{Fault, Id, Kind, Lane, Message, Object, Packet};

/// A server that is never content would keep the client busy for ever.
const MOST_ROUNDS: u32 = 32;
/// The most questions in one round.
const MOST_QUESTIONS: usize = 100;

/// A question that is with the client.
#[derive(Debug)]
pub(super) struct Asked {
    /// The client's request that gave rise to it.
    call: Id,
    /// The server's name for the question.
    key: String,
    method: Method,
}

/// What one `input_required` result wants.
#[derive(Debug)]
pub(super) struct Round {
    pub until: Instant,
    /// How many questions the client has not answered yet.
    open: usize,
    /// Answers by the server's names, as JSON text.
    answers: Vec<(String, String)>,
    /// The server's own note, as JSON text; it gets it back as it is.
    state: Option<String>,
}

impl OldClient {
    pub(super) fn ask(&mut self, id: &Id, result: &Object<'_>, now: Instant) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.rounds += 1;
        let allowed = call.message.method().is_some_and(Method::may_ask);
        let questions = result.object("inputRequests").unwrap_or_default();
        if !allowed || call.rounds > MOST_ROUNDS || questions.iter().count() > MOST_QUESTIONS {
            let fault = Fault::Upstream(match allowed {
                true => format!("the server asked for input too often or too much: {} rounds", call.rounds),
                false => "the server asked for input where it may not".into(),
            });
            return self.fail(id, &fault.to_message(Some(id)));
        }
        let state = result.get("requestState").map(str::to_owned);
        call.round = Some(Round { until: now + ANSWER_WITHIN, open: 0, answers: Vec::new(), state });
        for (key, asked) in questions.iter() {
            let question_id = self.fresh_id();
            let Some((question, method)) = translate::question(&question_id, asked) else {
                let fault = Fault::Upstream("the server asked for something that no client can be asked".into());
                return self.fail(id, &fault.to_message(Some(id)));
            };
            self.asked.insert(question_id, Asked { call: id.clone(), key: key.to_owned(), method });
            if let Some(round) = self.calls.get_mut(id).and_then(|call| call.round.as_mut()) {
                round.open += 1;
            }
            self.out.push_back(Out::Client(Packet::new(Lane::Request(id.clone()), question)));
        }
        self.go_on_if_all_is_said(id);
    }

    /// The client has answered a question.
    pub(super) fn answered(&mut self, question: &Id, answer: &Message) {
        let Some(Asked { call: id, key, method }) = self.asked.remove(question) else {
            return tracing::debug!(target: "era", "dropped the client's {answer}: nobody waits for it");
        };
        let answer = match answer.kind() {
            Kind::Result { .. } => answer.payload().unwrap_or("{}").to_owned(),
            // A client that cannot ask its user has not got an answer from them.
            _ if method == method::ELICITATION_CREATE => r#"{"action":"cancel"}"#.to_owned(),
            _ => return self.fail(&id, answer),
        };
        if let Some(round) = self.calls.get_mut(&id).and_then(|call| call.round.as_mut()) {
            round.open -= 1;
            round.answers.push((key, answer));
        }
        self.go_on_if_all_is_said(&id);
    }

    fn go_on_if_all_is_said(&mut self, id: &Id) {
        let Some(call) = self.calls.get_mut(id) else { return };
        if let Some(Round { answers, state, .. }) = call.round.take_if(|round| round.open == 0) {
            let members: Vec<_> = answers.iter().map(|(key, answer)| format!("{}:{answer}", quoted(key))).collect();
            let responses = (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")));
            self.send_again(id, Some((responses, state)));
        }
    }

    pub(super) fn give_up_rounds(&mut self, now: Instant) {
        let due = |call: &super::Call| call.round.as_ref().is_some_and(|round| round.until <= now);
        let late: Vec<Id> = self.calls.iter().filter(|(_, call)| due(call)).map(|(id, _)| id.clone()).collect();
        for id in late {
            let fault = Fault::Upstream(format!("the client did not give the input required within {ANSWER_WITHIN:?}"));
            self.fail(&id, &fault.to_message(Some(&id)));
        }
    }

    /// The call is over: the client need not work on its questions any more.
    pub(super) fn withdraw_questions(&mut self, call: &Id) {
        let open: Vec<Id> =
            self.asked.iter().filter(|(_, asked)| asked.call == *call).map(|(id, _)| id.clone()).collect();
        for id in open {
            self.asked.remove(&id);
            let params = format!(r#"{{"requestId":{id},"reason":"the call is over"}}"#);
            let message = Message::notification(method::CANCELLED, Some(&params));
            self.out.push_back(Out::Client(Packet::new(Lane::Request(call.clone()), message)));
        }
    }
}
