//! The measurements of `expose`, contender by contender.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::contender::{Contender, Server};
use super::crowd::Crowd;
use super::gateway::{Gateway, within};
use super::plan::{ABANDONED, IDLE, MANY, Plan, SLACK, SOME};
use crate::affinity::OneCore;
use crate::stats::{median, micros, quantile};
use crate::turns::{self, Entry};

/// Time for a gateway to finish what it does after an answer, before its memory is read.
const SETTLE: Duration = Duration::from_millis(200);

/// What was measured of one contender: a sample per round.
#[derive(Default)]
pub struct Samples {
    pub one_core: Calls,
    pub all_cores: Calls,
    pub idle: Option<Idle>,
    /// After how many calls of one client, and how many MB were resident then.
    pub busy: Vec<(usize, f64)>,
    pub abandoned: Option<Abandoned>,
    /// Answers that came and were the right ones.
    pub answers: u64,
}

#[derive(Default)]
pub struct Calls {
    pub p50_us: Vec<f64>,
    pub p99_us: Vec<f64>,
    pub some_per_second: Vec<f64>,
    pub many_per_second: Vec<f64>,
}

/// The gateway's own process, without its children.
#[derive(Clone, Copy, Serialize)]
pub struct Idle {
    /// MB before the first session.
    pub empty: f64,
    pub kb_per_session: f64,
}

/// What sessions leave behind whose clients went away.
#[derive(Clone, Copy, Serialize)]
pub struct Abandoned {
    /// Processes below the gateway: before, with the sessions open, and in the end.
    pub processes: [usize; 3],
    /// MB of the gateway's own process, at the same moments.
    pub resident: [f64; 3],
    /// Seconds from the clients' leaving until the processes were back; absent if they were not in time.
    pub back_after: Option<f64>,
}

pub type Measured<'a> = Entry<'a, Contender, Plan, Samples>;

/// All measurements of all contenders, in the order given.
pub fn run<'a>(contenders: &'a [Contender], quick: bool) -> Vec<Measured<'a>> {
    let entry = |contender: &'a Contender| Entry {
        contender,
        plan: Plan::of(contender.pace, quick),
        samples: Samples::default(),
        fault: None,
    };
    let mut all: Vec<Measured> = contenders.iter().map(entry).collect();
    turns::take(&mut all, "calls on one core", |plan| plan.rounds, one_core);
    turns::take(&mut all, "calls on all cores", |plan| plan.rounds, all_cores);
    turns::take(&mut all, "idle sessions", |_| 1, idle);
    turns::take(&mut all, "a busy session", |_| 1, busy);
    // Almost all of it is waiting.
    turns::together(&mut all, "abandoned sessions", abandoned);
    all
}

fn one_core(contender: &Contender, plan: &Plan, samples: &mut Samples) -> Result<()> {
    let held = OneCore::hold(None)?;
    samples.answers += calls(contender, plan, &mut samples.one_core)?;
    drop(held);
    Ok(())
}

fn all_cores(contender: &Contender, plan: &Plan, samples: &mut Samples) -> Result<()> {
    samples.answers += calls(contender, plan, &mut samples.all_cores)?;
    Ok(())
}

/// From many clients to one: a connection, once idle, is not used again, so no gateway's keep-alive limit matters.
fn calls(contender: &Contender, plan: &Plan, calls: &mut Calls) -> Result<u64> {
    let gateway = Gateway::start(contender, false)?;
    let mut crowd = Crowd::new(gateway.address);
    crowd.grow(MANY)?;
    crowd.flood(MANY, plan.warm_up)?;
    let per_second = |took: Duration| plan.flood as f64 / took.as_secs_f64();
    calls.many_per_second.push(per_second(crowd.flood(MANY, plan.flood)?));
    calls.some_per_second.push(per_second(crowd.flood(SOME, plan.flood)?));
    let times = micros(&crowd.sequential(plan.sequential)?);
    calls.p50_us.push(median(&times));
    calls.p99_us.push(quantile(&times, 0.99));
    Ok(crowd.answered())
}

fn idle(contender: &Contender, plan: &Plan, samples: &mut Samples) -> Result<()> {
    let gateway = Gateway::start(contender, false)?;
    let mut crowd = Crowd::new(gateway.address);
    let empty = gateway.resident()?;
    let mut resident = [0.0; 2];
    for (size, resident) in plan.idle.into_iter().zip(&mut resident) {
        crowd.grow(size)?;
        sleep(SETTLE);
        *resident = gateway.resident()?;
    }
    let sessions = (plan.idle[1] - plan.idle[0]) as f64;
    samples.idle = Some(Idle { empty, kb_per_session: (resident[1] - resident[0]) * 1e3 / sessions });
    samples.answers += crowd.answered();
    Ok(())
}

fn busy(contender: &Contender, plan: &Plan, samples: &mut Samples) -> Result<()> {
    let gateway = Gateway::start(contender, false)?;
    let mut crowd = Crowd::new(gateway.address);
    crowd.grow(1)?;
    let mut made = 0;
    for calls in plan.busy {
        crowd.flood(1, calls - made)?;
        made = calls;
        samples.busy.push((calls, gateway.resident()?));
    }
    samples.answers += crowd.answered();
    Ok(())
}

/// Several times: what the first ones leave in the allocator's hands is no leak, what the last adds to it would be one.
fn abandoned(contender: &Contender, plan: &Plan, samples: &mut Samples) -> Result<()> {
    if !contender.ends_idle_sessions() {
        return Ok(());
    }
    let gateway = Gateway::start(contender, true)?;
    let first = abandon(&gateway, samples)?;
    let mut last = first;
    for _ in 1..plan.abandon {
        last = abandon(&gateway, samples)?;
    }
    if contender.server == Server::Own {
        // A shared server may be started by the first session; one of a session's own must be gone each time.
        last.processes[0] = first.processes[0];
    }
    samples.abandoned = Some(last);
    Ok(())
}

fn abandon(gateway: &Gateway, samples: &mut Samples) -> Result<Abandoned> {
    let state = || -> Result<(usize, f64)> { Ok((gateway.processes()?.len(), gateway.resident()?)) };
    let before = state()?;
    let mut crowd = Crowd::new(gateway.address);
    crowd.grow(ABANDONED)?;
    let open = state()?;
    samples.answers += crowd.answered();
    drop(crowd);
    let begin = Instant::now();
    let is_back = || gateway.processes().is_ok_and(|processes| processes.len() <= before.0);
    let back_after = within(IDLE + SLACK, is_back).then(|| begin.elapsed().as_secs_f64());
    // Sessions on a shared server end unseen: half of the slack is theirs.
    sleep((IDLE + SLACK / 2).saturating_sub(begin.elapsed()) + SETTLE);
    let end = state()?;
    Ok(Abandoned { processes: [before.0, open.0, end.0], resident: [before.1, open.1, end.1], back_after })
}
