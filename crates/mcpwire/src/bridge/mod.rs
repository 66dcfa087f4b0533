//! Joins one downstream link (where the client sits) to the server's side: one upstream link, or several where a client
//! of one era talks to a server of the other.
//!
//! One loop owns the conversation, which decides everything; the loop only moves messages and keeps time. A slow client
//! never stops us from reading what it sends, and a slow server never stops us from reading its answers, so the two
//! cannot lock each other up through us.

mod side;
mod upstreams;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::{Duration, Instant};

use mcpwire_proto::Packet;
use mcpwire_proto::conversation::Config;
use tokio::sync::mpsc;
use tokio::time::timeout;

pub(crate) use self::side::Side;
pub(crate) use self::upstreams::News;
pub use self::upstreams::{Connect, Connection, Reach, Upstreams};

use crate::alarm::Alarm;
use crate::health::Watch;
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
    let side = Side::new(upstreams, config, watch);
    // There may be thousands of bridges: boxed, what each is made of lies in memory once, and not in every step of its loop.
    Box::new(Bridge { side, downstream, to_client: VecDeque::new(), alarm: Alarm::default() }).run(stop, drain)
}

/// What a bridge waits for.
enum Step {
    /// A receiver took a message.
    Pumped,
    Downstream(Option<Event>),
    Upstream(News),
    ClientGone,
    Stop,
    Alarm,
}

struct Bridge {
    side: Side,
    downstream: Link,
    to_client: VecDeque<Packet>,
    alarm: Alarm,
}

impl Bridge {
    async fn run(mut self: Box<Self>, stop: impl Future, drain: Duration) -> (End, Upstreams) {
        let client = self.downstream.tx.clone();
        let (client_gone, stop) = (pin!(client.closed()), pin!(stop));
        let (mut client_gone, mut stop) = (Rarely::new(client_gone), Rarely::new(stop));
        let mut stopped = false;
        let mut draining: Option<Instant> = None;
        let mut now = Instant::now();
        loop {
            self.pump(now);
            if self.side.is_over() {
                return self.finish(End::CutShort, "the connection to the server ended", drain).await;
            }
            if let Some(until) = draining {
                if self.side.owed_to_client() == 0 && self.side.backlog() == 0 {
                    return self.finish(End::Done, "the client is done", drain).await;
                }
                if until <= now {
                    return self.finish(End::CutShort, "the client closed before the answer came", drain).await;
                }
            }
            let step = tokio::select! {
                biased;
                step = self.next(draining) => step,
                () = &mut client_gone => return (End::ClientGone, self.side.into_upstreams()),
                _ = &mut stop, if !stopped => { stopped = true; Step::Stop }
            };
            now = Instant::now();
            match step {
                Step::Pumped => {}
                Step::Downstream(Some(event)) => self.side.on_client(event, now),
                Step::Downstream(None) => {
                    tracing::info!(target: "bridge", "the client is done: waiting for what is under way");
                    draining = Some(now + drain);
                }
                Step::Stop if draining.is_some() => draining = Some(now),
                Step::Stop => {
                    tracing::info!(target: "bridge", "stopping: waiting for what is under way");
                    draining = Some(now + drain);
                }
                Step::Upstream(news) => self.side.on_news(news, now),
                Step::ClientGone => return (End::ClientGone, self.side.into_upstreams()),
                Step::Alarm => self.side.on_alarm(now),
            }
            self.take_what_waits(draining.is_some(), now);
        }
    }

    /// Waits for the next message, for room for one, or for the next deadline.
    async fn next(&mut self, draining: Option<Instant>) -> Step {
        let at = self.side.alarm().into_iter().chain(draining).min();
        let Bridge { downstream, side, to_client, alarm } = self;
        let ask = draining.is_none() && side.backlog() < BACKLOG;
        tokio::select! {
            biased;
            permit = downstream.tx.reserve(), if !to_client.is_empty() => match (permit, to_client.pop_front()) {
                (Ok(permit), Some(packet)) => { permit.send(packet); Step::Pumped }
                _ => Step::ClientGone,
            },
            news = poll_fn(|cx| side.poll_news(to_client.len() < BACKLOG, cx)) => Step::Upstream(news),
            event = downstream.rx.recv(), if ask => Step::Downstream(event),
            () = poll_fn(|cx| alarm.poll(at, cx)) => Step::Alarm,
        }
    }

    /// Handles what else has come, so that a burst costs one wait, and not one for each message.
    fn take_what_waits(&mut self, draining: bool, now: Instant) {
        for _ in 0..BURST {
            let news = if self.to_client.len() < BACKLOG { self.side.take() } else { None };
            let full = draining || self.side.backlog() >= BACKLOG;
            let said = if full { None } else { self.downstream.rx.try_recv().ok() };
            if news.is_none() && said.is_none() {
                return;
            }
            news.into_iter().for_each(|news| self.side.on_news(news, now));
            said.into_iter().for_each(|event| self.side.on_client(event, now));
            self.pump(now);
        }
    }

    /// Does what the conversation wants, and hands over what is to be sent, as far as the receivers take it at once.
    fn pump(&mut self, now: Instant) {
        let Bridge { side, to_client, downstream, .. } = self;
        side.pump(now, |packet| to_client.push_back(packet));
        hand_over(to_client, &downstream.tx, |packet| packet);
    }

    /// Gives the client its last messages. One that does not read them has had its time.
    async fn finish(mut self: Box<Self>, end: End, why: &str, drain: Duration) -> (End, Upstreams) {
        let now = Instant::now();
        self.side.abandon(why, now);
        self.pump(now);
        let limit = if end == End::Done { drain.max(LAST_WORDS) } else { LAST_WORDS };
        let Bridge { side, downstream, to_client, .. } = *self;
        let upstreams = side.into_upstreams();
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
