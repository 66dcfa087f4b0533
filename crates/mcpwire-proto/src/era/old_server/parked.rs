//! Calls that wait for input: the server asked, the client was told so, and its retry is awaited.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::OldServer;
use super::calls::Call;
use super::seal::{self, Slip};
use super::seats::{Sort, Whose};
use crate::conversation::Upstream;
use crate::era::translate;
use crate::method::{self, Method};
use crate::object::quoted;
use crate::{Fault, Id, Kind, Message, Object, Packet, meta};

/// The most questions that one call may have open.
const MOST_QUESTIONS: usize = 100;

#[derive(Debug)]
pub(super) struct Parked {
    pub call: Call,
    /// Whose call it is.
    pub sort: Sort,
    /// When its client was last heard of.
    pub since: Instant,
    pub until: Instant,
    /// What the server wants to know, by the names that the client sees.
    questions: BTreeMap<String, Question>,
    next_question: u32,
    /// How far the server said it is while nobody listened; the retry is told.
    pub progress: Option<Message>,
    /// The server's last word, if it came before the client's.
    pub answer: Option<Packet>,
    /// Elicitations that ended out of band while no request was open; the retry gets their completion.
    completed: Vec<Message>,
    /// The server refused the call until its user has opened some pages: then it is sent again.
    refusal: Option<Message>,
}

#[derive(Debug)]
struct Question {
    /// The id under which the server awaits the answer, if it does.
    id: Option<Id>,
    method: Method,
    /// As it stands in `inputRequests`.
    text: String,
}

impl Parked {
    fn new(call: Call, sort: Sort, since: Instant, park_for: Duration) -> Parked {
        Parked {
            call,
            sort,
            since,
            until: since + park_for,
            questions: BTreeMap::new(),
            next_question: 0,
            progress: None,
            answer: None,
            completed: Vec::new(),
            refusal: None,
        }
    }

    fn add(&mut self, id: Option<&Id>, question: &Message) {
        self.next_question += 1;
        let method = question.method().cloned().unwrap_or_else(|| Method::from(""));
        if let Some(elicitation) = question.member("elicitationId").filter(|_| self.call.plain) {
            self.call.elicitations.push(elicitation.to_owned());
        }
        let question = Question { id: id.cloned(), method, text: translate::input_request(question, self.call.plain) };
        self.questions.insert(format!("question-{}", self.next_question), question);
    }

    /// Keeps the end of an elicitation for the retry.
    pub(super) fn complete(&mut self, notification: Message) {
        if self.completed.len() < MOST_QUESTIONS {
            self.completed.push(notification);
        }
    }

    /// The result that asks the client for what the server wants to know.
    fn input_required(&self, id: &Id, slip: &str, server_info: Option<&str>) -> Message {
        let questions: Vec<_> =
            self.questions.iter().map(|(key, question)| format!("{}:{}", quoted(key), question.text)).collect();
        let mut result = Object::new();
        result.set("resultType", r#""input_required""#);
        result.set("inputRequests", format!("{{{}}}", questions.join(",")));
        result.set("requestState", quoted(slip));
        if let Some(info) = server_info {
            result.set("_meta", format!("{{{}:{info}}}", quoted(meta::key::SERVER_INFO)));
        }
        Message::result(id, &result.to_string())
    }
}

impl OldServer {
    /// The server asks something during a call: the call is put aside and its client asked.
    pub(super) fn park(&mut self, call_id: &Id, question_id: &Id, question: &Message, now: Instant) {
        let most = self.config.most_parked;
        let Some(call) = self.calls.get(call_id) else { return };
        let upstream = call.upstream;
        if !self.make_room_to_park(upstream, now) {
            let fault = Fault::Upstream(format!("too many calls wait for input: {most}"));
            return self.answer_server(upstream, fault.to_message(Some(question_id)), now);
        }
        let Some(sort) = self.seat(upstream).map(|seat| seat.sort.clone()) else { return };
        let Some(call) = self.calls.remove(call_id) else { return };
        let number = self.seal.next_number();
        if let Some(seat) = self.seat(upstream) {
            seat.under_way.insert(call.id.clone(), Whose::Parked(number));
        }
        let mut parked = Parked::new(call, sort, now, self.config.park_for);
        parked.add(Some(question_id), question);
        self.parked.insert(number, parked);
        self.ask(number, call_id);
    }

