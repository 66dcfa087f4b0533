//! Holds the driver, the server and every contender started meanwhile on one core.

use anyhow::{Context, Result};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// With all processes on one core a call costs its work and the switches between them, nothing else: the time to
/// wake a sleeping core, which differs from moment to moment, is out of the picture. Ends when dropped.
pub struct OneCore {
    server: Option<Pid>,
    before: CpuSet,
}

impl OneCore {
    pub fn hold(server: Option<u32>) -> Result<Self> {
        let before = sched_getaffinity(None).context("cannot read which cores we may use")?;
        let core = (0..CpuSet::MAX_CPU).find(|core| before.is_set(*core)).context("no core to run on")?;
        let mut one = CpuSet::new();
        one.set(core);
        let server = server.map(i32::try_from).transpose()?.and_then(Pid::from_raw);
        let held = Self { server, before };
        held.set(&one)?;
        Ok(held)
    }

    /// Children inherit our own set; a server that runs already, and has one working thread, is told separately.
    fn set(&self, cores: &CpuSet) -> Result<()> {
        sched_setaffinity(None, cores).context("cannot choose our cores")?;
        match self.server {
            Some(server) => sched_setaffinity(Some(server), cores).context("cannot choose the server's cores"),
            None => Ok(()),
        }
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        if let Err(error) = self.set(&self.before) {
            eprintln!("bench: {error:#}");
        }
    }
}
