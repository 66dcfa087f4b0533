//! What all clients of one server share: counters, revisions of resources, and items that come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpwire_proto::{method, version};
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;

use super::seal::Seal;

/// How many counters, revisions and extra items are kept, each.
const MOST_NAMES: usize = 1024;
/// How many changes a session may be behind before it is told that everything changed.
const CHANGE_DEPTH: usize = 64;
/// How long the ends of subscriptions may take when the server stops.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How often this server was started, this time included, as its starter counts; `info` tells it.
    pub starts: u64,
    /// How many items a page of a list holds; 0 puts all on one page.
    pub page_size: usize,
    /// How long a call waits for the client's answer to a request.
    pub ask_deadline: Duration,
    /// Which eras the server speaks.
    pub eras: Eras,
    /// Signs what clients carry from round to round. Servers with the same one take each other's; without one it is made
    /// up, and nothing outlives the server.
    pub state_secret: Option<String>,
    /// For how long a client may carry it.
    pub state_lifetime: Duration,
    /// A file that gets a line with the counter's name whenever `count` runs; it outlives a server that is killed.
    pub ledger: Option<PathBuf>,
}

/// Which versions a server speaks: those that open a session, those in which every request stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eras {
    #[default]
    Both,
    Session,
    Stateless,
}

impl Eras {
    /// The versions, newest first.
    pub fn versions(self) -> &'static [&'static str] {
        match self {
            Eras::Both => &version::ALL,
            Eras::Session => &version::ALL[version::STATELESS_ERA.len()..],
            Eras::Stateless => &version::STATELESS_ERA,
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            starts: 1,
            page_size: 0,
            ask_deadline: Duration::from_secs(120),
            eras: Eras::Both,
            state_secret: None,
            state_lifetime: Duration::from_secs(600),
            ledger: None,
        }
    }
}

/// The state of one server, to be cloned into each of its sessions.
#[derive(Debug, Clone)]
pub struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    instance: String,
    seal: Seal,
    closing: watch::Sender<bool>,
    listening: watch::Sender<usize>,
    sessions: AtomicU64,
    calls: AtomicU64,
    running: AtomicU64,
    book: Mutex<Book>,
    changes: broadcast::Sender<Change>,
}

#[derive(Debug, Default)]
struct Book {
    counters: BTreeMap<String, u64>,
    revisions: BTreeMap<String, u64>,
    extras: BTreeSet<(Item, String)>,
}

/// What a server lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Tool,
    Resource,
    Prompt,
}

impl Item {
    pub(super) fn list_changed(self) -> &'static str {
        match self {
            Item::Tool => method::TOOLS_LIST_CHANGED,
            Item::Resource => method::RESOURCES_LIST_CHANGED,
            Item::Prompt => method::PROMPTS_LIST_CHANGED,
        }
    }
}

/// What sessions are told of.
#[derive(Debug, Clone)]
pub(super) enum Change {
    List(Item),
    Resource(String),
}

impl Change {
    /// Everything that may have changed for a session that missed some.
    pub(super) fn all(uris: &BTreeSet<String>) -> Vec<Change> {
        let lists = [Item::Tool, Item::Resource, Item::Prompt].map(Change::List);
        lists.into_iter().chain(uris.iter().cloned().map(Change::Resource)).collect()
    }
}

impl Default for Shared {
    fn default() -> Shared {
        Shared::new(Settings::default())
    }
}

