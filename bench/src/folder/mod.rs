//! The third benchmark: a folder as a server on a pipe, beside a minimal one on the Rust SDK where that can do the same.

mod session;
mod trees;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use self::session::Session;
use self::trees::{Tree, Words};
use crate::Args;
use crate::goals::{Goal, at_most};
use crate::memory::Memory;
use crate::places::Places;
use crate::report::{goals, ratio};
use crate::stats::{median, micros, millis};

const SMALL: usize = 150;
const LARGE: usize = 10_000;
const RECORDS: usize = 200_000;

#[derive(Serialize)]
pub struct Report {
    servers: Vec<Server>,
    matches: Vec<Match>,
    records: Records,
    pub goals: Vec<Goal>,
}

/// What both servers can do.
#[derive(Serialize)]
struct Server {
    name: &'static str,
    start_small_ms: f64,
    start_large_ms: f64,
    read_us: f64,
    list_us: f64,
}

#[derive(Serialize)]
struct Match {
    fragments: usize,
    /// A request that does nothing: the pipe and the processes.
    ping_us: f64,
    /// A query that was not asked before.
    new_us: f64,
    /// The same query again.
    again_us: f64,
    resident_mb: f64,
}

#[derive(Serialize)]
struct Records {
    file_mb: f64,
    first_ms: f64,
    /// The same filter again, and the same field with another value.
    again_us: f64,
    other_us: f64,
    peak_mb: f64,
}

