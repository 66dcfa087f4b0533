//! The first benchmark: a client's pipe, a bridge, a fast server on HTTP.

pub mod contender;
mod direct;
mod goals;
pub mod measure;
pub mod piped;
mod plan;
mod report;
mod session;
pub mod summary;

use std::fs;
use std::process::Command;

use anyhow::Result;

use self::measure::Server;
use self::piped::Piped;
pub use self::report::Report;
use self::summary::Summary;
use crate::Args;
use crate::places::{Named, Places, only};

/// The names of all contenders, installed or not.
pub fn names(places: &Places, args: &Args) -> Vec<String> {
    let (contenders, skipped) = contender::all(places, args.variants, args.verbose);
    contenders.iter().map(Named::name).chain(skipped.iter().map(Named::name)).map(ToString::to_string).collect()
}

pub fn run(places: &Places, args: &Args) -> Result<Report> {
    let (mut contenders, mut skipped) = contender::all(places, args.variants, args.verbose);
    only(&mut contenders, &mut skipped, &args.only);
    let mut server = Piped::spawn(Command::new(places.here.join("fast-server")))?;
    let url = String::from_utf8(server.line()?.to_vec())?;
    let measured = measure::run(&contenders, args.quick, &Server { url, pid: server.pid() });

    let summaries: Vec<Summary> = measured.into_iter().map(Summary::of).collect();
    let binary_mb = fs::metadata(&places.mcpwire).ok().map(|file| file.len() as f64 / 1e6);
    Ok(Report {
        cores: std::thread::available_parallelism()?.get(),
        quick: args.quick,
        base: "bare",
        title: "goals of mcpwire connect",
        binary_mb,
        skipped,
        goals: goals::check(&summaries, binary_mb),
        contenders: summaries,
    })
}
