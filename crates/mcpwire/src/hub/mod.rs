//! Many servers behind one link: one loop around [`mcpwire_proto::hub`], which decides everything.
//!
//! A hub is a target like any other, and speaks the stateless era alone. Each of its servers is behind a bridge of its
//! own, so that what the servers speak, and that they come and go, is nothing the hub has to know of.

mod guests;
mod outlet;
mod servers;

use std::fmt;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

pub use mcpwire_proto::hub::{Catalogue, Item, Part, Prefix};

use mcpwire_proto::conversation::{self, Known};
use mcpwire_proto::hub::{self as machine, Client, Effect, Server};
use tokio::sync::mpsc;
use tokio::task::{self, JoinHandle};
use tokio::time::sleep_until;

use self::guests::{Guests, Said};
use self::servers::{News, Servers};
use crate::bridge::Reach;
use crate::health::Health;
use crate::link::{Link, Port};

/// How many messages of clients wait to be handled.
const BACKLOG: usize = 256;
/// How many messages are handled between two looks at everything else.
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
    pub reach: Reach,
    pub config: conversation::Config,
    /// Patterns of the tools that are offered; all, if there are none.
    pub include: Vec<String>,
    /// Patterns of tools that are not.
    pub exclude: Vec<String>,
    pub health: Health,
    /// What it had to offer when it was last seen.
    pub cached: Option<Catalogue>,
}

impl Spec {
    /// A server with everything left as it is.
    pub fn new(name: &str, reach: Reach, config: conversation::Config) -> Spec {
        Spec {
            name: name.to_owned(),
            hash: String::new(),
            reach,
            config,
            include: Vec::new(),
            exclude: Vec::new(),
            health: Health::new(name),
            cached: None,
        }
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
        let (said_tx, said) = mpsc::channel(BACKLOG);
        let machine = machine::Hub::new(options.config.clone(), Instant::now());
        let guests = Guests::new(said_tx.downgrade());
        let mut running = Running { machine, options, guests, servers: Servers::new(), look_at: None };
        running.apply(specs);
        (Hub { orders }, task::spawn(running.run(received, said, said_tx)))
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

struct Running {
    machine: machine::Hub,
    options: Options,
    guests: Guests,
    servers: Servers,
    /// When to look at servers that somebody waits for.
    look_at: Option<Instant>,
}

/// What the loop waits for.
enum Step {
    Pumped,
    Server(News),
    Order(Option<Order>),
    Said(Option<Said>),
    Alarm,
}

impl Running {
    async fn run(
        mut self,
        mut orders: mpsc::Receiver<Order>,
        mut said: mpsc::Receiver<Said>,
        keep: mpsc::Sender<Said>,
    ) {
        // Given up with the last handle, so that the channel ends with the last client.
        let mut keep = Some(keep);
        loop {
            self.pump();
            let alarm = self.alarm();
            let (guests, servers) = (&mut self.guests, &mut self.servers);
            let step = tokio::select! {
                biased;
                step = poll_fn(|cx| match (guests.poll_room(cx), servers.poll(cx)) {
                    (_, Poll::Ready(news)) => Poll::Ready(Step::Server(news)),
                    (Poll::Ready(()), Poll::Pending) => Poll::Ready(Step::Pumped),
                    (Poll::Pending, Poll::Pending) => Poll::Pending,
                }) => step,
                order = orders.recv(), if keep.is_some() => Step::Order(order),
                said = said.recv() => Step::Said(said),
                () = until(alarm) => Step::Alarm,
            };
            match step {
                Step::Pumped => {}
                Step::Server(news) => self.on_server(news),
                Step::Order(Some(Order::Join(port))) => {
                    let client = self.guests.join(port);
                    client.into_iter().for_each(|client| self.machine.handle_join(client));
                }
                Step::Order(Some(Order::Apply(specs))) => self.apply(specs),
                Step::Order(None) => keep = None,
                Step::Said(Some(said)) => self.on_client(said),
                Step::Said(None) => break,
                Step::Alarm => self.on_alarm(),
            }
            self.take_what_waits(&mut said);
        }
        self.servers.gone().await;
    }

    /// Handles what else has come, so that a burst costs one wait, and not one for each message.
    fn take_what_waits(&mut self, said: &mut mpsc::Receiver<Said>) {
        for _ in 0..BURST {
            let came = self.servers.take();
            let words = said.try_recv().ok();
            if came.is_none() && words.is_none() {
                return;
            }
            let now = Instant::now();
            came.into_iter().for_each(|(server, packet)| self.machine.handle_server(server, packet, now));
            words.into_iter().for_each(|said| self.on_client(said));
            self.pump();
        }
    }

    fn on_client(&mut self, (client, message): Said) {
        match message {
            Some(message) => self.machine.handle_client(client, message, Instant::now()),
            None => self.leave(client),
        }
    }

    fn leave(&mut self, client: Client) {
        self.guests.leave(client);
        self.machine.handle_leave(client, Instant::now());
    }

    fn on_server(&mut self, news: News) {
        let now = Instant::now();
        match news {
            News::Sent => {}
            News::Came(server, packet) => self.machine.handle_server(server, packet, now),
            News::Closed(server) => self.machine.handle_closed(server, "the connection to the server ended", now),
        }
    }

    fn apply(&mut self, specs: Vec<Spec>) {
        let told = specs.iter().map(|spec| machine::Spec {
            name: spec.name.clone(),
            hash: spec.hash.clone(),
            include: spec.include.clone(),
            exclude: spec.exclude.clone(),
            cached: spec.cached.clone().map(Arc::new),
        });
        let servers = self.machine.handle_specs(told.collect(), Instant::now());
        for (server, spec) in servers.into_iter().zip(specs) {
            self.servers.insert(server, spec);
        }
        self.pump();
    }

    fn on_alarm(&mut self) {
        let now = Instant::now();
        self.machine.handle_timeout(now);
        if self.look_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let down = |server: &Server| self.servers.spec(*server).is_some_and(|spec| !spec.health.is_up());
        for server in self.machine.unsettled().filter(down).collect::<Vec<_>>() {
            self.machine.handle_trouble(server, now);
        }
    }

    fn alarm(&mut self) -> Option<Instant> {
        if self.look_at.is_none() && self.machine.unsettled().next().is_some() {
            self.look_at = Some(Instant::now() + LOOK_EVERY);
        }
        self.machine.poll_timeout().into_iter().chain(self.look_at).min()
    }

    /// Does what the machine wants, and hands over what is to be sent, as far as it is taken at once.
    fn pump(&mut self) {
        loop {
            while let Some(effect) = self.machine.poll_effect() {
                self.perform(effect);
            }
            // Clients first: the answer to one need not wait until a server is started.
            let gone = self.guests.flush();
            self.servers.flush();
            if gone.is_empty() {
                return;
            }
            gone.into_iter().for_each(|client| self.leave(client));
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::ToClient(client, packet) => self.guests.tell(client, packet),
            Effect::ToServer(server, message) => self.servers.send(server, message),
            Effect::Open(server) => self.servers.open(server),
            Effect::Close(server) => self.servers.remove(server),
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

async fn until(alarm: Option<Instant>) {
    match alarm {
        Some(alarm) => sleep_until(alarm.into()).await,
        None => pending().await,
    }
}

/// What `docs/hub.md` shows is tried.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/hub.md")]
struct Page;
