//! Which server serves a tool, a prompt or a resource: the one that lists it, else the ones that may have it.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::Instant;

use serde_json::value::RawValue;

use super::catalogue::Part;
use super::merged::Named;
use super::route::Route;
use super::{Client, Hub, Server, Upstream};
use crate::Fault;

impl Hub {
    pub(super) fn route_name<'a>(
        &self,
        client: Client,
        part: Part,
        found: Option<&'a RawValue>,
        now: Instant,
    ) -> Route<'a> {
        let Some((raw, name)) = found.and_then(|raw| Some((raw, text(raw)?))) else {
            return Route::Refused(Fault::Params("expected name to be a string".into()));
        };
        let named = self.merged.named(part, &name);
        if !matches!(named, Named::Offered(_)) && !self.lists_are_ready(now) {
            return Route::Wait;
        }
        match named {
            Named::Offered(owner) | Named::Bare(owner) => {
                let edit = (owner.name != name).then(|| (raw, owner.name.clone()));
                Route::To(owner.server, edit)
            }
            Named::Contested => Route::Refused(unknown(part, &name)),
            Named::Unlisted => self.route_unlisted(client, part, raw, &name),
        }
    }

    /// A name that no list has: a server need not list all that it serves.
    fn route_unlisted<'a>(&self, client: Client, part: Part, raw: &'a RawValue, name: &str) -> Route<'a> {
        // What the patterns of a server leave out is not callable because it is also not listed.
        let shows = |upstream: &Upstream, name: &str| part != Part::Tools || upstream.spec.policy.allows(name);
        let prefixed = self.upstreams.iter().filter_map(|upstream| {
            let rest = self.config.prefix.strip(&upstream.spec.name, name)?;
            Some((upstream, rest))
        });
        if let Some((upstream, rest)) = prefixed.min_by_key(|(_, rest)| rest.len()) {
            return match shows(upstream, rest) {
                true => Route::To(upstream.server, Some((raw, rest.to_owned()))),
                false => Route::Refused(unknown(part, name)),
            };
        }
        let may_have = |upstream: &&Upstream| upstream.may_have(part.capability(), None);
        let candidates: Vec<&Upstream> = match &*self.upstreams {
            [only] => vec![only],
            several => several.iter().filter(may_have).collect(),
        };
        match (&*candidates, part) {
            ([only], _) if shows(only, name) => Route::To(only.server, None),
            // A tool may act before it fails, so only one server is ever sent the call.
            ([], _) | (_, Part::Tools) => Route::Refused(unknown(part, name)),
            (several, _) => {
                let known = self.links.server(client, part, name);
                let others = several.iter().map(|upstream| upstream.server);
                Route::InTurn(part, name.to_owned(), unique(known.into_iter().chain(others)))
            }
        }
    }

    pub(super) fn route_uri<'a>(&self, client: Client, found: Option<&'a RawValue>, now: Instant) -> Route<'a> {
        let Some(uri) = found.and_then(text) else {
            return Route::Refused(Fault::Params("expected uri to be a string".into()));
        };
        if let Some((server, own)) = self.merged.apps().own(&uri) {
            return Route::To(server, found.map(|raw| (raw, own.to_owned())));
        }
        let link = self.links.server(client, Part::Resources, &uri).filter(|server| self.is_here(*server));
        let listed = self.merged.resource(&uri);
        match (link, listed) {
            (None, Some(server)) => return Route::To(server, None),
            (Some(server), Some(listed)) if server == listed => return Route::To(server, None),
            (None, None) if !self.lists_are_ready(now) => return Route::Wait,
            _ => {}
        }
        let servers = link.into_iter().chain(listed).chain(self.candidates(&uri));
        Route::InTurn(Part::Resources, uri.clone(), unique(servers))
    }

    fn is_here(&self, server: Server) -> bool {
        self.upstreams.iter().any(|upstream| upstream.server == server)
    }

    /// The servers that may have a resource nobody lists, likeliest first: those with this template or one that the URI
    /// may be made from, the more literal text the earlier; then those with resources. A template that fits every URI
    /// says nothing, so servers that fit by such a one alone are last.
    pub(super) fn candidates(&self, uri: &str) -> VecDeque<Server> {
        if let [only] = &*self.upstreams {
            return VecDeque::from([only.server]);
        }
        let mut fitting: Vec<_> = self.merged.templates(uri).collect();
        fitting.sort_by_key(|(literal, _)| Reverse(*literal));
        let specific = fitting.iter().filter_map(|(literal, server)| literal.map(|_| *server));
        let greedy = |server: &Server| fitting.iter().any(|(literal, fits)| fits == server && literal.is_none());
        let able =
            |upstream: &&Upstream| upstream.open && !upstream.breaker.is_open() && upstream.may_have("resources", None);
        let able: Vec<Server> = self.upstreams.iter().filter(able).map(|upstream| upstream.server).collect();
        let others = able.iter().filter(|server| !greedy(server)).copied();
        unique(specific.chain(others).chain(fitting.iter().map(|(_, server)| *server)))
    }
}

fn unique(servers: impl Iterator<Item = Server>) -> VecDeque<Server> {
    let mut unique = VecDeque::new();
    for server in servers {
        if !unique.contains(&server) {
            unique.push_back(server);
        }
    }
    unique
}

fn unknown(part: Part, name: &str) -> Fault {
    let what = if part == Part::Tools { "tool" } else { "prompt" };
    Fault::Params(format!("unknown {what}: {name}"))
}

pub(super) fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}
