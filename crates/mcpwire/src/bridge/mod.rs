//! Joins one downstream link (where the client sits) to the server's side: one upstream link, or several where a client
//! of one era talks to a server of the other.
//!
//! One loop owns the [`Conversation`], which decides everything; the loop only moves messages and keeps time. A slow client
//! never stops us from reading what it sends, and a slow server never stops us from reading its answers, so the two
//! cannot lock each other up through us.

mod upstreams;

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::{Duration, Instant};

use mcpwire_proto::Packet;
use mcpwire_proto::conversation::{Config, Conversation, Effect, Upstream};
use mcpwire_proto::session::legacy::Phase;
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout};

use self::upstreams::News;
pub use self::upstreams::{Connect, Connection, Reach, Upstreams};

use crate::health::{Condition, Watch};
use crate::link::{Event, Link, hand_over};
use crate::rarely::Rarely;

/// How many messages wait for a slow receiver before we stop reading from the other side.
const BACKLOG: usize = 256;

/// How many messages are handled between two looks at signals and deadlines.
const BURST: usize = 64;
/// How long the client may take to read its last messages.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a bridge ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The client is done, and all it was owed is answered.
    Done,
    /// The client is done; answers it was owed did not come in time and were replaced by errors.
    CutShort,
    /// The client takes no more messages.
    ClientGone,
}

/// Carries messages until the client's side closes or `stop` completes, then waits up to `drain` for what is under way;
/// not at all when both have happened. Returns when every connection to the server is gone.
pub async fn run(downstream: Link, upstreams: Upstreams, config: Config, stop: impl Future, drain: Duration) -> End {
    let (end, upstreams) = carry(downstream, upstreams, config, stop, drain, None).await;
    upstreams.gone().await;
    end
}

/// The same, with an eye on the server's health, and the connections are given back to be ended.
pub fn carry(
    downstream: Link,
    upstreams: Upstreams,
    config: Config,
    stop: impl Future,
    drain: Duration,
    watch: Option<Watch>,
) -> impl Future<Output = (End, Upstreams)> {
    let conversation = Conversation::new(Config { known: upstreams.reach.known(), ..config });
    let conversation = if upstreams.has_first() { conversation.opened_first() } else { conversation };
    // There may be thousands of bridges: boxed, what each is made of lies in memory once, and not in every step of its loop.
    Box::new(Bridge { conversation, downstream, upstreams, to_client: VecDeque::new(), watch }).run(stop, drain)
}

/// What a bridge waits for.
enum Step {
    /// A receiver took a message.
    Pumped,
    Downstream(Option<Event>),
    Upstream(Upstream, Option<Event>),
    ClientGone,
    Stop,
    Alarm,
}

struct Bridge {
    conversation: Conversation,
    downstream: Link,
    upstreams: Upstreams,
    to_client: VecDeque<Packet>,
    watch: Option<Watch>,
}

impl Bridge {
    async fn run(mut self: Box<Self>, stop: impl Future, drain: Duration) -> (End, Upstreams) {
        let client = self.downstream.tx.clone();
        let (client_gone, stop) = (pin!(client.closed()), pin!(stop));
        let (mut client_gone, mut stop) = (Rarely::new(client_gone), Rarely::new(stop));
        let mut stopped = false;
        let mut draining: Option<Instant> = None;
        loop {
            self.pump();
            if self.conversation.is_over() {
                return self.finish(End::CutShort, "the connection to the server ended", drain).await;
            }
            if let Some(until) = draining {
                if self.conversation.owed_to_client() == 0 && self.upstreams.backlog() == 0 {
                    return self.finish(End::Done, "the client is done", drain).await;
                }
                if until <= Instant::now() {
                    return self.finish(End::CutShort, "the client closed before the answer came", drain).await;
                }
            }
            let step = tokio::select! {
                biased;
                step = self.next(draining) => step,
                () = &mut client_gone => return (End::ClientGone, self.upstreams),
                _ = &mut stop, if !stopped => { stopped = true; Step::Stop }
            };
            match step {
                Step::Pumped => {}
                Step::Downstream(Some(event)) => self.on_downstream(event),
                Step::Downstream(None) => {
                    tracing::info!(target: "bridge", "the client is done: waiting for what is under way");
                    draining = Some(Instant::now() + drain);
                }
                Step::Stop if draining.is_some() => draining = Some(Instant::now()),
                Step::Stop => {
                    tracing::info!(target: "bridge", "stopping: waiting for what is under way");
                    draining = Some(Instant::now() + drain);
                }
                Step::Upstream(upstream, Some(event)) => self.on_upstream(upstream, event),
                Step::Upstream(upstream, None) => self.on_closed(upstream, "the connection to the server ended"),
                Step::ClientGone => return (End::ClientGone, self.upstreams),
                Step::Alarm => self.conversation.handle_timeout(Instant::now()),
            }
            self.take_what_waits(draining.is_some());
        }
    }

