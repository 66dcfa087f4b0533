//! The targets of a front: one that is served as it is, or several behind a hub.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use mcpwire_proto::conversation::{Config, Key};
use ring::digest;
use tokio::task::{self, JoinHandle};

use super::address::{Address, address, is_name};
use super::configured::{self, ConfigArgs, configured, environment};
use super::reach::ReachArgs;
use crate::bridge::Reach;
use crate::cache::Cache;
use crate::config::{self, Environment, Found, Resolver, Server};
use crate::health::{Board, Health};
use crate::hub::{self, Catalogue, Hub, Prefix, Spec};
use crate::target::Target;

/// How long the servers of a hub may take to be let go; their own limits are shorter.
const GOODBYE: Duration = Duration::from_secs(10);
/// Set for the servers of a hub that takes all configured servers, of which it may be one itself.
const WITHIN: &str = "MCPWIRE_WITHIN_HUB";
/// Programs that run the program which their arguments name.
const RUNNERS: [&str; 10] = ["npx", "bunx", "uvx", "pipx", "node", "bun", "deno", "python", "python3", "docker"];

/// One target or several, and how to deal with them.
#[derive(Debug, ClapArgs)]
pub(super) struct TargetsArgs {
    /// Where the server is: an http:// or https:// URL, unix:PATH for a socket, a folder, quic://HOST:PORT for an Orchestra
    /// orchestrator, quic+mcp://HOST:PORT for MCP over QUIC, or the name of a configured server; several are served as one,
    /// and NAME=TARGET says what one of them is called
    #[arg(id = "target", value_name = "TARGET", value_parser = named_address,
        required_unless_present_any = ["command", "mcp_hub", "orchestrator_addr", "config", "all"])]
    targets: Vec<Named>,
    #[command(flatten)]
    config: ConfigArgs,
    /// Serve all servers that are configured, as 'mcpwire servers' shows them
    #[arg(long, conflicts_with_all = ["target", "command", "config"])]
    all: bool,
    /// How the tools and prompts of several servers are named: server__tool always, only on conflict, or never; or
    /// mcp__server_tool [default: always]
    #[arg(long, value_name = "always|conflict|never|mcp")]
    prefix: Option<Prefix>,
    /// Keep nothing on disk of what the servers have to offer
    #[arg(long)]
    no_cache: bool,
    #[command(flatten)]
    pub(super) reach: ReachArgs,
}

/// A target as it is written, with its name if it was given one.
#[derive(Debug, Clone)]
struct Named {
    name: Option<String>,
    address: Address,
    text: String,
}

fn named_address(text: &str) -> Result<Named, String> {
    let (name, rest) = match text.split_once('=') {
        Some((name, rest)) if is_name(name) => (Some(name.to_owned()), rest),
        _ => (None, text),
    };
    Ok(Named { name, address: address(rest)?, text: rest.to_owned() })
}

/// What is to be served.
pub(super) enum Plan {
    One(Box<(Target, Config)>),
    Many(Many),
}

impl TargetsArgs {
    /// Reads the files and variables that the arguments name.
    pub(super) fn plan(&self) -> Result<Plan> {
        let by_flags = self.reach.named_by_flags()?;
        let single = self.prefix.is_none() && !self.all;
        match (self.targets.as_slice(), by_flags) {
            ([], Some(target)) if single && !self.config.names_files() => Ok(Plan::one(target, &self.reach)?),
            ([Named { name: None, address: Address::Named(name), .. }], None) if single => {
                Ok(Plan::One(Box::new(self.config.target(name, &self.reach)?)))
            }
            ([Named { name: None, address, .. }], None) if single => {
                Ok(Plan::one(self.reach.target(address)?, &self.reach)?)
            }
            (_, by_flags) => Ok(Plan::Many(self.many(by_flags)?)),
        }
    }

