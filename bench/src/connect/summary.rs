//! The samples of one contender boiled down to the numbers that are reported.

use serde::Serialize;

use super::measure::{self, Measured};
use super::plan::BIG;
use crate::stats::median;

#[derive(Serialize)]
pub struct Summary {
    pub name: String,
    pub start_ms: f64,
    pub one_core: Calls,
    pub all_cores: Calls,
    pub memory: Vec<Memory>,
    pub big_ms: f64,
    /// How often the large answer was in memory at once, by the growth of the peak; the driver itself has no such number.
    pub big_copies: Option<f64>,
    pub answers: u64,
    pub fault: Option<String>,
}

#[derive(Serialize)]
pub struct Calls {
    pub p50_us: f64,
    pub p99_us: f64,
    pub per_second: f64,
}

#[derive(Serialize)]
pub struct Memory {
    pub calls: usize,
    /// MB now, and MB at most so far.
    pub resident: f64,
    pub peak: f64,
}

impl Summary {
    pub fn of(Measured { contender, samples, fault, .. }: Measured) -> Self {
        let growth = &samples.big_growth;
        Self {
            name: contender.name.clone(),
            start_ms: median(&samples.start_ms),
            one_core: Calls::of(&samples.one_core),
            all_cores: Calls::of(&samples.all_cores),
            memory: samples
                .memory
                .iter()
                .map(|(calls, memory)| Memory { calls: *calls, resident: memory.resident, peak: memory.peak })
                .collect(),
            big_ms: median(&samples.big_ms),
            big_copies: (!growth.is_empty()).then(|| median(growth) * 1e6 / BIG as f64),
            answers: samples.answers,
            fault,
        }
    }
}

impl Calls {
    fn of(calls: &measure::Calls) -> Self {
        Self { p50_us: median(&calls.p50_us), p99_us: median(&calls.p99_us), per_second: median(&calls.per_second) }
    }
}
