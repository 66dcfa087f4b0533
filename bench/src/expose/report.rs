//! The report of `expose` for people; programs get the same as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::contender::Server;
use super::summary::{Calls, Summary};
use crate::goals::Goal;
use crate::places::Skipped;
use crate::report::{faults, goals, heading, ratio, skipped};

#[derive(Serialize)]
pub struct Report {
    pub cores: usize,
    pub quick: bool,
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
        self.sessions(&mut out);
        goals(&mut out, "goals of mcpwire expose", &self.goals);
        out
    }

    /// Those that lost nothing, with one kind of server behind them.
    fn sound(&self, server: Server) -> impl Iterator<Item = &Summary> {
        self.contenders.iter().filter(move |summary| summary.fault.is_none() && summary.server == server)
    }

    fn calls(&self, out: &mut String, pick: fn(&Summary) -> &Calls) {
        for (server, title) in KINDS {
            let _ = writeln!(
                out,
                "  {:<22} {:>10} {:>8} {:>10} {:>13} {:>13} {:>8}",
                title, "p50", "x bare", "p99", "16 clients", "64 clients", "x bare"
            );
            let base = self.sound(server).find(|summary| summary.name == server.bare()).map(pick);
            for summary in self.sound(server) {
                let calls = pick(summary);
                let _ = writeln!(
                    out,
                    "    {:<20} {:>7.0} us {:>8} {:>7.0} us {:>11.0}/s {:>11.0}/s {:>8}",
                    summary.name,
                    calls.p50_us,
                    ratio(calls.p50_us, base.map(|base| base.p50_us)),
                    calls.p99_us,
                    calls.some_per_second,
                    calls.many_per_second,
                    ratio(calls.many_per_second, base.map(|base| base.many_per_second)),
                );
            }
        }
    }

    fn sessions(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "\nsessions (memory of the gateway itself: empty, for each idle one, and with one busy; 20 left by their clients)"
        );
        for (server, title) in KINDS {
            let _ = writeln!(
                out,
                "  {:<22} {:>9} {:>10}   {:<34} {:<22} {:<22} {:>9}",
                title, "empty", "idle", "busy: after calls", "abandoned: processes", "memory", "answers"
            );
            for summary in self.sound(server) {
                let (processes, memory) = summary.abandoned.map_or_else(
                    || ("-".to_string(), "-".to_string()),
                    |seen| {
                        let [start, open, end] = seen.processes;
                        let time = seen.back_after.map_or_else(|| "late".to_string(), |after| format!("{after:.1} s"));
                        let memory = seen.resident.map(|mb| format!("{mb:.1}"));
                        (format!("{start}, {open}, {end} ({time})"), format!("{} MB", memory.join(", ")))
                    },
                );
                let busy: Vec<String> =
                    summary.busy.iter().map(|at| format!("{:.1} MB at {}", at.resident, at.calls)).collect();
                let idle = summary.idle.map_or_else(
                    || ("-".to_string(), "-".to_string()),
                    |idle| (format!("{:.1} MB", idle.empty), format!("{:.1} kB", idle.kb_per_session)),
                );
                let _ = writeln!(
                    out,
                    "    {:<20} {:>9} {:>10}   {:<34} {:<22} {:<22} {:>9}",
                    summary.name,
                    idle.0,
                    idle.1,
                    busy.join(", "),
                    processes,
                    memory,
                    summary.answers
                );
            }
        }
        faults(out, self.contenders.iter().map(|summary| (summary.name.as_str(), summary.fault.as_deref())));
    }
}

/// A table each: they do different work.
const KINDS: [(Server, &str); 2] = [(Server::Own, "a server per session"), (Server::Shared, "one server for all")];
