//! One MCP session: a loop that owns its streams, its event log and its end of the link; HTTP is left to the router.

mod clock;
mod inbound;
mod outbound;

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use mcpwire_proto::version::V2025_11_25;
use mcpwire_proto::{Id, Message, Packet, code};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, Sleep};

use super::Stage;
use super::answer::{Answer, Refusal};
use super::exchange::{Accepts, Context, Exchange};
use super::feed::Feed;
use super::log::{EventId, EventLog, MAIN};
use super::options::Options;
use crate::link::{Link, Port};
use crate::rarely::Rarely;

/// How many commands wait for the session before their connections do.
const MAILBOX: usize = 64;
/// How many messages are handled between two looks at everything else.
const BURST: usize = 64;
/// The stream of the request that opens the session.
const FIRST: u64 = 1;

/// What a connection asks of the session.
#[derive(Debug)]
pub(super) enum Command {
    Post(Box<Post>),
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

/// How a session's messages reach its client.
#[derive(Debug)]
pub(super) enum Manner {
    /// On the response to each POST, and on a GET stream beside them.
    Streamable,
    /// All on the one stream that opened the session and tells where to POST (2024-11-05, HTTP with SSE).
    OneStream { endpoint: String },
}

/// How connections reach a session. Taken for every request: one count goes up and down, and not one for each part.
#[derive(Debug, Clone)]
pub(super) struct Handle(Arc<Entrance>);

#[derive(Debug)]
struct Entrance {
    commands: mpsc::Sender<Command>,
    end: Arc<Notify>,
    version: Arc<OnceLock<String>>,
}

impl Handle {
    /// The version that was negotiated, once it was.
    pub(super) fn version(&self) -> Option<&str> {
        self.0.version.get().map(String::as_str)
    }

    /// Hands a command over whole: once it is taken, a client that goes away takes nothing back.
    pub(super) async fn ask(&self, command: impl FnOnce(oneshot::Sender<Answer>) -> Command) -> Answer {
        let (reply, answer) = oneshot::channel();
        let taken = self.0.commands.send(command(reply)).await;
        match (taken, answer.await) {
            (Ok(()), Ok(answer)) => answer,
            _ => Answer::Refused(Refusal::session_not_found()),
        }
    }

