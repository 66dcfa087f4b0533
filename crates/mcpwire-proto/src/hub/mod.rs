//! Many servers as one: what they offer is merged, and each request goes to the server that serves it.
//!
//! The hub is a server of the stateless era to its clients, and a client of that era to its servers; other eras are made
//! to fit by the bridges on either side. It keeps ids and progress tokens apart, so that nothing of one client ever
//! reaches another, and asks each server for its catalogue on its own account:
//!
//! ```text
//!             begin, retry                discover and lists answered
//!   waiting ───────────────► fetching ─────────────────────────────────► live
//!      ▲                        │ failed, or too slow                      │ list_changed: fetching again
//!      └────────────────────────┘◄─────────────────────────────────────────┘ too many failures: the breaker opens
//! ```
//!
//! Until all servers are live or have failed, lists wait for them: up to [`Config::gate`] for those that are known from
//! before, up to [`Config::lists`] for the others. What slower servers offer is announced when it is known.

mod announce;
mod answers;
mod apps;
mod asker;
mod breaker;
mod catalogue;
mod extensions;
mod fetch;
mod find;
mod links;
mod listens;
mod merged;
mod names;
mod pattern;
mod refresh;
mod route;
#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test may begin at any time")]
mod tests;
mod upstream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::catalogue::{Catalogue, Item, Part};
pub use self::names::Prefix;
pub use self::upstream::Spec;

use self::announce::Announcements;
use self::answers::Owed;
use self::asker::Asker;
use self::links::Links;
use self::listens::Listen;
use self::merged::Merged;
use self::upstream::Upstream;
use crate::pending::Pending;
use crate::{Fault, Id, IdMap, Lane, Message, Packet, method};

/// Names a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Client(pub u64);

/// Names a server, for as long as its configuration stays the same. Numbers are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Server(pub u32);

/// What is to be done.
#[derive(Debug)]
pub enum Effect {
    ToClient(Client, Packet),
    ToServer(Server, Message),
    /// Connect to the server.
    Open(Server),
    /// End the connection to it; nothing of what it still says is heard.
    Close(Server),
    /// The server told what it has to offer, which may be kept for the next time.
    Told(Server, Arc<Catalogue>),
}

#[derive(Debug, Clone)]
pub struct Config {
    pub prefix: Prefix,
    /// How long to wait for the first client before the servers are asked for their catalogues, so that it can be done in
    /// that client's name.
    pub greet: Duration,
    /// How long lists wait for servers that are known from before.
    pub gate: Duration,
    /// How long a client that asks what the servers can do waits for those that are not known.
    pub describe: Duration,
    /// How long lists wait for any server.
    pub lists: Duration,
    /// How long a server may take for its catalogue.
    pub settle: Duration,
    /// The shortest time between two `list_changed` of the same kind, and between two times that a server is asked for
    /// lists because it says that they changed.
    pub coalesce: Duration,
    /// How long a list waits for servers that must be asked for theirs again.
    pub refresh: Duration,
    /// For the jitter between tries.
    pub seed: u64,
    /// What the hub says of itself: the name and version, as a JSON object.
    pub info: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            prefix: Prefix::default(),
            greet: Duration::from_millis(250),
            gate: Duration::from_millis(250),
            describe: Duration::from_secs(3),
            lists: Duration::from_secs(3),
            settle: Duration::from_secs(20),
            coalesce: Duration::from_millis(250),
            refresh: Duration::from_secs(3),
            seed: 0,
            info: r#"{"name":"mcpwire","version":"0"}"#.to_owned(),
        }
    }
}

/// Until when nothing is said of servers that have not told.
#[derive(Debug)]
struct Gates {
    /// Lists, if they are known from before.
    known: Instant,
    /// What they can do.
    capabilities: Instant,
    /// Lists.
    lists: Instant,
    /// Those that are still to come, in order.
    ahead: VecDeque<Instant>,
}

impl Gates {
    fn new(config: &Config, begin: Instant) -> Gates {
        let (known, capabilities, lists) = (begin + config.gate, begin + config.describe, begin + config.lists);
        let mut ahead = [known, capabilities, lists];
        ahead.sort();
        Gates { known, capabilities, lists, ahead: ahead.into() }
    }
}

/// What one client has asked for.
#[derive(Debug, Default)]
struct Guest {
    under_way: IdMap<Place>,
}

/// Where a client's request is.
#[derive(Debug)]
enum Place {
    /// With a server, under this id.
    Server(Id),
    /// Here, until more is known of the servers.
    Waiting,
    /// Here, for as long as the client listens.
    Listening,
}

/// A request that waits until more is known of the servers.
#[derive(Debug)]
struct Waiting {
    client: Client,
    request: Message,
    asked: Instant,
}

