//! Who hears of which changes: clients listen to the hub, and the hub listens to each server for all of the same sort.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::answers::Owed;
use super::asker::Asker;
use super::{Client, Effect, Hub, Place, Server};
use crate::era::subscribed;
use crate::filter::{Filter, covers};
use crate::{Fault, Id, Kind, Message, Packet, meta, method};

/// The most resources in one listen, and the most listens of one client.
const MOST_RESOURCES: usize = 10_000;
const MOST_LISTENS: usize = 1024;
/// The most changes that wait for a listen to be acknowledged.
const MOST_EARLY: usize = 100;
/// How long servers may take to say whether they tell of a resource.
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(5);

/// A client's listen.
#[derive(Debug)]
pub(super) struct Listen {
    id: Id,
    /// What the client says of itself. A server of the session era may have a process for each sort of client, and what
    /// one changes by its calls only that process tells of.
    identity: Asker,
    wanted: Filter,
    /// When it is acknowledged at the latest; none once it is.
    pub acknowledge_by: Option<Instant>,
    /// Changes that came before that.
    early: Vec<Message>,
}

impl Listen {
    pub(super) fn wants(&self, change: &Message) -> bool {
        self.wanted.wants(change)
    }
}

impl Hub {
    pub(super) fn listen(&mut self, client: Client, id: &Id, identity: Asker, wanted: Option<Filter>, now: Instant) {
        let wanted = wanted.filter(|wanted| wanted.resource_subscriptions.len() <= MOST_RESOURCES);
        let Some(mut wanted) = wanted else {
            let text = format!("expected notifications to be a filter with at most {MOST_RESOURCES} resources");
            return self.refuse(client, id, &Fault::Params(text));
        };
        if self.listens.range((client, 0)..=(client, u64::MAX)).count() >= MOST_LISTENS {
            let text = format!("a client may have {MOST_LISTENS} subscriptions");
            return self.refuse(client, id, &Fault::Upstream(text));
        }
        if let Some(guest) = self.clients.get_mut(&client) {
            guest.under_way.insert(id.clone(), Place::Listening);
        }
        wanted.resource_subscriptions.sort();
        wanted.resource_subscriptions.dedup();
        self.next_id += 1;
        let acknowledge_by = Some(now + ACKNOWLEDGE_WITHIN);
        let listen = Listen { id: id.clone(), identity, wanted, acknowledge_by, early: Vec::new() };
        self.listens.insert((client, self.next_id), listen);
        self.listen_anew(now);
    }

    /// A client listens no more.
    pub(super) fn unlisten(&mut self, client: Client, id: &Id, now: Instant) {
        self.listens.retain(|(listener, _), listen| *listener != client || listen.id != *id);
        self.listen_anew(now);
    }

    /// Brings our listens to what clients want to hear of, and acknowledges theirs as far as that is so.
    pub(super) fn listen_anew(&mut self, now: Instant) {
        for at in 0..self.upstreams.len() {
            let upstream = &self.upstreams[at];
            let Some(own) = upstream.identity.clone().filter(|_| upstream.live && upstream.open) else { continue };
            let server = upstream.server;
            let mut wanted = self.wanted_of(server);
            wanted.entry(own).or_default();
            self.end_unwanted(server, &wanted);
            for (identity, uris) in wanted {
                let listening = self.upstreams[at].listening.entry(identity.clone()).or_default();
                let may_open = !listening.refused && listening.retry_at.is_none();
                if may_open && (!listening.is_open() || listening.uris != uris) {
                    self.open_listen(server, &identity, uris);
                }
            }
        }
        self.acknowledge_listens(now);
    }

    /// The resources that somebody wants to hear of and that may be this server's, by the sort of client.
    fn wanted_of(&self, server: Server) -> BTreeMap<Asker, BTreeSet<String>> {
        let mut wanted: BTreeMap<Asker, BTreeSet<String>> = BTreeMap::new();
        for listen in self.listens.values() {
            for uri in listen.wanted.resource_subscriptions.iter().filter(|uri| self.may_tell_of(server, uri)) {
                wanted.entry(listen.identity.clone()).or_default().insert(uri.clone());
            }
        }
        wanted
    }

