//! The command line: the only place that reads arguments and the environment.

mod address;
mod ask;
mod certs;
mod check;
mod completions;
mod configured;
mod connect;
mod demo;
mod doctor;
mod expose;
mod folder;
mod guard;
mod http;
mod init;
mod install;
mod log;
mod mcp_hub;
mod orchestra;
mod printable;
mod quic;
mod reach;
mod reference;
mod servers;
mod status;
mod stderr;
mod target;
mod targets;
mod units;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::target::text_without_secrets;

/// Exit code for a command line that cannot be understood.
const USAGE: u8 = 2;

/// Connects any MCP client to any MCP server.
#[derive(Debug, Parser)]
#[command(name = "mcpwire", version, propagate_version = true, arg_required_else_help = false)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Connect(Box<connect::Args>),
    Expose(Box<expose::Args>),
    Tools(Box<ask::list::ToolsArgs>),
    Resources(Box<ask::list::ResourcesArgs>),
    Prompts(Box<ask::list::PromptsArgs>),
    Call(Box<ask::call::Args>),
    Read(Box<ask::read::Args>),
    Prompt(Box<ask::prompt::Args>),
    Request(Box<ask::request::Args>),
    Ping(Box<ask::ping::Args>),
    Doctor(Box<doctor::Args>),
    Certs(certs::Args),
    Check(check::Args),
    Init(init::Args),
    Install(Box<install::Args>),
    Uninstall(install::UninstallArgs),
    Servers(servers::Args),
    Status(Box<status::Args>),
    Demo(demo::Args),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
    #[command(hide = true)]
    Reference(reference::Args),
    #[command(hide = true, name = guard::NAME)]
    Guard(guard::Args),
}

/// Runs the command that the arguments name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut argv: Vec<OsString> = args.into_iter().collect();
    orchestra::take_go_flags(&mut argv);
    ask::call::take_json(&mut argv);
    let cli = match command(&argv).try_get_matches_from(&argv).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return explain(without_secrets(error)),
    };
    let outcome = match cli.command {
        Command::Connect(args) => connect::run(*args),
        Command::Expose(args) => expose::run(*args),
        Command::Tools(args) => ask::list::tools(&args),
        Command::Resources(args) => ask::list::resources(&args),
        Command::Prompts(args) => ask::list::prompts(&args),
        Command::Call(args) => ask::call::run(&args),
        Command::Read(args) => ask::read::run(&args),
        Command::Prompt(args) => ask::prompt::run(&args),
        Command::Request(args) => ask::request::run(&args),
        Command::Ping(args) => ask::ping::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Certs(args) => certs::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Install(args) => install::run(&args, &argv),
        Command::Uninstall(args) => install::run_uninstall(&args),
        Command::Servers(args) => servers::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Demo(args) => demo::run(args),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
        Command::Reference(args) => reference::run(args),
        Command::Guard(args) => Ok(guard::run(&args)),
    };
    stderr::flush();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            say(&printable::printable(&format!("mcpwire: {error:#}")));
            ExitCode::FAILURE
        }
    }
}

/// What can be typed, which depends a little on what was typed.
fn command(argv: &[OsString]) -> clap::Command {
    ask::arranged(Cli::command(), argv)
}

/// Help goes to stdout as it is; a mistake is told in one line on stderr.
fn explain(error: clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let said: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .collect();
    let said = said.iter().filter(|line| !line.is_empty()).copied().collect::<Vec<_>>().join(" ");
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    say(&format!("mcpwire: {said} (try 'mcpwire --help')"));
    ExitCode::from(USAGE)
}

/// A mistake without the secrets that may be in what was typed: a URL with a password, a variable with its value.
fn without_secrets(mut error: clap::Error) -> clap::Error {
    let names_value = |arg: &str| arg.contains("NAME=VALUE");
    let is_pair = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(arg)) if names_value(arg));
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidSubcommand, ContextKind::InvalidArg] {
        if let Some(ContextValue::String(typed)) = error.get(kind) {
            let shown = match kind {
                ContextKind::InvalidValue if is_pair => "…".to_owned(),
                _ => text_without_secrets(typed),
            };
            error.insert(kind, ContextValue::String(shown));
        }
    }
    error
}

/// A line for the person at the terminal.
#[allow(clippy::print_stderr, reason = "stderr is where people read; stdout belongs to the protocol")]
fn say(line: &str) {
    eprintln!("{line}");
}
