//! The few statistics the report needs.

use std::time::Duration;

/// The value below which `share` (0 to 1) of the samples lie; zero for none.
pub fn quantile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    // Nearest rank: no value is reported that was not measured.
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
}

pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

pub fn micros(times: &[Duration]) -> Vec<f64> {
    times.iter().map(|time| time.as_secs_f64() * 1e6).collect()
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
