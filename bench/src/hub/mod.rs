//! The fifth benchmark: ten servers as one, beside the plain bridge to one of them.

mod client;
mod rig;

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;

use self::client::{Client, Era};
use self::rig::{Rig, SERVERS, TOOLS};
use crate::Args;
use crate::affinity::OneCore;
use crate::goals::{At, Goal, at_most, ratios};
use crate::places::Places;
use crate::report::{goals, heading, ratio};
use crate::stats::{median, micros, millis, quantile};

const WINDOW: usize = 64;
/// How long the servers take to start where the start is measured.
const DELAY_MS: u64 = 500;
/// How long a hub may take to write down what it has seen.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Serialize)]
pub struct Report {
    cores: usize,
    one_core: Vec<Row>,
    all_cores: Vec<Row>,
    list: List,
    start: Start,
    pub goals: Vec<Goal>,
}

#[derive(Serialize)]
struct Row {
    era: &'static str,
    name: &'static str,
    p50_us: f64,
    p99_us: f64,
    per_second: f64,
    /// What mcpwire's own process works for a call, with so many in flight as above.
    cpu_us: f64,
}

/// `tools/list` of all tools of all servers.
#[derive(Serialize)]
struct List {
    kilobytes: f64,
    p50_us: f64,
    p99_us: f64,
}

/// With everything known from before, and servers that take their time.
#[derive(Serialize)]
struct Start {
    initialize_ms: f64,
    first_list_ms: f64,
    /// Nothing known: until the first list is there.
    unknown_list_ms: f64,
}

#[derive(Default)]
struct Samples {
    p50_us: Vec<f64>,
    p99_us: Vec<f64>,
    per_second: Vec<f64>,
    worked: Duration,
    calls: usize,
}

pub fn run(places: &Places, args: &Args) -> Result<Report> {
    let rig = Rig::new(places, args.verbose)?;
    let rounds = if args.quick { 3 } else { 11 };
    let one_core = rows(&rig, rounds, true)?;
    let all_cores = rows(&rig, rounds, false)?;
    let list = list(&rig, if args.quick { 200 } else { 1000 })?;
    let start = start(&rig, if args.quick { 5 } else { 20 })?;
    let mut goals = vec![
        at_most("tools/list of 500 tools, p50", 1000.0, "us", Some(list.p50_us)),
        at_most("start to initialize answered, all known", 20.0, "ms", Some(start.initialize_ms)),
    ];
    for era in [Era::Session, Era::Stateless] {
        let versus = |value: fn(&Row) -> f64| {
            let of = |rows: &[Row]| -> Option<f64> {
                let by = |name: &str| rows.iter().find(|row| row.era == era.name() && row.name == name).map(value);
                Some(by("hub")? / by("plain").filter(|plain| *plain > 0.0)?)
            };
            Some([of(&one_core)?, of(&all_cores)?])
        };
        let what = |what: &str| format!("{}: {what}, of the plain bridge's", era.name());
        goals.push(ratios(&what("a call, p50"), versus(|row| row.p50_us), At::Most(1.3)));
    }
    let cores = std::thread::available_parallelism()?.get();
    Ok(Report { cores, one_core, all_cores, list, start, goals })
}

