//! The servers of one conversation, what goes wrong with them, and the ledger of the calls that ran.

use std::collections::BTreeMap;

use rustix::process::{Pid, Signal, kill_process};

use super::plan::{Fault, Plan, Way};
use super::relay::Relay;
use crate::support::proc;
use crate::support::process::Mcpwire;
use crate::support::reach::MCPWIRE;
use crate::support::scratch::Scratch;

/// Requests give up before the test does.
const PATIENCE: [&str; 6] = ["--wait", "10s", "--timeout", "20s", "--drain", "30s"];

pub struct World {
    way: Way,
    scratch: Scratch,
    /// The server that listens on TCP: the reference server itself, or `expose` in front of it.
    listener: Option<Listener>,
    relay: Option<Relay>,
}

struct Listener {
    args: Vec<String>,
    /// Where it listens, also after a restart.
    address: String,
    /// Nothing between a kill and the restart.
    process: Option<Mcpwire>,
}

impl Listener {
    async fn start(&mut self) {
        let address = ["--http", &self.address];
        let args: Vec<&str> = self.args[..1].iter().map(String::as_str).chain(address).collect();
        let rest = self.args[1..].iter().map(String::as_str);
        let mut process = Mcpwire::start(&args.into_iter().chain(rest).collect::<Vec<_>>());
        let url = process.line().await.expect("its URL");
        self.address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        self.process = Some(process);
    }

    async fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            kill(process.id());
            process.wait().await;
        }
    }
}

impl World {
    pub async fn start(plan: &Plan) -> World {
        let scratch = Scratch::new();
        let server = server(plan, &scratch);
        let args = match plan.way {
            Way::Child => None,
            Way::Http | Way::Hub => Some([vec!["reference".to_owned()], server].concat()),
            Way::Exposed => {
                Some([texts(&["expose", "--print-url", "--", MCPWIRE, "reference", "--stdio"]), server].concat())
            }
            Way::Shared => {
                let expose = ["expose", "--print-url", "--share", "--", MCPWIRE, "reference", "--stdio"];
                Some([texts(&expose), server].concat())
            }
        };
        let (mut listener, mut relay) = (None, None);
        if let Some(args) = args {
            let mut started = Listener { args, address: "127.0.0.1:0".to_owned(), process: None };
            started.start().await;
            relay = Some(Relay::start(started.address.clone()).await);
            listener = Some(started);
        }
        World { way: plan.way, scratch, listener, relay }
    }

    /// The arguments of a client's `mcpwire`.
    pub fn connect(&self, plan: &Plan) -> Vec<String> {
        let url = self.relay.as_ref().map(|relay| format!("http://{}/mcp", relay.address));
        let child = [texts(&["--", MCPWIRE, "reference", "--stdio"]), server(plan, &self.scratch)].concat();
        let target = match (self.way, url) {
            (Way::Hub, Some(url)) => [vec!["--no-cache".to_owned(), format!("web={url}")], child].concat(),
            (_, Some(url)) => vec![url],
            (_, None) => child,
        };
        [texts(&["connect"]), texts(&PATIENCE), target].concat()
    }

    /// What stands before the names of tools, one for each server.
    pub fn prefixes(&self) -> &'static [&'static str] {
        if self.way == Way::Hub { &["web__", "mcpwire__"] } else { &[""] }
    }

    /// Lets something go wrong; gives whether anything was there to be hit.
    pub async fn suffer(&mut self, fault: Fault, clients: &[u32]) -> bool {
        self.revive().await;
        match (fault, &self.relay) {
            (Fault::Cut, Some(relay)) => relay.cut(),
            (Fault::CutAfter(bytes), Some(relay)) => relay.cut_after(bytes),
            _ => return self.kill(clients).await,
        }
        true
    }

    async fn kill(&mut self, clients: &[u32]) -> bool {
        if let (Way::Http, Some(listener)) = (self.way, &mut self.listener) {
            // It comes back with the next fault, or at the end.
            listener.kill().await;
            return true;
        }
        let front = self.listener.as_ref().and_then(|listener| listener.process.as_ref()).map(Mcpwire::id);
        let parents =
            if self.way == Way::Child || self.way == Way::Hub { clients.to_vec() } else { Vec::from_iter(front) };
        let children: Vec<u32> = parents.into_iter().flat_map(proc::children).collect();
        children.iter().for_each(|child| kill(*child));
        !children.is_empty()
    }

    /// Starts again what was killed.
    pub async fn revive(&mut self) {
        if let Some(listener) = self.listener.as_mut().filter(|listener| listener.process.is_none()) {
            listener.start().await;
        }
    }

    /// No call may have run twice.
    pub fn check_ledger(&self, plan: &Plan) {
        let ledger = std::fs::read_to_string(self.scratch.file("ledger")).unwrap_or_default();
        let mut runs = BTreeMap::<&str, u32>::new();
        ledger.lines().for_each(|name| *runs.entry(name).or_default() += 1);
        for (name, runs) in runs {
            assert_eq!(runs, 1, "seed {}: the call {name} ran {runs} times; {plan:?}", plan.seed);
        }
    }

    pub async fn finish(mut self) {
        self.relay = None;
        if let Some(mut process) = self.listener.and_then(|listener| listener.process) {
            process.signal("TERM");
            assert_eq!(process.wait().await.code(), Some(0), "{}", process.stderr());
        }
    }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// The options of the reference server.
fn server(plan: &Plan, scratch: &Scratch) -> Vec<String> {
    texts(&["--era", plan.server, "--ledger", &scratch.file("ledger")])
}

/// Ends a process that may have ended already.
fn kill(process: u32) {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process id");
    let _ = kill_process(pid, Signal::KILL);
}
