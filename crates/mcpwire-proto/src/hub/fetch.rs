//! The hub's own requests: what each server has to offer, page by page, and again when it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::answers::Owed;
use super::asker::Asker;
use super::catalogue::{Catalogue, Page, Part, Reuse, page};
use super::refresh::Freshness;
use super::{Effect, Hub, Server};
use crate::meta::key;
use crate::object::quoted;
use crate::version::V2026_07_28;
use crate::{Id, Kind, Message, Packet, method};

/// The most pages of one list.
const MOST_PAGES: usize = 1000;

/// One of the hub's own questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Discover,
    List(Part),
}

/// A catalogue in the making.
#[derive(Debug)]
pub(super) struct Fetch {
    pub deadline: Instant,
    gathered: Catalogue,
    /// Everything is asked for, and not some of the lists alone.
    whole: bool,
    /// How many answers are still to come.
    open: usize,
    pages: usize,
    /// When each list was asked for, and how long it may be reused.
    lists: BTreeMap<Part, (Instant, Reuse)>,
    /// What the server said is new.
    announced: Vec<Part>,
}

impl Fetch {
    fn new(gathered: Catalogue, whole: bool, deadline: Instant) -> Fetch {
        Fetch { deadline, gathered, whole, open: 0, pages: 0, lists: BTreeMap::new(), announced: Vec::new() }
    }
}

impl Hub {
    /// Asks for everything.
    pub(super) fn fetch_all(&mut self, server: Server, now: Instant) {
        let identity = self.identity.clone().unwrap_or_else(|| Asker::hub(own_identity(&self.config.info)));
        let deadline = now + self.config.settle;
        let Some(upstream) = self.upstream(server).filter(|upstream| upstream.fetch.is_none()) else { return };
        upstream.identity.get_or_insert(identity);
        upstream.retry_at = None;
        upstream.stale.clear();
        upstream.fetch = Some(Fetch::new(Catalogue::default(), true, deadline));
        if !std::mem::replace(&mut upstream.open, true) {
            self.effects.push_back(Effect::Open(server));
        }
        self.ask(server, Ask::Discover, None, now);
    }

    /// The server says that parts of its catalogue are new.
    pub(super) fn fetch_parts(&mut self, server: Server, parts: BTreeSet<Part>, now: Instant) {
        let (deadline, pause) = (now + self.config.settle, self.config.coalesce);
        let Some(upstream) = self.upstream(server) else { return };
        let may_ask = upstream.live && upstream.fetch.is_none() && upstream.refetch_at.is_none_or(|at| at <= now);
        let Some(catalogue) = upstream.catalogue.clone().filter(|_| may_ask) else {
            // They are asked for again when what is under way is done, and the pause is over.
            return upstream.stale.extend(parts);
        };
        upstream.refetch_at = Some(now + pause);
        let mut fetch = Fetch::new(Catalogue::clone(&catalogue), false, deadline);
        fetch.announced = parts.iter().copied().collect();
        upstream.fetch = Some(fetch);
        for part in parts {
            self.ask(server, Ask::List(part), None, now);
        }
    }

    /// A client wants to know what is on a list by now. If that list is being asked for already, it is asked for again
    /// when that is done.
    pub(super) fn fetch_again(&mut self, server: Server, part: Part, now: Instant) {
        let deadline = now + self.config.settle;
        let Some(upstream) = self.upstream(server) else { return };
        match (&upstream.fetch, &upstream.catalogue) {
            (Some(fetch), _) if fetch.whole || fetch.lists.contains_key(&part) => return,
            (Some(_), _) => {}
            (None, Some(known)) => upstream.fetch = Some(Fetch::new(Catalogue::clone(known), false, deadline)),
            (None, None) => return,
        }
        self.ask(server, Ask::List(part), None, now);
    }

