//! The step between us and a child: a process that asks to die with its parent and then becomes the program.
//!
//! The death signal must be set in the child itself, before the program runs; without unsafe code that takes a program
//! of our own, and ours is at hand.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::Path;
use std::process::Command;

/// The command of ours that runs [`become_program`].
pub const COMMAND: &str = "child-guard";
/// The exit code when the program could not be run, as shells have it.
pub const NOT_RUN: u8 = 127;
/// How the one line on stderr begins that tells why.
const MARK: &str = "mcpwire child-guard: not run, os error ";

/// The command that starts a program through the guard.
#[cfg(target_os = "linux")]
pub(super) fn command(guard: &Path, program: &OsStr, args: &[OsString]) -> Command {
    let mut command = Command::new(guard);
    command.arg(COMMAND).arg(std::process::id().to_string()).arg("--").arg(program).args(args);
    command
}

/// Elsewhere than on Linux there is no such signal.
#[cfg(not(target_os = "linux"))]
pub(super) fn command(_: &Path, program: &OsStr, args: &[OsString]) -> Command {
    bare(program, args)
}

/// The command that starts a program as it is.
pub(super) fn bare(program: &OsStr, args: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Becomes the program, if the parent still lives. Comes back only if that fails.
pub fn become_program(parent: u32, program: &OsStr, args: &[OsString]) -> io::Error {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)) {
        return error.into();
    }
    if parent_id() != parent {
        return io::Error::other("the parent is gone");
    }
    bare(program, args).exec()
}

/// The line that tells our parent why the program was not run.
pub fn report(error: &io::Error) -> String {
    format!("{MARK}{}", error.raw_os_error().unwrap_or_default())
}

/// Reads such a line.
pub(super) fn reported(line: &str) -> Option<io::Error> {
    line.strip_prefix(MARK)?.parse().ok().map(io::Error::from_raw_os_error)
}
