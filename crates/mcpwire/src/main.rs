//! The `mcpwire` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcpwire::cli::run(std::env::args_os())
}