    /// Whether the server refuses a call until pages have been opened (2025-11-25, URL Elicitation Required Error) and
    /// the client can be asked for that. The call has not been executed, so its retry is sent to the server.
    pub(super) fn wants_urls_opened(&mut self, id: &Id, call: &Call, answer: &Message, now: Instant) -> bool {
        // A session-era client knows the error.
        if call.plain || !matches!(answer.kind(), Kind::Error { .. }) {
            return false;
        }
        let pages = translate::required_urls(answer);
        let sort = self.seat(call.upstream).map(|seat| seat.sort.clone()).filter(Sort::opens_urls);
        let Some(sort) = sort.filter(|_| call.method.may_ask()) else { return false };
        if pages.is_empty() || pages.len() > MOST_QUESTIONS || !self.make_room_to_park(call.upstream, now) {
            return false;
        }
        let mut parked = Parked::new(call.clone(), sort, now, self.config.park_for);
        pages.iter().for_each(|page| parked.add(None, page));
        parked.refusal = Some(answer.clone());
        let number = self.seal.next_number();
        self.parked.insert(number, parked);
        self.ask(number, id);
        true
    }

    /// Answers a request of the client's with what is to be asked.
    fn ask(&mut self, number: u64, id: &Id) {
        let Some(parked) = self.parked.get(&number) else { return };
        let slip = Slip { number, until: parked.until, request: seal::digest(&parked.call.request) };
        let slip = self.seal.close(&slip);
        let info = self.seats.iter().find(|seat| seat.upstream == parked.call.upstream);
        let info = info.and_then(|seat| seat.server_info.clone());
        let result = parked.input_required(id, &slip, info.as_deref());
        self.tell(id, result);
    }

    /// The server asks more while the client is busy with the first question: the retry will hear of it.
    pub(super) fn ask_more(&mut self, number: u64, question_id: &Id, question: &Message, now: Instant) {
        let Some(parked) = self.parked.get_mut(&number) else { return };
        if parked.questions.len() < MOST_QUESTIONS {
            return parked.add(Some(question_id), question);
        }
        let upstream = parked.call.upstream;
        let fault = Fault::Upstream(format!("too many questions: {MOST_QUESTIONS} are with the client already"));
        self.answer_server(upstream, fault.to_message(Some(question_id)), now);
    }

    /// The server does not want to know any more.
    pub(super) fn question_withdrawn(&mut self, upstream: Upstream, notification: &Message) {
        let Some(id) = meta::cancelled_request(notification) else { return };
        for parked in self.parked.values_mut().filter(|parked| parked.call.upstream == upstream) {
            parked.questions.retain(|_, question| question.id.as_ref() != Some(&id));
        }
    }

    /// A retry: what the client found out goes to the server, and the call goes on under the new id.
    pub(super) fn resume(&mut self, id: &Id, request: &Message, slip: &str, now: Instant) {
        let digest = seal::digest(request);
        let opened = self.seal.open(slip, now).filter(|slip| slip.request == digest);
        let known = opened.filter(|slip| self.parked.contains_key(&slip.number));
        let Some(Slip { number, .. }) = known else {
            let text = "requestState is unknown, is not for this request, or is too old; or its call had to make room";
            let fault = Fault::Params(text.into());
            return self.tell(id, fault.to_message(Some(id)));
        };
        for (upstream, answer) in self.take_answers(number, request) {
            self.answer_server(upstream, answer, now);
        }
        let Some(parked) = self.parked.get_mut(&number) else { return };
        (parked.since, parked.until) = (now, now + self.config.park_for);
        if let Some(answer) = parked.answer.take() {
            let (upstream, questions) = (parked.call.upstream, std::mem::take(&mut parked.questions));
            if let Some(parked) = self.parked.remove(&number) {
                self.catch_up(id, parked.progress, parked.completed, meta::progress_token(request));
            }
            self.tell_packet(id, Packet { message: answer.message.with_id(id), ..answer });
            self.leave_unanswered(upstream, questions, now);
        } else if parked.questions.is_empty() && parked.refusal.is_some() {
            self.parked.remove(&number);
            self.place(translate::without_input(request), now);
        } else if parked.questions.is_empty() {
            self.unpark(number, id, request, now);
        } else {
            self.ask(number, id);
        }
        self.seat_waiting(now);
    }

