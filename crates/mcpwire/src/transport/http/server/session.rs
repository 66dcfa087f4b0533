//! One MCP session: a loop that owns its streams, its event log and its end of the link; HTTP is left to the router.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use mcpwire_proto::version::{V2025_03_26, V2025_11_25};
use mcpwire_proto::{Fault, Id, Kind, Lane, Message, Packet, code, method};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, Sleep};

use super::Stage;
use super::answer::{Answer, Refusal};
use super::exchange::{Accepts, Context, Exchange, join};
use super::feed::Feed;
use super::log::{EventId, EventLog, MAIN};
use super::options::Options;
use super::stream;
use crate::link::{Event, Link, Port};

/// How many commands wait for the session before their connections do.
const MAILBOX: usize = 64;
/// How long a server may take to answer a request that was cancelled before we do. It need not answer at all
/// (2025-11-25, Cancellation), but the HTTP request must end.
const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// The stream of the request that opens the session.
const FIRST: u64 = 1;

/// What a connection asks of the session.
#[derive(Debug)]
pub(super) enum Command {
    Post(Post),
    /// A GET: listen, or resume the stream of that event.
    Listen {
        after: Option<EventId>,
        reply: oneshot::Sender<Answer>,
    },
}

/// The messages of one POST.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) messages: Vec<Message>,
    /// Answers to parts of a batch that are no messages.
    pub(super) rejected: Vec<Bytes>,
    pub(super) batch: bool,
    pub(super) accepts: Accepts,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// How connections reach a session.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    commands: mpsc::Sender<Command>,
    end: Arc<Notify>,
    version: Arc<OnceLock<String>>,
}

impl Handle {
    /// The version that was negotiated, once it was.
    pub(super) fn version(&self) -> Option<&str> {
        self.version.get().map(String::as_str)
    }

    /// Hands a command over whole: once it is taken, a client that goes away takes nothing back.
    pub(super) async fn ask(&self, command: impl FnOnce(oneshot::Sender<Answer>) -> Command) -> Answer {
        let (reply, answer) = oneshot::channel();
        let taken = self.commands.send(command(reply)).await;
        match (taken, answer.await) {
            (Ok(()), Ok(answer)) => answer,
            _ => Answer::Refused(Refusal::session_not_found()),
        }
    }

    pub(super) fn end(&self) {
        self.end.notify_one();
    }
}

/// What wakes the loop.
enum Input {
    Command(Command),
    /// A packet from the server, or its end.
    Packet(Option<Packet>),
    /// The server takes the next message of the outbox, or is gone.
    Room(bool),
    Alarm,
    Stage(Stage),
    Ended,
}

