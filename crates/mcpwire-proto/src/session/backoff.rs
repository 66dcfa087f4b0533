//! How long to wait before the next try: exponential, capped, with jitter.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Doubles from one failure to the next, up to [`LONGEST`]; each wait is between half and the whole of its step, so
/// that many clients of one restarted server do not come back in step.
#[derive(Debug)]
pub struct Backoff {
    failures: u32,
    random: fastrand::Rng,
}

impl Backoff {
    pub fn new(seed: u64) -> Backoff {
        Backoff { failures: 0, random: fastrand::Rng::with_seed(seed) }
    }

    /// Notes a failure and gives the wait before the next try.
    pub fn next_wait(&mut self) -> Duration {
        let step = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        step.mul_f64(0.5 + 0.5 * self.random.f64())
    }

    /// Notes a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_start_over_after_a_success() {
        for seed in 0..50 {
            let mut backoff = Backoff::new(seed);
            for step in [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000] {
                let wait = backoff.next_wait().as_millis();
                assert!((step / 2..=step).contains(&wait), "{wait} is not within {step}");
            }
            backoff.reset();
            assert!(backoff.next_wait() <= FIRST);
        }
    }
}
