//! Many servers behind one link: one loop around [`mcpwire_proto::hub`], which decides everything.
//!
//! A hub is a target like any other, and speaks the stateless era alone. Each of its servers has a side of a bridge of its
//! own, so that what the servers speak, and that they come and go, is nothing the hub has to know of.

mod guests;
mod servers;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

pub use mcpwire_proto::hub::{Catalogue, Item, Part, Prefix};

use mcpwire_proto::conversation::{self, Known};
use mcpwire_proto::hub::{self as machine, Client, Effect, Server};
use tokio::sync::mpsc;
use tokio::task::{self, JoinHandle, coop};

use self::guests::Guests;
use self::servers::{Servers, Told};
use crate::alarm::Alarm;
use crate::bells::{Bell, Bells};
use crate::bridge::Reach;
use crate::health::Health;
use crate::link::{Link, Port};

/// How many messages of one client or server are handled between two looks at everything else.
const BURST: usize = 64;
/// How many new clients and orders wait.
const ORDERS: usize = 16;
/// How often to look at servers that somebody waits for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A server behind a hub.
#[derive(Clone)]
pub struct Spec {
    /// Part of the names of its tools; different for each server of a hub.
    pub name: String,
    /// Changes with the configuration: what is applied anew under the same hash stays as it is.
    pub hash: String,
    /// Its policy says which of its tools are offered.
    pub reach: Reach,
    pub config: conversation::Config,
    pub health: Health,
    /// What it had to offer when it was last seen.
    pub cached: Option<Catalogue>,
}

impl Spec {
    /// A server with everything left as it is.
    pub fn new(name: &str, reach: Reach, config: conversation::Config) -> Spec {
        Spec { name: name.to_owned(), hash: String::new(), reach, config, health: Health::new(name), cached: None }
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec").field("name", &self.name).field("hash", &self.hash).finish_non_exhaustive()
    }
}

/// Is told what a server has to offer whenever it has told: the name, the hash, the catalogue.
pub type OnCatalogue = Arc<dyn Fn(&str, &str, &Catalogue) + Send + Sync>;

#[derive(Clone)]
pub struct Options {
    pub config: machine::Config,
    /// Called by the loop: what takes its time belongs into a task.
    pub on_catalogue: Option<OnCatalogue>,
}