/// Where a request's messages go.
#[derive(Debug)]
struct Owed {
    stream: u64,
    /// When to give up on an answer, if the client cancelled the request.
    give_up: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Session {
    options: Arc<Options>,
    commands: mpsc::Receiver<Command>,
    end: Arc<Notify>,
    stage: watch::Receiver<Stage>,
    port: Port,
    version: Arc<OnceLock<String>>,
    /// Messages that the server had no room for yet. No command is taken while there are any.
    outbox: VecDeque<Message>,
    /// Who is still owed an answer.
    owed: HashMap<Id, Owed>,
    exchanges: HashMap<u64, Exchange>,
    main: Feed,
    log: EventLog,
    streams: u64,
    seen: Instant,
    alarm: Pin<Box<Sleep>>,
    /// Set when the session is over, with what to tell those who still wait.
    over: Option<&'static str>,
}

/// Makes a session, the way to reach it, and the link to whoever serves it.
pub(super) fn open(options: Arc<Options>, stage: watch::Receiver<Stage>) -> (Session, Handle, Link) {
    let (link, port) = Link::pair();
    let (commands_tx, commands) = mpsc::channel(MAILBOX);
    let end = Arc::new(Notify::new());
    let version = Arc::new(OnceLock::new());
    let handle = Handle { commands: commands_tx, end: end.clone(), version: version.clone() };
    let session = Session {
        log: EventLog::new(options.log_events, options.log_bytes),
        alarm: Box::pin(tokio::time::sleep(options.session_idle)),
        options,
        commands,
        end,
        stage,
        port,
        version,
        outbox: VecDeque::new(),
        owed: HashMap::new(),
        exchanges: HashMap::new(),
        main: Feed::new(MAIN),
        streams: FIRST,
        seen: Instant::now(),
        over: None,
    };
    (session, handle, link)
}

impl Session {
    pub(super) async fn run(mut self) {
        let why = loop {
            match self.next().await {
                Input::Command(Command::Post(post)) => self.post(post),
                Input::Command(Command::Listen { after, reply }) => self.listen(after, reply),
                Input::Packet(Some(packet)) => self.pass(packet),
                Input::Room(true) => self.flush(),
                Input::Packet(None) | Input::Room(false) => self.over = Some("the server ended the session"),
                Input::Alarm => self.ring(),
                Input::Stage(Stage::Running) => {}
                Input::Stage(Stage::Draining) => self.main.detach(),
                Input::Stage(Stage::Ending) => self.over = Some("the server is shutting down"),
                Input::Ended => self.over = Some("the client ended the session"),
            }
            if let Some(why) = self.over {
                break why;
            }
        };
        let owed: Vec<Id> = self.owed.keys().cloned().collect();
        for id in owed {
            self.answer(&id, &Message::error(Some(&id), code::INTERNAL_ERROR, why));
        }
    }

    async fn next(&mut self) -> Input {
        tokio::select! {
            command = self.commands.recv(), if self.outbox.is_empty() => match command {
                Some(command) => Input::Command(command),
                None => Input::Ended,
            },
            packet = self.port.rx.recv() => Input::Packet(packet),
            room = self.port.tx.reserve(), if !self.outbox.is_empty() => Input::Room(room.is_ok()),
            () = self.alarm.as_mut() => Input::Alarm,
            changed = self.stage.changed() => match changed {
                Ok(()) => Input::Stage(*self.stage.borrow_and_update()),
                Err(_) => Input::Stage(Stage::Ending),
            },
            () = self.end.notified() => Input::Ended,
        }
    }

    fn post(&mut self, post: Post) {
        self.seen = Instant::now();
        let stream = self.streams;
        self.streams += 1;
        let mut refused = None;
        let mut answers = post.rejected;
        let mut owed = 0;
        for message in post.messages {
            if let Kind::Request { id, .. } = message.kind() {
                if let Some((status, fault)) = self.refuses(id) {
                    answers.push(fault.to_message(Some(id)).as_bytes().clone());
                    refused = Some(Refusal::fault(status, Some(id), &fault));
                    continue;
                }
                self.owed.insert(id.clone(), Owed { stream, give_up: None });
                owed += 1;
            } else if message.is(method::CANCELLED) {
                self.cancel(&message);
            }
            self.outbox.push_back(message);
        }
        // A connection that is gone by now is no reason not to deliver what it sent.
        match (owed, refused) {
            (0, Some(refusal)) if !post.batch => drop(post.reply.send(Answer::Refused(refusal))),
            (0, _) if answers.is_empty() => drop(post.reply.send(Answer::Accepted)),
            (0, _) => drop(post.reply.send(Answer::Json(join(answers, post.batch)))),
            _ => {
                let exchange = Exchange::new(stream, owed, post.batch, post.accepts, answers, post.reply);
                self.wake_by(exchange.streams_at(&self.options));
                self.exchanges.insert(stream, exchange);
            }
        }
        self.flush();
    }

    /// Why a request under this id is not taken, if it is not.
    fn refuses(&self, id: &Id) -> Option<(StatusCode, Fault)> {
        if self.owed.contains_key(id) {
            let fault = Fault::Shape(format!("expected a new request id, came {id}, which is still in use"));
            return Some((StatusCode::BAD_REQUEST, fault));
        }
        let limit = self.options.max_in_flight;
        (self.owed.len() >= limit).then(|| {
            let text = format!("too many requests wait for an answer in this session: the limit is {limit}");
            (StatusCode::TOO_MANY_REQUESTS, Fault::Upstream(text))
        })
    }

