//! Takes contenders through a measurement in turns (A B C, A B C, …), so that a noisy moment of the machine hits all alike.

use std::io::IsTerminal;

use anyhow::Result;

use crate::places::Named;

/// One contender, how much it is asked to do, and what was measured so far.
pub struct Entry<'a, C, P, S> {
    pub contender: &'a C,
    pub plan: P,
    pub samples: S,
    /// Why this contender was given up: lost, doubled or wrong answers, or its end.
    pub fault: Option<String>,
}

/// `step` for each contender that has not failed, as often as its plan says.
pub fn take<C: Named, P, S>(
    entries: &mut [Entry<C, P, S>],
    what: &str,
    times: fn(&P) -> usize,
    mut step: impl FnMut(&C, &P, &mut S) -> Result<()>,
) {
    let show = std::io::stderr().is_terminal();
    let most = entries.iter().map(|entry| times(&entry.plan)).max().unwrap_or(0);
    for turn in 0..most {
        for entry in entries.iter_mut() {
            if turn >= times(&entry.plan) || entry.fault.is_some() {
                continue;
            }
            if show {
                eprint!("\r\x1b[K{what}, {} of {most}: {}", turn + 1, entry.contender.name());
            }
            if let Err(error) = step(entry.contender, &entry.plan, &mut entry.samples) {
                entry.fault = Some(format!("{what}: {error:#}"));
            }
        }
    }
    if show {
        eprint!("\r\x1b[K");
    }
}

/// `step` once for every contender that has not failed, all at the same time.
pub fn together<C: Sync, P: Send, S: Send>(
    entries: &mut [Entry<C, P, S>],
    what: &str,
    step: fn(&C, &P, &mut S) -> Result<()>,
) {
    std::thread::scope(|scope| {
        for entry in entries.iter_mut().filter(|entry| entry.fault.is_none()) {
            scope.spawn(move || {
                if let Err(error) = step(entry.contender, &entry.plan, &mut entry.samples) {
                    entry.fault = Some(format!("{what}: {error:#}"));
                }
            });
        }
    });
}