/// Calls in both eras, client and server of the same; the contenders take turns.
fn rows(rig: &Rig, rounds: usize, one_core: bool) -> Result<Vec<Row>> {
    let kinds = [Era::Session, Era::Stateless].into_iter().flat_map(|era| [(era, "plain"), (era, "hub")]);
    let mut all: Vec<(Era, &'static str, Samples)> = kinds.map(|(era, name)| (era, name, Samples::default())).collect();
    for _ in 0..rounds {
        for (era, name, samples) in &mut all {
            let held = one_core.then(|| OneCore::hold(None)).transpose()?;
            match *name {
                "hub" => calls(rig.hub(*era, 0)?, *era, "up5__echo", samples)?,
                _ => calls(rig.plain(*era), *era, "echo", samples)?,
            }
            drop(held);
        }
    }
    let row = |(era, name, samples): (Era, &'static str, Samples)| Row {
        era: era.name(),
        name,
        p50_us: median(&samples.p50_us),
        p99_us: median(&samples.p99_us),
        per_second: median(&samples.per_second),
        cpu_us: samples.worked.as_secs_f64() * 1e6 / samples.calls as f64,
    };
    Ok(all.into_iter().map(row).collect())
}

fn calls(command: Command, era: Era, tool: &str, samples: &mut Samples) -> Result<()> {
    const FLOOD: usize = 8_000;
    let mut client = Client::open(command, era, tool)?.0;
    client.list()?;
    client.flood(1_000, WINDOW)?;
    let before = client.worked()?;
    let took = client.flood(FLOOD, WINDOW)?;
    samples.worked += client.worked()? - before;
    samples.calls += FLOOD;
    samples.per_second.push(FLOOD as f64 / took.as_secs_f64());
    let times = micros(&client.sequential(1_000)?);
    samples.p50_us.push(median(&times));
    samples.p99_us.push(quantile(&times, 0.99));
    Ok(())
}

fn list(rig: &Rig, calls: usize) -> Result<List> {
    let mut client = Client::open(rig.hub(Era::Session, 0)?, Era::Session, "up5__echo")?.0;
    let (_, length) = client.list()?;
    ensure!(length > SERVERS * TOOLS * 100, "the list has {length} bytes only");
    client.flood(1_000, WINDOW)?;
    let times: Result<Vec<Duration>> = (0..calls).map(|_| Ok(client.list()?.0)).collect();
    let times = micros(&times?);
    Ok(List { kilobytes: length as f64 / 1e3, p50_us: median(&times), p99_us: quantile(&times, 0.99) })
}

fn start(rig: &Rig, starts: usize) -> Result<Start> {
    let before = rig.cached();
    let (mut client, opened) = Client::open(rig.hub(Era::Session, DELAY_MS)?, Era::Session, "")?;
    let unknown_list_ms = millis(opened + client.list()?.0);
    let until = Instant::now() + PATIENCE;
    while rig.cached() < before + SERVERS {
        ensure!(Instant::now() < until, "the hub has written down {} servers only", rig.cached() - before);
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(client);
    let (mut initialize, mut first_list) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        let (mut client, opened) = Client::open(rig.hub(Era::Session, DELAY_MS)?, Era::Session, "")?;
        initialize.push(millis(opened));
        first_list.push(millis(opened + client.list()?.0));
    }
    Ok(Start { initialize_ms: median(&initialize), first_list_ms: median(&first_list), unknown_list_ms })
}

impl Report {
    pub fn text(&self) -> String {
        let mut out = String::new();
        heading(&mut out, None);
        calls_table(&mut out, &self.one_core);
        heading(&mut out, Some(self.cores));
        calls_table(&mut out, &self.all_cores);
        let List { kilobytes, p50_us, p99_us } = &self.list;
        let _ = writeln!(
            out,
            "\ntools/list of {SERVERS} x {TOOLS} tools ({kilobytes:.0} kB): p50 {p50_us:.0} us, p99 {p99_us:.0} us"
        );
        let Start { initialize_ms, first_list_ms, unknown_list_ms } = &self.start;
        let _ = writeln!(
            out,
            "start, servers that take {DELAY_MS} ms: initialize {initialize_ms:.2} ms, first list {first_list_ms:.0} ms \
             (nothing known from before: {unknown_list_ms:.0} ms)"
        );
        goals(&mut out, "goals of the hub", &self.goals);
        out
    }
}

fn calls_table(out: &mut String, rows: &[Row]) {
    let _ = writeln!(
        out,
        "  {:<18} {:>10} {:>8} {:>10} {:>14} {:>8} {:>13} {:>8}",
        "", "p50", "x plain", "p99", "64 in flight", "x plain", "CPU of a call", "x plain"
    );
    for row in rows {
        let base = rows.iter().find(|base| base.era == row.era && base.name == "plain");
        let _ = writeln!(
            out,
            "  {:<18} {:>7.0} us {:>8} {:>7.0} us {:>12.0}/s {:>8} {:>10.1} us {:>8}",
            format!("{} {}", row.era, row.name),
            row.p50_us,
            ratio(row.p50_us, base.map(|base| base.p50_us)),
            row.p99_us,
            row.per_second,
            ratio(row.per_second, base.map(|base| base.per_second)),
            row.cpu_us,
            ratio(row.cpu_us, base.map(|base| base.cpu_us)),
        );
    }
}