#[derive(Debug)]
pub struct Hub {
    config: Config,
    /// In the order in which they are offered.
    upstreams: Vec<Upstream>,
    clients: BTreeMap<Client, Guest>,
    owed: Pending<Owed>,
    waiting: VecDeque<Waiting>,
    /// When lists among those that wait are answered at the latest.
    refreshes: BTreeSet<Instant>,
    listens: BTreeMap<(Client, u64), Listen>,
    links: Links,
    announcements: Announcements,
    merged: Merged,
    /// The first client.
    identity: Option<Asker>,
    /// When the servers are asked, if no client has come by then; none once they were.
    greet_until: Option<Instant>,
    gates: Gates,
    effects: VecDeque<Effect>,
    next_id: u64,
    next_server: u32,
}

impl Hub {
    pub fn new(config: Config, now: Instant) -> Hub {
        let merged = Merged::new(config.prefix, &[], &config.info);
        Hub {
            greet_until: Some(now + config.greet),
            gates: Gates::new(&config, now + config.greet),
            config,
            upstreams: Vec::new(),
            clients: BTreeMap::new(),
            owed: Pending::default(),
            waiting: VecDeque::new(),
            refreshes: BTreeSet::new(),
            listens: BTreeMap::new(),
            links: Links::default(),
            announcements: Announcements::default(),
            merged,
            identity: None,
            effects: VecDeque::new(),
            next_id: 0,
            next_server: 0,
        }
    }

