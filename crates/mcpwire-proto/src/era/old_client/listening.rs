//! One `subscriptions/listen` that stands for everything a session-era client hears without asking.
//!
//! A subscription is a change of its filter: a new listen is opened first, and the old one closed when the new one is
//! acknowledged, so that no change is missed in between.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{OldClient, Out};
use crate::era::translate;
use crate::{Fault, Id, Kind, Lane, Message, Object, Packet, code, method};

/// How long to wait before a listen that the server has ended is opened again; it doubles up to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a server may take to say what it will tell of.
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(60);
/// How long the first calls wait for it.
const HOLD_CALLS: Duration = Duration::from_secs(1);
/// The most resources subscribed to at once.
const MOST_SUBSCRIPTIONS: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Listening {
    uris: BTreeSet<String>,
    /// The listen that is acknowledged.
    current: Option<Id>,
    /// The one that is to take its place.
    next: Option<Id>,
    /// Subscriptions that are answered when the next one is acknowledged, with their resource.
    waiting: Vec<(Id, String)>,
    /// How long they wait.
    until: Option<Instant>,
    /// The server ended it, or did not take it: when to listen again.
    retry_at: Option<Instant>,
    /// How often that happened since the last one was acknowledged.
    failures: u32,
    /// The server has no such thing.
    unsupported: bool,
    /// Calls that wait until the server listens to us, so that what they change is told.
    held: VecDeque<Message>,
    /// How long they wait; they do so once.
    held_until: Option<Instant>,
    waited_in_vain: bool,
}

#[derive(Deserialize, Default)]
struct Acknowledged {
    #[serde(default)]
    notifications: Honoured,
}

#[derive(Deserialize, Default)]
struct Honoured {
    #[serde(default, rename = "resourceSubscriptions")]
    uris: BTreeSet<String>,
}

impl Listening {
    pub(super) fn is(&self, id: &Id) -> bool {
        [&self.current, &self.next].into_iter().flatten().any(|known| known == id)
    }

    /// Whether a subscription under this id of the client's waits for its answer.
    pub(super) fn owes(&self, id: &Id) -> bool {
        self.waiting.iter().any(|(waiting, _)| waiting == id)
    }

    pub(super) fn owed(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn due_at(&self) -> Option<Instant> {
        let waiting = self.until.filter(|_| !self.waiting.is_empty());
        waiting.into_iter().chain(self.retry_at).chain(self.held_until).min()
    }

    /// Whether calls are to wait.
    pub(super) fn holds(&self) -> bool {
        self.current.is_none() && self.next.is_some() && !self.waited_in_vain
    }

    pub(super) fn hold(&mut self, call: Message, now: Instant) {
        self.held_until.get_or_insert(now + HOLD_CALLS);
        self.held.push_back(call);
    }

    /// Takes back a call that the server has not seen.
    pub(super) fn take_back(&mut self, id: &Id) -> bool {
        let before = self.held.len();
        self.held.retain(|call| call.id() != Some(id));
        self.held.len() < before
    }
}

impl OldClient {
    /// Sends the calls that waited.
    fn let_go(&mut self) {
        self.listening.held_until = None;
        for call in std::mem::take(&mut self.listening.held) {
            // One that was given up meanwhile is not to be made any more.
            if call.id().is_some_and(|id| self.routes.contains_key(id)) {
                self.tell_server(call);
            }
        }
    }