    fn cancel(&mut self, message: &Message) {
        #[derive(Deserialize)]
        struct Cancelled<'a> {
            #[serde(rename = "requestId", borrow)]
            request_id: &'a RawValue,
        }
        let id = message.read::<Cancelled<'_>>().and_then(|c| Id::from_json(c.request_id.get()));
        let give_up = Instant::now() + CANCEL_GRACE;
        if let Some(owed) = id.and_then(|id| self.owed.get_mut(&id)) {
            owed.give_up = Some(give_up);
            self.wake_by(Some(give_up));
        }
    }

    /// Gives the server what it has room for.
    fn flush(&mut self) {
        while let Some(message) = self.outbox.pop_front() {
            match self.port.tx.try_send(Event::Packet(message.into())) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(Event::Packet(packet))) => {
                    self.outbox.push_front(packet.message);
                    return;
                }
                Err(_) => {
                    self.over = Some("the server ended the session");
                    return;
                }
            }
        }
    }

    /// Passes on what the server sent. An answer belongs to its request, whatever its lane says.
    fn pass(&mut self, packet: Packet) {
        let Packet { lane, message } = packet;
        if message.is_response() {
            match message.id().cloned() {
                Some(id) => self.answer(&id, &message),
                None => tracing::warn!(target: "http", "the server sent an error that belongs to no request"),
            }
            return;
        }
        let exchange = match &lane {
            Lane::Request(id) => self.owed.get(id).and_then(|owed| self.exchanges.get_mut(&owed.stream)),
            Lane::Main => None,
        };
        let prime = self.version.get().is_some_and(|version| primes(version));
        let mut context = Context { log: &mut self.log, options: &self.options, prime };
        if !exchange.is_some_and(|exchange| exchange.tell(&message, &mut context)) {
            self.main.push(message.as_bytes().clone(), &mut self.log);
        }
        self.wake_for_streams();
    }

    fn answer(&mut self, id: &Id, message: &Message) {
        let Some(Owed { stream, .. }) = self.owed.remove(id) else {
            tracing::debug!(target: "http", %id, "the server answered a request that is owed no answer");
            return;
        };
        if stream == FIRST {
            self.negotiated(message);
        }
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        let prime = self.version.get().is_some_and(|version| primes(version));
        let mut context = Context { log: &mut self.log, options: &self.options, prime };
        if let Some(delivered) = exchange.answer(message, &mut context) {
            self.exchanges.remove(&stream);
            // Without the answer to `initialize` nobody knows of this session.
            if stream == FIRST && (self.version.get().is_none() || !delivered) {
                self.over = Some("the session was not opened");
            }
        }
        self.wake_for_streams();
    }

    /// Reads the version from the answer to `initialize` as it passes by.
    fn negotiated(&mut self, message: &Message) {
        #[derive(Deserialize)]
        struct Initialized {
            #[serde(rename = "protocolVersion")]
            protocol_version: String,
        }
        if let Kind::Result { .. } = message.kind() {
            // What a server that does not say is taken for (2025-06-18, Transports, Protocol Version Header).
            let version = message.read::<Initialized>().map_or(V2025_03_26.to_owned(), |i| i.protocol_version);
            let _ = self.version.set(version);
        }
    }

    fn listen(&mut self, after: Option<EventId>, reply: oneshot::Sender<Answer>) {
        self.seen = Instant::now();
        if *self.stage.borrow() != Stage::Running {
            let text = "the server is shutting down";
            drop(reply.send(Answer::Refused(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text))));
            return;
        }
        let (outlet, events) = stream::open(&self.options);
        let position = after.unwrap_or(self.main.position());
        let feed = match after {
            None if self.main.is_attached() => {
                let text = "this session has a listening stream already; one at a time";
                drop(reply.send(Answer::Refused(Refusal::new(StatusCode::CONFLICT, text))));
                return;
            }
            None => {
                if self.version.get().is_some_and(|version| primes(version)) {
                    outlet.prime(self.main.position(), self.options.retry);
                }
                Some(&mut self.main)
            }
            Some(EventId { stream: MAIN, .. }) => Some(&mut self.main),
            Some(id) => self.exchanges.get_mut(&id.stream).and_then(Exchange::feed),
        };
        let answer = match feed {
            Some(feed) if feed.reaches(position.sequence) => {
                feed.attach(outlet, position.sequence, &self.log);
                Answer::Events(events)
            }
            None if self.log.knows(position.stream) => {
                let left = self.log.after(position).take_while(|record| outlet.offer(record)).count();
                if left > 0 { Answer::Events(events) } else { Answer::NothingLeft }
            }
            _ => {
                let text = "this Last-Event-ID is not known, or what came after it is kept no more";
                Answer::Refused(Refusal::new(StatusCode::BAD_REQUEST, text))
            }
        };
        let _ = reply.send(answer);
        self.wake_for_streams();
    }

    /// Does what is due.
    fn ring(&mut self) {
        let now = Instant::now();
        let prime = self.version.get().is_some_and(|version| primes(version));
        let mut context = Context { log: &mut self.log, options: &self.options, prime };
        for exchange in self.exchanges.values_mut() {
            if exchange.streams_at(&self.options).is_some_and(|at| at <= now) {
                exchange.start_streaming(&mut context);
            }
            let close_after = self.options.close_stream_after.filter(|_| prime);
            if let (Some(after), Some(feed)) = (close_after, exchange.feed())
                && feed.attached_at().is_some_and(|at| at + after <= now)
            {
                feed.detach();
            }
        }
        let (main, exchanges) = (&self.main, &self.exchanges);
        self.log.expire(self.options.resume_within, |id| match id.stream {
            MAIN => !main.was_handed(id.sequence),
            stream => exchanges.contains_key(&stream),
        });
        let given_up: Vec<Id> =
            self.owed.iter().filter(|(_, o)| o.give_up.is_some_and(|at| at <= now)).map(|(id, _)| id.clone()).collect();
        for id in given_up {
            self.answer(&id, &Message::error(Some(&id), code::INTERNAL_ERROR, "the request was cancelled"));
        }
        if self.main.is_attached() || self.exchanges.values().any(Exchange::is_attached) {
            self.seen = now;
        }
        if self.seen + self.options.session_idle <= now {
            self.over = Some("the session was idle for too long");
        }
        let next = self.next_alarm(now);
        self.alarm.as_mut().reset(next);
    }

    /// Computed anew only when the alarm rings: in between it is only ever brought forward.
    fn next_alarm(&mut self, now: Instant) -> Instant {
        let mut next = self.seen + self.options.session_idle;
        if !self.log.is_empty() {
            next = next.min(now + self.options.resume_within);
        }
        for owed in self.owed.values() {
            next = owed.give_up.map_or(next, |at| next.min(at));
        }
        for exchange in self.exchanges.values_mut() {
            next = exchange.streams_at(&self.options).map_or(next, |at| next.min(at));
            if let Some(after) = self.options.close_stream_after
                && let Some(at) = exchange.feed().and_then(|feed| feed.attached_at())
            {
                next = next.min(at + after);
            }
        }
        next
    }

    fn wake_by(&mut self, at: Option<Instant>) {
        if let Some(at) = at.filter(|at| *at < self.alarm.deadline()) {
            self.alarm.as_mut().reset(at);
        }
    }

    /// Something was logged or attached just now: it expires, or is closed, after its time.
    fn wake_for_streams(&mut self) {
        let now = Instant::now();
        let expires = (!self.log.is_empty()).then(|| now + self.options.resume_within);
        self.wake_by(expires);
        self.wake_by(self.options.close_stream_after.map(|after| now + after));
    }
}

/// Whether clients of that version take events without data as a place to resume from.
fn primes(version: &str) -> bool {
    version >= V2025_11_25
}
