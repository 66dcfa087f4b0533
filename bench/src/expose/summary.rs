//! The samples of one contender boiled down to the numbers that are reported.

use serde::Serialize;

use super::contender::Server;
use super::measure::{self, Abandoned, Idle, Measured};
use crate::stats::median;

#[derive(Serialize)]
pub struct Summary {
    pub name: String,
    pub server: Server,
    pub one_core: Calls,
    pub all_cores: Calls,
    pub idle: Option<Idle>,
    pub busy: Vec<Busy>,
    /// Absent if the gateway cannot be told to end idle sessions.
    pub abandoned: Option<Abandoned>,
    pub answers: u64,
    pub fault: Option<String>,
}

#[derive(Serialize)]
pub struct Calls {
    /// One client.
    pub p50_us: f64,
    pub p99_us: f64,
    /// 16 and 64 clients.
    pub some_per_second: f64,
    pub many_per_second: f64,
}

#[derive(Serialize)]
pub struct Busy {
    /// Of one client.
    pub calls: usize,
    /// MB of the gateway's own process.
    pub resident: f64,
}

impl Summary {
    pub fn of(Measured { contender, samples, fault, .. }: Measured) -> Self {
        Self {
            name: contender.name.clone(),
            server: contender.server,
            one_core: Calls::of(&samples.one_core),
            all_cores: Calls::of(&samples.all_cores),
            idle: samples.idle,
            busy: samples.busy.into_iter().map(|(calls, resident)| Busy { calls, resident }).collect(),
            abandoned: samples.abandoned,
            answers: samples.answers,
            fault,
        }
    }
}

impl Calls {
    fn of(calls: &measure::Calls) -> Self {
        Self {
            p50_us: median(&calls.p50_us),
            p99_us: median(&calls.p99_us),
            some_per_second: median(&calls.some_per_second),
            many_per_second: median(&calls.many_per_second),
        }
    }
}
