//! The report of `connect` for people; programs get the same as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::summary::{Calls, Summary};
use crate::goals::Goal;
use crate::places::Skipped;
use crate::report::{faults, goals, heading, ratio, skipped};

#[derive(Serialize)]
pub struct Report {
    pub cores: usize,
    pub quick: bool,
    /// The contender that others are compared with.
    #[serde(skip)]
    pub base: &'static str,
    #[serde(skip)]
    pub title: &'static str,
    pub binary_mb: Option<f64>,
    pub skipped: Vec<Skipped>,
    pub contenders: Vec<Summary>,
    pub goals: Vec<Goal>,
}

impl Report {
    pub fn text(&self) -> String {
        let mut out = String::new();
        skipped(&mut out, &self.skipped);
        heading(&mut out, None);
        self.calls(&mut out, |summary| &summary.one_core);
        heading(&mut out, Some(self.cores));
        self.calls(&mut out, |summary| &summary.all_cores);
        self.processes(&mut out);
        goals(&mut out, self.title, &self.goals);
        out
    }

    /// Those that lost nothing: a contender that did has no numbers worth comparing.
    fn sound(&self) -> impl Iterator<Item = &Summary> {
        self.contenders.iter().filter(|summary| summary.fault.is_none())
    }

    fn base(&self) -> Option<&Summary> {
        self.sound().find(|summary| summary.name == self.base)
    }

    fn calls(&self, out: &mut String, pick: fn(&Summary) -> &Calls) {
        let over = format!("x {}", self.base);
        let _ =
            writeln!(out, "  {:<16} {:>10} {:>8} {:>10} {:>14} {:>8}", "", "p50", over, "p99", "64 in flight", over);
        let base = self.base().map(pick);
        for summary in self.sound() {
            let calls = pick(summary);
            let _ = writeln!(
                out,
                "  {:<16} {:>7.0} us {:>8} {:>7.0} us {:>12.0}/s {:>8}",
                summary.name,
                calls.p50_us,
                ratio(calls.p50_us, base.map(|base| base.p50_us)),
                calls.p99_us,
                calls.per_second,
                ratio(calls.per_second, base.map(|base| base.per_second)),
            );
        }
    }

    fn processes(&self, out: &mut String) {
        let over = format!("x {}", self.base);
        let _ = writeln!(out, "\nprocess (start to initialize answered; resident memory; one answer of 8 MB)");
        let _ = writeln!(
            out,
            "  {:<16} {:>10} {:>8}   {:<42} {:>9} {:>7} {:>10}",
            "", "start", over, "memory after calls (peak)", "8 MB", "copies", "answers"
        );
        let base = self.base().map(|base| base.start_ms);
        for summary in self.sound() {
            let memory: Vec<String> =
                summary.memory.iter().map(|at| format!("{:.1} MB at {}", at.resident, at.calls)).collect();
            let peak = summary.memory.last().map_or(String::new(), |at| format!(" ({:.1})", at.peak));
            let _ = writeln!(
                out,
                "  {:<16} {:>7.2} ms {:>8}   {:<42} {:>6.0} ms {:>7} {:>10}",
                summary.name,
                summary.start_ms,
                ratio(summary.start_ms, base),
                memory.join(", ") + &peak,
                summary.big_ms,
                summary.big_copies.map_or_else(|| "-".to_string(), |copies| format!("{copies:.1}")),
                summary.answers,
            );
        }
        faults(out, self.contenders.iter().map(|summary| (summary.name.as_str(), summary.fault.as_deref())));
    }
}
