//! Joins one downstream link (where the client sits) to the server's side: one upstream link, or several where a client
//! of one era talks to a server of the other.
//!
//! One loop owns the conversation, which decides everything; the loop only moves messages and keeps time. A slow client
//! never stops us from reading what it sends, and a slow server never stops us from reading its answers, so the two
//! cannot lock each other up through us.

mod place;
mod side;
mod upstreams;

use std::future::Future;
use std::sync::Weak;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use mcpwire_proto::conversation::Config;
use mcpwire_proto::{Fault, Kind, Packet, method};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::place::Place;
pub(crate) use self::side::Side;
pub(crate) use self::upstreams::News;
pub use self::upstreams::{Connect, Connection, Reach, Upstreams};

use crate::alarm::Alarm;
use crate::channel::Receiver;
use crate::health::Watch;
use crate::link::{Event, Link};
use crate::outgoing::Outgoing;

/// How many messages wait for a slow receiver before we stop reading from the other side.
const BACKLOG: usize = 256;

/// How long a server may take no message at all while that many wait. After that we read on from the client, whose end and
/// cancellations must be noticed, and refuse its requests.
const STALLED_AFTER: Duration = Duration::from_secs(10);

/// How many messages wait for a client that does not read either before we stop reading from it. A client that has sent less
/// than this and is gone is noticed; one that has sent more may take nothing for [`STALLED_AFTER`].
const MOST_UNREAD: usize = 64 * BACKLOG;

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
    Place::new(side, downstream, drain).run(stop)
}

/// What a bridge waits for.
enum Step {
    /// A receiver took a message.
    Pumped,
    Downstream(Option<Event>),
    Upstream(News),
    Alarm,
}

