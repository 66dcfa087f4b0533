//! One open session with a contender and the things that are timed in it; every answer is checked.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::contender::{Contender, Start};
use super::direct::Direct;
use super::piped::Piped;
use crate::ledger::{INITIALIZE, INITIALIZED, Ledger};

pub struct Session {
    ledger: Ledger,
    peer: Peer,
}

enum Peer {
    Direct(Box<Direct>),
    Piped(Piped),
}

impl Session {
    /// Starts the contender; the time runs from before its process exists until `initialize` is answered.
    pub fn open(contender: &Contender, url: &str) -> Result<(Self, Duration)> {
        let mut ledger = Ledger::default();
        let (_, line) = ledger.request("initialize", INITIALIZE);
        let begin = Instant::now();
        let peer = match &contender.start {
            Start::Direct => Peer::Direct(Box::new(Direct::open(url)?)),
            Start::Command(_) => Peer::Piped(Piped::spawn(contender.command(url)?)?),
        };
        let mut session = Self { ledger, peer };
        session.exchange(line).context("initialize")?;
        let took = begin.elapsed();
        session.notify(INITIALIZED)?;
        Ok((session, took))
    }

    pub fn pid(&self) -> Option<u32> {
        match &self.peer {
            Peer::Direct(_) => None,
            Peer::Piped(piped) => Some(piped.pid()),
        }
    }

    pub fn answered(&self) -> u64 {
        self.ledger.answered()
    }

    /// One call after the other, and how long each took.
    pub fn sequential(&mut self, calls: usize) -> Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let mut line = Vec::with_capacity(160);
            self.ledger.echo(&mut line);
            times.push(self.timed_call(line).with_context(|| self.debt())?);
        }
        Ok(times)
    }

    /// `calls` calls with up to `window` under way at any time, and how long all of them took.
    pub fn flood(&mut self, calls: usize, window: usize) -> Result<Duration> {
        let begin = Instant::now();
        let outcome = match &mut self.peer {
            Peer::Direct(direct) => flood_direct(direct, &mut self.ledger, calls, window),
            Peer::Piped(piped) => flood_piped(piped, &mut self.ledger, calls, window),
        };
        outcome.with_context(|| self.debt())?;
        Ok(begin.elapsed())
    }

    /// One answer with a text of `size` bytes.
    pub fn big(&mut self, size: usize) -> Result<Duration> {
        let params = format!(r#"{{"name":"big","arguments":{{"size":{size}}}}}"#);
        let (_, line) = self.ledger.request("tools/call", &params);
        let begin = Instant::now();
        let length = self.exchange(line).context("the big answer")?;
        let took = begin.elapsed();
        anyhow::ensure!(length > size, "the big answer has {length} bytes only");
        Ok(took)
    }

    fn timed_call(&mut self, line: Vec<u8>) -> Result<Duration> {
        let begin = Instant::now();
        match &mut self.peer {
            Peer::Direct(direct) => {
                let answer = direct.exchange(line)?;
                let took = begin.elapsed();
                self.ledger.settle(&answer)?.context("no answer in the body")?;
                Ok(took)
            }
            Peer::Piped(piped) => {
                piped.send(&line)?;
                loop {
                    let answer = piped.line()?;
                    let took = begin.elapsed();
                    if self.ledger.settle(answer)?.is_some() {
                        return Ok(took);
                    }
                }
            }
        }
    }

    /// Sends a request that is not an echo and returns the length of its answer.
    fn exchange(&mut self, line: Vec<u8>) -> Result<usize> {
        match &mut self.peer {
            Peer::Direct(direct) => {
                let answer = direct.exchange(line)?;
                self.ledger.settle_any(&answer)?.context("no answer in the body")?;
                Ok(answer.len())
            }
            Peer::Piped(piped) => {
                piped.send(&line)?;
                loop {
                    let answer = piped.line()?;
                    if self.ledger.settle_any(answer)?.is_some() {
                        return Ok(answer.len());
                    }
                }
            }
        }
    }

    fn notify(&mut self, line: &[u8]) -> Result<()> {
        match &mut self.peer {
            Peer::Direct(direct) => direct.exchange(line.to_vec()).map(drop),
            Peer::Piped(piped) => piped.send(line),
        }
    }

    fn debt(&self) -> String {
        format!("{} answers came, {} are owed", self.ledger.answered(), self.ledger.owed())
    }
}

/// One thread is enough: with a bounded window neither pipe can fill up, so a write never waits for a read.
fn flood_piped(piped: &mut Piped, ledger: &mut Ledger, calls: usize, window: usize) -> Result<()> {
    let mut out = Vec::new();
    let mut sent = calls.min(window);
    let mut answered = 0;
    for _ in 0..sent {
        ledger.echo(&mut out);
    }
    while answered < calls {
        if !out.is_empty() {
            piped.send(&out)?;
            out.clear();
        }
        let mut settled = usize::from(ledger.settle(piped.line()?)?.is_some());
        while let Some(line) = piped.buffered_line() {
            settled += usize::from(ledger.settle(line)?.is_some());
        }
        answered += settled;
        for _ in 0..settled.min(calls - sent) {
            ledger.echo(&mut out);
            sent += 1;
        }
    }
    Ok(())
}

fn flood_direct(direct: &mut Direct, ledger: &mut Ledger, calls: usize, window: usize) -> Result<()> {
    let start = |direct: &mut Direct, ledger: &mut Ledger| {
        let mut line = Vec::with_capacity(160);
        ledger.echo(&mut line);
        direct.start(line);
    };
    let mut sent = calls.min(window);
    for _ in 0..sent {
        start(direct, ledger);
    }
    for _ in 0..calls {
        let answer = direct.answer()?;
        ledger.settle(&answer)?.context("no answer in the body")?;
        if sent < calls {
            start(direct, ledger);
            sent += 1;
        }
    }
    Ok(())
}
