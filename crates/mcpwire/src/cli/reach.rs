//! How targets are reached: the flags that all commands which have one share.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use mcpwire_proto::conversation::Config;
use mcpwire_proto::frame::DEFAULT_LIMIT;
use mcpwire_proto::version;
use url::Url;

use super::address::Address;
use super::http::{HttpArgs, expand, our_variable, proxy_for};
use super::orchestra::OrchestraArgs;
use super::units::{Size, duration, size};
use super::{folder, mcp_hub};
use crate::target::Target;
use crate::transport::child;
use crate::transport::http::client::{self, Transport};
use crate::transport::quic;

/// Our own program, even after its file was replaced.
const OURSELVES: &str = "/proc/self/exe";
/// Our name to orchestrators, and so that of our certificate.
const CLIENT_NAME: &str = "transport.stdio-client";

/// How to reach a target and deal with it, and the target itself where it is a program.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct ReachArgs {
    /// A program that is the server, on its stdin and stdout, and its arguments
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
    /// Set an environment variable of COMMAND; ${NAME} stands for one of ours
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, requires = "command")]
    env: Vec<(String, String)>,
    /// Run COMMAND in this directory
    #[arg(long, value_name = "DIR", requires = "command")]
    cwd: Option<PathBuf>,
    /// What a server behind a URL speaks: Streamable HTTP, the older HTTP+SSE, or whichever it turns out to be
    #[arg(long, value_enum, default_value_t = Spoken::Auto)]
    transport: Spoken,
    /// The same as --transport sse
    #[arg(long, conflicts_with = "transport")]
    mcp_hub_mode: bool,
    /// Connect to the mcp-hub that runs on this machine; of several, to the one whose project is nearest
    #[arg(long, conflicts_with_all = ["target", "command", "transport"])]
    mcp_hub: bool,
    #[command(flatten)]
    orchestra: OrchestraArgs,
    #[command(flatten)]
    http: HttpArgs,
    /// Give up a request after this long without an answer or progress, as in 30s or 5m [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// How long a request waits for a server that cannot be reached
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s")]
    wait: Duration,
    /// The largest message taken from either side, as in 10MiB
    #[arg(long, value_name = "SIZE", value_parser = size, default_value_t = Size(DEFAULT_LIMIT))]
    max_message: Size,
    /// The protocol version to speak with the server: auto finds out, or one as in 2025-11-25
    #[arg(long, value_name = "VERSION", value_parser = protocol, default_value = "auto")]
    protocol: Protocol,
}

