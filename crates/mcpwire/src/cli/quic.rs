//! The QUIC front of `mcpwire expose`, and its life as an Orchestra plugin.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::process::parent_id;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args as ClapArgs;
use tokio::net::lookup_host;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::orchestra::{OrchestraArgs, host_and_port};
use super::reach::ReachArgs;
use super::say;
use crate::link::Link;
use crate::transport::quic::{self, Address, FrontOptions, Listener, Manifest};

/// Where a plugin listens that was told nothing else.
const ANY_PORT: &str = "localhost:0";
/// The name of our certificate when we stand in an orchestrator's place.
const FRONT_NAME: &str = "orchestrator";
const DESCRIPTION: &str = "An MCP server, through mcpwire";
/// How often a plugin looks whether it still has its parent.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, ClapArgs)]
pub(super) struct QuicArgs {
    /// Where to listen for QUIC, as in localhost:50100: clients of Orchestra (quic://) and of MCP (quic+mcp://)
    #[arg(long, value_name = "ADDR", value_parser = host_and_port, visible_alias = "listen-addr", overrides_with = "quic")]
    quic: Option<Address>,
    /// Take QUIC clients that show no certificate: anybody who reaches the port can call every tool
    #[arg(long)]
    allow_anonymous: bool,
    /// Be an Orchestra plugin: say READY on stderr, register with --orchestrator-addr, end when the orchestrator says so
    #[arg(long)]
    plugin: bool,
    /// The plugin's id, and the name of its certificate
    #[arg(long, value_name = "ID", default_value = "mcpwire")]
    plugin_id: String,
    /// Print the plugin's manifest and exit
    #[arg(long)]
    manifest: bool,
}

/// The open front.
pub(super) struct QuicFront {
    listener: Listener,
    address: SocketAddr,
    shutdown: Option<mpsc::Sender<()>>,
}

impl QuicArgs {
    /// Fills in what an orchestrator says at the end of the command line. Tells whether all is done already.
    pub(super) fn complete(&mut self, reach: &mut ReachArgs) -> Result<bool> {
        if self.manifest {
            let manifest = serde_json::to_string(&self.described()).context("cannot write the manifest")?;
            writeln!(io::stdout(), "{manifest}").context("cannot write to stdout")?;
            return Ok(true);
        }
        if self.plugin {
            let listen = reach.take_plugin_flags()?;
            let listen = listen.as_deref().or(self.quic.is_none().then_some(ANY_PORT));
            if let Some(listen) = listen {
                self.quic = Some(host_and_port(listen).map_err(|error| anyhow!("--listen-addr: {error}"))?);
            }
        }
        Ok(false)
    }

    fn described(&self) -> Manifest {
        Manifest::new(&self.plugin_id, DESCRIPTION)
    }

    pub(super) async fn open(&self, orchestra: &OrchestraArgs) -> Result<Option<QuicFront>> {
        let Some(wanted) = &self.quic else { return Ok(None) };
        let name = if self.plugin { &self.plugin_id } else { FRONT_NAME };
        let identity = orchestra.certs()?.identity(name)?;
        let address = resolve(wanted).await?;
        let listener = Listener::bind(address, &identity, self.allow_anonymous);
        let listener = listener.with_context(|| format!("cannot listen on {wanted}"))?;
        let address = listener.local_addr().context("cannot tell where we listen")?;
        Ok(Some(QuicFront { listener, address, shutdown: None }))
    }
}

/// Of several addresses that of IPv4, as Orchestra's programs have it.
async fn resolve(wanted: &Address) -> Result<SocketAddr> {
    let found = lookup_host((wanted.host.as_str(), wanted.port)).await;
    let found: Vec<SocketAddr> = found.with_context(|| format!("cannot look up {wanted}"))?.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().with_context(|| format!("{wanted} has no address"))
}

/// Completes when we have another parent than that one. A killed orchestrator tells its plugins nothing, and the next one
/// starts plugins of its own.
async fn orphaned(parent: u32) {
    while parent_id() == parent {
        sleep(LOOK).await;
    }
}

impl QuicFront {
    /// Tells people and orchestrators where we listen; gives the URL.
    pub(super) fn announce(&self, args: &QuicArgs) -> String {
        say(&format!("mcpwire: listening on quic://{0} and quic+mcp://{0}", self.address));
        if args.allow_anonymous && !self.address.ip().is_loopback() {
            say("mcpwire: --allow-anonymous: anybody who reaches the port can call every tool");
        }
        if args.plugin {
            say(&format!("READY {}", self.address));
        }
        format!("quic://{}", self.address)
    }

    /// Registers as a plugin; completes when the orchestrator says that it is over, does not want us, or is gone.
    pub(super) fn be_plugin(&mut self, args: &QuicArgs, reach: &ReachArgs) -> impl Future<Output = Result<()>> + use<> {
        let (shutdown, mut asked) = mpsc::channel(1);
        let parent = parent_id();
        let registering = args.plugin.then(|| {
            self.shutdown = Some(shutdown);
            let orchestra = reach.orchestra();
            let identity =
                orchestra.certs().and_then(|certs| Ok(certs.identity(&format!("{}-client", args.plugin_id))?));
            (orchestra.address().cloned(), identity, args.described())
        });
        async move {
            let Some((address, identity, manifest)) = registering else { return std::future::pending().await };
            if let Some(address) = address {
                let registered = quic::register(address.clone(), &identity?, &manifest).await;
                if let Err(why) = registered {
                    bail!("cannot register with the orchestrator at {address}: {why}");
                }
                tracing::info!(target: "quic", "registered with the orchestrator at {address}");
            }
            tokio::select! {
                _ = asked.recv() => tracing::info!(target: "quic", "the orchestrator asked us to end"),
                () = orphaned(parent) => tracing::info!(target: "quic", "whoever started us is gone"),
            }
            Ok(())
        }
    }

    pub(super) async fn serve(self, limits: FrontOptions, links: mpsc::Sender<Link>, stop: impl Future<Output = ()>) {
        let options = FrontOptions { shutdown: self.shutdown, ..limits };
        quic::serve(self.listener, options, links, stop).await;
    }
}