    pub(super) fn end(&self) {
        self.0.end.notify_one();
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
    /// The client ended the session, or the one stream it lives on.
    Ended,
}

#[derive(Debug)]
pub(super) struct Session {
    options: Arc<Options>,
    manner: Manner,
    commands: mpsc::Receiver<Command>,
    end: Arc<Notify>,
    stage: watch::Receiver<Stage>,
    port: Port,
    version: Arc<OnceLock<String>>,
    /// Messages that the server had no room for yet. No command is taken while there are any.
    outbox: VecDeque<Message>,
    /// The requests that are owed an answer, each with the stream it goes to.
    owed: HashMap<Id, u64>,
    exchanges: HashMap<u64, Exchange>,
    main: Feed,
    log: EventLog,
    /// The number of the next stream.
    streams: u64,
    /// When the client was last seen.
    seen: Instant,
    alarm: Rarely<Pin<Box<Sleep>>>,
    /// Set when the session is over, with what to tell those who still wait.
    over: Option<&'static str>,
}

/// Makes a session, the way to reach it, and the link to whoever serves it.
pub(super) fn open(options: Arc<Options>, manner: Manner, stage: watch::Receiver<Stage>) -> (Session, Handle, Link) {
    let (link, port) = Link::pair();
    let (commands_tx, commands) = mpsc::channel(MAILBOX);
    let end = Arc::new(Notify::new());
    let version = Arc::new(OnceLock::new());
    let entrance = Entrance { commands: commands_tx, end: end.clone(), version: version.clone() };
    let handle = Handle(Arc::new(entrance));
    let session = Session {
        log: EventLog::new(options.log_events, options.log_bytes),
        alarm: Rarely::new(Box::pin(tokio::time::sleep(options.session_idle))),
        options,
        manner,
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
        let mut signal = self.signal();
        let why = loop {
            let input = tokio::select! {
                biased;
                input = &mut signal => {
                    let input = input.unwrap_or_else(|| Input::Stage(self.stage_now()));
                    signal = self.signal();
                    input
                }
                input = self.next() => input,
            };
            match input {
                Input::Command(command) => self.obey(command),
                Input::Packet(Some(packet)) => self.pass(packet),
                Input::Room(true) => self.flush(),
                Input::Packet(None) | Input::Room(false) => self.over = Some("the server ended the session"),
                Input::Alarm => self.ring(),
                Input::Stage(Stage::Running) => {}
                Input::Stage(Stage::Draining) => self.drain(),
                Input::Stage(Stage::Ending) => self.over = Some("the server is shutting down"),
                Input::Ended => self.over = Some("the client ended the session"),
            }
            self.take_what_waits();
            if let Some(why) = self.over {
                break why;
            }
        };
        let owed: Vec<Id> = self.owed.keys().cloned().collect();
        for id in owed {
            self.answer(&id, Message::error(Some(&id), code::INTERNAL_ERROR, why));
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Post(post) => self.post(*post),
            Command::Listen { after, reply } => self.listen(after, reply),
        }
    }

    /// Handles what else has come, so that a burst costs one wait, and not one for each message.
    fn take_what_waits(&mut self) {
        for _ in 0..BURST {
            if self.over.is_some() {
                return;
            }
            if let Ok(packet) = self.port.rx.try_recv() {
                self.pass(packet);
            } else if self.outbox.is_empty()
                && let Ok(command) = self.commands.try_recv()
            {
                self.obey(command);
            } else {
                return;
            }
        }
    }

    /// What comes a few times at most, and is not to be looked for with every message: the client's end, or a new stage.
    fn signal(&self) -> Rarely<Pin<Box<impl Future<Output = Option<Input>> + use<>>>> {
        let (end, mut stage) = (self.end.clone(), self.stage.clone());
        Rarely::new(Box::pin(async move {
            tokio::select! {
                () = end.notified() => Some(Input::Ended),
                _ = stage.changed() => None,
            }
        }))
    }

    /// A front that is gone without a word has ended.
    fn stage_now(&mut self) -> Stage {
        if self.stage.has_changed().is_err() { Stage::Ending } else { *self.stage.borrow_and_update() }
    }

    async fn next(&mut self) -> Input {
        tokio::select! {
            // What waits is taken packets first: here they come last, so that nothing starves.
            biased;
            () = &mut self.alarm => Input::Alarm,
            command = self.commands.recv(), if self.outbox.is_empty() => match command {
                Some(command) => Input::Command(command),
                None => Input::Ended,
            },
            room = self.port.tx.reserve(), if !self.outbox.is_empty() => Input::Room(room.is_ok()),
            packet = self.port.rx.recv() => Input::Packet(packet),
            () = self.main.left(), if self.has_one_stream() => Input::Ended,
        }
    }

    fn has_one_stream(&self) -> bool {
        matches!(self.manner, Manner::OneStream { .. })
    }

    /// Tells open streams that the front ends. What is owed on them is still given.
    fn drain(&mut self) {
        if self.owed.is_empty() || !self.has_one_stream() {
            self.main.detach();
        }
    }

    /// An answer less is owed: that may have been the last one.
    fn drain_if_due(&mut self) {
        if *self.stage.borrow() == Stage::Draining {
            self.drain();
        }
    }

    /// The exchange on that stream, and what it needs of the session.
    fn exchange(&mut self, stream: u64) -> Option<(&mut Exchange, Context<'_>)> {
        let prime = self.primes();
        let context = Context { log: &mut self.log, options: &self.options, prime };
        self.exchanges.get_mut(&stream).map(|exchange| (exchange, context))
    }

    /// Whether the client takes events without data as a place to resume from.
    fn primes(&self) -> bool {
        self.version.get().is_some_and(|version| version.as_str() >= V2025_11_25)
    }
}