/// The version to speak with the server, if one was laid down.
#[derive(Debug, Clone, Copy)]
struct Protocol(Option<&'static str>);

fn protocol(text: &str) -> Result<Protocol, String> {
    match version::ALL.iter().find(|version| **version == text) {
        _ if text == "auto" => Ok(Protocol(None)),
        Some(version) => Ok(Protocol(Some(version))),
        None => Err(format!("expected auto or one of {}", version::ALL.join(", "))),
    }
}

impl ReachArgs {
    pub(super) fn orchestra(&self) -> &OrchestraArgs {
        &self.orchestra
    }

    /// Takes the flags that an orchestrator adds to a plugin's command line from the end of COMMAND.
    pub(super) fn take_plugin_flags(&mut self) -> Result<Option<String>> {
        self.orchestra.take_from(&mut self.command)
    }

    pub(super) fn max_message(&self) -> usize {
        self.max_message.0
    }

    /// How a conversation with the target behaves.
    pub(super) fn config(&self, target: &Target) -> Result<Config> {
        let mut config = target.config()?;
        config.relay.wait = self.wait;
        config.relay.timeout = self.timeout;
        // Signs of progress count for the call they belong to.
        config.relay.attribute = self.timeout.is_some() && !config.sorted;
        config.protocol = self.protocol.0;
        Ok(config)
    }

    pub(super) fn has_headers(&self) -> bool {
        self.http.has_headers()
    }

    /// How long a request waits for a server that cannot be reached.
    pub(super) fn wait(&self) -> Duration {
        self.wait
    }

    /// COMMAND as it is written.
    pub(super) fn written(&self) -> Vec<String> {
        self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// What this machine and the flags add to targets from elsewhere.
    pub(super) fn machine(&self) -> Machine {
        Machine { max_message: self.max_message.0, wait: self.wait }
    }

    /// The target that the flags name by themselves, if they do.
    pub(super) fn named_by_flags(&self) -> Result<Option<Target>> {
        if self.mcp_hub {
            return Ok(Some(Target::Http(Box::new(self.http(&mcp_hub::find()?, Transport::Sse)?))));
        }
        match (self.command()?, self.orchestra.address()) {
            (Some(command), _) => Ok(Some(command)),
            (None, Some(at)) => Ok(Some(Target::Orchestra(self.quic(at)?))),
            (None, None) => Ok(None),
        }
    }

    /// COMMAND, if there is one.
    pub(super) fn command(&self) -> Result<Option<Target>> {
        let Some((program, args)) = self.command.split_first() else { return Ok(None) };
        Ok(Some(Target::Child(self.child(program, args)?)))
    }

    /// Reads the files and variables that the arguments name.
    pub(super) fn target(&self, address: &Address) -> Result<Target> {
        let transport = if self.mcp_hub_mode { Transport::Sse } else { self.transport.into() };
        Ok(match address {
            Address::Http(url) => Target::Http(Box::new(self.http(url, transport)?)),
            Address::Unix(path) => Target::Unix { path: path.clone(), max_message: self.max_message.0 },
            Address::Folder(place) => Target::Folder(folder::open(place)?),
            Address::Orchestra(at) => Target::Orchestra(self.quic(at)?),
            Address::QuicMcp(at) => Target::QuicMcp(self.quic(at)?),
            Address::Named(name) => bail!("{name} is no address"),
        })
    }

    fn quic(&self, address: &quic::Address) -> Result<quic::TargetOptions> {
        let identity = self.orchestra.certs()?.identity(CLIENT_NAME)?;
        let (address, wait, max_message) = (address.clone(), self.wait, self.max_message.0);
        Ok(quic::TargetOptions { address, identity, wait, max_message })
    }

    fn child(&self, program: &OsStr, args: &[OsString]) -> Result<child::Options> {
        let mut env = Vec::new();
        for (name, value) in &self.env {
            env.push((name.into(), expand(value, our_variable).with_context(|| format!("--env {name}"))?.into()));
        }
        if let Some(cwd) = self.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
            bail!("--cwd: {} is no directory", cwd.display());
        }
        Ok(child::Options {
            env,
            cwd: self.cwd.clone(),
            max_message: self.max_message.0,
            guard: guard(),
            ..child::Options::new(program, args)
        })
    }

    fn http(&self, url: &Url, transport: Transport) -> Result<client::Options> {
        let (max_message, resume_for) = (self.max_message.0, self.wait);
        Ok(client::Options { transport, max_message, resume_for, ..self.http.options(url)? })
    }
}

/// What a target that was configured without us needs here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    max_message: usize,
    wait: Duration,
}

impl Machine {
    pub(super) fn adopt(self, mut target: Target) -> Target {
        match &mut target {
            Target::Http(options) => {
                options.proxy = proxy_for(&options.url);
                options.max_message = self.max_message;
                options.resume_for = self.wait;
            }
            Target::Child(options) => {
                options.max_message = self.max_message;
                options.guard = guard();
            }
            _ => {}
        }
        target
    }
}

/// Our own program, through which children are started so that they end with us.
fn guard() -> Option<PathBuf> {
    Some(PathBuf::from(OURSELVES)).filter(|path| path.exists())
}

/// What the server speaks.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Spoken {
    Auto,
    Http,
    Sse,
}

impl From<Spoken> for Transport {
    fn from(spoken: Spoken) -> Transport {
        match spoken {
            Spoken::Auto => Transport::Auto,
            Spoken::Http => Transport::Streamable,
            Spoken::Sse => Transport::Sse,
        }
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}
