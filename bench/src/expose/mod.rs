//! The second benchmark: HTTP clients, a gateway, a fast server on stdio.

mod client;
mod contender;
mod crowd;
mod gateway;
mod goals;
mod http;
mod measure;
mod plan;
mod report;
mod summary;

use anyhow::Result;

pub use self::report::Report;
use self::summary::Summary;
use crate::Args;
use crate::places::{Named, Places, only};

/// The names of all contenders, installed or not.
pub fn names(places: &Places, args: &Args) -> Vec<String> {
    let (contenders, skipped) = contender::all(places, args.verbose);
    contenders.iter().map(Named::name).chain(skipped.iter().map(Named::name)).map(ToString::to_string).collect()
}

pub fn run(places: &Places, args: &Args) -> Result<Report> {
    let (mut contenders, mut skipped) = contender::all(places, args.verbose);
    only(&mut contenders, &mut skipped, &args.only);
    let summaries: Vec<Summary> = measure::run(&contenders, args.quick).into_iter().map(Summary::of).collect();
    Ok(Report {
        cores: std::thread::available_parallelism()?.get(),
        quick: args.quick,
        skipped,
        goals: goals::check(&summaries),
        contenders: summaries,
    })
}
