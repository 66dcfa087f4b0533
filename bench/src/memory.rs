//! What the kernel says of a process's memory.

use std::fs;

use anyhow::{Context, Result};

/// Resident memory in MB: now, and the highest since the start or the last reset.
#[derive(Clone, Copy)]
pub struct Memory {
    pub resident: f64,
    pub peak: f64,
}

impl Memory {
    pub fn of(pid: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the process is gone")?;
        let field = |name: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
            let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
            Ok(kib * 1024.0 / 1e6)
        };
        Ok(Self { resident: field("VmRSS:")?, peak: field("VmHWM:")? })
    }

    /// What is resident now, in MB, counted page by page: `VmRSS` lags behind by some pages for each core.
    pub fn exact(pid: u32) -> Result<f64> {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).context("the process is gone")?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).context("no Rss")?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1024.0 / 1e6)
    }

    /// Lets the peak start again at what is resident now (proc(5), `clear_refs`).
    pub fn reset_peak(pid: u32) -> Result<()> {
        fs::write(format!("/proc/{pid}/clear_refs"), "5").context("cannot reset the peak")
    }
}
