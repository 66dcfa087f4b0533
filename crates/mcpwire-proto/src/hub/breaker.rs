//! When a server that fails again and again is left alone for a while.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// This many failures within that time are too many.
const MOST: usize = 5;
const WITHIN: Duration = Duration::from_secs(30);

/// The latest failures of one server.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: VecDeque<Instant>,
    open: bool,
}

impl Breaker {
    /// Notes a failure; gives whether it is the one that was too many.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.failures.push_back(now);
        while self.failures.front().is_some_and(|at| *at + WITHIN < now) || self.failures.len() > MOST {
            self.failures.pop_front();
        }
        let trips = !self.open && self.failures.len() == MOST;
        self.open |= trips;
        trips
    }

    /// Notes a success. One that is open waits for [`Breaker::close`]: a late answer proves little.
    pub(super) fn succeeded(&mut self) {
        if !self.open {
            self.failures.clear();
        }
    }

    pub(super) fn close(&mut self) {
        *self = Breaker::default();
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test may begin at any time")]
mod tests {
    use super::*;

    #[test]
    fn five_failures_in_half_a_minute_open_it() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        for second in 0..4 {
            assert!(!breaker.failed(start + Duration::from_secs(second)));
        }
        assert!(breaker.failed(start + Duration::from_secs(29)) && breaker.is_open());
        assert!(!breaker.failed(start + Duration::from_secs(29)), "it is open already");
        breaker.succeeded();
        assert!(breaker.is_open());
        breaker.close();
        assert!(!breaker.is_open());
    }

    #[test]
    fn failures_that_are_few_or_far_between_do_not() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        for n in 0..50 {
            assert!(!breaker.failed(start + Duration::from_secs(8 * n)));
        }
        let mut breaker = Breaker::default();
        for n in 0..50 {
            assert!(!breaker.failed(start + Duration::from_secs(n)));
            if n % 4 == 3 {
                breaker.succeeded();
            }
        }
    }
}