    fn ask(&mut self, server: Server, ask: Ask, cursor: Option<&str>, now: Instant) {
        let id = self.fresh_id();
        let Some(upstream) = self.upstream(server) else { return };
        let (Some(fetch), Some(identity)) = (&mut upstream.fetch, &upstream.identity) else { return };
        fetch.open += 1;
        if let (Ask::List(part), None) = (ask, cursor) {
            fetch.gathered.part_mut(part).clear();
            fetch.lists.insert(part, (now, Reuse::UntilChanged));
        }
        let cursor = cursor.map(|cursor| format!(r#","cursor":{cursor}"#)).unwrap_or_default();
        let method = match ask {
            Ask::Discover => method::DISCOVER,
            Ask::List(part) => part.method(),
        };
        let request = identity.request(&id, method, &cursor);
        let _ = self.owed.open(id, Owed::Own { server, ask });
        self.effects.push_back(Effect::ToServer(server, request));
    }

    /// The server has answered one of our questions.
    pub(super) fn fetched(&mut self, server: Server, ask: Ask, packet: &Packet, now: Instant) {
        let answer = &packet.message;
        let Some(upstream) = self.upstream(server) else { return };
        let Some(fetch) = &mut upstream.fetch else { return };
        fetch.open = fetch.open.saturating_sub(1);
        let result = answer.payload().filter(|_| matches!(answer.kind(), Kind::Result { .. }));
        let mut more: Vec<(Ask, Option<String>)> = Vec::new();
        match (ask, result) {
            // A server that does not describe itself may serve all the same; any other refusal is of us.
            (Ask::Discover, None) if !is_unknown_method(answer) => {
                return self.fetch_failed(server, answer.payload().unwrap_or_default(), now);
            }
            (_, None) if packet.is_unanswered() => {
                return self.fetch_failed(server, answer.payload().unwrap_or_default(), now);
            }
            (Ask::Discover, result) => {
                fetch.gathered.describe(result.unwrap_or_default());
                let known = fetch.gathered.capabilities.is_some();
                let has = |part: &Part| !known || fetch.gathered.has(part.capability(), None);
                more.extend(Part::ALL.into_iter().filter(has).map(|part| (Ask::List(part), None)));
            }
            (Ask::List(part), result) => match result.and_then(|result| page(part, result, packet.of_session)) {
                Some(Page { items, next, reuse }) => {
                    fetch.gathered.part_mut(part).extend(items);
                    fetch.lists.entry(part).and_modify(|(_, shortest)| *shortest = reuse.min(*shortest));
                    fetch.pages += 1;
                    if fetch.pages <= MOST_PAGES {
                        more.extend(next.map(|cursor| (ask, Some(cursor))));
                    }
                }
                None => {
                    fetch.lists.entry(part).and_modify(|(_, reuse)| *reuse = Reuse::Never);
                    // What it listed before counts until it lists something else.
                    if let Some(known) = upstream.catalogue.as_ref().filter(|_| !fetch.whole) {
                        fetch.gathered.part_mut(part).clone_from(known.part(part));
                    }
                    tracing::debug!(target: "hub", "{} does not list its {}", upstream.spec.name, part.member());
                }
            },
        }
        let done = more.is_empty() && fetch.open == 0;
        for (ask, cursor) in more {
            self.ask(server, ask, cursor.as_deref(), now);
        }
        if done {
            self.fetch_done(server, now);
        }
    }

    fn fetch_done(&mut self, server: Server, now: Instant) {
        let Some(upstream) = self.upstream(server) else { return };
        let Some(Fetch { gathered, announced, whole, lists, .. }) = upstream.fetch.take() else { return };
        let catalogue = Arc::new(gathered);
        if !upstream.live {
            tracing::info!(target: "hub", "{} is there, with {} tools", upstream.spec.name, catalogue.tools.len());
        }
        let news = !upstream.live || upstream.catalogue.as_ref() != Some(&catalogue);
        (upstream.live, upstream.settled) = (true, true);
        upstream.catalogue = Some(Arc::clone(&catalogue));
        let lists = lists.into_iter().map(|(part, (asked, reuse))| (part, Freshness::new(asked, reuse, now)));
        upstream.freshness.extend(lists);
        upstream.backoff.reset();
        upstream.failing = false;
        upstream.breaker.close();
        let stale = std::mem::take(&mut upstream.stale);
        if news {
            self.effects.push_back(Effect::Told(server, catalogue));
        }
        // If a client's request brought a difference to light, its server chose to announce nothing, and so do we: a
        // list that differs each time would otherwise be announced, and asked for, without end.
        if news || !announced.is_empty() {
            self.rebuild(&announced, whole, now);
        }
        self.release(now);
        if !stale.is_empty() {
            self.fetch_parts(server, stale, now);
        }
    }

    /// The server did not answer: it is asked again later, and nobody waits for it.
    pub(super) fn fetch_failed(&mut self, server: Server, why: &str, now: Instant) {
        let Some(upstream) = self.upstream(server) else { return };
        upstream.fetch = None;
        (upstream.live, upstream.settled) = (false, true);
        let wait = upstream.backoff.next_wait();
        upstream.retry_at = Some(now + wait);
        let name = &upstream.spec.name;
        if !std::mem::replace(&mut upstream.failing, true) {
            tracing::warn!(target: "hub", "{name} does not tell what it offers, and is tried again: {why}");
        }
        self.withdraw_questions(server);
        self.release(now);
    }

    /// Takes back what we asked and is not answered.
    fn withdraw_questions(&mut self, server: Server) {
        let ours = |owed: &Owed| matches!(owed, Owed::Own { server: asked, .. } if *asked == server);
        let open = self.upstream(server).is_some_and(|upstream| upstream.open);
        for id in self.owed.ids_where(ours) {
            self.owed.settle(&id);
            if open {
                self.cancel(server, &id);
            }
        }
    }

    pub(super) fn cancel(&mut self, server: Server, id: &Id) {
        let params = format!(r#"{{"requestId":{id}}}"#);
        let cancelled = Message::notification(method::CANCELLED, Some(&params));
        self.effects.push_back(Effect::ToServer(server, cancelled));
    }

    pub(super) fn fetch_timeout(&mut self, server: Server, now: Instant) {
        let Some(upstream) = self.upstream(server) else { return };
        if upstream.fetch.as_ref().is_some_and(|fetch| fetch.deadline <= now) {
            return self.fetch_failed(server, "it did not answer in time", now);
        }
        if upstream.awaits_refetch() && upstream.refetch_at.is_none_or(|at| at <= now) {
            let stale = std::mem::take(&mut upstream.stale);
            return self.fetch_parts(server, stale, now);
        }
        // If something is asked already, that will show as well whether it is back.
        if upstream.retry_at.take_if(|at| *at <= now).is_some() {
            self.fetch_all(server, now);
        }
    }
}

fn is_unknown_method(error: &Message) -> bool {
    let error = error.members();
    error.is_some_and(|error| error.get("code") == Some("-32601"))
}

/// What we say of ourselves before anybody came whose words we could use. Servers offer more to clients that can do more.
fn own_identity(info: &str) -> String {
    format!(
        r#"{{"{}":{},"{}":{info},"{}":{{"elicitation":{{"form":{{}},"url":{{}}}},"roots":{{}},"sampling":{{}}}}}}"#,
        key::PROTOCOL_VERSION,
        quoted(V2026_07_28),
        key::CLIENT_INFO,
        key::CLIENT_CAPABILITIES,
    )
}