impl Default for Options {
    fn default() -> Options {
        let info = concat!(r#"{"name":"mcpwire","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#).to_owned();
        let config = machine::Config { seed: fastrand::u64(..), info, ..machine::Config::default() };
        Options { config, on_catalogue: None }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Where clients of a hub come in. It lives as long as one of these, or a link that one of these gave.
#[derive(Debug, Clone)]
pub struct Hub {
    orders: mpsc::Sender<Order>,
}

enum Order {
    Join(Port),
    Apply(Vec<Spec>),
}

impl Hub {
    /// Starts all servers. The handle completes when the hub, its servers, and everything behind them are gone.
    pub fn open(specs: Vec<Spec>, options: Options) -> (Hub, JoinHandle<()>) {
        let (orders, received) = mpsc::channel(ORDERS);
        let machine = machine::Hub::new(options.config.clone(), Instant::now());
        let bells = Bells::new();
        let orders_bell = bells.add(Key::Orders);
        let mut running = Running {
            machine,
            options,
            guests: Guests::default(),
            servers: Servers::new(),
            bells,
            orders: Some((received, orders_bell)),
            alarm: Alarm::default(),
            look_at: None,
        };
        running.apply(specs, Instant::now());
        (Hub { orders }, task::spawn(running.run()))
    }

    /// A link to the hub, as to a server of the stateless era.
    pub fn link(&self) -> Link {
        let (link, port) = Link::pair();
        // If the loop has ended the port is dropped here, and the link tells by its end.
        if let Err(mpsc::error::TrySendError::Full(order)) = self.orders.try_send(Order::Join(port)) {
            let orders = self.orders.clone();
            task::spawn(async move { drop(orders.send(order).await) });
        }
        link
    }

    /// The hub as a target. The reach keeps it alive.
    pub fn reach(&self) -> Reach {
        let hub = self.clone();
        let reach = Reach::new(Arc::new(move || Ok((hub.link(), None))));
        reach.learn(Known { session: Some(false), stateless: Some(true), is_inside: true });
        reach
    }

    /// These servers are to be behind the hub from now on. Only what changed is started anew.
    pub async fn apply(&self, specs: Vec<Spec>) {
        let _ = self.orders.send(Order::Apply(specs)).await;
    }
}

/// Who has something to tell.
#[derive(Debug, Clone, Copy)]
enum Key {
    Guest(Client),
    Server(Server),
    Orders,
}

struct Running {
    machine: machine::Hub,
    options: Options,
    guests: Guests,
    servers: Servers,
    bells: Bells<Key>,
    /// None once nobody can give any.
    orders: Option<(mpsc::Receiver<Order>, Bell<Key>)>,
    alarm: Alarm,
    /// When to look at servers that somebody waits for.
    look_at: Option<Instant>,
}

impl Running {
    async fn run(mut self) {
        let mut now = Instant::now();
        while self.orders.is_some() || !self.guests.is_empty() {
            let at = self.alarm_at(now);
            let (bells, alarm) = (&mut self.bells, &mut self.alarm);
            // Whoever rings all the time must not keep the alarm from being heard.
            let due = at.is_some_and(|at| at <= now);
            let rang = poll_fn(|cx| match bells.poll_next(cx) {
                Poll::Ready(key) => Poll::Ready(Some(key)),
                Poll::Pending if due => Poll::Ready(None),
                Poll::Pending => alarm.poll(at, cx).map(|()| None),
            })
            .await;
            now = Instant::now();
            match rang {
                Some(Key::Guest(client)) => self.hear(client, now),
                Some(Key::Server(server)) => self.servers.hear(server, now),
                Some(Key::Orders) => self.obey(now),
                None => {}
            }
            if rang.is_none() || due {
                self.on_alarm(now);
            }
            self.pump(now);
            if self.servers.open_next(now) {
                self.pump(now);
                // To start a program takes its time, and others wait for theirs.
                task::yield_now().await;
            }
            coop::consume_budget().await;
        }
        self.servers.gone(now).await;
    }

    /// A client may have something to say.
    fn hear(&mut self, client: Client, now: Instant) {
        for _ in 0..BURST {
            match self.guests.hear(client) {
                Poll::Ready(Some(message)) => self.machine.handle_client(client, message, now),
                Poll::Ready(None) => return self.leave(client, now),
                Poll::Pending => return,
            }
        }
        self.guests.ring(client);
    }

    fn leave(&mut self, client: Client, now: Instant) {
        self.guests.leave(client);
        self.machine.handle_leave(client, now);
    }

    /// Does what the handles of the hub want.
    fn obey(&mut self, now: Instant) {
        while let Some((orders, bell)) = &mut self.orders {
            match bell.poll(|cx| orders.poll_recv(cx)) {
                Poll::Ready(Some(Order::Join(port))) => {
                    let client = self.guests.join(port, &self.bells);
                    self.machine.handle_join(client);
                }
                Poll::Ready(Some(Order::Apply(specs))) => self.apply(specs, now),
                Poll::Ready(None) => self.orders = None,
                Poll::Pending => return,
            }
        }
    }

    fn apply(&mut self, specs: Vec<Spec>, now: Instant) {
        let told = specs.iter().map(|spec| machine::Spec {
            name: spec.name.clone(),
            hash: spec.hash.clone(),
            policy: spec.reach.policy().clone(),
            cached: spec.cached.clone().map(Arc::new),
        });
        let servers = self.machine.handle_specs(told.collect(), now);
        for (server, spec) in servers.into_iter().zip(specs) {
            self.servers.insert(server, spec, &self.bells);
        }
        self.pump(now);
    }

    fn on_alarm(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        self.servers.on_alarm(now);
        if self.look_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let down = |server: &Server| self.servers.spec(*server).is_some_and(|spec| !spec.health.is_up());
        for server in self.machine.unsettled().filter(down).collect::<Vec<_>>() {
            self.machine.handle_trouble(server, now);
        }
    }

    fn alarm_at(&mut self, now: Instant) -> Option<Instant> {
        if self.look_at.is_none() && self.machine.unsettled().next().is_some() {
            self.look_at = Some(now + LOOK_EVERY);
        }
        self.machine.poll_timeout().into_iter().chain(self.servers.alarm()).chain(self.look_at).min()
    }

    /// Does what the machine wants, tells it what servers have told, and gives clients what they take at once.
    fn pump(&mut self, now: Instant) {
        loop {
            while let Some(effect) = self.machine.poll_effect() {
                self.perform(effect, now);
            }
            match self.servers.told() {
                Some(Told::Packet(server, packet)) => self.machine.handle_server(server, packet, now),
                Some(Told::Closed(server)) => {
                    self.machine.handle_closed(server, "the connection to the server ended", now);
                }
                None => {
                    let gone = self.guests.flush();
                    if gone.is_empty() {
                        return;
                    }
                    gone.into_iter().for_each(|client| self.leave(client, now));
                }
            }
        }
    }

    fn perform(&mut self, effect: Effect, now: Instant) {
        match effect {
            Effect::ToClient(client, packet) => self.guests.tell(client, packet),
            Effect::ToServer(server, message) => self.servers.send(server, message, now),
            Effect::Open(server) => self.servers.open(server, now),
            Effect::Close(server) => self.servers.remove(server, now),
            Effect::Told(server, catalogue) => {
                let Some(spec) = self.servers.spec(server) else { return };
                spec.health.set_tools(catalogue.tools.len());
                if let Some(told) = &self.options.on_catalogue {
                    told(&spec.name, &spec.hash, &catalogue);
                }
            }
        }
    }
}

/// What `docs/hub.md` shows is tried.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/hub.md")]
struct Page;