    fn many(&self, by_flags: Option<Target>) -> Result<Many> {
        let urls = self.targets.iter().filter(|named| matches!(named.address, Address::Http(_))).count();
        if urls > 1 && self.reach.has_headers() {
            bail!("--header would go to every URL: give each server its own headers in a file for --config");
        }
        let environment = environment()?;
        let mut wanted = Vec::new();
        for named in &self.targets {
            wanted.push(match &named.address {
                Address::Named(entry) => Wanted::Configured {
                    entry: entry.clone(),
                    name: named.name.clone().unwrap_or_else(|| entry.clone()),
                },
                address => {
                    let target = self.reach.target(address)?;
                    let name = named.name.clone().unwrap_or_else(|| name_of(address, &target));
                    Wanted::Fixed(Fixed::new(name, &named.text, target, &self.reach)?)
                }
            });
        }
        if let Some(target) = by_flags {
            let written = self.reach.written();
            let name = name_of_command(&written).unwrap_or_else(|| target.label());
            wanted.push(Wanted::Fixed(Fixed::new(name, &written.join("\0"), target, &self.reach)?));
        }
        let everything = self.all || (self.targets.is_empty() && self.config.names_files());
        if self.all && environment.variable(WITHIN).is_some() {
            bail!("--all: this hub was started by a hub that serves all configured servers, and would start it again");
        }
        let many = Many {
            wanted: unique(wanted),
            everything,
            config: self.config.options(),
            resolver: Resolver::new(environment.clone()),
            cache: environment.cache_dir().filter(|_| !self.no_cache).map(Cache::new),
            environment,
            prefix: self.prefix.unwrap_or_default(),
            settle: self.reach.wait(),
            reach: self.reach.clone(),
        };
        many.check()?;
        Ok(many)
    }
}

/// A server that can be reached: the one target, or the hub.
pub(super) struct Opened {
    pub(super) reach: Reach,
    pub(super) config: Config,
    /// How the fronts find it.
    pub(super) health: Health,
    /// What is told of all targets.
    pub(super) board: Board,
    /// What it is called in the log.
    pub(super) label: String,
    hub: Option<Running>,
}

impl Opened {
    pub(super) fn is_hub(&self) -> bool {
        self.hub.is_some()
    }

    /// Waits until everything behind it is gone that the fronts do not wait for themselves.
    pub(super) async fn gone(self) {
        drop(self.reach);
        if let Some(hub) = self.hub {
            hub.gone().await;
        }
    }
}

impl Plan {
    /// Gets ready, within a runtime. The servers of a hub are started at once.
    pub(super) fn open(self) -> Result<Opened> {
        match self {
            Plan::One(one) => {
                let (target, config) = *one;
                let health = Health::new(&target.label());
                let (label, board) = (target.to_string(), Board::new([health.clone()]));
                Ok(Opened { reach: target.reach(), config, health, board, label, hub: None })
            }
            Plan::Many(many) => {
                let hub = many.open();
                let mut key = [0; 32];
                getrandom::fill(&mut key).context("cannot get random bytes")?;
                // A hub tells to which request a message belongs.
                let config = Config { sorted: true, key: Key(key), ..Config::default() };
                Ok(Opened {
                    reach: hub.hub.reach(),
                    config,
                    health: Health::new("hub"),
                    board: hub.board.clone(),
                    label: "the hub".to_owned(),
                    hub: Some(hub),
                })
            }
        }
    }

    fn one(target: Target, reach: &ReachArgs) -> Result<Plan> {
        let config = reach.config(&target)?;
        Ok(Plan::One(Box::new((target, config))))
    }
}

/// One server of a hub.
enum Wanted {
    Fixed(Fixed),
    /// An entry of a configuration, which may change.
    Configured {
        entry: String,
        name: String,
    },
}

impl Wanted {
    fn name_mut(&mut self) -> &mut String {
        match self {
            Wanted::Fixed(fixed) => &mut fixed.name,
            Wanted::Configured { name, .. } => name,
        }
    }
}

/// A server that was written on the command line.
struct Fixed {
    name: String,
    hash: String,
    reach: Reach,
    config: Config,
}

impl Fixed {
    fn new(name: String, written: &str, target: Target, reach: &ReachArgs) -> Result<Fixed> {
        let config = reach.config(&target)?;
        let digest = digest::digest(&digest::SHA256, written.as_bytes());
        let hash = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Fixed { name, hash, reach: target.reach(), config })
    }
}

/// No two servers of a hub have the same name.
fn unique(mut wanted: Vec<Wanted>) -> Vec<Wanted> {
    let mut taken = HashSet::new();
    for wanted in &mut wanted {
        let name = wanted.name_mut();
        let plain = name.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            *name = format!("{plain}-{number}");
        }
    }
    wanted
}

