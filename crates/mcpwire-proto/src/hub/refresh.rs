//! Which lists are answered from what is known, and which are asked for again first (2026-07-28, Caching).
//!
//! A list that a server declares `public` is reused for its `ttlMs`, and that of a session-era server until it announces a
//! change. Any other is asked for again whenever a client asks; clients that ask meanwhile wait for the same answer only if
//! the server was asked after they were heard.

use std::time::{Duration, Instant};

use super::catalogue::{Part, Reuse};
use super::upstream::Upstream;
use super::{Hub, Server};
use crate::{Id, Message};

/// The longest time that a list is reused, whatever its server says.
const MAX_REUSE: Duration = Duration::from_secs(24 * 3600);

/// How old a list is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Freshness {
    /// When the server was asked for it.
    pub asked: Instant,
    /// When the server answered.
    answered: Instant,
    reuse: Reuse,
}

impl Freshness {
    pub(super) fn new(asked: Instant, reuse: Reuse, now: Instant) -> Freshness {
        Freshness { asked, answered: now, reuse }
    }

    /// How long clients may reuse it as well.
    fn time_to_live(&self, now: Instant) -> Option<Duration> {
        let Reuse::For(time) = self.reuse else { return None };
        let left = (self.answered + time.min(MAX_REUSE)).saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    fn is_current(&self, asked: Instant, now: Instant) -> bool {
        self.asked >= asked || self.reuse == Reuse::UntilChanged || self.time_to_live(now).is_some()
    }
}

impl Upstream {
    /// Whether the server can be asked for this list.
    fn lists(&self, part: Part) -> bool {
        let catalogue = self.catalogue.as_ref().filter(|_| self.live && self.open && !self.breaker.is_open());
        catalogue.is_some_and(|known| known.capabilities.is_none() || known.has(part.capability(), None))
    }

    /// Whether the list that is known will do for a client that asked at that time.
    fn is_current(&self, part: Part, asked: Instant, now: Instant) -> bool {
        self.freshness.get(&part).is_some_and(|list| list.is_current(asked, now))
    }
}

impl Hub {
    /// Whether a list that a client asked for at that time can be answered. Servers that must be asked again first, are.
    pub(super) fn is_refreshed(&mut self, part: Part, asked: Instant, now: Instant) -> bool {
        let until = asked + self.config.refresh;
        if now >= until {
            return true;
        }
        let outdated = |upstream: &&Upstream| upstream.lists(part) && !upstream.is_current(part, asked, now);
        let outdated: Vec<Server> = self.upstreams.iter().filter(outdated).map(|upstream| upstream.server).collect();
        for server in &outdated {
            self.fetch_again(*server, part, now);
        }
        if outdated.is_empty() {
            return true;
        }
        self.refreshes.insert(until);
        false
    }

    /// The answer to a list, with how long it may be reused: as long as each of the lists in it.
    pub(super) fn listed(&self, part: Part, id: &Id, now: Instant) -> Message {
        let list = self.merged.list(part);
        let lists = self.upstreams.iter().filter(|upstream| upstream.may_have(part.capability(), None));
        let reuse = lists.map(|upstream| {
            let list = upstream.freshness.get(&part).filter(|_| upstream.live)?;
            list.time_to_live(now).map(|left| left.as_millis())
        });
        let shortest = reuse.min().flatten().filter(|ms| *ms > 0);
        match (shortest, list.member("ttlMs"), list.member("cacheScope")) {
            (Some(ms), Some(ttl), Some(scope)) => list.rewritten(id, &[(ttl, &ms.to_string()), (scope, r#""public""#)]),
            _ => list.with_id(id),
        }
    }
}
