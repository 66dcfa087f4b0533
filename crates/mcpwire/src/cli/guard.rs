//! `mcpwire child-guard`: what a child process is before it becomes its program.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args as ClapArgs;

use super::say;
use crate::transport::child::guard;

pub(super) const NAME: &str = guard::COMMAND;

/// Run a program that dies with its parent; for our own use
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The process that must be our parent
    parent: u32,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let Some((program, rest)) = args.command.split_first() else { return ExitCode::FAILURE };
    let error = guard::become_program(args.parent, program, rest);
    say(&guard::report(&error));
    ExitCode::from(guard::NOT_RUN)
}