/// The servers of a hub.
pub(super) struct Many {
    wanted: Vec<Wanted>,
    /// All servers of the configuration, besides.
    everything: bool,
    config: config::Options,
    environment: Environment,
    resolver: Resolver,
    cache: Option<Cache>,
    prefix: Prefix,
    settle: Duration,
    reach: ReachArgs,
}

/// A hub that runs.
struct Running {
    hub: Hub,
    board: Board,
    follower: Option<JoinHandle<()>>,
    gone: JoinHandle<()>,
}

impl Many {
    /// A mistake in the command line is told at once; one in a configuration later, and costs only its server.
    fn check(&self) -> Result<()> {
        if !self.follows() {
            return Ok(());
        }
        let found = config::load(&self.environment, &self.config);
        for wanted in &self.wanted {
            if let Wanted::Configured { entry, .. } = wanted {
                configured::find(&found, entry)?;
            }
        }
        for ignored in found.ignored.iter().filter(|ignored| ignored.why.is_fault()) {
            tracing::warn!(target: "config", "{ignored}");
        }
        if self.everything && found.servers.is_empty() && self.wanted.is_empty() {
            bail!("no servers are configured; 'mcpwire servers' shows where was looked, and why some were left alone");
        }
        Ok(())
    }

    fn follows(&self) -> bool {
        self.everything || self.wanted.iter().any(|wanted| matches!(wanted, Wanted::Configured { .. }))
    }

    fn open(self) -> Running {
        let info = serde_json::json!({"name": "mcpwire", "version": env!("CARGO_PKG_VERSION")});
        let config = mcpwire_proto::hub::Config {
            prefix: self.prefix,
            settle: self.settle,
            seed: fastrand::u64(..),
            info: info.to_string(),
            ..Default::default()
        };
        let options = hub::Options { config, on_catalogue: self.cache.clone().map(keep), ..Default::default() };
        let mut watch = self.follows().then(|| config::Watch::new(self.environment.clone(), &self.config));
        let found = watch.as_ref().map(|watch| watch.found()).unwrap_or_default();
        let mut specs = self.specs(&found, &[]);
        let board = Board::new(specs.iter().map(|spec| spec.health.clone()));
        let (hub, gone) = Hub::open(specs.clone(), options);
        let (told, shown) = (hub.clone(), board.clone());
        let follower = watch.take().map(|mut watch| {
            task::spawn(async move {
                loop {
                    let found = watch.changed().await;
                    specs = self.specs(&found, &specs);
                    tracing::info!(target: "config", "the configuration has changed: {} servers", specs.len());
                    shown.show(specs.iter().map(|spec| spec.health.clone()));
                    told.apply(specs.clone()).await;
                }
            })
        });
        Running { hub, board, follower, gone }
    }

    /// What the hub is to serve. Servers that stay as they were keep their record.
    fn specs(&self, found: &Found, before: &[Spec]) -> Vec<Spec> {
        let mut specs = Vec::new();
        for wanted in &self.wanted {
            match wanted {
                Wanted::Fixed(Fixed { name, hash, reach, config }) => {
                    let mut spec = Spec::new(name, reach.clone(), config.clone());
                    spec.hash.clone_from(hash);
                    specs.push(self.remembered(spec, before));
                }
                Wanted::Configured { entry, name } => {
                    let server = found.servers.iter().find(|server| server.name == *entry);
                    specs.extend(server.map(|server| self.spec(server, name, before)));
                }
            }
        }
        if self.everything {
            specs.extend(found.servers.iter().map(|server| self.spec(server, &server.name, before)));
        }
        specs
    }

    fn spec(&self, server: &Server, name: &str, before: &[Spec]) -> Spec {
        if let Some(spec) = before.iter().find(|spec| spec.name == name && spec.hash == server.hash) {
            return spec.clone();
        }
        let spec = match configured(server, &self.resolver, &self.reach) {
            Ok((target, config)) => Spec::new(name, within(target, self.everything).reach(), config),
            Err(error) => {
                tracing::warn!(target: "config", "{error:#}");
                let why = format!("{error:#}");
                Spec::new(name, Reach::new(Arc::new(move || bail!("{why}"))), Config::default())
            }
        };
        let spec = Spec {
            hash: server.hash.clone(),
            include: server.include.clone(),
            exclude: server.exclude.clone(),
            ..spec
        };
        self.remembered(spec, before)
    }

