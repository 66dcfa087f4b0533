//! `mcpwire doctor`: finds out what a target speaks, how well, and what is wrong with it.

mod auth;
mod conversation;
mod http;
mod program;
mod report;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use mcpwire_proto::Policy;
use mcpwire_proto::conversation::Config;
use serde_json::Value;

use self::report::Report;
use super::ask::print;
use super::ask::terminal::Terminal;
use super::log::{self, LogArgs};
use super::target::TargetArgs;
use super::units::duration;
use crate::shutdown;
use crate::target::Target;

/// Ended by Ctrl-C, as shells count.
const INTERRUPTED: u8 = 130;

/// Find out what is wrong with a server, or that it works
///
/// Tells the transport, the protocol versions, what the server can do, how it deals with sessions and credentials, and how fast it
/// is; and for everything that is wrong what to do about it. A program is started up to three times. Exit codes: 0 when the
/// server works, 1 when something is wrong, 2 when the command line is not understood, 130 after Ctrl-C.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// How long each answer may take
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    patience: Duration,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    log::init_quiet(&args.log);
    let (target, config) = args.target.open()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let report = runtime.block_on(async {
        let stop = shutdown::requested().context("cannot watch for signals")?;
        tokio::select! {
            report = async {
                let (target, policy) = target.into_parts();
                let target = match target {
                    Target::Later(later) => later.target().await?,
                    target => target,
                };
                Ok::<_, anyhow::Error>(Some(examine(target, policy, config, args.patience).await))
            } => report,
            _ = stop => Ok(None),
        }
    })?;
    // A name lookup that hangs does not hold up the end.
    runtime.shutdown_background();
    let Some(report) = report else { return Ok(ExitCode::from(INTERRUPTED)) };
    print(&match args.json {
        true => format!("{}\n", report.json()),
        false => report.text(Terminal::stdout()),
    })?;
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn examine(target: Target, policy: Policy, config: Config, patience: Duration) -> Report {
    let mut report = Report::new(target.to_string());
    let opened = match &target {
        Target::Http(options) => http::examine(options, patience, &mut report).await,
        Target::Child(options) => program::examine(options, patience, &mut report).await,
        other => {
            report.fact("transport", transport(other));
            Opened::Unknown
        }
    };
    if !matches!(opened, Opened::Hopeless) {
        conversation::examine(target.limited(policy), config, opened, patience, &mut report).await;
    }
    report
}

/// What came of a first `initialize`.
enum Opened {
    /// The server opened a session: the result.
    Session(Value),
    /// It answered, and did not open one.
    Refused,
    /// It was not tried.
    Unknown,
    /// There is no point in going on.
    Hopeless,
}

fn transport(target: &Target) -> &'static str {
    match target {
        Target::Http(_) => "http",
        Target::Child(_) => "stdio",
        Target::Unix { .. } => "unix socket",
        Target::Folder(_) => "folder",
        Target::Orchestra(_) => "orchestra (quic)",
        Target::QuicMcp(_) => "quic",
        Target::Later(_) => "not known yet",
        Target::Limited(target, _) => transport(target),
    }
}

/// The `initialize` that servers are tried with.
fn initialize() -> String {
    let version = mcpwire_proto::version::V2025_11_25;
    let info = serde_json::json!({"name": "mcpwire-doctor", "version": env!("CARGO_PKG_VERSION")});
    let params = serde_json::json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
    serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string()
}
