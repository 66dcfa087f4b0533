//! The connections to one server that a bridge holds: mostly one, more where eras are joined.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use mcpwire_proto::conversation::{Known, Upstream};
use mcpwire_proto::{Message, Packet, Policy, meta, method};
use tokio::task::JoinHandle;

use super::BACKLOG;
use crate::channel::{Receiver, Shortcut};
use crate::link::{Event, Link};
use crate::outgoing::Outgoing;

/// A link to the target; the handle, if there is one, completes when everything behind the link is gone.
pub type Connection = (Link, Option<JoinHandle<()>>);

/// How a link to the target is made.
pub type Connect = Arc<dyn Fn() -> anyhow::Result<Connection> + Send + Sync>;

/// A target: how to reach it, and what is known of it. Clones are the same target.
#[derive(Clone)]
pub struct Reach {
    connect: Connect,
    known: Arc<Mutex<Known>>,
    policy: Policy,
}

impl Reach {
    pub fn new(connect: Connect) -> Reach {
        Reach { connect, known: Arc::default(), policy: Policy::default() }
    }

    /// The same target, with something put in the way of each link to it. What is found out is known to both.
    pub fn map(&self, wrap: impl Fn(Link) -> Link + Send + Sync + 'static) -> Reach {
        let connect = Arc::clone(&self.connect);
        let wrapped = move || connect().map(|(link, goodbye)| (wrap(link), goodbye));
        Reach { connect: Arc::new(wrapped), known: Arc::clone(&self.known), policy: self.policy.clone() }
    }

    /// The same target, of which every bridge offers only what the policy allows.
    pub fn limited(self, policy: Policy) -> Reach {
        Reach { policy, ..self }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// A link to the target.
    pub fn open(&self) -> anyhow::Result<Connection> {
        (self.connect)()
    }

    pub fn known(&self) -> Known {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what was found out, for the conversations that come.
    pub fn learn(&self, known: Known) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("known", &self.known()).finish_non_exhaustive()
    }
}

/// The open connections, each with what waits to be sent on it.
#[derive(Debug)]
pub struct Upstreams {
    pub(super) reach: Reach,
    slots: Vec<Slot>,
    goodbyes: Vec<JoinHandle<()>>,
}

struct Slot {
    upstream: Upstream,
    to_server: Outgoing<Packet>,
    events: Receiver<Event>,
    /// It was asked for news.
    polled: bool,
    /// What it tells may be taken on the spot.
    direct: bool,
}

impl Slot {
    /// Whether the server need not hear of a cancellation: its request still waits here, and is taken back; or so much waits
    /// for a server that reads nothing that this would not reach it, either.
    fn is_spared(&mut self, cancellation: &Message) -> bool {
        let id = meta::cancelled_request(cancellation);
        let cancels = |packet: &Packet| packet.message.is_request() && packet.message.id() == id.as_ref();
        self.to_server.len() >= 2 * BACKLOG || (id.is_some() && self.to_server.take_back(cancels).is_some())
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({} waiting)", self.upstream, self.to_server.len())
    }
}

/// What happened on a connection.
pub(crate) enum News {
    /// It took a message.
    Sent,
    /// It has something to tell, or has ended.
    Came(Upstream, Option<Event>),
}

impl Upstreams {
    /// None is open yet.
    pub fn new(reach: Reach) -> Upstreams {
        Upstreams { reach, slots: Vec::new(), goodbyes: Vec::new() }
    }

    /// The first is open already, so that the server has a head start.
    pub fn opened(reach: Reach) -> anyhow::Result<Upstreams> {
        let mut upstreams = Upstreams::new(reach);
        upstreams.open(Upstream::FIRST)?;
        Ok(upstreams)
    }

    /// One link to a server that has no other.
    pub fn only(link: Link) -> Upstreams {
        let mut upstreams =
            Upstreams::new(Reach::new(Arc::new(|| anyhow::bail!("the server has one connection only"))));
        upstreams.insert(Upstream::FIRST, (link, None));
        upstreams
    }

    pub(super) fn has_first(&self) -> bool {
        self.slots.iter().any(|slot| slot.upstream == Upstream::FIRST)
    }

    pub(super) fn open(&mut self, upstream: Upstream) -> anyhow::Result<()> {
        let connection = self.reach.open()?;
        self.insert(upstream, connection);
        Ok(())
    }

    fn insert(&mut self, upstream: Upstream, (Link { tx, rx }, goodbye): Connection) {
        self.goodbyes.retain(|goodbye| !goodbye.is_finished());
        self.goodbyes.extend(goodbye);
        let to_server = Outgoing::new(tx);
        self.slots.push(Slot { upstream, to_server, events: rx, polled: false, direct: false });
    }

    /// Ends a connection. What waits to be sent on it is of no use any more.
    pub(super) fn close(&mut self, upstream: Upstream) {
        self.slots.retain(|slot| slot.upstream != upstream);
    }

    pub(super) fn push(&mut self, upstream: Upstream, packet: Packet) {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.upstream == upstream) else { return };
        if packet.message.is(method::CANCELLED) && slot.is_spared(&packet.message) {
            return;
        }
        slot.to_server.push(packet);
    }

    /// How many messages wait on the connection where most do.
    pub(super) fn backlog(&self) -> usize {
        self.slots.iter().map(|slot| slot.to_server.len()).max().unwrap_or(0)
    }

    /// Hands over what is to be sent, as far as it is taken at once.
    pub(super) fn flush(&mut self) {
        for slot in &mut self.slots {
            // A closed link tells by the end of its events.
            slot.to_server.flush();
        }
    }

    /// What has come already.
    pub(super) fn take(&mut self) -> Option<(Upstream, Event)> {
        self.slots.iter_mut().find_map(|slot| Some((slot.upstream, slot.events.try_recv().ok()?)))
    }

    /// Ready when a message was taken, or, if there is room for what comes of it, with what a connection has to tell.
    pub(super) fn poll_news(&mut self, read: bool, cx: &mut Context<'_>) -> Poll<News> {
        for slot in &mut self.slots {
            slot.polled = true;
            if slot.to_server.poll_room(cx).is_ready() {
                return Poll::Ready(News::Sent);
            }
            if read && let Poll::Ready(event) = slot.events.poll_recv(cx) {
                return Poll::Ready(News::Came(slot.upstream, event));
            }
        }
        Poll::Pending
    }

    /// Whether there is a connection that was never polled, or one with a message for which nobody waits for room.
    pub(super) fn want_to_be_polled(&self) -> bool {
        self.slots.iter().any(|slot| !slot.polled || slot.to_server.wants_to_be_polled())
    }

    /// Opens a shortcut, made by `make`, on every connection that has none yet.
    pub(super) fn open_shortcuts(&mut self, make: impl Fn(Upstream) -> Shortcut<Event>) {
        for slot in self.slots.iter_mut().filter(|slot| !slot.direct) {
            slot.events.open_shortcut(make(slot.upstream));
            slot.direct = true;
        }
    }

    /// Whether a connection is there and has told nothing that was not heard yet.
    pub(super) fn is_heard(&self, upstream: Upstream) -> bool {
        self.slots.iter().find(|slot| slot.upstream == upstream).is_some_and(|slot| slot.events.is_empty())
    }

    /// Ends all connections and waits until everything behind them is gone.
    pub async fn gone(mut self) {
        self.slots.clear();
        for goodbye in self.goodbyes {
            let _ = goodbye.await;
        }
    }
}
