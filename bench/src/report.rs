//! What the reports of both benchmarks have in common.

use std::fmt::Write as _;

use crate::goals::Goal;
use crate::places::Skipped;

pub fn skipped(out: &mut String, skipped: &[Skipped]) {
    for skipped in skipped {
        let _ = writeln!(out, "{} is skipped: {}", skipped.name, skipped.why);
    }
}

/// The heading of a table of calls on one core, or on all of them.
pub fn heading(out: &mut String, all: Option<usize>) {
    let _ = match all {
        None => writeln!(out, "\ncalls on one core (work and process switches only; repeatable)"),
        Some(cores) => {
            writeln!(out, "\ncalls on all {cores} cores (as in use; depends on what else the machine does)")
        }
    };
}

pub fn faults<'a>(out: &mut String, contenders: impl Iterator<Item = (&'a str, Option<&'a str>)>) {
    for (name, fault) in contenders {
        if let Some(fault) = fault {
            let _ = writeln!(out, "  {name:<16} FAILED in {fault}");
        }
    }
}

pub fn goals(out: &mut String, title: &str, goals: &[Goal]) {
    let _ = writeln!(out, "\n{title}");
    for goal in goals {
        let verdict = match goal.reached {
            Some(true) => "reached",
            Some(false) => "NOT REACHED",
            None => "-",
        };
        let _ = writeln!(out, "  {:<12} {:<44} {:<12} {}", verdict, goal.what, goal.wanted, goal.got);
    }
}

pub fn ratio(value: f64, base: Option<f64>) -> String {
    base.filter(|base| *base > 0.0).map_or_else(|| "-".to_string(), |base| format!("{:.2}", value / base))
}
