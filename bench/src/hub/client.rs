//! A client of either era on the pipe of `mcpwire connect`.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::connect::piped::Piped;
use crate::ledger::{INITIALIZE, INITIALIZED, Ledger};

/// What a client of 2026-07-28 says with every request.
const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}"#,
);

#[derive(Clone, Copy, PartialEq)]
pub enum Era {
    Session,
    Stateless,
}

impl Era {
    pub fn name(self) -> &'static str {
        match self {
            Era::Session => "session",
            Era::Stateless => "stateless",
        }
    }
}

pub struct Client {
    era: Era,
    tool: String,
    ledger: Ledger,
    peer: Piped,
}

impl Client {
    /// Starts the command; the time runs from before its process exists until the first request is answered, which is
    /// `initialize` or `server/discover`. Calls go to this tool.
    pub fn open(command: Command, era: Era, tool: &str) -> Result<(Self, Duration)> {
        let begin = Instant::now();
        let peer = Piped::spawn(command)?;
        let mut client = Self { era, tool: tool.to_string(), ledger: Ledger::default(), peer };
        match era {
            Era::Session => client.ask("initialize", INITIALIZE)?,
            Era::Stateless => client.ask("server/discover", &client.params())?,
        };
        let took = begin.elapsed();
        if era == Era::Session {
            client.peer.send(INITIALIZED)?;
        }
        Ok((client, took))
    }

    /// The tools that are listed: how long the answer took, and its length.
    pub fn list(&mut self) -> Result<(Duration, usize)> {
        self.ask("tools/list", &self.params())
    }

    /// One call after the other, and how long each took.
    pub fn sequential(&mut self, calls: usize) -> Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let mut line = Vec::new();
            self.call(&mut line);
            let begin = Instant::now();
            self.peer.send(&line)?;
            loop {
                let answer = self.peer.line()?;
                let took = begin.elapsed();
                if self.ledger.settle(answer)?.is_some() {
                    times.push(took);
                    break;
                }
            }
        }
        Ok(times)
    }

    /// `calls` calls with up to `window` under way at any time, and how long all of them took.
    pub fn flood(&mut self, calls: usize, window: usize) -> Result<Duration> {
        let begin = Instant::now();
        let (mut sent, mut answered, mut out) = (0, 0, Vec::new());
        while answered < calls {
            while sent < calls && sent - answered < window {
                self.call(&mut out);
                sent += 1;
            }
            if !out.is_empty() {
                self.peer.send(&out)?;
                out.clear();
            }
            answered += usize::from(self.ledger.settle(self.peer.line()?)?.is_some());
            while let Some(line) = self.peer.buffered_line() {
                answered += usize::from(self.ledger.settle(line)?.is_some());
            }
        }
        Ok(begin.elapsed())
    }

    /// The time that the process has worked so far. It is counted in hundredths of a second.
    pub fn worked(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.peer.pid())).context("the process is gone")?;
        // The name comes second, in brackets, and may hold anything; see proc_pid_stat(5), fields 14 and 15.
        let fields: Vec<&str> = stat.rsplit_once(')').context("no name")?.1.split_whitespace().collect();
        let ticks = |at: usize| -> Result<u64> { Ok(fields.get(at).context("too few fields")?.parse()?) };
        Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
    }

    fn call(&mut self, line: &mut Vec<u8>) {
        match self.era {
            Era::Session => self.ledger.call(&self.tool, "", line),
            Era::Stateless => self.ledger.call(&self.tool, &format!(",{META}"), line),
        };
    }

    fn params(&self) -> String {
        match self.era {
            Era::Session => "{}".to_string(),
            Era::Stateless => format!("{{{META}}}"),
        }
    }

    fn ask(&mut self, method: &str, params: &str) -> Result<(Duration, usize)> {
        let (_, line) = self.ledger.request(method, params);
        let begin = Instant::now();
        self.peer.send(&line)?;
        loop {
            let answer = self.peer.line()?;
            let (took, length) = (begin.elapsed(), answer.len());
            if self.ledger.settle_any(answer).with_context(|| method.to_string())?.is_some() {
                return Ok((took, length));
            }
        }
    }
}
