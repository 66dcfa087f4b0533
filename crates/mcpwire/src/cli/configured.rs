//! Servers from `mcp.json` files, as targets.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use mcpwire_proto::conversation::Config;

use super::reach::ReachArgs;
use crate::config::{self, Environment, Found, Options, Resolver, Server, Transport};
use crate::target::{Later, Target};

/// Set for the servers of a hub that serves all configured servers, of which it may be one itself.
pub(super) const WITHIN: &str = "MCPWIRE_WITHIN_HUB";

/// Where servers that are called by name are configured.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(super) struct ConfigArgs {
    /// Look for servers in this mcp.json file, and not where clients keep theirs; may be repeated
    #[arg(id = "config", long, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Look also in the files that the project in the current directory brings along
    #[arg(long, conflicts_with = "config")]
    project: bool,
}

impl ConfigArgs {
    pub(super) fn names_files(&self) -> bool {
        !self.files.is_empty()
    }

    pub(super) fn options(&self) -> Options {
        Options { files: self.files.clone(), project: self.project }
    }

    /// The target that is configured under this name.
    pub(super) fn target(&self, name: &str, reach: &ReachArgs) -> Result<(Target, Config)> {
        let environment = environment()?;
        let found = config::load(&environment, &self.options());
        let server = find(&found, name)?;
        configured(server, &Resolver::new(environment), reach, false)
    }
}

/// The machine as it is.
pub(super) fn environment() -> Result<Environment> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let cwd = std::env::current_dir().context("cannot tell the current directory")?;
    Ok(Environment::new(home, cwd, |name| std::env::var(name).ok()))
}

/// The server of this name, or why there is none.
pub(super) fn find<'a>(found: &'a Found, name: &str) -> Result<&'a Server> {
    if let Some(server) = found.servers.iter().find(|server| server.name == name) {
        return Ok(server);
    }
    if let Some(ignored) = found.ignored.iter().find(|ignored| ignored.entry.as_deref() == Some(name)) {
        bail!("{ignored}");
    }
    let names: Vec<&str> = found.servers.iter().map(|server| server.name.as_str()).collect();
    match names.as_slice() {
        [] => bail!("no server {name:?} is configured; 'mcpwire servers' shows where was looked"),
        names => bail!("no server {name:?} is configured; expected one of {}", names.join(", ")),
    }
}

/// A configured server as a target, and how to deal with it. What is said on the command line holds where the
/// configuration is silent. `among_all` marks the servers of a hub that serves all configured servers.
pub(super) fn configured(
    server: &Server,
    resolver: &Resolver,
    reach: &ReachArgs,
    among_all: bool,
) -> Result<(Target, Config)> {
    let sorted = !matches!(server.transport, Transport::Stdio(_));
    let (made, resolver, machine) = (server.clone(), resolver.clone(), reach.machine());
    let make = move || {
        let (server, resolver) = (made.clone(), resolver.clone());
        async move {
            let (target, _) = server.target(&resolver).await?.into_parts();
            let mut target = machine.adopt(target);
            if let Target::Child(options) = &mut target
                && among_all
            {
                options.env.push((WITHIN.into(), "1".into()));
            }
            Ok(target)
        }
    };
    let later = Later::new(&server.name, sorted, make);
    let target = if server.runs_commands() { Target::Later(later) } else { later.at_once()? };
    let mut config = reach.config(&target)?;
    if let Some(timeout) = server.timeout {
        config.relay.timeout = Some(timeout);
        config.relay.attribute = !config.sorted;
    }
    config.protocol = server.protocol.or(config.protocol);
    Ok((target.limited(server.policy()), config))
}
