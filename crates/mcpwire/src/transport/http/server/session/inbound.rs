//! What the client sends: messages for the server, and requests to listen.

use std::collections::hash_map::Entry;

use http::StatusCode;
use mcpwire_proto::{Fault, Id, Kind, Message, code, meta, method};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{FIRST, Manner, Post, SERVER_ENDED, Session, Text};
use crate::link::Event;
use crate::transport::http::server::Stage;
use crate::transport::http::server::answer::{Answer, Refusal};
use crate::transport::http::server::exchange::{Exchange, join};
use crate::transport::http::server::log::{EventId, MAIN};
use crate::transport::http::server::stream;

impl Session {
    pub(super) fn post(&mut self, post: Post, reply: oneshot::Sender<Answer>) {
        self.seen = Instant::now();
        let stream = self.next_stream();
        let mut refused = None;
        let (batch, message, messages, mut answers) = match post.text {
            Text::Message(message) => (false, Some(message), Vec::new(), Vec::new()),
            Text::Batch { messages, rejected } => (true, None, messages, rejected),
        };
        let mut owed = 0;
        let mut cancelled = Vec::new();
        for message in message.into_iter().chain(messages) {
            if let Kind::Request { id, .. } = message.kind() {
                if let Err((status, fault)) = self.enter(id, stream) {
                    answers.push(fault.to_message(Some(id)).as_bytes().clone());
                    refused = Some(Refusal::fault(status, Some(id), &fault));
                    continue;
                }
                owed += 1;
            } else if message.is(method::CANCELLED) {
                cancelled.extend(meta::cancelled_request(&message));
            }
            self.outbox.push(Event::Packet(message.into()));
        }
        // A connection that is gone by now is no reason not to deliver what it sent.
        let _ = match refused {
            Some(refusal) if !batch => reply.send(Answer::Refused(refusal)),
            _ if owed > 0 && stream != MAIN => {
                let exchange = Exchange::new(stream, owed, batch, post.accepts, self.seen, answers, reply);
                self.wake_by(exchange.streams_at(&self.options));
                self.exchanges.insert(stream, exchange);
                Ok(())
            }
            _ if answers.is_empty() => reply.send(Answer::Accepted),
            _ => reply.send(Answer::Json(join(answers, batch))),
        };
        // Now that every request of this POST has its exchange, too: a batch may cancel its own.
        cancelled.iter().for_each(|id| self.cancel(id));
        self.flush();
    }

    /// The stream on which the requests of a POST are answered.
    fn next_stream(&mut self) -> u64 {
        if self.has_one_stream() {
            return MAIN;
        }
        self.streams += 1;
        self.streams - 1
    }

    /// Takes a request in that is to be answered on that stream, or says why not.
    fn enter(&mut self, id: &Id, stream: u64) -> Result<(), (StatusCode, Fault)> {
        let limit = self.options.max_in_flight;
        let full = self.owed.len() >= limit;
        match self.owed.entry(id.clone()) {
            Entry::Occupied(_) => {
                let fault = Fault::Shape(format!("expected a new request id, came {id}, which is still in use"));
                Err((StatusCode::BAD_REQUEST, fault))
            }
            Entry::Vacant(_) if full => {
                let text = format!("too many requests wait for an answer in this session: the limit is {limit}");
                Err((StatusCode::TOO_MANY_REQUESTS, Fault::Upstream(text)))
            }
            Entry::Vacant(place) => {
                place.insert(stream);
                Ok(())
            }
        }
    }

    /// A cancelled request gets no answer from the server (2025-11-25, Cancellation), but the POST that brought it must
    /// end. To end its stream without an answer would make clients resume it: the TypeScript and the Python SDK do. So it
    /// is answered with a code of its own, which is no failure of anybody's. On one stream for all there is nothing to end.
    fn cancel(&mut self, id: &Id) {
        match self.owed.get(id) {
            Some(&MAIN) => {
                self.owed.remove(id);
                self.drain_if_due();
            }
            // A handshake cannot be cancelled.
            None | Some(&FIRST) => {}
            Some(_) => self.answer(id, Message::error(Some(id), code::REQUEST_CANCELLED, "Request cancelled")),
        }
    }

    /// Gives the server what it has room for.
    pub(super) fn flush(&mut self) {
        if !self.outbox.flush() {
            self.over = Some(SERVER_ENDED);
        }
    }

    pub(super) fn listen(&mut self, after: Option<EventId>, reply: oneshot::Sender<Answer>) {
        self.seen = Instant::now();
        let answer = if *self.stage.borrow() != Stage::Running {
            Answer::Refused(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down"))
        } else {
            match after {
                None => self.listen_anew(),
                Some(id) => self.resume(id),
            }
        };
        let answer = match answer {
            Answer::Events(mut events) if self.has_one_stream() => {
                events.wake_at_end(self.task.clone());
                Answer::Events(events)
            }
            answer => answer,
        };
        let _ = reply.send(answer);
        self.wake_for_streams();
    }

    fn listen_anew(&mut self) -> Answer {
        if self.main.is_attached() {
            let text = "this session has a listening stream already; one at a time";
            return Answer::Refused(Refusal::new(StatusCode::CONFLICT, text));
        }
        let (outlet, events) = stream::open(&self.options);
        if let Manner::OneStream { endpoint } = &self.manner {
            outlet.announce(endpoint);
        }
        let position = self.main.position();
        if self.primes() {
            outlet.prime(position, self.options.retry);
        }
        self.main.attach(outlet, position.sequence, &self.log);
        Answer::Events(events)
    }

    /// Sends what came after that event on its stream, and goes on with the stream if it is not over.
    fn resume(&mut self, id: EventId) -> Answer {
        let (outlet, events) = stream::open(&self.options);
        let feed = match id.stream {
            MAIN => Some(&mut self.main),
            stream => self.exchanges.get_mut(&stream).and_then(Exchange::feed),
        };
        match feed {
            Some(feed) if feed.reaches(id.sequence) => {
                feed.attach(outlet, id.sequence, &self.log);
                Answer::Events(events)
            }
            None if self.log.knows(id.stream) => {
                let left = self.log.after(id).take_while(|record| outlet.offer(record)).count();
                if left > 0 { Answer::Events(events) } else { Answer::NothingLeft }
            }
            _ => {
                let text = "this Last-Event-ID is not known, or what came after it is kept no more";
                Answer::Refused(Refusal::new(StatusCode::BAD_REQUEST, text))
            }
        }
    }
}
