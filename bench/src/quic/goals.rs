//! The goals of `mcpwire connect quic://`, beside Orchestra's own bridge.

use super::GO;
use crate::connect::summary::{Calls, Summary};
use crate::goals::{At, Goal, ratios};

pub const P50_OVER_GO: f64 = 1.0;
pub const FLOOD_OVER_GO: f64 = 2.0;

pub fn check(summaries: &[Summary]) -> Vec<Goal> {
    let by_name = |name: &str| summaries.iter().find(|summary| summary.name == name && summary.fault.is_none());
    let versus = |ratio: fn(&Calls, &Calls) -> f64| -> Option<[f64; 2]> {
        let (ours, theirs) = (by_name("quic")?, by_name(GO)?);
        Some([ratio(&ours.one_core, &theirs.one_core), ratio(&ours.all_cores, &theirs.all_cores)])
    };
    let p50 = versus(|ours, theirs| ours.p50_us / theirs.p50_us);
    let flood = versus(|ours, theirs| ours.per_second / theirs.per_second);
    vec![
        ratios("sequential p50, of the Go bridge's", p50, At::Most(P50_OVER_GO)),
        ratios("64 in flight, of the Go bridge's", flood, At::Least(FLOOD_OVER_GO)),
    ]
}
