//! Joins one downstream link (where the client sits) to one upstream link (where the server sits).
//!
//! One loop owns the [`Session`], which decides everything; the loop only moves messages and keeps time. A slow client
//! never stops us from reading what it sends, and a slow server never stops us from reading its answers, so the two
//! cannot lock each other up through us.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::{Duration, Instant};

use mcpwire_proto::Packet;
use mcpwire_proto::session::legacy::{Effect, Phase, Session};
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout};

use crate::health::{Condition, Watch};
use crate::link::{Event, Link};
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
/// not at all when both have happened.
pub async fn run(downstream: Link, upstream: Link, session: Session, stop: impl Future, drain: Duration) -> End {
    run_watched(downstream, upstream, session, stop, drain, None).await
}

/// The same, with an eye on the server's health.
pub fn run_watched(
    downstream: Link,
    upstream: Link,
    session: Session,
    stop: impl Future,
    drain: Duration,
    watch: Option<Watch>,
) -> impl Future<Output = End> {
    let (to_client, to_server) = (VecDeque::new(), VecDeque::new());
    // There may be thousands of bridges: boxed, what each is made of lies in memory once, and not in every step of its loop.
    let bridge = Box::new(Bridge { session, downstream, upstream, to_client, to_server, watch });
    bridge.run(stop, drain)
}

/// What a bridge waits for.
enum Step {
    /// A receiver took a message.
    Pumped,
    Downstream(Option<Event>),
    Upstream(Option<Event>),
    ClientGone,
    Stop,
    Alarm,
}

struct Bridge {
    session: Session,
    downstream: Link,
    upstream: Link,
    to_client: VecDeque<Packet>,
    to_server: VecDeque<Packet>,
    watch: Option<Watch>,
}

impl Bridge {
    async fn run(mut self: Box<Self>, stop: impl Future, drain: Duration) -> End {
        let client = self.downstream.tx.clone();
        let (client_gone, stop) = (pin!(client.closed()), pin!(stop));
        let (mut client_gone, mut stop) = (Rarely::new(client_gone), Rarely::new(stop));
        let mut stopped = false;
        let mut draining: Option<Instant> = None;
        loop {
            self.pump();
            if let Some(until) = draining {
                if self.session.owed_to_client() == 0 && self.to_server.is_empty() {
                    return self.finish(End::Done, drain).await;
                }
                if until <= Instant::now() {
                    self.session.abandon("the client closed before the answer came");
                    return self.finish(End::CutShort, drain).await;
                }
            }
            let step = tokio::select! {
                biased;
                step = self.next(draining) => step,
                () = &mut client_gone => return End::ClientGone,
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
                Step::Upstream(Some(event)) => self.on_upstream(event),
                Step::Upstream(None) => {
                    self.session.abandon("the connection to the server ended");
                    return self.finish(End::CutShort, drain).await;
                }
                Step::ClientGone => return End::ClientGone,
                Step::Alarm => self.session.handle_timeout(Instant::now()),
            }
            self.take_what_waits(draining.is_some());
        }
    }

    /// Waits for the next message, for room for one, or for the next deadline.
    async fn next(&mut self, draining: Option<Instant>) -> Step {
        let alarm = self.session.poll_timeout().into_iter().chain(draining).min();
        let Bridge { downstream, upstream, to_client, to_server, .. } = self;
        tokio::select! {
            biased;
            permit = downstream.tx.reserve(), if !to_client.is_empty() => match (permit, to_client.pop_front()) {
                (Ok(permit), Some(packet)) => { permit.send(packet); Step::Pumped }
                _ => Step::ClientGone,
            },
            permit = upstream.tx.reserve(), if !to_server.is_empty() => {
                // A closed upstream drops the packet here and tells by the end of its events.
                if let (Ok(permit), Some(packet)) = (permit, to_server.pop_front()) {
                    permit.send(packet);
                }
                Step::Pumped
            }
            event = upstream.rx.recv(), if to_client.len() < BACKLOG => Step::Upstream(event),
            event = downstream.rx.recv(), if draining.is_none() && to_server.len() < BACKLOG => Step::Downstream(event),
            () = until(alarm) => Step::Alarm,
        }
    }

    /// Handles what else has come, so that a burst costs one wait, and not one for each message.
    fn take_what_waits(&mut self, draining: bool) {
        for _ in 0..BURST {
            let upstream = if self.to_client.len() < BACKLOG { self.upstream.rx.try_recv().ok() } else { None };
            let downstream =
                if draining || self.to_server.len() >= BACKLOG { None } else { self.downstream.rx.try_recv().ok() };
            if upstream.is_none() && downstream.is_none() {
                return;
            }
            upstream.into_iter().for_each(|event| self.on_upstream(event));
            downstream.into_iter().for_each(|event| self.on_downstream(event));
            self.pump();
        }
    }

    fn on_downstream(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Packet(packet) => self.session.handle_client(packet.message, now),
            Event::Batch(text) => self.session.handle_client_batch(&text, now),
            Event::Garbage(rejected) => self.session.handle_garbage(*rejected),
            Event::Failed { message, failure } => tracing::warn!(target: "bridge", "{message} failed: {failure}"),
            Event::SessionLost(why) | Event::Gone(why) => {
                tracing::warn!(target: "bridge", "the client's session is gone: {why}");
            }
        }
    }

    fn on_upstream(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Packet(packet) => self.session.handle_server(packet, now),
            Event::Failed { message, failure } => self.session.handle_failed(message, failure, now),
            Event::SessionLost(why) => self.session.handle_session_lost(&why, now),
            Event::Gone(why) => self.session.handle_server_gone(&why, now),
            Event::Garbage(rejected) => {
                tracing::warn!(target: "bridge", "skipped what the server sent: {}", rejected.fault);
            }
            Event::Batch(_) => tracing::warn!(target: "bridge", "skipped a batch from the server"),
        }
    }

    /// Hands over what is to be sent, as far as the receivers take it at once.
    fn pump(&mut self) {
        while let Some(effect) = self.session.poll_effect() {
            match effect {
                Effect::ToClient(packet) => self.to_client.push_back(packet),
                Effect::ToServer(packet) => self.to_server.push_back(packet),
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.report(condition(&self.session), self.session.trouble());
        }
        hand_over(&mut self.to_client, &self.downstream.tx);
        hand_over(&mut self.to_server, &self.upstream.tx);
    }

    /// Gives the client its last messages. One that does not read them has had its time.
    async fn finish(mut self: Box<Self>, end: End, drain: Duration) -> End {
        self.pump();
        let limit = if end == End::Done { drain.max(LAST_WORDS) } else { LAST_WORDS };
        let last = async {
            for packet in self.to_client {
                self.downstream.tx.send(packet).await?;
            }
            Ok::<_, mpsc::error::SendError<Packet>>(())
        };
        match timeout(limit, last).await {
            Ok(Ok(())) => end,
            _ => End::ClientGone,
        }
    }
}

fn condition(session: &Session) -> Condition {
    match session.phase() {
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

fn hand_over(queue: &mut VecDeque<Packet>, to: &mpsc::Sender<Packet>) {
    while !queue.is_empty()
        && let Ok(permit) = to.try_reserve()
        && let Some(packet) = queue.pop_front()
    {
        permit.send(packet);
    }
}
