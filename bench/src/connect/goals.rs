//! The goals of `mcpwire connect`.

use super::summary::{Calls, Summary};
use crate::goals::{At, Goal, at_most, ratios};

pub const START_MS: f64 = 10.0;
pub const P50_OVER_BARE: f64 = 1.5;
pub const FLOOD_OVER_BARE: f64 = 0.8;
pub const FLOOD_OVER_NODE: f64 = 20.0;
pub const RESIDENT_MB: f64 = 10.0;
/// What still counts as flat: the kernel's own count is not exact, and idle connections come and go.
pub const FLAT_MB: f64 = 1.0;
pub const COPIES: f64 = 3.0;
pub const BINARY_MB: f64 = 15.0;

/// Every goal in turn. A comparison of calls counts only if it holds on one core and on all cores.
pub fn check(summaries: &[Summary], binary_mb: Option<f64>) -> Vec<Goal> {
    let by_name = |name: &str| summaries.iter().find(|summary| summary.name == name && summary.fault.is_none());
    let mcpwire = by_name("mcpwire");
    let versus = |name: &str, ratio: fn(&Calls, &Calls) -> f64| -> Option<[f64; 2]> {
        let (ours, theirs) = (mcpwire?, by_name(name)?);
        Some([ratio(&ours.one_core, &theirs.one_core), ratio(&ours.all_cores, &theirs.all_cores)])
    };
    let p50 = |ours: &Calls, theirs: &Calls| ours.p50_us / theirs.p50_us;
    let flood = |ours: &Calls, theirs: &Calls| ours.per_second / theirs.per_second;
    let memory = mcpwire.map(|mcpwire| &mcpwire.memory);

    vec![
        at_most("initialize answered after process start", START_MS, "ms", mcpwire.map(|mcpwire| mcpwire.start_ms)),
        ratios("sequential p50, of bare's", versus("bare", p50), At::Most(P50_OVER_BARE)),
        ratios("sequential p50, of rmcp's", versus("rmcp-proxy", p50), At::Most(1.0)),
        ratios("sequential p50, of rmcp's when tuned", versus("rmcp-tuned", p50), At::Most(1.0)),
        ratios("64 in flight, of bare's", versus("bare", flood), At::Least(FLOOD_OVER_BARE)),
        ratios("64 in flight, of mcp-remote's", versus("mcp-remote", flood), At::Least(FLOOD_OVER_NODE)),
        at_most("resident after 20,000 calls", RESIDENT_MB, "MB", memory.and_then(|m| Some(m.last()?.resident))),
        at_most(
            "resident growth from 2,000 to 20,000 calls",
            FLAT_MB,
            "MB",
            memory.and_then(|m| Some(m.last()?.resident - m.first()?.resident)),
        ),
        at_most("copies of an 8 MB answer in memory", COPIES, "", mcpwire.and_then(|mcpwire| mcpwire.big_copies)),
        at_most("release binary", BINARY_MB, "MB", binary_mb),
    ]
}
