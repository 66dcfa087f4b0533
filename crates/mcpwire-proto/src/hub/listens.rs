//! Who hears of which changes: clients listen to the hub, and the hub listens to each server for all of them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::answers::Owed;
use super::{Client, Effect, Hub, Place, Server};
use crate::era::subscribed;
use crate::filter::{Filter, covers};
use crate::{Fault, Id, Kind, Message, meta, method};

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
    wanted: Filter,
    /// When it is acknowledged at the latest; none once it is.
    pub acknowledge_by: Option<Instant>,
    /// Changes that came before that.
    early: Vec<Message>,
}

impl Hub {
    pub(super) fn listen(&mut self, client: Client, id: &Id, wanted: Option<Filter>, now: Instant) {
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
        let listen = Listen { id: id.clone(), wanted, acknowledge_by, early: Vec::new() };
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
            if !upstream.live || !upstream.open || upstream.listening.refused || upstream.listening.retry_at.is_some() {
                continue;
            }
            let server = upstream.server;
            let uris = self.wanted_of(server);
            let listening = &self.upstreams[at].listening;
            let open = listening.current.is_some() || listening.next.is_some();
            if !open || listening.uris != uris {
                self.open_listen(server, uris);
            }
        }
        self.acknowledge_listens(now);
    }

    /// The resources that somebody wants to hear of and that may be this server's.
    fn wanted_of(&self, server: Server) -> BTreeSet<String> {
        let wanted = self.listens.values().flat_map(|listen| &listen.wanted.resource_subscriptions);
        let wanted: BTreeSet<&String> = wanted.collect();
        wanted.into_iter().filter(|uri| self.may_tell_of(server, uri)).cloned().collect()
    }

    fn may_tell_of(&self, server: Server, uri: &str) -> bool {
        match self.merged.resource(uri) {
            Some(owner) => owner == server,
            None => self.candidates(uri).contains(&server),
        }
    }

    /// Opens a listen; an earlier one stays until this one is acknowledged, so that nothing is missed.
    fn open_listen(&mut self, server: Server, uris: BTreeSet<String>) {
        let id = self.fresh_id();
        let Some(upstream) = self.upstream(server) else { return };
        let Some(identity) = &upstream.identity else { return };
        let wanted = Filter {
            tools_list_changed: true,
            prompts_list_changed: true,
            resources_list_changed: true,
            resource_subscriptions: uris.iter().cloned().collect(),
        };
        let params = format!(r#"{{"_meta":{identity},"notifications":{}}}"#, wanted.to_json());
        let superseded = upstream.listening.next.replace(id.clone());
        upstream.listening.uris = uris;
        let request = Message::request(&id, method::LISTEN, Some(&params));
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
        let Some(upstream) = self.upstream(server).filter(|upstream| upstream.listening.next.as_ref() == Some(&id))
        else {
            return;
        };
        let params = message.members().unwrap_or_default();
        let honoured = params.object("notifications").unwrap_or_default();
        let uris = honoured.get("resourceSubscriptions").and_then(|uris| serde_json::from_str(uris).ok());
        upstream.listening.honoured = uris.unwrap_or_default();
        upstream.listening.next = None;
        let before = upstream.listening.current.replace(id);
        before.iter().for_each(|before| self.end_listen(server, before));
        self.acknowledge_listens(now);
    }

    /// The server ended our listen, or refused it.
    pub(super) fn listen_ended(&mut self, server: Server, ours: &Id, answer: &Message, now: Instant) {
        let Some(upstream) = self.upstream(server) else { return };
        let listening = &mut upstream.listening;
        listening.current.take_if(|current| current == ours);
        listening.next.take_if(|next| next == ours);
        if listening.current.is_none() && listening.next.is_none() {
            let refused = matches!(answer.kind(), Kind::Error { .. }) && !crate::failure::tells_of_no_answer(answer);
            listening.refused = refused;
            listening.retry_at = (!refused).then(|| now + upstream.backoff.next_wait());
        }
        self.acknowledge_listens(now);
    }

    pub(super) fn listen_cancelled(&mut self, server: Server, message: &Message, now: Instant) {
        let Some(id) = meta::cancelled_request(message) else { return };
        if matches!(self.owed.entry(&id), Some(Owed::Listen { server: asked }) if *asked == server) {
            self.owed.settle(&id);
            self.listen_ended(server, &id, message, now);
        }
    }

    pub(super) fn listen_timeout(&mut self, server: Server, now: Instant) {
        let Some(upstream) = self.upstream(server) else { return };
        if upstream.listening.retry_at.take_if(|at| *at <= now).is_some() {
            self.listen_anew(now);
            // Nobody told of changes in the meantime.
            self.fetch_parts(server, super::Part::ALL.into_iter().collect(), now);
        }
    }

    /// Whether a notification came on a listen of ours.
    pub(super) fn is_our_listen(&mut self, server: Server, message: &Message) -> bool {
        let id = meta::subscription_id(message);
        id.and_then(|id| self.owed.entry(&id))
            .is_some_and(|owed| matches!(owed, Owed::Listen { server: asked } if *asked == server))
    }

    /// Acknowledges the listens of clients that are in force, or have waited for long enough.
    pub(super) fn acknowledge_listens(&mut self, now: Instant) {
        let due = |listen: &Listen| listen.acknowledge_by.is_some_and(|by| by <= now || self.is_in_force(listen));
        let due: Vec<(Client, u64)> = self.listens.iter().filter(|(_, l)| due(l)).map(|(key, _)| *key).collect();
        for key in due {
            let Some(listen) = self.listens.get(&key) else { continue };
            let mut honoured = listen.wanted.clone();
            honoured.resource_subscriptions.retain(|uri| self.is_told_of(uri));
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
        let settled = self.upstreams.iter().filter(|upstream| upstream.listening.next.is_some());
        let asked: Vec<&BTreeSet<String>> = settled.map(|upstream| &upstream.listening.uris).collect();
        listen.wanted.resource_subscriptions.iter().all(|uri| !asked.iter().any(|uris| uris.contains(uri)))
    }

    fn is_told_of(&self, uri: &str) -> bool {
        self.upstreams.iter().any(|upstream| upstream.listening.honoured.contains(uri))
    }

    /// Tells those who listen of a change: one of our own, or one that a server told of.
    pub(super) fn publish(&mut self, change: &Message, from: Option<Server>) {
        let uri = change.members().and_then(|params| params.string("uri"));
        let mut told = Vec::new();
        let mut early = Vec::new();
        for (key, listen) in &self.listens {
            if !listen.wanted.wants(change) {
                continue;
            }
            if let (Some(server), Some(uri)) = (from, &uri) {
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
