//! `mcpwire reference`: the reference server over HTTP, for the demo and for tests.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use tokio::net::TcpListener;

use super::duration;
use super::log::{self, LogArgs};
use crate::reference::{self, Settings, Shared};
use crate::shutdown;
use crate::transport::http::server::Options;

/// Serve the reference server, which has every feature of the protocol
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Where to listen; the URL is the first line on stdout
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    http: SocketAddr,
    /// The number of this start, which the tool `info` tells
    #[arg(long, value_name = "N", default_value_t = 1)]
    starts: u64,
    /// Close response streams after this long, so that clients come back for the rest
    #[arg(long, value_name = "TIME", value_parser = duration)]
    close_streams_after: Option<Duration>,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: Args) -> Result<ExitCode> {
    log::init(&args.log);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let stop = shutdown::requested().context("cannot watch for signals")?;
        let listener = TcpListener::bind(args.http).await.with_context(|| format!("cannot listen on {}", args.http))?;
        let address = listener.local_addr().context("cannot tell where we listen")?;
        let options = Options { close_stream_after: args.close_streams_after, ..Options::default() };
        writeln!(io::stdout(), "http://{address}{}", options.path).context("cannot write to stdout")?;
        let shared = Shared::new(Settings { starts: args.starts, ..Settings::default() });
        reference::host(listener, options, shared, async { drop(stop.await) }).await;
        Ok(ExitCode::SUCCESS)
    })
}
