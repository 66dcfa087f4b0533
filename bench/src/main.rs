//! Runs mcpwire beside its peers, on its own ground (`connect`), on theirs (`expose`), as a server (`folder`), over
//! QUIC (`quic`) and with many servers as one (`hub`), and prints what each costs.

mod affinity;
mod connect;
mod expose;
mod folder;
mod goals;
mod hub;
mod ledger;
mod memory;
mod places;
mod processes;
mod quic;
mod report;
mod stats;
mod turns;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::places::Places;

/// Measures mcpwire beside its peers, in one run
#[derive(Parser)]
struct Args {
    /// Which of the benchmarks [default: all]
    #[arg(value_enum)]
    which: Option<Which>,
    /// A short run: fewer calls and turns
    #[arg(long)]
    quick: bool,
    /// Writes the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only these contenders
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Adds the ways in which the bare pass-through of `connect` can read and write its pipes
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

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Which {
    /// A client's pipe, a bridge, a server on HTTP
    Connect,
    /// HTTP clients, a gateway, a server on stdio
    Expose,
    /// A folder as a server on a pipe
    Folder,
    /// A client's pipe, a bridge, and a server behind a gateway: over QUIC and over HTTP
    Quic,
    /// A client's pipe, and ten servers behind one hub
    Hub,
}

#[derive(Serialize)]
struct Reports {
    #[serde(skip_serializing_if = "Option::is_none")]
    connect: Option<connect::Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expose: Option<expose::Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<folder::Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quic: Option<connect::Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hub: Option<hub::Report>,
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
        mcpwire: args.mcpwire.clone().unwrap_or_else(|| root.join("target/release/mcpwire")),
        peers: args.peers.clone().unwrap_or_else(|| root.join("interop/.peers")),
        loopback: root.join("interop/servers/loopback.cjs"),
    };
    let asked = |which: Which| args.which.is_none_or(|only| only == which);
    let mut known = Vec::new();
    if asked(Which::Connect) {
        known.extend(connect::names(&places, &args));
    }
    if asked(Which::Expose) {
        known.extend(expose::names(&places, &args));
    }
    if asked(Which::Quic) {
        known.extend(quic::names());
    }
    places::check_names(&args.only, &known)?;

    let mut lost = false;
    let mut reports = Reports { connect: None, expose: None, folder: None, quic: None, hub: None };
    if asked(Which::Connect) {
        let report = connect::run(&places, &args)?;
        println!("== connect: a pipe, a bridge, a fast server on HTTP\n{}", report.text());
        lost |= report.contenders.iter().any(|summary| summary.name == "mcpwire" && summary.fault.is_some());
        reports.connect = Some(report);
    }
    if asked(Which::Expose) {
        let report = expose::run(&places, &args)?;
        println!("== expose: HTTP clients, a gateway, a fast server on stdio\n{}", report.text());
        lost |= report.contenders.iter().any(|summary| summary.name.starts_with("mcpwire") && summary.fault.is_some());
        reports.expose = Some(report);
    }
    // It has no contenders to choose from, so whoever names some wants the others.
    if asked(Which::Folder) && args.only.is_empty() {
        let report = folder::run(&places, &args)?;
        println!("== folder: a folder as a server on a pipe\n{}", report.text());
        reports.folder = Some(report);
    }
    if asked(Which::Quic) {
        let report = quic::run(&places, &args)?;
        println!("== quic: a pipe, a bridge, a gateway, a fast server on stdio\n{}", report.text());
        lost |= report.contenders.iter().any(|summary| !quic::is_theirs(&summary.name) && summary.fault.is_some());
        reports.quic = Some(report);
    }
    // Its contenders are all mcpwire.
    if asked(Which::Hub) && args.only.is_empty() {
        let report = hub::run(&places, &args)?;
        println!("== hub: a pipe, ten servers of 50 tools as one\n{}", report.text());
        reports.hub = Some(report);
    }
    if let Some(file) = &args.json {
        write_json(file, &reports)?;
    }
    ensure!(!lost, "mcpwire did not answer everything");
    Ok(())
}

fn write_json(file: &Path, reports: &Reports) -> Result<()> {
    let text = serde_json::to_string_pretty(reports)? + "\n";
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