/// How a bridge comes to its end.
enum Outcome {
    /// The client takes no more messages.
    ClientGone,
    /// It gets its last messages, and what it is still owed is answered with this.
    Finish(End, &'static str),
}

struct Bridge {
    side: Side,
    said: Receiver<Event>,
    to_client: Outgoing<Packet>,
    alarm: Alarm,
    /// When the alarm was last asked to ring.
    alarm_at: Option<Instant>,
    drain: Duration,
    /// Until when we wait for what is under way, once nothing more is taken.
    draining: Option<Instant>,
    /// Since when the server has taken nothing while as much waits for it as may.
    full_since: Option<Instant>,
    /// It has been so for too long.
    is_stalled: bool,
    /// Since when the client has taken nothing, either, while as much waits for it as may.
    unread_since: Option<Instant>,
    task: Option<Waker>,
    /// Where others find the bridge, if they may handle on the spot what they send.
    direct: Option<Weak<Place>>,
}

impl Bridge {
    /// Carries on, in the bridge's own task, until there is nothing to do.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        if !self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            self.task = Some(cx.waker().clone());
        }
        let mut now = Instant::now();
        loop {
            self.pump(now);
            if self.side.is_over() {
                return Poll::Ready(Outcome::Finish(End::CutShort, "the connection to the server ended"));
            }
            if self.unread_since.is_some_and(|since| since + STALLED_AFTER <= now) {
                return Poll::Ready(Outcome::Finish(End::CutShort, "neither the client nor the server reads"));
            }
            if let Some(until) = self.draining {
                if self.side.owed_to_client() == 0 && self.side.backlog() == 0 {
                    return Poll::Ready(Outcome::Finish(End::Done, "the client is done"));
                }
                if until <= now {
                    return Poll::Ready(Outcome::Finish(End::CutShort, "the client closed before the answer came"));
                }
            }
            let step = ready!(self.poll_step(cx));
            now = Instant::now();
            match step {
                Step::Pumped => {}
                Step::Downstream(Some(event)) => self.on_client(event, now),
                Step::Downstream(None) => {
                    tracing::info!(target: "bridge", "the client is done: waiting for what is under way");
                    self.draining = Some(now + self.drain);
                }
                Step::Upstream(news) => self.side.on_news(news, now),
                Step::Alarm => self.side.on_alarm(now),
            }
            self.take_what_waits(now);
        }
    }

    /// Ready with the next message, when there was room for one, or at the next deadline.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if self.to_client.poll_room(cx).is_ready() {
            return Poll::Ready(Step::Pumped);
        }
        if let Poll::Ready(news) = self.side.poll_news(self.to_client.len() < BACKLOG, cx) {
            return Poll::Ready(Step::Upstream(news));
        }
        if self.hears_client()
            && let Poll::Ready(event) = self.said.poll_recv(cx)
        {
            return Poll::Ready(Step::Downstream(event));
        }
        let stalls_at = self.full_since.filter(|_| !self.is_stalled).map(|since| since + STALLED_AFTER);
        let gives_up_at = self.unread_since.map(|since| since + STALLED_AFTER);
        let alarms = self.side.alarm().into_iter().chain(self.draining).chain(stalls_at).chain(gives_up_at);
        self.alarm_at = alarms.min();
        self.alarm.poll(self.alarm_at, cx).map(|()| Step::Alarm)
    }

    fn hears_client(&self) -> bool {
        let reads_on = self.is_stalled && self.to_client.len() < MOST_UNREAD;
        self.draining.is_none() && (reads_on || self.side.backlog() < BACKLOG)
    }

    /// The client says something.
    fn on_client(&mut self, event: Event, now: Instant) {
        let Event::Packet(packet) = &event else { return self.side.on_client(event, now) };
        match packet.message.kind() {
            Kind::Request { id, .. } if self.is_stalled => {
                let text = format!("the server does not read: {} messages wait for it already", self.side.backlog());
                self.to_client.push(Fault::Upstream(text).to_packet(Some(id)));
            }
            Kind::Notification { method } if self.is_stalled && *method != method::CANCELLED => {
                tracing::warn!(target: "bridge", "dropped {}: the server does not read", packet.message);
            }
            _ => self.side.on_client(event, now),
        }
    }

    /// Looks whether the server still takes messages, and if not, whether the client does.
    fn watch_backlog(&mut self, now: Instant) {
        let is_unread = self.is_stalled && self.to_client.len() >= MOST_UNREAD;
        self.unread_since = is_unread.then(|| self.unread_since.unwrap_or(now));
        if self.side.backlog() < BACKLOG {
            (self.full_since, self.is_stalled) = (None, false);
            return;
        }
        let since = *self.full_since.get_or_insert(now);
        if !self.is_stalled && since + STALLED_AFTER <= now {
            tracing::warn!(target: "bridge", "the server has read nothing for {STALLED_AFTER:?}: refusing requests");
            self.is_stalled = true;
        }
    }

    /// No more requests are taken; said twice, what is under way is not waited for.
    fn stop(&mut self) {
        let now = Instant::now();
        self.draining = Some(match self.draining {
            Some(_) => now,
            None => {
                tracing::info!(target: "bridge", "stopping: waiting for what is under way");
                now + self.drain
            }
        });
    }

    /// Handles what else has come, so that a burst costs one wait, and not one for each message.
    fn take_what_waits(&mut self, now: Instant) {
        for _ in 0..BURST {
            let news = if self.to_client.len() < BACKLOG { self.side.take() } else { None };
            let said = if self.hears_client() { self.said.try_recv().ok() } else { None };
            if news.is_none() && said.is_none() {
                return;
            }
            news.into_iter().for_each(|news| self.side.on_news(news, now));
            said.into_iter().for_each(|event| self.on_client(event, now));
            self.pump(now);
        }
    }

    /// Does what the conversation wants, and hands over what is to be sent, as far as the receivers take it at once.
    fn pump(&mut self, now: Instant) {
        let Bridge { side, to_client, .. } = self;
        side.pump(now, |packet| to_client.push(packet));
        to_client.flush();
        self.watch_backlog(now);
        self.open_shortcuts();
    }

    /// Gives the client its last messages. One that does not read them has had its time.
    async fn finish(mut self: Box<Self>, end: End, why: &str) -> (End, Upstreams) {
        let now = Instant::now();
        self.side.abandon(why, now);
        self.pump(now);
        let limit = if end == End::Done { self.drain.max(LAST_WORDS) } else { LAST_WORDS };
        let Bridge { side, to_client, .. } = *self;
        let upstreams = side.into_upstreams();
        let (client, waiting) = to_client.into_parts();
        let last = async {
            for packet in waiting {
                client.send(packet).await?;
            }
            Ok::<_, mpsc::error::SendError<Packet>>(())
        };
        match timeout(limit, last).await {
            Ok(Ok(())) => (end, upstreams),
            _ => (End::ClientGone, upstreams),
        }
    }
}
