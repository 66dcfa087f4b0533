//! Runs `mcpwire connect` beside its peers against one fast server and prints what each costs.

mod affinity;
mod contender;
mod direct;
mod goals;
mod ledger;
mod measure;
mod memory;
mod piped;
mod plan;
mod report;
mod session;
mod stats;
mod summary;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use crate::contender::Places;
use crate::measure::Server;
use crate::piped::Piped;
use crate::report::Report;
use crate::summary::Summary;

/// Measures `mcpwire connect` beside its peers, in one run
#[derive(Parser)]
struct Args {
    /// A short run of at most half a minute
    #[arg(long)]
    quick: bool,
    /// Writes the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only these contenders
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Adds the ways in which the bare pass-through can read and write its pipes
    #[arg(long)]
    variants: bool,
    /// Shows what the contenders write to stderr
    #[arg(long)]
    verbose: bool,
    /// The mcpwire binary [default: the release build of this repository]
    #[arg(long, value_name = "FILE")]
    mcpwire: Option<PathBuf>,
    /// Where the Node and Python peers are installed [default: interop/.peers]
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<()> {
    let exe = std::env::current_exe()?;
    let here = exe.parent().context("the driver has no folder")?;
    // bench/target/release/mcpwire-bench lies four below the repository.
    let root = exe.ancestors().nth(4).context("the driver was moved out of its target folder")?;
    let places = Places {
        here: here.to_path_buf(),
        mcpwire: args.mcpwire.unwrap_or_else(|| root.join("target/release/mcpwire")),
        peers: args.peers.unwrap_or_else(|| root.join("interop/.peers")),
    };
    let (mut contenders, mut skipped) = contender::all(&places, args.variants, args.verbose);
    if !args.only.is_empty() {
        let known = |name: &String| {
            contenders.iter().any(|contender| contender.name == *name) || skipped.iter().any(|it| it.name == *name)
        };
        if let Some(name) = args.only.iter().find(|name| !known(name)) {
            bail!("there is no contender {name}");
        }
        contenders.retain(|contender| args.only.contains(&contender.name));
        skipped.retain(|skipped| args.only.contains(&skipped.name));
    }

    let mut server = Piped::spawn(Command::new(here.join("fast-server")))?;
    let url = String::from_utf8(server.line()?.to_vec())?;
    let samples = measure::run(&contenders, args.quick, &Server { url, pid: server.pid() });

    let summaries: Vec<Summary> =
        contenders.iter().zip(samples).map(|(contender, samples)| Summary::of(contender, samples)).collect();
    let binary_mb = fs::metadata(&places.mcpwire).ok().map(|file| file.len() as f64 / 1e6);
    let report = Report {
        cores: std::thread::available_parallelism()?.get(),
        quick: args.quick,
        binary_mb,
        skipped,
        goals: goals::check(&summaries, binary_mb),
        contenders: summaries,
    };
    print!("{}", report.text());
    if let Some(file) = &args.json {
        report.write_json(file)?;
    }
    let lost = report.contenders.iter().any(|summary| summary.name == "mcpwire" && summary.fault.is_some());
    ensure!(!lost, "mcpwire did not answer everything");
    Ok(())
}
