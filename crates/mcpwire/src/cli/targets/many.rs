//! Several servers behind a hub: those of the command line as they are, those of configurations as they change.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use mcpwire_proto::conversation::Config;
use ring::digest;
use tokio::task::{self, JoinHandle};

use super::super::configured::{self, configured};
use super::super::reach::ReachArgs;
use crate::bridge::Reach;
use crate::cache::Cache;
use crate::config::{self, Environment, Found, Resolver, Server};
use crate::health::Board;
use crate::hub::{self, Catalogue, Hub, Prefix, Spec};
use crate::target::Target;

/// How long the servers of a hub may take to be let go; their own limits are shorter.
const GOODBYE: Duration = Duration::from_secs(10);

/// One server of a hub.
pub(super) enum Wanted {
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
pub(super) struct Fixed {
    name: String,
    hash: String,
    reach: Reach,
    config: Config,
}

impl Fixed {
    /// `written` is all that makes it different from others.
    pub(super) fn new(name: String, written: &str, target: Target, reach: &ReachArgs) -> Result<Fixed> {
        let config = reach.config(&target)?;
        let digest = digest::digest(&digest::SHA256, written.as_bytes());
        let hash = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Fixed { name, hash, reach: target.reach(), config })
    }
}

/// No two servers of a hub have the same name.
pub(super) fn unique(mut wanted: Vec<Wanted>) -> Vec<Wanted> {
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
pub(in crate::cli) struct Many {
    pub(super) wanted: Vec<Wanted>,
    /// All servers of the configuration, besides.
    pub(super) everything: bool,
    pub(super) config: config::Options,
    pub(super) environment: Environment,
    pub(super) resolver: Resolver,
    pub(super) cache: Option<Cache>,
    pub(super) prefix: Prefix,
    pub(super) lists: Duration,
    pub(super) settle: Duration,
    pub(super) reach: ReachArgs,
}

/// A hub that runs.
pub(super) struct Running {
    pub(super) hub: Hub,
    pub(super) board: Board,
    follower: Option<JoinHandle<()>>,
    gone: JoinHandle<()>,
}

impl Many {
    /// A mistake in the command line is told at once; one in a configuration later, and costs only its server.
    pub(super) fn check(&self) -> Result<()> {
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

    pub(super) fn open(self) -> Running {
        let info = serde_json::json!({"name": "mcpwire", "version": env!("CARGO_PKG_VERSION")});
        let defaults = mcpwire_proto::hub::Config::default();
        let config = mcpwire_proto::hub::Config {
            prefix: self.prefix,
            describe: defaults.describe.min(self.lists),
            lists: self.lists,
            settle: self.settle,
            seed: fastrand::u64(..),
            info: info.to_string(),
            ..defaults
        };
        let options = hub::Options { config, on_catalogue: self.cache.clone().map(keep) };
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
        let spec = match configured(server, &self.resolver, &self.reach, self.everything) {
            Ok((target, config)) => Spec::new(name, target.reach(), config),
            Err(error) => {
                tracing::warn!(target: "config", "{error:#}");
                let why = format!("{error:#}");
                Spec::new(name, Reach::new(Arc::new(move || bail!("{why}"))), Config::default())
            }
        };
        self.remembered(Spec { hash: server.hash.clone(), ..spec }, before)
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
    pub(super) async fn gone(self) {
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