    /// The next thing to do, if any.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Hub::handle_timeout`] wants to be called. Calling it early does no harm.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self.gates.ahead.front().into_iter().chain(self.refreshes.first());
        let gates = waiting.min().copied().filter(|_| !self.waiting.is_empty());
        let upstreams = self.upstreams.iter().filter_map(Upstream::poll_timeout);
        let listens = self.listens.values().filter_map(|listen| listen.acknowledge_by);
        let announcements = self.announcements.poll_timeout(self.config.coalesce);
        gates.into_iter().chain(self.greet_until).chain(upstreams).chain(listens).chain(announcements).min()
    }

    /// These servers are to be behind the hub from now on, in this order. Those that are there already under the same name
    /// and hash stay as they are. Gives what each is called.
    pub fn handle_specs(&mut self, specs: Vec<Spec>, now: Instant) -> Vec<Server> {
        let mut before = std::mem::take(&mut self.upstreams);
        let begun = self.greet_until.is_none();
        let mut fresh = Vec::new();
        for mut spec in specs {
            let same = before.iter().position(|upstream| upstream.spec.name == spec.name);
            let old = same.map(|at| before.remove(at));
            match old {
                Some(old) if old.spec.hash == spec.hash => self.upstreams.push(old),
                old => {
                    self.next_server += 1;
                    let server = Server(self.next_server);
                    if let Some(old) = old {
                        // Until it tells, it is taken for what it was.
                        spec.cached = spec.cached.or_else(|| old.catalogue.clone());
                        before.push(old);
                    }
                    let mut upstream = Upstream::new(server, spec, self.config.seed);
                    // Those who come later are not waited for: everybody is told when they are there.
                    upstream.settled = begun;
                    self.upstreams.push(upstream);
                    self.effects.push_back(Effect::Open(server));
                    fresh.push(server);
                }
            }
        }
        for gone in before {
            self.lose(gone.server, &format!("MCP server not connected: {}: it was taken out", gone.spec.name));
            self.effects.push_back(Effect::Close(gone.server));
        }
        if begun {
            fresh.into_iter().for_each(|server| self.fetch_all(server, now));
        }
        self.rebuild(&[], true, now);
        self.release(now);
        self.upstreams.iter().map(|upstream| upstream.server).collect()
    }

    pub fn handle_join(&mut self, client: Client) {
        self.clients.entry(client).or_default();
    }

    /// A client is gone: what it asked for is cancelled.
    pub fn handle_leave(&mut self, client: Client, now: Instant) {
        let Some(guest) = self.clients.remove(&client) else { return };
        for place in guest.under_way.values() {
            let Place::Server(ours) = place else { continue };
            if let Some((ours, owed)) = self.owed.settle(ours) {
                self.count_off(&owed);
                let params = format!(r#"{{"requestId":{ours},"reason":"the client is gone"}}"#);
                let cancelled = Message::notification(method::CANCELLED, Some(&params));
                self.effects.push_back(Effect::ToServer(owed.server(), cancelled));
            }
        }
        self.waiting.retain(|waiting| waiting.client != client);
        self.links.forget(client);
        let before = self.listens.len();
        self.listens.retain(|(listener, _), _| *listener != client);
        if self.listens.len() != before {
            self.listen_anew(now);
        }
    }

    /// The server cannot be reached at the moment: nobody waits for its catalogue any more.
    pub fn handle_trouble(&mut self, server: Server, now: Instant) {
        let Some(upstream) = self.upstream(server).filter(|upstream| !upstream.settled) else { return };
        upstream.settled = true;
        tracing::warn!(target: "hub", "{} cannot be reached yet", upstream.spec.name);
        self.release(now);
    }

    /// Whether somebody waits for servers of which nothing is known yet.
    pub fn unsettled(&self) -> impl Iterator<Item = Server> {
        self.upstreams.iter().filter(|upstream| !upstream.settled).map(|upstream| upstream.server)
    }

    /// The connection to the server is over, and everything that was under way with it.
    pub fn handle_closed(&mut self, server: Server, why: &str, now: Instant) {
        let Some(upstream) = self.upstream(server) else { return };
        upstream.open = false;
        let text = format!("MCP server not connected: {}: {why}", upstream.spec.name);
        self.lose(server, &text);
        self.fetch_failed(server, why, now);
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.greet_until.is_some_and(|at| at <= now) {
            self.begin(now);
        }
        for server in self.upstreams.iter().map(|upstream| upstream.server).collect::<Vec<_>>() {
            self.fetch_timeout(server, now);
            self.listen_timeout(server, now);
        }
        self.announce_timeout(now);
        self.acknowledge_listens(now);
        self.gates.ahead.retain(|at| *at > now);
        self.refreshes.retain(|at| *at > now);
        self.release(now);
    }

    /// How many requests of clients are under way, listens not counted.
    pub fn load(&self) -> usize {
        let unlistened = |place: &&Place| !matches!(place, Place::Listening);
        self.clients.values().map(|guest| guest.under_way.values().filter(unlistened).count()).sum()
    }

    /// Asks all servers for their catalogues: a client has come, or none will for now.
    fn begin(&mut self, now: Instant) {
        self.greet_until = None;
        self.gates = Gates::new(&self.config, now);
        for server in self.upstreams.iter().map(|upstream| upstream.server).collect::<Vec<_>>() {
            self.fetch_all(server, now);
        }
    }

    /// Whether lists can be answered.
    fn lists_are_ready(&self, now: Instant) -> bool {
        let known = |upstream: &Upstream| upstream.settled || (upstream.catalogue.is_some() && now >= self.gates.known);
        now >= self.gates.lists || self.upstreams.iter().all(known)
    }

    /// Whether it can be told what the servers are able to do.
    fn capabilities_are_ready(&self, now: Instant) -> bool {
        let known = |upstream: &Upstream| upstream.settled || upstream.catalogue.is_some();
        now >= self.gates.capabilities || self.upstreams.iter().all(known)
    }

    /// Serves those that waited, as far as it can be done now.
    fn release(&mut self, now: Instant) {
        for Waiting { client, request, asked } in std::mem::take(&mut self.waiting) {
            self.serve(client, &request, asked, now);
        }
        if self.waiting.is_empty() {
            self.refreshes.clear();
        }
    }

    /// Merges the catalogues again, and announces to listeners what a server says is new and, if wanted, what differs.
    fn rebuild(&mut self, announced: &[Part], differences: bool, now: Instant) {
        let merged = Merged::new(self.config.prefix, &self.upstreams, &self.config.info);
        let before = std::mem::replace(&mut self.merged, merged);
        self.merged.warn_of_what_is_new_since(&before);
        let differs =
            |part: &Part| announced.contains(part) || differences && !before.lists_the_same(&self.merged, *part);
        let mut changes: Vec<&'static str> = Part::ALL.into_iter().filter(differs).map(Part::changed).collect();
        changes.dedup();
        for change in changes {
            self.announce(change, now);
        }
        self.listen_anew(now);
    }

    fn upstream(&mut self, server: Server) -> Option<&mut Upstream> {
        self.upstreams.iter_mut().find(|upstream| upstream.server == server)
    }

    fn fresh_id(&mut self) -> Id {
        self.next_id += 1;
        Id::from(self.next_id)
    }

    /// Says something about a client's request.
    fn tell(&mut self, client: Client, id: &Id, packet: impl Into<Packet>) {
        let packet = Packet { lane: Lane::Request(id.clone()), ..packet.into() };
        self.effects.push_back(Effect::ToClient(client, packet));
    }

    /// Answers a client's request, which is then forgotten.
    fn answer(&mut self, client: Client, id: &Id, packet: impl Into<Packet>) {
        if let Some(guest) = self.clients.get_mut(&client)
            && guest.under_way.remove(id).is_some()
        {
            self.tell(client, id, packet);
        }
    }

    fn refuse(&mut self, client: Client, id: &Id, fault: &Fault) {
        self.answer(client, id, fault.to_packet(Some(id)));
    }
}
