//! One POST that asks something: first an HTTP response that is owed, then, if need be, a stream.

use bytes::{BufMut, Bytes, BytesMut};
use mcpwire_proto::Message;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::Answer;
use super::feed::Feed;
use super::log::EventLog;
use super::options::Options;
use super::stream;

/// What the client of a POST takes as an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// What an exchange needs of its session.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) log: &'a mut EventLog,
    pub(super) options: &'a Options,
    /// Whether the client knows of events without data (since 2025-11-25).
    pub(super) prime: bool,
}

/// ```text
/// Waiting --- all answers, nothing else ---> one JSON text, over
///    |
///    +------- anything else, or too long ---> Streaming --- all answers ---> over
/// ```
#[derive(Debug)]
pub(super) struct Exchange {
    stream: u64,
    /// How many of its requests are still owed an answer.
    owed: usize,
    batch: bool,
    accepts: Accepts,
    since: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting { reply: oneshot::Sender<Answer>, answers: Vec<Bytes> },
    Streaming(Feed),
    Over,
}

impl Exchange {
    /// A POST of so many requests; `answers` holds those that could be given at once.
    pub(super) fn new(
        stream: u64,
        owed: usize,
        batch: bool,
        accepts: Accepts,
        since: Instant,
        answers: Vec<Bytes>,
        reply: oneshot::Sender<Answer>,
    ) -> Exchange {
        Exchange { stream, owed, batch, accepts, since, state: State::Waiting { reply, answers } }
    }

    /// Passes on a message that belongs to the exchange and is no answer; `false` if the client cannot take it here.
    pub(super) fn tell(&mut self, message: &Message, context: &mut Context<'_>) -> bool {
        self.start_streaming(context);
        let State::Streaming(feed) = &mut self.state else { return false };
        feed.push(message.as_bytes().clone(), context.log);
        true
    }

    /// Passes on one of the answers. When it was the last one, says whether there was anyone to take it.
    pub(super) fn answer(&mut self, message: Message, context: &mut Context<'_>) -> Option<bool> {
        self.owed = self.owed.saturating_sub(1);
        if !self.accepts.json {
            self.start_streaming(context);
        }
        let text = message.into_bytes();
        if self.owed > 0 {
            match &mut self.state {
                State::Waiting { answers, .. } => answers.push(text),
                State::Streaming(feed) => feed.push(text, context.log),
                State::Over => {}
            }
            return None;
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Waiting { reply, mut answers } if self.batch => {
                answers.push(text);
                Some(reply.send(Answer::Json(join(answers, true))).is_ok())
            }
            State::Waiting { reply, .. } => Some(reply.send(Answer::Json(text)).is_ok()),
            State::Streaming(mut feed) => {
                feed.push(text, context.log);
                Some(feed.is_attached())
            }
            State::Over => Some(false),
        }
    }

    /// Turns the response into a stream, if it is not one yet and the client takes one.
    pub(super) fn start_streaming(&mut self, context: &mut Context<'_>) {
        // A client that is gone by now has nothing to resume from.
        let waits = matches!(&self.state, State::Waiting { reply, .. } if !reply.is_closed());
        if !waits || !self.accepts.events {
            return;
        }
        let State::Waiting { reply, answers } = std::mem::replace(&mut self.state, State::Over) else { return };
        let mut feed = Feed::new(self.stream);
        let (outlet, events) = stream::open(context.options);
        if context.prime {
            outlet.prime(feed.position(), context.options.retry);
        }
        if reply.send(Answer::Events(events)).is_ok() {
            feed.attach(outlet, 0, context.log);
        }
        for answer in answers {
            feed.push(answer, context.log);
        }
        self.state = State::Streaming(feed);
    }

    /// When the response becomes a stream if nothing else happens.
    pub(super) fn streams_at(&self, options: &Options) -> Option<Instant> {
        let waits = matches!(&self.state, State::Waiting { reply, .. } if !reply.is_closed());
        (waits && self.accepts.events).then(|| self.since + options.stream_after)
    }

    pub(super) fn feed(&mut self) -> Option<&mut Feed> {
        match &mut self.state {
            State::Streaming(feed) => Some(feed),
            State::Waiting { .. } | State::Over => None,
        }
    }

    /// When the client's last connection ended, as far as is known.
    pub(super) fn left_at(&self) -> Option<Instant> {
        match &self.state {
            State::Streaming(feed) => feed.left_at(),
            State::Waiting { .. } | State::Over => None,
        }
    }

    /// Whether a client is connected.
    pub(super) fn is_attached(&self) -> bool {
        match &self.state {
            State::Waiting { reply, .. } => !reply.is_closed(),
            State::Streaming(feed) => feed.is_attached(),
            State::Over => false,
        }
    }
}

/// A batch is answered with an array, a single request with its answer as it is.
pub(super) fn join(mut answers: Vec<Bytes>, batch: bool) -> Bytes {
    if !batch {
        return answers.pop().unwrap_or_default();
    }
    let mut text = BytesMut::with_capacity(answers.iter().map(|a| a.len() + 1).sum::<usize>() + 1);
    for (at, answer) in answers.iter().enumerate() {
        text.put_u8(if at == 0 { b'[' } else { b',' });
        text.put_slice(answer);
    }
    text.put_u8(b']');
    text.freeze()
}
