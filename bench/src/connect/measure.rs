//! The measurements of `connect`, contender by contender.

use anyhow::Result;

use super::contender::Contender;
use super::plan::{BIG, Plan, WINDOW};
use super::session::Session;
use crate::affinity::OneCore;
use crate::memory::Memory;
use crate::stats::{median, micros, millis, quantile};
use crate::turns::{self, Entry};

/// What was measured of one contender: a sample per round or run.
#[derive(Default)]
pub struct Samples {
    pub start_ms: Vec<f64>,
    pub one_core: Calls,
    pub all_cores: Calls,
    /// After how many calls, and what was in memory then.
    pub memory: Vec<(usize, Memory)>,
    pub big_ms: Vec<f64>,
    /// MB by which the peak rose over what was resident before the large answer.
    pub big_growth: Vec<f64>,
    /// Answers that came and were the right ones.
    pub answers: u64,
}

#[derive(Default)]
pub struct Calls {
    pub p50_us: Vec<f64>,
    pub p99_us: Vec<f64>,
    pub per_second: Vec<f64>,
}

/// The server that everyone is measured against.
pub struct Server {
    pub url: String,
    pub pid: u32,
}

pub type Measured<'a> = Entry<'a, Contender, Plan, Samples>;

/// All measurements of all contenders, in the order given.
pub fn run<'a>(contenders: &'a [Contender], quick: bool, server: &Server) -> Vec<Measured<'a>> {
    let entry = |contender: &'a Contender| Entry {
        contender,
        plan: Plan::of(contender.pace, quick),
        samples: Samples::default(),
        fault: None,
    };
    let mut all: Vec<Measured> = contenders.iter().map(entry).collect();
    let mut turns = |what: &str, times: fn(&Plan) -> usize, step: Step| {
        turns::take(&mut all, what, times, |contender, plan, samples| step(contender, plan, server, samples));
    };
    turns("calls on one core", |plan| plan.rounds, one_core);
    turns("calls on all cores", |plan| plan.rounds, all_cores);
    turns("starts", |plan| plan.starts, start);
    turns("large answers", |plan| plan.big, big);
    turns("memory", |_| 1, memory);
    all
}

type Step = fn(&Contender, &Plan, &Server, &mut Samples) -> Result<()>;

fn one_core(contender: &Contender, plan: &Plan, server: &Server, samples: &mut Samples) -> Result<()> {
    let held = OneCore::hold(Some(server.pid))?;
    let mut session = Session::open(contender, &server.url)?.0;
    calls(&mut session, plan, &mut samples.one_core)?;
    samples.answers += session.answered();
    drop(session);
    drop(held);
    Ok(())
}

fn all_cores(contender: &Contender, plan: &Plan, server: &Server, samples: &mut Samples) -> Result<()> {
    let mut session = Session::open(contender, &server.url)?.0;
    calls(&mut session, plan, &mut samples.all_cores)?;
    samples.answers += session.answered();
    Ok(())
}

fn calls(session: &mut Session, plan: &Plan, calls: &mut Calls) -> Result<()> {
    session.flood(plan.warm_up, WINDOW)?;
    let took = session.flood(plan.flood, WINDOW)?;
    calls.per_second.push(plan.flood as f64 / took.as_secs_f64());
    let times = micros(&session.sequential(plan.sequential)?);
    calls.p50_us.push(median(&times));
    calls.p99_us.push(quantile(&times, 0.99));
    Ok(())
}

fn start(contender: &Contender, _: &Plan, server: &Server, samples: &mut Samples) -> Result<()> {
    let (session, took) = Session::open(contender, &server.url)?;
    samples.start_ms.push(millis(took));
    samples.answers += session.answered();
    Ok(())
}

/// Always the first large answer of a process: later ones find memory that is already there.
fn big(contender: &Contender, plan: &Plan, server: &Server, samples: &mut Samples) -> Result<()> {
    let (mut session, _) = Session::open(contender, &server.url)?;
    session.flood(plan.warm_up, WINDOW)?;
    let before = match session.pid() {
        Some(pid) => {
            Memory::reset_peak(pid)?;
            Some((pid, Memory::of(pid)?))
        }
        None => None,
    };
    samples.big_ms.push(millis(session.big(BIG)?));
    if let Some((pid, before)) = before {
        samples.big_growth.push(Memory::of(pid)?.peak - before.resident);
    }
    samples.answers += session.answered();
    Ok(())
}

fn memory(contender: &Contender, plan: &Plan, server: &Server, samples: &mut Samples) -> Result<()> {
    let (mut session, _) = Session::open(contender, &server.url)?;
    let Some(pid) = session.pid() else {
        return Ok(());
    };
    let mut made = 0;
    for calls in plan.memory {
        session.flood(calls - made, WINDOW)?;
        made = calls;
        samples.memory.push((calls, Memory::of(pid)?));
    }
    samples.answers += session.answered();
    Ok(())
}
