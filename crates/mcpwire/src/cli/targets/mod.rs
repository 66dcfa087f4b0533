//! The targets of a front: one that is served as it is, or several behind a hub.

mod many;
mod names;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use mcpwire_proto::conversation::{Config, Key};

pub(super) use self::names::of_command;

use self::many::{Fixed, Many, Running, Wanted, unique};
use super::address::{Address, address, is_name};
use super::configured::{ConfigArgs, WITHIN, environment};
use super::reach::ReachArgs;
use super::units::duration;
use crate::bridge::Reach;
use crate::cache::Cache;
use crate::config::Resolver;
use crate::health::{Board, Health};
use crate::hub::Prefix;
use crate::target::Target;

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
    /// How long the first list of several servers waits for those that are not known from an earlier run; what slower ones
    /// offer is announced later
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3s")]
    list_wait: Duration,
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
    Many(Box<Many>),
}

impl TargetsArgs {
    /// Reads the files and variables that the arguments name.
    pub(super) fn plan(&self) -> Result<Plan> {
        // An orchestrator is a target if there is no other.
        let alone = self.targets.is_empty() && !self.all && !self.config.names_files();
        let by_flags = if alone { self.reach.named_by_flags()? } else { self.reach.command()? };
        let single = self.prefix.is_none() && !self.all;
        match (self.targets.as_slice(), by_flags) {
            ([], Some(target)) if single && alone => Ok(Plan::one(target, &self.reach)?),
            ([Named { name: None, address: Address::Named(name), .. }], None) if single => {
                Ok(Plan::One(Box::new(self.config.target(name, &self.reach)?)))
            }
            ([Named { name: None, address, .. }], None) if single => {
                Ok(Plan::one(self.reach.target(address)?, &self.reach)?)
            }
            (_, by_flags) => Ok(Plan::Many(Box::new(self.many(by_flags)?))),
        }
    }

    fn many(&self, by_flags: Option<Target>) -> Result<Many> {
        let urls = self.targets.iter().filter(|named| matches!(named.address, Address::Http(_))).count();
        if urls > 1 && self.reach.has_headers() {
            bail!("--header would go to every URL: give each server its own headers in a file for --config");
        }
        let environment = environment()?;
        // The same words may mean another server in another directory.
        let here = environment.cwd.to_string_lossy().into_owned();
        let mut wanted = Vec::new();
        for named in &self.targets {
            wanted.push(match &named.address {
                Address::Named(entry) => Wanted::Configured {
                    entry: entry.clone(),
                    name: named.name.clone().unwrap_or_else(|| entry.clone()),
                },
                address => {
                    let target = self.reach.target(address)?;
                    let name = named.name.clone().unwrap_or_else(|| names::of_address(address, &target));
                    Wanted::Fixed(Fixed::new(name, &[&here, named.text.as_str()].join("\0"), target, &self.reach)?)
                }
            });
        }
        if let Some(target) = by_flags {
            let written = self.reach.written();
            let name = of_command(&written).unwrap_or_else(|| target.label());
            wanted.push(Wanted::Fixed(Fixed::new(name, &[here, written.join("\0")].join("\0"), target, &self.reach)?));
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
            lists: self.list_wait,
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

#[cfg(test)]
mod tests {
    use super::*;

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
