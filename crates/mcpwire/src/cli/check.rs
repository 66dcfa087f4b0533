//! `mcpwire check`: reads a folder whole and tells what is wrong with it.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;

use super::folder::{self, Place};

/// Check a folder: everything that would be skipped, and data that does not fit its schema or refers to nothing
///
/// Exit codes: 0 when all is well, 1 when something is wrong, 2 when the command line is not understood.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The folder, or sample: for the one inside this program
    #[arg(value_name = "FOLDER", value_parser = place)]
    folder: Place,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

fn place(text: &str) -> Result<Place, String> {
    folder::place(text)
        .or_else(|| Some(Place::Disk(text.into())).filter(|_| !text.is_empty()))
        .ok_or("expected a folder".to_owned())
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let report = folder::open(&args.folder)?.check();
    let mut text = if args.json { serde_json::to_string_pretty(&report.to_json())? } else { report.to_string() };
    text.push('\n');
    io::stdout().write_all(text.as_bytes()).context("cannot write to stdout")?;
    Ok(if report.passes() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
