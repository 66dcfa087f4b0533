//! One MCP session: its streams, its event log and its end of the link; HTTP is left to the router.

mod clock;
mod entrance;
mod inbound;
mod outbound;

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{self, Poll, Waker};

use bytes::Bytes;
use foldhash::fast::RandomState;
use mcpwire_proto::version::V2025_11_25;
use mcpwire_proto::{Id, IdMap, Message, Packet, code};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, Sleep};

pub(super) use self::clock::Idle;
pub(super) use self::entrance::{Handle, open};
use super::Stage;
use super::answer::Answer;
use super::exchange::{Accepts, Context, Exchange};
use super::feed::Feed;
use super::log::{EventId, EventLog, MAIN};
use super::options::Options;
use crate::channel::Receiver;
use crate::link::{Event, Port};
use crate::outgoing::Outgoing;
use crate::rarely::Rarely;

/// The stream of the request that opens the session.
const FIRST: u64 = 1;
/// What those who still wait are told.
const CLIENT_ENDED: &str = "the client ended the session";
const SERVER_ENDED: &str = "the server ended the session";

/// What a connection asks of the session.
#[derive(Debug)]
enum Command {
    Post(Box<Post>, oneshot::Sender<Answer>),
    /// A GET: listen, or resume the stream of that event.
    Listen {
        after: Option<EventId>,
        reply: oneshot::Sender<Answer>,
    },
}

/// What one POST brings.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) text: Text,
    pub(super) accepts: Accepts,
}

#[derive(Debug)]
pub(super) enum Text {
    Message(Message),
    Batch {
        messages: Vec<Message>,
        /// Answers to parts of it that are no messages.
        rejected: Vec<Bytes>,
    },
}

/// How a session's messages reach its client.
#[derive(Debug)]
pub(super) enum Manner {
    /// On the response to each POST, and on a GET stream beside them.
    Streamable,
    /// All on the one stream that opened the session and tells where to POST (2024-11-05, HTTP with SSE).
    OneStream { endpoint: String },
}

struct Session {
    options: Arc<Options>,
    manner: Manner,
    commands: Receiver<Command>,
    stage: watch::Receiver<Stage>,
    version: Arc<OnceLock<String>>,
    /// The task that runs the session.
    task: Option<Waker>,
    /// Messages that the server had no room for yet. No POST is taken while there are any.
    outbox: Outgoing<Event>,
    packets: Receiver<Packet>,
    /// The requests that are owed an answer, each with the stream it goes to.
    owed: IdMap<u64>,
    exchanges: HashMap<u64, Exchange, RandomState>,
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

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("owed", &self.owed).finish_non_exhaustive()
    }
}

impl Session {
    fn new(
        options: Arc<Options>,
        manner: Manner,
        stage: watch::Receiver<Stage>,
        commands: Receiver<Command>,
        port: Port,
        version: Arc<OnceLock<String>>,
    ) -> Session {
        Session {
            log: EventLog::new(options.log_events, options.log_bytes),
            alarm: Rarely::new(Box::pin(tokio::time::sleep(options.session_idle))),
            options,
            manner,
            commands,
            stage,
            version,
            task: None,
            outbox: Outgoing::new(port.tx),
            packets: port.rx,
            owed: IdMap::default(),
            exchanges: HashMap::default(),
            main: Feed::new(MAIN),
            streams: FIRST,
            seen: Instant::now(),
            over: None,
        }
    }

    /// Does what is to be done in the session's own task. Ready when it is over, with what to tell those who still wait.
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<&'static str> {
        if !self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            self.task = Some(cx.waker().clone());
        }
        loop {
            if let Some(why) = self.over {
                return Poll::Ready(why);
            }
            if Pin::new(&mut self.alarm).poll(cx).is_ready() {
                self.ring();
                continue;
            }
            // The runtime ends the turn of a task that always finds something.
            let flushed = self.poll_room(cx).is_ready();
            let packet = self.packets.poll_recv(cx);
            let command = if self.outbox.is_empty() { self.commands.poll_recv(cx) } else { Poll::Pending };
            if !flushed && packet.is_pending() && command.is_pending() {
                if self.was_left() {
                    self.over = Some(CLIENT_ENDED);
                    continue;
                }
                return Poll::Pending;
            }
            match packet {
                Poll::Ready(Some(packet)) => self.pass(packet),
                Poll::Ready(None) => self.over = Some(SERVER_ENDED),
                Poll::Pending => {}
            }
            match command {
                Poll::Ready(Some(command)) => self.obey(command),
                Poll::Ready(None) => self.over = Some(CLIENT_ENDED),
                Poll::Pending => {}
            }
        }
    }

    /// Ready when the server has taken a message that waited, or is gone.
    fn poll_room(&mut self, cx: &mut task::Context<'_>) -> Poll<()> {
        let Poll::Ready(is_there) = self.outbox.poll_room(cx) else { return Poll::Pending };
        if !is_there {
            self.over = Some(SERVER_ENDED);
        }
        self.flush();
        Poll::Ready(())
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Post(post, reply) => self.post(*post, reply),
            Command::Listen { after, reply } => self.listen(after, reply),
        }
    }

    /// Whether a POST can be taken without others being overtaken.
    fn takes_posts(&self) -> bool {
        self.over.is_none() && self.outbox.is_empty() && self.commands.is_empty()
    }

    /// Whether a packet can be taken without others being overtaken.
    fn takes_packets(&self) -> bool {
        self.over.is_none() && self.packets.is_empty()
    }

    /// Wakes the session's task, if what was done elsewhere left something to do for it.
    fn nudge(&self) {
        if (self.over.is_some() || !self.outbox.is_empty() || self.was_left())
            && let Some(task) = &self.task
        {
            task.wake_by_ref();
        }
    }

    fn stage(&self) -> watch::Receiver<Stage> {
        self.stage.clone()
    }

    fn on_signal(&mut self, ended: bool, stage: &mut watch::Receiver<Stage>) {
        // A front that is gone without a word has ended.
        let stage = if stage.has_changed().is_err() { Stage::Ending } else { *stage.borrow_and_update() };
        match stage {
            _ if ended => self.over = Some(CLIENT_ENDED),
            Stage::Running => {}
            Stage::Draining => self.drain(),
            Stage::Ending => self.over = Some("the server is shutting down"),
        }
    }

    /// Answers everything that is still owed.
    fn finish(mut self, why: &str) {
        let owed: Vec<Id> = self.owed.keys().cloned().collect();
        for id in owed {
            self.answer(&id, Message::error(Some(&id), code::INTERNAL_ERROR, why));
        }
    }

    /// Whether the one stream that the session lives on has ended.
    fn was_left(&self) -> bool {
        self.has_one_stream() && self.main.was_left()
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
