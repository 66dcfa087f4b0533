//! `mcpwire expose`: a target on the network.

use std::fmt::Write as _;
use std::future::pending;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use mcpwire_proto::session::share::Share;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use super::log::{self, LogArgs};
use super::quic::{QuicArgs, QuicFront};
use super::say;
use super::targets::{Opened, TargetsArgs};
use super::units::duration;
use crate::bridge::Reach;
use crate::expose::{self, stopped};
use crate::health::Board;
use crate::link::Link;
use crate::transport::http::server::{self, Options, Token};
use crate::transport::{quic, unix};
use crate::{share, shutdown};

/// How many new sessions wait to be taken.
const BACKLOG: usize = 16;
/// A call that takes longer gets a stream, which shows that it lives and can be resumed.
const STREAM_AFTER: Duration = Duration::from_millis(50);
/// How long a target may take to be let go; its own limits are shorter.
const GOODBYE: Duration = Duration::from_secs(10);
/// How many steps tasks take between two looks at sockets and pipes. A call takes about ten, and many come at once.
const STEPS: u32 = 256;

/// Expose an MCP server on the network, or several as one
///
/// Serves Streamable HTTP at /mcp, HTTP+SSE of 2024-11-05 at /sse and /messages, /health
/// and /metrics, all on one port; Orchestra's protocol
/// and MCP over QUIC on another. Exit codes: 0 when
/// it was stopped, 1 when it could not start, 2 when the command line is not understood.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Where to listen, as in 127.0.0.1:8080; port 0 takes a free one
    #[arg(long, value_name = "ADDR", required_unless_present_any = ["unix", "quic", "plugin", "manifest"])]
    http: Option<SocketAddr>,
    /// A socket file to listen on, with one message a line as on stdio; only its owner may connect
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// One server for all clients, instead of one for each; several targets are always shared
    #[arg(long)]
    share: bool,
    /// Require this bearer token; beyond loopback one is made up if none is given
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,
    /// Require the bearer token in this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Serve requests to this host name, besides loopback names; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Serve web pages of this origin, as in https://example.com; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Our certificate chain, in PEM, for https
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of our certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The most sessions at once; the one without a client for longest makes room for the next
    #[arg(long, value_name = "N", default_value_t = 1000)]
    max_sessions: usize,
    /// End a session that no client has been connected to for this long
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30m")]
    session_idle: Duration,
    /// How long requests under way may still take when we are stopped
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    drain: Duration,
    /// Print the URL on stdout when it is ready, that of HTTP before that of QUIC
    #[arg(long)]
    print_url: bool,
    #[command(flatten)]
    quic: QuicArgs,
    #[command(flatten)]
    target: TargetsArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(mut args: Args) -> Result<ExitCode> {
    log::init(&args.log);
    if args.quic.complete(&mut args.target.reach)? {
        return Ok(ExitCode::SUCCESS);
    }
    let plan = args.target.plan()?;
    let (token, made_up) = token(&args)?;
    let tls = tls(&args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .event_interval(STEPS)
        .enable_all()
        .build()
        .context("cannot start")?;
    let outcome = runtime.block_on(async {
        let stop = shutdown::requested().context("cannot watch for signals")?;
        let server = plan.open()?;
        let mut fronts = Fronts::open(&args, token, tls, &server.board).await?;
        fronts.announce(&args, made_up.as_deref())?;
        let plugin = fronts.quic.as_mut().map(|front| front.be_plugin(&args.quic, &args.target.reach));
        let stop = async {
            match plugin {
                Some(plugin) => tokio::select! {
                    _ = stop => Ok(()),
                    ended = plugin => ended,
                },
                None => {
                    let _ = stop.await;
                    Ok(())
                }
            }
        };
        serve(&args, server, fronts, stop).await
    });
    runtime.shutdown_background();
    outcome
}

/// Where clients come in.
struct Fronts {
    http: Option<(TcpListener, SocketAddr, Options)>,
    unix: Option<unix::Listener>,
    quic: Option<QuicFront>,
}

impl Fronts {
    async fn open(
        args: &Args,
        token: Option<Token>,
        tls: Option<Arc<rustls::ServerConfig>>,
        health: &Board,
    ) -> Result<Fronts> {
        let http = match args.http {
            None => None,
            Some(wanted) => {
                let listener = TcpListener::bind(wanted).await.with_context(|| format!("cannot listen on {wanted}"))?;
                let address = listener.local_addr().context("cannot tell where we listen")?;
                Some((listener, address, options(args, address, token, tls, health)))
            }
        };
        let unix = match &args.unix {
            None => None,
            Some(path) => {
                let listener = unix::Listener::bind(path).await;
                Some(listener.with_context(|| format!("cannot listen on {}", path.display()))?)
            }
        };
        let quic = args.quic.open(args.target.reach.orchestra()).await?;
        Ok(Fronts { http, unix, quic })
    }

    fn announce(&self, args: &Args, made_up: Option<&str>) -> Result<()> {
        if let Some(path) = &args.unix {
            say(&format!("mcpwire: listening on unix:{}", path.display()));
        }
        if let Some((_, address, options)) = &self.http {
            let scheme = if options.tls.is_some() { "https" } else { "http" };
            let url = format!("{scheme}://{address}{}", options.path);
            say(&format!("mcpwire: listening on {url}"));
            if let Some(token) = made_up {
                say(&format!("mcpwire: clients must send the header Authorization: Bearer {token}"));
            }
            if !address.ip().is_loopback() && options.tls.is_none() {
                say("mcpwire: anybody on the way can read along; --tls-cert and --tls-key make it https");
            }
            if args.print_url {
                writeln!(io::stdout(), "{url}").context("cannot write to stdout")?;
            }
        }
        if let Some(quic) = &self.quic {
            let url = quic.announce(&args.quic);
            if args.print_url {
                writeln!(io::stdout(), "{url}").context("cannot write to stdout")?;
            }
        }
        Ok(())
    }

    /// Serves clients until `stop` turns true and all of them are gone.
    async fn serve(self, args: &Args, sessions: mpsc::Sender<Link>, stop: watch::Receiver<bool>) {
        let limits = unix::Options {
            max_message: args.target.reach.max_message(),
            max_connections: args.max_sessions,
            grace: args.drain,
            ..unix::Options::default()
        };
        let (http_sessions, http_stop) = (sessions.clone(), stopped(stop.clone()));
        let http = async move {
            if let Some((listener, _, options)) = self.http {
                server::serve(listener, options, http_sessions, http_stop).await;
            }
        };
        let (unix_sessions, unix_stop) = (sessions.clone(), stopped(stop.clone()));
        let unix = async move {
            if let Some(listener) = self.unix {
                unix::serve(listener, limits, unix_sessions, unix_stop).await;
            }
        };
        let quic_limits = quic::FrontOptions {
            max_message: limits.max_message,
            max_connections: limits.max_connections,
            grace: limits.grace,
            ..quic::FrontOptions::default()
        };
        let quic = async move {
            if let Some(front) = self.quic {
                front.serve(quic_limits, sessions, stopped(stop)).await;
            }
        };
        tokio::join!(http, unix, quic);
    }
}

async fn serve(
    args: &Args,
    server: Opened,
    fronts: Fronts,
    stop: impl Future<Output = Result<()>>,
) -> Result<ExitCode> {
    let mut config = server.config.clone();
    // Clients over HTTP have a stream for each request.
    config.relay.attribute = true;
    // The servers of a hub are shared anyhow.
    let share = args.share && !server.is_hub();
    let is_sorted = config.sorted;
    // A shared server does not tell to which client a message belongs, whatever its transport.
    config.sorted &= !share;
    let (reach, shared) = if share {
        let known = server.reach.known();
        // Who sorts takes requests one by one, and what speaks both eras by itself does so on one connection.
        let takes_both = is_sorted || known.session == Some(true) && known.stateless == Some(true);
        let books = if takes_both { Share::default() } else { Share::of_one_era() };
        let (entrance, ended) = share::open(server.reach.clone(), books, &server.health)?;
        let reach = Reach::new(Arc::new(move || Ok((entrance.link(), None))));
        (reach.limited(server.reach.policy().clone()), Some(ended))
    } else {
        (server.reach.clone(), None)
    };
    let (stopping, stop_seen) = watch::channel(false);
    let (sessions, opened) = mpsc::channel(BACKLOG);
    let serving = async {
        let bridges =
            expose::run(opened, reach, Arc::new(config), server.health.clone(), stop_seen.clone(), args.drain);
        tokio::join!(fronts.serve(args, sessions, stop_seen.clone()), bridges);
    };
    let mut outcome = Ok(ExitCode::SUCCESS);
    let stopping = async {
        if let Err(error) = stop.await {
            outcome = Err(error);
        }
        tracing::info!(target: "expose", "stopping: waiting for what is under way");
        stopping.send_replace(true);
        pending::<()>().await;
    };
    tokio::select! {
        () = serving => {}
        () = stopping => {}
    }
    if let Some(ended) = shared {
        let _ = tokio::time::timeout(GOODBYE, ended).await;
    }
    server.gone().await;
    outcome
}

fn options(
    args: &Args,
    address: SocketAddr,
    token: Option<Token>,
    tls: Option<Arc<rustls::ServerConfig>>,
    health: &Board,
) -> Options {
    let mut allowed_hosts = args.allow_host.clone();
    if !address.ip().is_unspecified() {
        allowed_hosts.push(address.ip().to_string());
    }
    Options {
        allowed_hosts,
        allowed_origins: args.allow_origin.clone(),
        token,
        tls,
        health: Some(health.clone()),
        http_with_sse: true,
        max_message: args.target.reach.max_message(),
        max_sessions: args.max_sessions,
        session_idle: args.session_idle,
        stream_after: STREAM_AFTER,
        grace: args.drain,
        ..Options::default()
    }
}

/// The token that clients must show, and its text if we made it up.
fn token(args: &Args) -> Result<(Option<Token>, Option<String>)> {
    let given = match (&args.token, &args.token_file) {
        (Some(token), _) => Some(token.clone()),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            Some(text.trim().to_owned())
        }
        (None, None) => None,
    };
    let open = args.http.is_some_and(|address| !address.ip().is_loopback());
    let made_up = (given.is_none() && open).then(make_up_token).transpose()?;
    let Some(text) = given.as_ref().or(made_up.as_ref()) else { return Ok((None, None)) };
    match Token::new(text) {
        Some(token) => Ok((Some(token), made_up)),
        None => bail!("expected a token of printable ASCII characters without spaces"),
    }
}

fn make_up_token() -> Result<String> {
    let mut random = [0; 24];
    getrandom::fill(&mut random).context("cannot get random bytes")?;
    let mut text = String::new();
    for byte in random {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

fn tls(args: &Args) -> Result<Option<Arc<rustls::ServerConfig>>> {
    let (Some(chain), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    let not_pem = |path: &Path, what: &str| format!("expected {what} in PEM form in {}", path.display());
    let chain: Vec<_> = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect)
        .with_context(|| not_pem(chain, "certificates"))?;
    let key = PrivateKeyDer::from_pem_file(key).with_context(|| not_pem(key, "a private key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("TLS settings")?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the certificate and its key do not fit")?;
    Ok(Some(Arc::new(config)))
}
