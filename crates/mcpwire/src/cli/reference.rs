//! `mcpwire reference`: the reference server over HTTP, on a Unix socket or on stdio, for the demo and for tests.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args as ClapArgs, ValueEnum};
use mcpwire_proto::frame::DEFAULT_LIMIT;
use tokio::net::TcpListener;

use super::log::{self, LogArgs};
use super::units::{Size, duration, size};
use crate::reference::{self, Eras, Settings, Shared};
use crate::shutdown;
use crate::transport::http::server::Options;
use crate::transport::quic::certs::Certs;
use crate::transport::unix::{self, Listener};
use crate::transport::{quic, stdio};

/// How long the client on stdio may take to read its last messages.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serve the reference server, which has every feature of the protocol
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Where to listen; the URL is the first line on stdout
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    http: SocketAddr,
    /// Serve HTTP+SSE of 2024-11-05 too, at /sse
    #[arg(long, conflicts_with = "stdio")]
    sse: bool,
    /// Serve clients on a Unix socket at this path instead; the address is the first line on stdout
    #[arg(long, value_name = "PATH", conflicts_with_all = ["http", "sse", "stdio"])]
    unix: Option<PathBuf>,
    /// Serve MCP over QUIC instead, with certificates of this folder; the address is the first line on stdout
    #[arg(long, value_name = "ADDR", requires = "certs_dir", conflicts_with_all = ["http", "sse", "stdio", "unix"])]
    quic: Option<SocketAddr>,
    /// The folder of certificates for QUIC
    #[arg(long, value_name = "DIR")]
    certs_dir: Option<PathBuf>,
    /// Serve one client on stdin and stdout instead
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// The largest message taken on stdin, as in 10MiB
    #[arg(long, value_name = "SIZE", value_parser = size, default_value_t = Size(DEFAULT_LIMIT))]
    max_message: Size,
    /// The number of this start, which the tool `info` tells
    #[arg(long, value_name = "N", default_value_t = 1)]
    starts: u64,
    /// Close response streams after this long, so that clients come back for the rest
    #[arg(long, value_name = "TIME", value_parser = duration)]
    close_streams_after: Option<Duration>,
    /// Speak the versions of one era only
    #[arg(long, value_name = "ERA", value_enum, default_value_t = Era::Both, hide = true)]
    era: Era,
    /// Take what clients were given to carry by other servers with the same secret
    #[arg(long, value_name = "TEXT", hide = true)]
    state_secret: Option<String>,
    /// Append the name of every counter that the tool `count` raises to this file
    #[arg(long, value_name = "FILE", hide = true)]
    ledger: Option<PathBuf>,
    #[command(flatten)]
    log: LogArgs,
}

/// The versions to speak.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Era {
    Both,
    /// 2024-11-05 to 2025-11-25
    Session,
    /// 2026-07-28
    Stateless,
}

impl From<Era> for Eras {
    fn from(era: Era) -> Eras {
        match era {
            Era::Both => Eras::Both,
            Era::Session => Eras::Session,
            Era::Stateless => Eras::Stateless,
        }
    }
}

pub(super) fn run(args: Args) -> Result<ExitCode> {
    log::init(&args.log);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let stop = shutdown::requested().context("cannot watch for signals")?;
        let settings = Settings {
            starts: args.starts,
            state_secret: args.state_secret.clone(),
            eras: args.era.into(),
            ledger: args.ledger.clone(),
            ..Settings::default()
        };
        let shared = Shared::new(settings);
        match (&args.unix, args.quic.zip(args.certs_dir.as_deref())) {
            (Some(path), _) => on_unix(path, args.max_message.0, shared, stop).await?,
            (None, Some((address, certs))) => on_quic(address, certs, args.max_message.0, shared, stop).await?,
            (None, None) if args.stdio => on_stdio(args.max_message.0, shared, stop).await?,
            (None, None) => on_http(&args, shared, stop).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn on_http(args: &Args, shared: Shared, stop: impl Future) -> Result<()> {
    let listener = TcpListener::bind(args.http).await.with_context(|| format!("cannot listen on {}", args.http))?;
    let address = listener.local_addr().context("cannot tell where we listen")?;
    let options =
        Options { close_stream_after: args.close_streams_after, http_with_sse: args.sse, ..Options::default() };
    writeln!(io::stdout(), "http://{address}{}", options.path).context("cannot write to stdout")?;
    reference::host(listener, options, shared, async { drop(stop.await) }).await;
    Ok(())
}

async fn on_unix(path: &Path, limit: usize, shared: Shared, stop: impl Future) -> Result<()> {
    let listener = Listener::bind(path).await.with_context(|| format!("cannot listen on {}", path.display()))?;
    let options = unix::Options { max_message: limit, ..unix::Options::default() };
    writeln!(io::stdout(), "unix:{}", path.display()).context("cannot write to stdout")?;
    reference::host_unix(listener, options, shared, async { drop(stop.await) }).await;
    Ok(())
}

async fn on_quic(address: SocketAddr, certs: &Path, limit: usize, shared: Shared, stop: impl Future) -> Result<()> {
    let identity = Certs::new(certs).identity("orchestrator")?;
    let listener = quic::Listener::bind(address, &identity, false);
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr().context("cannot tell where we listen")?;
    let options = quic::FrontOptions { max_message: limit, ..quic::FrontOptions::default() };
    writeln!(io::stdout(), "quic+mcp://{address}").context("cannot write to stdout")?;
    reference::host_quic(listener, options, shared, async { drop(stop.await) }).await;
    Ok(())
}

async fn on_stdio(limit: usize, shared: Shared, stop: impl Future) -> Result<()> {
    let (client, stdout) = stdio::open(limit).context("cannot take over stdin and stdout")?;
    let stop = async {
        let _ = stop.await;
        shared.close().await;
    };
    tokio::select! {
        () = reference::serve_front(client, shared.clone()) => {}
        () = stop => {}
    }
    let _ = tokio::time::timeout(LAST_WORDS, stdout.written()).await;
    Ok(())
}
