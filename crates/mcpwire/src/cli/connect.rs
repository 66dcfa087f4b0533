//! `mcpwire connect`: our stdin and stdout, joined to a server.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;

use super::log::{self, LogArgs};
use super::targets::TargetsArgs;
use super::units::duration;
use crate::bridge::{self, End, Upstreams};
use crate::shutdown;
use crate::transport::stdio;

/// How long the target may take to be let go; its own limits are shorter.
const GOODBYE: Duration = Duration::from_secs(10);

/// How long a client that we have given up may take to read what is written already.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Connect stdin and stdout to an MCP server, or to several as one
///
/// An MCP client starts this and speaks newline-delimited JSON-RPC with it. Exit codes: 0 when the client is done, 1 when
/// it could not start, 2 when the command line is not understood.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    target: TargetsArgs,
    /// How long answers under way may still take when the client is done
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    drain: Duration,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: Args) -> Result<ExitCode> {
    log::init(&args.log);
    let limit = args.target.reach.max_message();
    let drain = args.drain;
    let plan = args.target.plan()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let outcome = runtime.block_on(async {
        let stop = shutdown::requested().context("cannot watch for signals")?;
        let server = plan.open()?;
        tracing::info!(target: "connect", "connecting stdin and stdout to {}", server.label);
        let upstreams = Upstreams::opened(server.reach.clone())?;
        let (downstream, stdout) = stdio::open(limit).context("cannot take over stdin and stdout")?;
        let (end, upstreams) = bridge::carry(downstream, upstreams, server.config.clone(), stop, drain, None).await;
        tracing::info!(target: "connect", "{}", farewell(&end));
        let patience = match end {
            End::Done => drain,
            End::CutShort => LAST_WORDS,
            End::ClientGone => Duration::ZERO,
        };
        let _ = tokio::time::timeout(patience, stdout.written()).await;
        let _ = tokio::time::timeout(GOODBYE, upstreams.gone()).await;
        server.gone().await;
        Ok(ExitCode::SUCCESS)
    });
    // A name lookup that hangs does not hold up the end.
    runtime.shutdown_background();
    outcome
}

fn farewell(end: &End) -> &'static str {
    match end {
        End::Done => "the client is done",
        End::CutShort => "ended before every answer had come",
        End::ClientGone => "the client is gone",
    }
}