pub fn run(places: &Places, args: &Args) -> Result<Report> {
    let rounds = if args.quick { 5 } else { 21 };
    let calls = if args.quick { 200 } else { 2000 };
    let (small, large) = (Tree::of_resources(SMALL)?, Tree::of_resources(LARGE)?);
    let contenders: [(&'static str, PathBuf, &[&str]); 2] =
        [("mcpwire", places.mcpwire.clone(), &["connect"]), ("rmcp-folder", places.here.join("rmcp-folder"), &[])];
    let mut times = vec![[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    // The contenders take turns.
    for _ in 0..rounds {
        for ((_, program, words), times) in contenders.iter().zip(&mut times) {
            for (tree, times) in [&small, &large].into_iter().zip(times) {
                times.push(millis(Session::open(program, words, tree.path())?.1));
            }
        }
    }
    let mut servers = Vec::new();
    for ((name, program, words), times) in contenders.iter().zip(&times) {
        let (mut session, _) = Session::open(program, words, small.path())?;
        let mut read = Vec::new();
        for call in 0..calls {
            let number = call % (SMALL / 6) * 6;
            read.push(session.read(&format!("orchestr8://agents/f{number}"))?);
        }
        let list: Result<Vec<Duration>> = (0..calls / 10).map(|_| Ok(session.ask("resources/list", "{}")?.0)).collect();
        servers.push(Server {
            name,
            start_small_ms: median(&times[0]),
            start_large_ms: median(&times[1]),
            read_us: median(&micros(&read)),
            list_us: median(&micros(&list?)),
        });
    }
    let matches = vec![matching(places, &small, SMALL, calls)?, matching(places, &large, LARGE, calls / 4)?];
    let records = records(places, calls / 4)?;
    let goals = check(&servers[0], &matches, &records);
    Ok(Report { servers, matches, records, goals })
}

fn matching(places: &Places, tree: &Tree, fragments: usize, calls: usize) -> Result<Match> {
    let (mut session, _) = Session::open(&places.mcpwire, &["connect"], tree.path())?;
    session.read("orchestr8://registry")?;
    let mut words = Words(99);
    let (mut ping, mut new, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..calls {
        // Two words that occur, one that almost does, and one that is only here, so that no answer is known.
        let uri = format!("orchestr8://match?query={}+{}+{}x+q{number}", words.next(), words.next(), words.next());
        ping.push(session.ask("ping", "{}")?.0);
        new.push(session.read(&uri)?);
        again.push(session.read(&uri)?);
    }
    let resident_mb = Memory::of(session.pid())?.resident;
    let of = |times: &[Duration]| median(&micros(times));
    Ok(Match { fragments, ping_us: of(&ping), new_us: of(&new), again_us: of(&again), resident_mb })
}

fn records(places: &Places, calls: usize) -> Result<Records> {
    let (tree, size) = Tree::of_records(RECORDS)?;
    let (mut session, _) = Session::open(&places.mcpwire, &["connect"], tree.path())?;
    let search = |department: usize| {
        format!(
            r#"{{"name":"relevant-data.searchRecords","arguments":{{"categoryId":"people","limit":10,"filters":{{"departmentId":"dept-{department}"}}}}}}"#
        )
    };
    let (first, _) = session.ask("tools/call", &search(0))?;
    let (mut again, mut other) = (Vec::new(), Vec::new());
    for number in 0..calls {
        if number < 399 {
            other.push(session.ask("tools/call", &search(number + 1))?.0);
        }
        again.push(session.ask("tools/call", &search(0))?.0);
    }
    Ok(Records {
        file_mb: size as f64 / 1e6,
        first_ms: millis(first),
        again_us: median(&micros(&again)),
        other_us: median(&micros(&other)),
        peak_mb: Memory::of(session.pid())?.peak,
    })
}

fn check(server: &Server, matches: &[Match], records: &Records) -> Vec<Goal> {
    vec![
        at_most("initialize, 150 resources", 15.0, "ms", Some(server.start_small_ms)),
        at_most("initialize, 10,000 resources", 50.0, "ms", Some(server.start_large_ms)),
        at_most("a new match over 150 fragments", 200.0, "us", Some(matches[0].new_us)),
        at_most("a new match over 10,000 fragments", 5000.0, "us", Some(matches[1].new_us)),
        at_most("200,000 records: the first answer", 1000.0, "ms", Some(records.first_ms)),
        at_most("200,000 records: the same filter again", 1000.0, "us", Some(records.again_us)),
        at_most("200,000 records: peak memory to file", 2.5, "x", Some(records.peak_mb / records.file_mb)),
    ]
}

impl Report {
    pub fn text(&self) -> String {
        let mut out = String::new();
        let base = self.servers.iter().find(|server| server.name == "rmcp-folder");
        let _ = writeln!(
            out,
            "\n  {:<12} {:>16} {:>7} {:>18} {:>7} {:>12} {:>7} {:>12} {:>7}",
            "", "start, 150", "x rmcp", "start, 10,000", "x rmcp", "read", "x rmcp", "list, 150", "x rmcp"
        );
        for server in &self.servers {
            let _ = writeln!(
                out,
                "  {:<12} {:>13.2} ms {:>7} {:>15.2} ms {:>7} {:>9.0} us {:>7} {:>9.0} us {:>7}",
                server.name,
                server.start_small_ms,
                ratio(server.start_small_ms, base.map(|base| base.start_small_ms)),
                server.start_large_ms,
                ratio(server.start_large_ms, base.map(|base| base.start_large_ms)),
                server.read_us,
                ratio(server.read_us, base.map(|base| base.read_us)),
                server.list_us,
                ratio(server.list_us, base.map(|base| base.list_us)),
            );
        }
        for found in &self.matches {
            let Match { fragments, ping_us, new_us, again_us, resident_mb } = found;
            let _ = writeln!(
                out,
                "  match over {fragments}: new {new_us:.0} us, again {again_us:.0} us (a ping takes {ping_us:.0} us); {resident_mb:.1} MB"
            );
        }
        let Records { file_mb, first_ms, again_us, other_us, peak_mb } = &self.records;
        let _ = writeln!(
            out,
            "  {RECORDS} records ({file_mb:.1} MB): first answer {first_ms:.0} ms, same filter {again_us:.0} us, \
             other value {other_us:.0} us, peak {peak_mb:.1} MB"
        );
        goals(&mut out, "goals of a folder", &self.goals);
        out
    }
}
