//! What a session does because time passes: streams begin and end, events expire, idle sessions end.

use tokio::time::Instant;

use super::{Context, FIRST, Manner, Session};
use crate::transport::http::server::exchange::Exchange;
use crate::transport::http::server::log::MAIN;

/// A session without its client. Those that are least missed come first: they owe no answer, and were left long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Idle {
    owes: bool,
    since: Instant,
}

impl Session {
    /// Does what is due, and sets the alarm for the next time.
    pub(super) fn ring(&mut self) {
        let now = Instant::now();
        self.turn_streams(now);
        let (main, exchanges) = (&self.main, &self.exchanges);
        self.log.expire(self.options.resume_within, |id| match id.stream {
            MAIN => !main.was_handed(id.sequence),
            stream => exchanges.contains_key(&stream),
        });
        let left = self.left_at();
        self.seen = left.unwrap_or(now);
        if left.is_some_and(|left| left + self.options.session_idle <= now) {
            self.over = Some("the session was idle for too long");
        }
        let next = self.next_alarm(now);
        self.set_alarm(next);
    }

    /// When the client was last connected; `None` if it is now.
    fn left_at(&self) -> Option<Instant> {
        if self.main.is_attached() || self.exchanges.values().any(Exchange::is_attached) {
            return None;
        }
        let streams = self.exchanges.values().filter_map(Exchange::left_at).chain(self.main.left_at());
        Some(streams.fold(self.seen, Instant::max))
    }

    /// Whether the session may be ended to make room, and how much it would be missed; not while its client is connected.
    pub(super) fn idle(&self) -> Option<Idle> {
        let opening = match self.manner {
            Manner::Streamable => self.streams == FIRST,
            Manner::OneStream { .. } => !self.main.was_attached(),
        };
        let since = self.left_at().filter(|_| !opening)?;
        Some(Idle { owes: !self.owed.is_empty(), since })
    }

    /// Begins the streams of requests that wait for long, and closes those that have been open for long.
    fn turn_streams(&mut self, now: Instant) {
        let prime = self.primes();
        let close_after = self.options.close_stream_after.filter(|_| prime);
        let mut context = Context { log: &mut self.log, options: &self.options, prime };
        for exchange in self.exchanges.values_mut() {
            if exchange.streams_at(&self.options).is_some_and(|at| at <= now) {
                exchange.start_streaming(&mut context);
            }
            if let (Some(after), Some(feed)) = (close_after, exchange.feed())
                && feed.opened_at().is_some_and(|at| at + after <= now)
            {
                feed.detach();
            }
        }
    }

    /// Computed anew only when the alarm rings: in between it is only ever brought forward.
    fn next_alarm(&mut self, now: Instant) -> Instant {
        let mut next = self.seen + self.options.session_idle;
        if !self.log.is_empty() {
            next = next.min(now + self.options.resume_within);
        }
        let close_after = self.options.close_stream_after.filter(|_| self.primes());
        for exchange in self.exchanges.values_mut() {
            next = exchange.streams_at(&self.options).map_or(next, |at| next.min(at));
            if let (Some(after), Some(feed)) = (close_after, exchange.feed()) {
                next = feed.opened_at().map_or(next, |at| next.min(at + after));
            }
        }
        next
    }

    fn set_alarm(&mut self, at: Instant) {
        self.alarm.change(|alarm| alarm.as_mut().reset(at));
    }

    pub(super) fn wake_by(&mut self, at: Option<Instant>) {
        if let Some(at) = at.filter(|at| *at < self.alarm.get().deadline()) {
            self.set_alarm(at);
        }
    }

    /// Something was logged or attached just now: it expires, or is closed, after its time.
    pub(super) fn wake_for_streams(&mut self) {
        if !self.log.is_empty() {
            self.wake_by(Some(Instant::now() + self.options.resume_within));
        }
        let close_after = self.options.close_stream_after.filter(|_| !self.exchanges.is_empty());
        self.wake_by(close_after.map(|after| Instant::now() + after));
    }
}