    /// Ends our listens for sorts of clients that want nothing of the server any more.
    fn end_unwanted(&mut self, server: Server, wanted: &BTreeMap<Asker, BTreeSet<String>>) {
        let Some(upstream) = self.upstream(server) else { return };
        let mut unwanted: Vec<Id> = Vec::new();
        upstream.listening.retain(|identity, listening| {
            let keep = wanted.contains_key(identity);
            if !keep {
                unwanted.extend(listening.current.take().into_iter().chain(listening.next.take()));
            }
            keep
        });
        unwanted.iter().for_each(|id| self.end_listen(server, id));
    }

    fn may_tell_of(&self, server: Server, uri: &str) -> bool {
        match self.merged.resource(uri) {
            Some(owner) => owner == server,
            None => self.candidates(uri).contains(&server),
        }
    }

    /// Opens a listen; an earlier one stays until this one is acknowledged, so that nothing is missed.
    fn open_listen(&mut self, server: Server, identity: &Asker, uris: BTreeSet<String>) {
        let id = self.fresh_id();
        let own = |uri: &String| self.merged.apps().own(uri).map_or_else(|| uri.clone(), |(_, own)| own.to_owned());
        let resource_subscriptions = uris.iter().map(own).collect();
        let Some(upstream) = self.upstream(server) else { return };
        // The catalogue is the one we asked for ourselves, so nobody else's lists count.
        let own = upstream.identity.as_ref() == Some(identity);
        let wanted = Filter {
            tools_list_changed: own,
            prompts_list_changed: own,
            resources_list_changed: own,
            resource_subscriptions,
        };
        let listening = upstream.listening.entry(identity.clone()).or_default();
        let superseded = listening.next.replace(id.clone());
        listening.uris = uris;
        let request = identity.request(&id, method::LISTEN, &format!(r#","notifications":{}"#, wanted.to_json()));
        let _ = self.owed.open(id, Owed::Listen { server });
        self.effects.push_back(Effect::ToServer(server, request));
        superseded.iter().for_each(|id| self.end_listen(server, id));
    }

    fn end_listen(&mut self, server: Server, id: &Id) {
        if self.owed.settle(id).is_some() {
            self.cancel(server, id);
        }
    }

    /// The server says what it will tell of.
    pub(super) fn listen_acknowledged(&mut self, server: Server, message: &Message, now: Instant) {
        let Some(id) = meta::subscription_id(message) else { return };
        let params = message.members().unwrap_or_default();
        let honoured = params.object("notifications").unwrap_or_default();
        let uris = honoured.get("resourceSubscriptions").and_then(|uris| serde_json::from_str(uris).ok());
        let uris: Vec<String> = uris.unwrap_or_default();
        let apps = self.merged.apps();
        let offered = |uri: String| apps.offered(server, &uri).map(str::to_owned).unwrap_or(uri);
        let honoured = uris.into_iter().map(offered).collect();
        let Some(upstream) = self.upstream(server) else { return };
        let next = upstream.listening.values_mut().find(|listening| listening.next.as_ref() == Some(&id));
        let Some(listening) = next else { return };
        listening.honoured = honoured;
        listening.next = None;
        let before = listening.current.replace(id);
        before.iter().for_each(|before| self.end_listen(server, before));
        self.acknowledge_listens(now);
    }

    /// The server ended our listen, or refused it.
    pub(super) fn listen_ended(&mut self, server: Server, ours: &Id, answer: &Packet, now: Instant) {
        let Some(upstream) = self.upstream(server) else { return };
        let Some(listening) = upstream.listening.values_mut().find(|listening| listening.is(ours)) else { return };
        listening.current.take_if(|current| current == ours);
        listening.next.take_if(|next| next == ours);
        if !listening.is_open() {
            let refused = matches!(answer.message.kind(), Kind::Error { .. }) && !answer.is_unanswered();
            listening.refused = refused;
            listening.retry_at = (!refused).then(|| now + upstream.backoff.next_wait());
        }
        self.acknowledge_listens(now);
    }

    pub(super) fn listen_cancelled(&mut self, server: Server, message: &Message, now: Instant) {
        let Some(id) = meta::cancelled_request(message) else { return };
        if matches!(self.owed.entry(&id), Some(Owed::Listen { server: asked }) if *asked == server) {
            self.owed.settle(&id);
            self.listen_ended(server, &id, &message.clone().into(), now);
        }
    }

    pub(super) fn listen_timeout(&mut self, server: Server, now: Instant) {
        let Some(upstream) = self.upstream(server) else { return };
        let (mut due, mut unheard) = (false, false);
        for (identity, listening) in &mut upstream.listening {
            if listening.retry_at.take_if(|at| *at <= now).is_some() {
                due = true;
                unheard |= upstream.identity.as_ref() == Some(identity);
            }
        }
        if due {
            self.listen_anew(now);
        }
        if unheard {
            // Nobody told of changes in the meantime.
            self.fetch_parts(server, super::Part::ALL.into_iter().collect(), now);
        }
    }

    /// For which sort of client we listen where this notification came from; none if it is no listen of ours.
    pub(super) fn listening_for(&mut self, server: Server, message: &Message) -> Option<Asker> {
        let id = meta::subscription_id(message)?;
        let mut listening = self.upstream(server)?.listening.iter();
        listening.find(|(_, listening)| listening.is(&id)).map(|(identity, _)| identity.clone())
    }

    /// Acknowledges the listens of clients that are in force, or have waited for long enough.
    pub(super) fn acknowledge_listens(&mut self, now: Instant) {
        let due = |listen: &Listen| listen.acknowledge_by.is_some_and(|by| by <= now || self.is_in_force(listen));
        let due: Vec<(Client, u64)> = self.listens.iter().filter(|(_, l)| due(l)).map(|(key, _)| *key).collect();
        for key in due {
            let Some(listen) = self.listens.get(&key) else { continue };
            let mut honoured = listen.wanted.clone();
            honoured.resource_subscriptions.retain(|uri| self.is_told_of(uri, &listen.identity));
            let Some(listen) = self.listens.get_mut(&key) else { continue };
            listen.acknowledge_by = None;
            let (id, early) = (listen.id.clone(), std::mem::take(&mut listen.early));
            let params = format!(r#"{{"notifications":{}}}"#, honoured.to_json());
            let acknowledged = Message::notification(method::ACKNOWLEDGED, Some(&params));
            for message in std::iter::once(acknowledged).chain(early) {
                self.tell(key.0, &id, subscribed(&message, &id));
            }
        }
    }

    /// Whether every server that may tell of its resources has said whether it does.
    fn is_in_force(&self, listen: &Listen) -> bool {
        let listening = self.upstreams.iter().filter_map(|upstream| upstream.listening.get(&listen.identity));
        let asked = listening.filter(|listening| listening.next.is_some()).map(|listening| &listening.uris);
        let asked: Vec<&BTreeSet<String>> = asked.collect();
        listen.wanted.resource_subscriptions.iter().all(|uri| !asked.iter().any(|uris| uris.contains(uri)))
    }

    fn is_told_of(&self, uri: &str, identity: &Asker) -> bool {
        let mut listening = self.upstreams.iter().filter_map(|upstream| upstream.listening.get(identity));
        listening.any(|listening| listening.honoured.contains(uri))
    }

    /// Tells those who listen of a change: one of our own, or one that a server told a sort of client of.
    pub(super) fn publish(&mut self, change: &Message, from: Option<(Server, &Asker)>) {
        let uri = change.members().and_then(|params| params.string("uri"));
        let mut told = Vec::new();
        let mut early = Vec::new();
        for (key, listen) in &self.listens {
            if !listen.wanted.wants(change) {
                continue;
            }
            if from.is_some_and(|(_, identity)| *identity != listen.identity) {
                continue;
            }
            if let (Some((server, _)), Some(uri)) = (from, &uri) {
                let mut wanted = listen.wanted.resource_subscriptions.iter().filter(|wanted| covers(wanted, uri));
                if !wanted.any(|wanted| self.may_tell_of(server, wanted)) {
                    continue;
                }
            }
            match listen.acknowledge_by {
                Some(_) => early.push(*key),
                None => told.push((key.0, listen.id.clone())),
            }
        }
        for (client, id) in told {
            self.tell(client, &id, subscribed(change, &id));
        }
        for key in early {
            if let Some(listen) = self.listens.get_mut(&key).filter(|listen| listen.early.len() < MOST_EARLY) {
                listen.early.push(change.clone());
            }
        }
    }
}
