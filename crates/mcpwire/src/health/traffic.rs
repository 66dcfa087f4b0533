//! How much a server is asked, and how long its answers take.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// A tenth of a second is told from a hundredth: two digits are enough for a percentile.
const DIGITS: u8 = 2;
/// Longer answers count as this long.
const LONGEST: Duration = Duration::from_secs(3600);
/// The percentiles that are told, as names and as shares.
const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

/// The calls to one target.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    calls: u64,
    failed: u64,
    seconds: f64,
    /// In microseconds; made with the first call.
    latencies: Option<Histogram<u32>>,
}

impl Traffic {
    pub(super) fn record(&mut self, took: Duration, ok: bool) {
        self.calls += 1;
        self.failed += u64::from(!ok);
        self.seconds += took.as_secs_f64();
        if self.latencies.is_none() {
            self.latencies = Histogram::new_with_bounds(1, micros(LONGEST), DIGITS).ok();
        }
        if let Some(latencies) = &mut self.latencies {
            latencies.saturating_record(micros(took).max(1));
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// How long all answers took together.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Shares and how long that share of the answers took at most, in seconds; nothing before the first call.
    pub(super) fn quantiles(&self) -> impl Iterator<Item = (&'static str, f64, f64)> + '_ {
        self.latencies.iter().flat_map(|latencies| {
            PERCENTILES.map(|(name, share)| (name, share, latencies.value_at_quantile(share) as f64 / 1e6))
        })
    }

    /// The percentiles in milliseconds, or null.
    pub(super) fn latency(&self) -> Value {
        let told: serde_json::Map<String, Value> = self
            .quantiles()
            .map(|(name, _, seconds)| (name.to_owned(), json!((seconds * 1e6).round() / 1e3)))
            .collect();
        if told.is_empty() { Value::Null } else { Value::Object(told) }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_calls() {
        let mut traffic = Traffic::default();
        assert_eq!(traffic.latency(), Value::Null);
        for ms in 1..=100 {
            traffic.record(Duration::from_millis(ms), ms != 7);
        }
        traffic.record(Duration::from_secs(100_000), true);
        assert_eq!((traffic.calls(), traffic.failed()), (101, 1));
        let told: Vec<f64> = traffic.quantiles().map(|(_, _, seconds)| seconds * 1e3).collect();
        for (told, expected) in told.iter().zip([51.0, 91.0, 100.0]) {
            assert!((told - expected).abs() <= expected * 0.02, "{told} for {expected}");
        }
    }
}