impl Shared {
    pub fn new(settings: Settings) -> Shared {
        let mut made_up = [0; 32];
        let secret = match &settings.state_secret {
            Some(secret) => secret.as_bytes(),
            None => {
                // Only what is in a state could be forged with a weaker key, and no more is in it than a test needs.
                getrandom::fill(&mut made_up).unwrap_or_else(|_| fastrand::fill(&mut made_up));
                &made_up
            }
        };
        Shared(Arc::new(Inner {
            seal: Seal::new(secret),
            settings,
            instance: format!("{:016x}", fastrand::u64(..)),
            closing: watch::Sender::new(false),
            listening: watch::Sender::new(0),
            sessions: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            running: AtomicU64::new(0),
            book: Mutex::default(),
            changes: broadcast::Sender::new(CHANGE_DEPTH),
        }))
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// A name that no other server has, nor this one after a restart.
    pub fn instance(&self) -> &str {
        &self.0.instance
    }

    /// Ends all subscriptions with an answer, and waits for a moment until that is said.
    pub async fn close(&self) {
        self.0.closing.send_replace(true);
        let mut listening = self.0.listening.subscribe();
        // Clients that read nothing are not waited for.
        let _ = timeout(LAST_WORDS, listening.wait_for(|open| *open == 0)).await;
    }

    /// How many subscriptions of the stateless era are open.
    pub fn listening(&self) -> usize {
        *self.0.listening.borrow()
    }

    /// How many sessions were opened so far.
    pub fn sessions(&self) -> u64 {
        self.0.sessions.load(Ordering::Relaxed)
    }

    /// How many tool calls were started so far.
    pub fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// How many tool calls are under way.
    pub fn running(&self) -> u64 {
        self.0.running.load(Ordering::Relaxed)
    }

    /// The value of a named counter, which the `count` tool raises.
    pub fn counter(&self, name: &str) -> u64 {
        self.book().counters.get(name).copied().unwrap_or(0)
    }

    /// Changes a resource and tells the sessions that watch it. Gives its revision; `None` if too many were changed.
    pub fn touch(&self, uri: &str) -> Option<u64> {
        let revision = raise(&mut self.book().revisions, uri)?;
        self.announce(Change::Resource(uri.to_owned()));
        Some(revision)
    }

    /// Adds an item to a list and tells all sessions; `false` if it is there already or there are too many.
    pub fn add(&self, item: Item, name: &str) -> bool {
        let mut book = self.book();
        let added = book.extras.len() < MOST_NAMES && book.extras.insert((item, name.to_owned()));
        drop(book);
        if added {
            self.announce(Change::List(item));
        }
        added
    }

    /// Takes an item off a list and tells all sessions; `false` if it was not there.
    pub fn remove(&self, item: Item, name: &str) -> bool {
        let removed = self.book().extras.remove(&(item, name.to_owned()));
        if removed {
            self.announce(Change::List(item));
        }
        removed
    }

    pub(super) fn extras(&self, item: Item) -> Vec<String> {
        self.book().extras.iter().filter(|(kind, _)| *kind == item).map(|(_, name)| name.clone()).collect()
    }

    pub(super) fn has_extra(&self, item: Item, name: &str) -> bool {
        self.book().extras.contains(&(item, name.to_owned()))
    }

    pub(super) fn revision(&self, uri: &str) -> u64 {
        self.book().revisions.get(uri).copied().unwrap_or(0)
    }

    /// Raises a counter by one and gives its new value; `None` if there are too many counters.
    pub(super) fn count(&self, name: &str) -> Option<u64> {
        if let Some(ledger) = &self.0.settings.ledger
            && let Err(error) = note(ledger, name)
        {
            tracing::error!(target: "reference", "cannot write to the ledger: {error}");
            return None;
        }
        raise(&mut self.book().counters, name)
    }

    /// Notes that a tool call begins; it is under way until what this gives is dropped.
    pub(super) fn start_call(&self) -> Running {
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        self.0.running.fetch_add(1, Ordering::Relaxed);
        Running(self.clone())
    }

    /// Notes that a subscription is opened; it is open until what this gives is dropped.
    pub(super) fn start_listening(&self) -> Listening {
        self.0.listening.send_modify(|open| *open += 1);
        Listening(self.clone())
    }

    pub(super) fn closing(&self) -> watch::Receiver<bool> {
        self.0.closing.subscribe()
    }

    pub(super) fn seal(&self) -> &Seal {
        &self.0.seal
    }

    /// Gives the number of a new session.
    pub(super) fn open_session(&self) -> u64 {
        self.0.sessions.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn changes(&self) -> broadcast::Receiver<Change> {
        self.0.changes.subscribe()
    }

    fn announce(&self, change: Change) {
        // Without a session there is nobody to tell.
        let _ = self.0.changes.send(change);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by a tool call for as long as it is under way.
#[derive(Debug)]
pub(super) struct Running(Shared);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Held by a subscription for as long as it is open.
#[derive(Debug)]
pub(super) struct Listening(Shared);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.0.listening.send_modify(|open| *open -= 1);
    }
}

/// Appends a line in one write, so that servers that share the file do not mix theirs.
fn note(ledger: &Path, name: &str) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(ledger)?;
    file.write_all(format!("{name}\n").as_bytes())
}

fn raise(numbers: &mut BTreeMap<String, u64>, name: &str) -> Option<u64> {
    if numbers.len() >= MOST_NAMES && !numbers.contains_key(name) {
        return None;
    }
    let number = numbers.entry(name.to_owned()).or_default();
    *number += 1;
    Some(*number)
}