    /// With what was kept of it.
    fn remembered(&self, mut spec: Spec, before: &[Spec]) -> Spec {
        if let Some(last) = before.iter().find(|last| last.name == spec.name && last.hash == spec.hash) {
            return last.clone();
        }
        let kept = self.cache.as_ref().and_then(|cache| cache.get(&spec.name, &spec.hash));
        spec.cached = kept.and_then(|kept| Catalogue::from_json(kept.get()));
        spec
    }
}

impl Running {
    /// Waits until everything behind the hub is gone.
    async fn gone(self) {
        if let Some(follower) = self.follower {
            follower.abort();
            let _ = follower.await;
        }
        drop(self.hub);
        let _ = tokio::time::timeout(GOODBYE, self.gone).await;
    }
}

/// Writes down what servers have to offer.
fn keep(cache: Cache) -> hub::OnCatalogue {
    Arc::new(move |name, hash, catalogue| {
        let Ok(text) = serde_json::value::RawValue::from_string(catalogue.to_json()) else { return };
        let (cache, name, hash) = (cache.clone(), name.to_owned(), hash.to_owned());
        task::spawn_blocking(move || cache.put(&name, &hash, &text));
    })
}

/// Lets a hub that is among its own servers know.
fn within(mut target: Target, everything: bool) -> Target {
    if let Target::Child(options) = &mut target
        && everything
    {
        options.env.push((WITHIN.into(), "1".into()));
    }
    target
}

/// What a server on the command line is called if nobody says.
fn name_of(address: &Address, target: &Target) -> String {
    let name = match address {
        Address::Folder(super::folder::Place::Disk(path)) => {
            path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        }
        Address::Folder(super::folder::Place::Sample) => Some("sample".to_owned()),
        Address::Unix(path) => path.file_stem().map(|stem| stem.to_string_lossy().into_owned()),
        _ => None,
    };
    plain(&name.unwrap_or_else(|| target.label()))
}

/// The program, or what a runner is told to run: `npx -y @scope/server-x@1.2` is `server-x`.
fn name_of_command(words: &[String]) -> Option<String> {
    let stem = |word: &str| Path::new(word).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let program = stem(words.first()?)?;
    let named =
        |word: &&String| !word.starts_with('-') && !matches!(word.as_str(), "run" | "exec" | "x" | "tool" | "dlx");
    let name = match words[1..].iter().find(named).filter(|_| RUNNERS.contains(&program.as_str())) {
        Some(word) => {
            let last = word.rsplit('/').next().unwrap_or(word);
            let version = last.find('@').filter(|at| *at > 0).unwrap_or(last.len());
            stem(&last[..version]).unwrap_or(program)
        }
        None => program,
    };
    Some(plain(&name))
}

/// A name of characters that are allowed everywhere.
fn plain(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "server".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn commands_are_called_by_what_they_run() {
        for (command, name) in [
            ("/usr/bin/my-server --flag", "my-server"),
            ("npx -y @modelcontextprotocol/server-everything stdio", "server-everything"),
            ("npx -y @scope/server-x@1.2.3", "server-x"),
            ("uvx mcp-server-git", "mcp-server-git"),
            ("python3 -u tools/serve.py", "serve"),
            ("node", "node"),
        ] {
            assert_eq!(name_of_command(&words(command)).as_deref(), Some(name), "{command}");
        }
    }

    #[test]
    fn a_target_may_be_given_a_name() {
        let named = named_address("docs=https://example.com/mcp?a=b").unwrap();
        assert!(named.name.as_deref() == Some("docs") && matches!(named.address, Address::Http(_)));
        let plain = named_address("https://example.com/mcp?a=b").unwrap();
        assert!(plain.name.is_none() && matches!(plain.address, Address::Http(_)));
        let entry = named_address("git=github").unwrap();
        assert!(matches!(entry.address, Address::Named(name) if name == "github"));
    }
}