    /// The answers that a retry brings, as the server awaits them.
    fn take_answers(&mut self, number: u64, request: &Message) -> Vec<(Upstream, Message)> {
        let params = request.members().unwrap_or_default();
        let responses = params.object("inputResponses").unwrap_or_default();
        let Some(parked) = self.parked.get_mut(&number) else { return Vec::new() };
        let upstream = parked.call.upstream;
        let (mut answers, mut opened) = (Vec::new(), true);
        parked.questions.retain(|key, question| match responses.get(key) {
            Some(response) => {
                match &question.id {
                    Some(id) => answers.push((upstream, Message::result(id, response))),
                    None => {
                        opened &= Object::parse(response).and_then(|r| r.string("action")).as_deref() == Some("accept")
                    }
                }
                false
            }
            None => true,
        });
        if !opened {
            // The server would only refuse it again.
            parked.answer = parked.refusal.take().map(Packet::from);
        }
        answers
    }

    fn unpark(&mut self, number: u64, id: &Id, request: &Message, now: Instant) {
        let Some(Parked { mut call, progress, completed, .. }) = self.parked.remove(&number) else { return };
        call.log_level = self.want_logs(call.upstream, request, now);
        call.client_token = meta::progress_token(request);
        call.plain = request.sender().is_some();
        if let Some(seat) = self.seat(call.upstream) {
            seat.under_way.insert(call.id.clone(), Whose::Call(id.clone()));
        }
        self.catch_up(id, progress, completed, call.client_token.clone());
        self.calls.insert(id.clone(), call);
    }

    /// Tells a retry which elicitations ended meanwhile, and how far its call came, if it wants to know.
    fn catch_up(&mut self, id: &Id, progress: Option<Message>, completed: Vec<Message>, token: Option<Id>) {
        completed.into_iter().for_each(|notification| self.tell(id, notification));
        if let (Some(progress), Some(token)) = (progress, token) {
            self.tell(id, meta::with_progress_token(&progress, &token));
        }
    }

    /// Clients need not retry. Then the server is told so, and its session is free again.
    pub(super) fn expire_parked(&mut self, now: Instant) {
        let late: Vec<u64> =
            self.parked.iter().filter(|(_, parked)| parked.until <= now).map(|(number, _)| *number).collect();
        late.into_iter().for_each(|number| self.give_up(number, now));
    }

    /// The client's retry is not awaited any more.
    pub(super) fn give_up(&mut self, number: u64, now: Instant) {
        let Some(parked) = self.parked.remove(&number) else { return };
        self.leave_unanswered(parked.call.upstream, parked.questions, now);
        if parked.answer.is_none() && parked.refusal.is_none() {
            self.cancel_upstream(&parked.call, now);
        }
    }

    /// Tells the server that nobody will answer these.
    fn leave_unanswered(&mut self, upstream: Upstream, questions: BTreeMap<String, Question>, now: Instant) {
        for Question { id, method, .. } in questions.into_values() {
            let Some(id) = id else { continue };
            let answer = if method == method::ELICITATION_CREATE {
                Message::result(&id, r#"{"action":"cancel"}"#)
            } else {
                Fault::Upstream("the client did not come back with an answer".into()).to_message(Some(&id))
            };
            self.answer_server(upstream, answer, now);
        }
    }
}