    /// Opens a listen for what the client is to hear now.
    pub(super) fn listen(&mut self) {
        let filter = self.filter();
        self.listening.retry_at = None;
        if let Some(superseded) = self.listening.next.take() {
            self.stop_listening(&superseded);
        }
        if self.listening.unsupported || filter == "{}" {
            if let Some(current) = self.listening.current.take() {
                self.stop_listening(&current);
            }
            self.let_go();
            let fault = Fault::Upstream("the subscription was taken back before it was made".into());
            return self.refuse_subscriptions(&fault.to_message(None));
        }
        let id = self.fresh_id();
        let request = Message::request(&id, method::LISTEN, Some(&format!(r#"{{"notifications":{filter}}}"#)));
        self.listening.next = Some(id);
        self.tell_server(self.introduce(request));
    }

    /// The kinds of change that the server tells of, and the resources that the client subscribed to.
    fn filter(&self) -> String {
        let discovered = self.discovered.as_deref().and_then(Object::parse).unwrap_or_default();
        let capabilities = discovered.object("capabilities").unwrap_or_default();
        let tells = |kind: &str| {
            capabilities.object(kind).is_some_and(|capability| capability.get("listChanged") == Some("true"))
        };
        let mut filter = Object::new();
        for (kind, name) in
            [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")]
        {
            if tells(kind) {
                filter.set(name, "true");
            }
        }
        if !self.listening.uris.is_empty() {
            filter.set("resourceSubscriptions", serde_json::json!(self.listening.uris).to_string());
        }
        filter.to_string()
    }

    fn stop_listening(&mut self, id: &Id) {
        let params = format!(r#"{{"requestId":{id}}}"#);
        self.tell_server(Message::notification(method::CANCELLED, Some(&params)));
    }

    pub(super) fn subscribe(&mut self, request: &Message, now: Instant) {
        let Some((id, uri)) = self.resource_of(request) else { return };
        if self.listening.unsupported || self.listening.uris.len() >= MOST_SUBSCRIPTIONS {
            let text = if self.listening.unsupported { "the server has no subscriptions" } else { "too many" };
            return self.tell_client(Fault::Upstream(text.into()).to_message(Some(&id)));
        }
        if !self.listening.uris.insert(uri.clone()) && self.listening.next.is_none() {
            return self.tell_client(Message::result(&id, "{}"));
        }
        self.listening.waiting.push((id, uri));
        self.listening.until = Some(now + ACKNOWLEDGE_WITHIN);
        self.listen();
    }

    /// Answers all subscriptions that wait with an error.
    pub(super) fn refuse_subscriptions(&mut self, error: &Message) {
        for (id, uri) in std::mem::take(&mut self.listening.waiting) {
            self.listening.uris.remove(&uri);
            self.tell_client(error.with_id(&id));
        }
    }

    /// The client does not wait for this subscription any more. It is made all the same: who cancels it may be too late.
    pub(super) fn forget_subscriber(&mut self, id: &Id) -> bool {
        let before = self.listening.waiting.len();
        self.listening.waiting.retain(|(waiting, _)| waiting != id);
        self.listening.waiting.len() < before
    }

    pub(super) fn unsubscribe(&mut self, request: &Message) {
        let Some((id, uri)) = self.resource_of(request) else { return };
        if self.listening.uris.remove(&uri) {
            self.listen();
        }
        self.tell_client(Message::result(&id, "{}"));
    }

    fn resource_of(&mut self, request: &Message) -> Option<(Id, String)> {
        let id = request.id()?.clone();
        let uri = request.members().and_then(|params| params.string("uri"));
        if uri.is_none() {
            self.tell_client(Fault::Params("expected uri to be a string".into()).to_message(Some(&id)));
        }
        Some((id, uri?))
    }

    /// A notification on one of our listens.
    pub(super) fn heard(&mut self, subscription: &Id, message: &Message, now: Instant) {
        if message.is(method::ACKNOWLEDGED) {
            if self.listening.next.as_ref() == Some(subscription) {
                self.acknowledged(message);
            }
            return;
        }
        if message.is(method::CANCELLED) {
            return self.listen_again(subscription, now);
        }
        let message = translate::unsubscribed(message);
        self.out.push_back(Out::Client(Packet::new(Lane::Main, message)));
    }

    fn acknowledged(&mut self, message: &Message) {
        let next = self.listening.next.take();
        if let Some(old) = std::mem::replace(&mut self.listening.current, next) {
            self.stop_listening(&old);
        }
        self.listening.failures = 0;
        self.let_go();
        let honoured = message.read::<Acknowledged>().unwrap_or_default().notifications.uris;
        for (id, uri) in std::mem::take(&mut self.listening.waiting) {
            if honoured.contains(&uri) {
                self.tell_client(Message::result(&id, "{}"));
            } else {
                self.listening.uris.remove(&uri);
                let fault = Fault::Params("the server does not tell of changes of this resource".into());
                self.tell_client(fault.to_message(Some(&id)));
            }
        }
    }

    /// The server has answered a listen, which ends it.
    pub(super) fn listen_ended(&mut self, subscription: &Id, answer: &Message, now: Instant) {
        if let Kind::Error { .. } = answer.kind() {
            let told = answer.read::<translate::ErrorObject<'_>>();
            tracing::warn!(target: "era", "cannot listen: {}", told.as_ref().map_or("", |told| &told.message));
            self.listening.unsupported |= told.is_some_and(|told| told.code == i64::from(code::METHOD_NOT_FOUND));
            self.refuse_subscriptions(answer);
        }
        self.listen_again(subscription, now);
    }

    /// A listen is over: another takes its place after a pause.
    pub(super) fn listen_again(&mut self, ended: &Id, now: Instant) {
        let Listening { current, next, failures, retry_at, unsupported, .. } = &mut self.listening;
        for listen in [current, next] {
            listen.take_if(|id| id == ended);
        }
        if !*unsupported {
            let pause = (SHORTEST_PAUSE * 2u32.saturating_pow(*failures)).min(LONGEST_PAUSE);
            *failures = (*failures + 1).min(10);
            *retry_at = Some(now + pause);
        }
        self.let_go();
    }

    pub(super) fn listening_due(&mut self, now: Instant) {
        if self.listening.until.take_if(|until| *until <= now).is_some() {
            let fault = Fault::Upstream("the server did not say whether it tells of changes of this resource".into());
            self.refuse_subscriptions(&fault.to_message(None));
        }
        if self.listening.held_until.is_some_and(|until| until <= now) {
            self.listening.waited_in_vain = true;
            self.let_go();
        }
        if self.listening.retry_at.is_some_and(|at| at <= now) {
            self.listen();
        }
    }

    /// A new session begins with nothing subscribed to.
    pub(super) fn forget_subscriptions(&mut self) {
        self.let_go();
        let old = std::mem::take(&mut self.listening);
        old.current.iter().chain(&old.next).for_each(|id| self.stop_listening(id));
        for (id, _) in old.waiting {
            self.tell_client(Fault::Upstream("another initialize came".into()).to_message(Some(&id)));
        }
    }
}
