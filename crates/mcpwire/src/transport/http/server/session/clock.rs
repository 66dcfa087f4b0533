//! What a session does because time passes: streams begin and end, events expire, idle sessions end.

use tokio::time::Instant;

use super::{Context, Session};
use crate::transport::http::server::exchange::Exchange;
use crate::transport::http::server::log::MAIN;

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
        if self.main.is_attached() || self.exchanges.values().any(Exchange::is_attached) {
            self.seen = now;
        }
        if self.seen + self.options.session_idle <= now {
            self.over = Some("the session was idle for too long");
        }
        let next = self.next_alarm(now);
        self.set_alarm(next);
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