    /// Waits for the next message, for room for one, or for the next deadline.
    async fn next(&mut self, draining: Option<Instant>) -> Step {
        let alarm = self.conversation.poll_timeout().into_iter().chain(draining).min();
        let Bridge { downstream, upstreams, to_client, .. } = self;
        let ask = draining.is_none() && upstreams.backlog() < BACKLOG;
        tokio::select! {
            biased;
            permit = downstream.tx.reserve(), if !to_client.is_empty() => match (permit, to_client.pop_front()) {
                (Ok(permit), Some(packet)) => { permit.send(packet); Step::Pumped }
                _ => Step::ClientGone,
            },
            news = upstreams.next(to_client.len() < BACKLOG) => match news {
                News::Sent => Step::Pumped,
                News::Came(upstream, event) => Step::Upstream(upstream, event),
            },
            event = downstream.rx.recv(), if ask => Step::Downstream(event),
            () = until(alarm) => Step::Alarm,
        }
    }

    /// Handles what else has come, so that a burst costs one wait, and not one for each message.
    fn take_what_waits(&mut self, draining: bool) {
        for _ in 0..BURST {
            let upstream = if self.to_client.len() < BACKLOG { self.upstreams.take() } else { None };
            let full = draining || self.upstreams.backlog() >= BACKLOG;
            let downstream = if full { None } else { self.downstream.rx.try_recv().ok() };
            if upstream.is_none() && downstream.is_none() {
                return;
            }
            upstream.into_iter().for_each(|(upstream, event)| self.on_upstream(upstream, event));
            downstream.into_iter().for_each(|event| self.on_downstream(event));
            self.pump();
        }
    }

    fn on_downstream(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Packet(packet) => {
                if let Some(watch) = &mut self.watch {
                    watch.saw_client(&packet.message, now);
                }
                self.conversation.handle_client(packet.message, now);
            }
            Event::Batch(text) => self.conversation.handle_client_batch(&text, now),
            Event::Garbage(rejected) => self.conversation.handle_garbage(*rejected),
            Event::Failed { message, failure } => tracing::warn!(target: "bridge", "{message} failed: {failure}"),
            Event::SessionLost(why) | Event::Gone(why) => {
                tracing::warn!(target: "bridge", "the client's session is gone: {why}");
            }
        }
    }

    fn on_upstream(&mut self, upstream: Upstream, event: Event) {
        let now = Instant::now();
        match event {
            Event::Packet(packet) => self.conversation.handle_server(upstream, packet, now),
            Event::Failed { message, failure } => {
                if let Some(watch) = &mut self.watch {
                    watch.saw_failure(&failure);
                }
                self.conversation.handle_failed(upstream, message, failure, now);
            }
            Event::SessionLost(why) => self.conversation.handle_session_lost(upstream, &why, now),
            Event::Gone(why) => self.conversation.handle_server_gone(upstream, &why, now),
            Event::Garbage(rejected) => {
                tracing::warn!(target: "bridge", "skipped what the server sent: {}", rejected.fault);
            }
            Event::Batch(_) => tracing::warn!(target: "bridge", "skipped a batch from the server"),
        }
    }

    fn on_closed(&mut self, upstream: Upstream, why: &str) {
        self.upstreams.close(upstream);
        self.conversation.handle_closed(upstream, why, Instant::now());
    }

    /// Does what the conversation wants, and hands over what is to be sent, as far as the receivers take it at once.
    fn pump(&mut self) {
        while let Some(effect) = self.conversation.poll_effect() {
            match effect {
                Effect::ToClient(packet) => {
                    if let Some(watch) = &mut self.watch {
                        watch.saw_answer(&packet.message);
                    }
                    self.to_client.push_back(packet);
                }
                Effect::ToServer(upstream, packet) => self.upstreams.push(upstream, packet),
                Effect::Open(upstream) => {
                    if let Err(error) = self.upstreams.open(upstream) {
                        tracing::error!(target: "bridge", "cannot reach for the server: {error:#}");
                        self.on_closed(upstream, "cannot reach for the server");
                    }
                }
                Effect::Close(upstream) => self.upstreams.close(upstream),
                Effect::Learned(known) => self.upstreams.reach.learn(known),
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.report(condition(&self.conversation), self.conversation.trouble());
        }
        hand_over(&mut self.to_client, &self.downstream.tx, |packet| packet);
        self.upstreams.flush();
    }

    /// Gives the client its last messages. One that does not read them has had its time.
    async fn finish(mut self: Box<Self>, end: End, why: &str, drain: Duration) -> (End, Upstreams) {
        self.conversation.abandon(why, Instant::now());
        self.pump();
        let limit = if end == End::Done { drain.max(LAST_WORDS) } else { LAST_WORDS };
        let Bridge { downstream, upstreams, to_client, .. } = *self;
        let last = async {
            for packet in to_client {
                downstream.tx.send(packet).await?;
            }
            Ok::<_, mpsc::error::SendError<Packet>>(())
        };
        match timeout(limit, last).await {
            Ok(Ok(())) => (end, upstreams),
            _ => (End::ClientGone, upstreams),
        }
    }
}

fn condition(conversation: &Conversation) -> Condition {
    match conversation.phase() {
        Phase::Idle => Condition::Idle,
        Phase::Opening => Condition::Starting,
        Phase::Open => Condition::Up,
        Phase::Waiting | Phase::Closed => Condition::Down,
    }
}

async fn until(alarm: Option<Instant>) {
    match alarm {
        Some(alarm) => sleep_until(alarm.into()).await,
        None => pending().await,
    }
}
