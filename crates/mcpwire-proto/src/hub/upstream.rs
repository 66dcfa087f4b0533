//! What is known of one of the hub's servers, and how it is doing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::Server;
use super::asker::Asker;
use super::breaker::Breaker;
use super::catalogue::{Catalogue, Part};
use super::fetch::Fetch;
use super::refresh::Freshness;
use crate::Id;
use crate::policy::Policy;
use crate::session::backoff::Backoff;

/// A server, as the hub is told of it.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    pub name: String,
    /// Changes with the server's configuration.
    pub hash: String,
    /// Which of its tools are offered.
    pub policy: Policy,
    /// What it had to offer when it was last seen.
    pub cached: Option<Arc<Catalogue>>,
}

#[derive(Debug)]
pub(super) struct Upstream {
    pub server: Server,
    pub spec: Spec,
    /// There is a connection to it; whether anybody answers there is another question.
    pub open: bool,
    /// As it was told, or as it was when the server was last seen.
    pub catalogue: Option<Arc<Catalogue>>,
    /// The catalogue is what the server told us itself.
    pub live: bool,
    /// Nobody waits for it any more: it is live, or it has failed.
    pub settled: bool,
    /// In whose name we ask for the catalogue. The same each time, so that a server of the session era needs no second
    /// session for it.
    pub identity: Option<Asker>,
    pub fetch: Option<Fetch>,
    /// How old the lists of the catalogue are.
    pub freshness: BTreeMap<Part, Freshness>,
    /// Parts that have changed since they were asked for.
    pub stale: BTreeSet<Part>,
    /// Not before this is it asked for parts that have changed.
    pub refetch_at: Option<Instant>,
    /// When to ask again, after a failure.
    pub retry_at: Option<Instant>,
    pub backoff: Backoff,
    /// It has failed, and was not there since.
    pub failing: bool,
    pub breaker: Breaker,
    /// Our listens, by who listens.
    pub listening: BTreeMap<Asker, Listening>,
    /// How many requests of clients are with it.
    pub calls: usize,
}

/// A listen of ours on a server.
#[derive(Debug, Default)]
pub(super) struct Listening {
    /// The one that is in force.
    pub current: Option<Id>,
    /// The one that is to take its place, once it is acknowledged.
    pub next: Option<Id>,
    /// The resources that the latest of the two tells of.
    pub uris: BTreeSet<String>,
    /// The resources that the server said it tells of.
    pub honoured: BTreeSet<String>,
    /// The server does not know what a listen is.
    pub refused: bool,
    /// When to try again, after it was ended by the server.
    pub retry_at: Option<Instant>,
}

impl Upstream {
    pub(super) fn new(server: Server, spec: Spec, seed: u64) -> Upstream {
        Upstream {
            server,
            catalogue: spec.cached.clone(),
            spec,
            open: true,
            live: false,
            settled: false,
            identity: None,
            fetch: None,
            freshness: BTreeMap::new(),
            stale: BTreeSet::new(),
            refetch_at: None,
            retry_at: None,
            backoff: Backoff::new(seed ^ u64::from(server.0)),
            failing: false,
            breaker: Breaker::default(),
            listening: BTreeMap::new(),
            calls: 0,
        }
    }

    /// Whether it may have this; of one that is not known yet anything may be expected.
    pub(super) fn may_have(&self, capability: &str, option: Option<&str>) -> bool {
        self.catalogue.as_ref().is_none_or(|catalogue| catalogue.has(capability, option))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let fetch = self.fetch.as_ref().map(|fetch| fetch.deadline);
        let listens = self.listening.values().filter_map(|listening| listening.retry_at);
        let refetch = self.refetch_at.filter(|_| self.awaits_refetch());
        fetch.into_iter().chain(self.retry_at).chain(listens).chain(refetch).min()
    }

    /// Parts have changed, and are asked for as soon as it is time.
    pub(super) fn awaits_refetch(&self) -> bool {
        !self.stale.is_empty() && self.live && self.fetch.is_none()
    }
}

impl Listening {
    pub(super) fn is_open(&self) -> bool {
        self.current.is_some() || self.next.is_some()
    }

    pub(super) fn is(&self, id: &Id) -> bool {
        self.current.as_ref() == Some(id) || self.next.as_ref() == Some(id)
    }
}
