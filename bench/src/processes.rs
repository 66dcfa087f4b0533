//! Which processes descend from one, as the kernel tells it.

use std::collections::HashSet;
use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

/// A process; the time of its start tells it from a later one with the same number.
#[derive(Clone, Copy, PartialEq)]
pub struct Process {
    pub pid: u32,
    parent: u32,
    started: u64,
}

impl Process {
    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name comes second, in brackets, and may hold anything; after it, see proc_pid_stat(5), fields 3 and on.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self { pid, parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? })
    }

    pub fn is_there(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
    }

    pub fn signal(&self, signal: Signal) {
        // It may have ended in this moment.
        if self.is_there() {
            let _ = signal_pid(self.pid, signal);
        }
    }
}

pub fn signal_pid(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("not a process")?;
    Ok(kill_process(pid, signal)?)
}

/// All processes below this one, at any depth; zombies count, too.
pub fn descendants(pid: u32) -> Result<Vec<Process>> {
    let mut all: Vec<Process> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect();
    let mut known = HashSet::from([pid]);
    let mut found = Vec::new();
    loop {
        let (below, others): (Vec<Process>, Vec<Process>) =
            all.into_iter().partition(|process| known.contains(&process.parent));
        if below.is_empty() {
            return Ok(found);
        }
        known.extend(below.iter().map(|process| process.pid));
        found.extend(below);
        all = others;
    }
}
