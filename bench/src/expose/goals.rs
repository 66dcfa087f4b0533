//! The goals of `mcpwire expose`, with a server for each session and with one for all.

use super::measure::Abandoned;
use super::summary::{Calls, Summary};
use crate::goals::{At, Goal, at_most, not_measured, ratios};

pub const P50_OVER_BARE: f64 = 1.5;
pub const MANY_OVER_BARE: f64 = 0.7;
pub const MANY_OVER_NODE: f64 = 15.0;
pub const IDLE_KB: f64 = 40.0;
/// What still counts as flat.
pub const FLAT_MB: f64 = 1.0;
/// What still counts as the memory of the start: less than 20 sessions' worth by far.
pub const BACK_MB: f64 = 0.2;

/// Every goal in turn. A comparison of calls counts only if it holds on one core and on all cores.
pub fn check(summaries: &[Summary]) -> Vec<Goal> {
    let by_name = |name: &str| summaries.iter().find(|summary| summary.name == name && summary.fault.is_none());
    let versus = |ours: &str, theirs: &str, ratio: fn(&Calls, &Calls) -> f64| -> Option<[f64; 2]> {
        let (ours, theirs) = (by_name(ours)?, by_name(theirs)?);
        Some([ratio(&ours.one_core, &theirs.one_core), ratio(&ours.all_cores, &theirs.all_cores)])
    };
    let p50 = |ours: &Calls, theirs: &Calls| ours.p50_us / theirs.p50_us;
    let many = |ours: &Calls, theirs: &Calls| ours.many_per_second / theirs.many_per_second;
    let idle = |name: &str| Some(by_name(name)?.idle?.kb_per_session);
    let busy = |name: &str| {
        let busy = &by_name(name)?.busy;
        Some(busy.last()?.resident - busy.first()?.resident)
    };
    let abandoned = |name: &str| by_name(name)?.abandoned;

    vec![
        ratios("1 client, p50, of bare's", versus("mcpwire", "bare", p50), At::Most(P50_OVER_BARE)),
        ratios("the same with --share", versus("mcpwire-share", "bare-share", p50), At::Most(P50_OVER_BARE)),
        ratios("64 clients, calls/s, of bare's", versus("mcpwire", "bare", many), At::Least(MANY_OVER_BARE)),
        ratios("the same with --share", versus("mcpwire-share", "bare-share", many), At::Least(MANY_OVER_BARE)),
        ratios("64 clients, of supergateway's", versus("mcpwire", "supergateway", many), At::Least(MANY_OVER_NODE)),
        ratios(
            "64 clients, --share, of mcp-proxy-node's",
            versus("mcpwire-share", "mcp-proxy-node", many),
            At::Least(MANY_OVER_NODE),
        ),
        at_most("idle session, without its child", IDLE_KB, "kB", idle("mcpwire")),
        at_most("the same with --share", IDLE_KB, "kB", idle("mcpwire-share")),
        at_most("resident growth from 2,000 to 20,000 calls", FLAT_MB, "MB", busy("mcpwire")),
        at_most("the same with --share", FLAT_MB, "MB", busy("mcpwire-share")),
        back("20 sessions abandoned", abandoned("mcpwire")),
        back("the same with --share", abandoned("mcpwire-share")),
    ]
}

/// Processes and memory are back where they were.
fn back(what: &str, abandoned: Option<Abandoned>) -> Goal {
    Goal {
        what: what.to_string(),
        wanted: "as before".to_string(),
        got: abandoned.map_or_else(not_measured, |seen| {
            let time = seen.back_after.map_or_else(|| "never".to_string(), |after| format!("after {after:.1} s"));
            let [start, open, end] = seen.processes;
            let grown = seen.resident[2] - seen.resident[0];
            format!("processes {start}, {open}, {end} {time}; memory {grown:+.2} MB")
        }),
        reached: abandoned.map(|seen| {
            seen.back_after.is_some()
                && seen.processes[2] <= seen.processes[0]
                && seen.resident[2] - seen.resident[0] <= BACK_MB
        }),
    }
}
