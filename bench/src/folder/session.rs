//! A server on a pipe, asked one thing after the other.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::connect::piped::Piped;
use crate::ledger::{INITIALIZE, INITIALIZED, Ledger};

pub struct Session {
    ledger: Ledger,
    peer: Piped,
}

impl Session {
    /// Starts the server; the time runs from before its process exists until `initialize` is answered.
    pub fn open(program: &Path, args: &[&str], folder: &Path) -> Result<(Self, Duration)> {
        let mut command = Command::new(program);
        command.args(args).arg(folder).env("LOG_LEVEL", "error").stderr(Stdio::null());
        let begin = Instant::now();
        let peer = Piped::spawn(command)?;
        let mut session = Self { ledger: Ledger::default(), peer };
        session.ask("initialize", INITIALIZE)?;
        let took = begin.elapsed();
        session.peer.send(INITIALIZED)?;
        Ok((session, took))
    }

    pub fn pid(&self) -> u32 {
        self.peer.pid()
    }

    /// A request that must succeed: how long it took, and how long the answer is.
    pub fn ask(&mut self, method: &str, params: &str) -> Result<(Duration, usize)> {
        let (_, line) = self.ledger.request(method, params);
        let begin = Instant::now();
        self.peer.send(&line)?;
        loop {
            let answer = self.peer.line()?;
            let took = begin.elapsed();
            let length = answer.len();
            if self.ledger.settle_any(answer).with_context(|| format!("{method} {params}"))?.is_some() {
                return Ok((took, length));
            }
        }
    }

    pub fn read(&mut self, uri: &str) -> Result<Duration> {
        let (took, length) = self.ask("resources/read", &format!(r#"{{"uri":"{uri}"}}"#))?;
        ensure!(length > 50, "{uri}: the answer has {length} bytes only");
        Ok(took)
    }
}
