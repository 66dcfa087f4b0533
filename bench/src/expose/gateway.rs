//! A gateway's process: started on a free port of loopback, and ended together with what it started.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::contender::Contender;
use crate::memory::Memory;
use crate::processes::{Process, descendants, signal_pid};

/// How long a gateway may take to listen.
const START: Duration = Duration::from_secs(20);
/// How long a gateway, and then its children, may take to leave when told to.
const GRACE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(20);

pub struct Gateway {
    child: Child,
    pub address: SocketAddr,
}

impl Gateway {
    pub fn start(contender: &Contender, end_idle_sessions: bool) -> Result<Self> {
        let address = free_address()?;
        let child = contender.command(address.port(), end_idle_sessions).spawn().context("cannot start")?;
        let mut gateway = Self { child, address };
        let deadline = Instant::now() + START;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = gateway.child.try_wait()? {
                bail!("ended before it listened: {status}");
            }
            if Instant::now() > deadline {
                bail!("does not listen after {} s", START.as_secs());
            }
            sleep(STEP);
        }
        Ok(gateway)
    }

    /// MB of the gateway's own process; those that it started are not counted.
    pub fn resident(&self) -> Result<f64> {
        Memory::exact(self.child.id())
    }

    /// What it started, and what those started.
    pub fn processes(&self) -> Result<Vec<Process>> {
        descendants(self.child.id())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let below = self.processes().unwrap_or_default();
        // It may have left by itself; then there is nothing to end.
        let _ = signal_pid(self.child.id(), Signal::TERM);
        if !within(GRACE, || !matches!(self.child.try_wait(), Ok(None))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        within(GRACE, || below.iter().all(|process| !process.is_there()));
        for process in below {
            process.signal(Signal::KILL);
        }
    }
}

/// Waits until something holds; false if it did not in time.
pub fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        sleep(STEP);
    }
    true
}

/// Nobody listens there now; on a loopback of our own nobody else will soon.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
