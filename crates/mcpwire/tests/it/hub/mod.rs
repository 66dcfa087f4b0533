//! Many servers behind one link: the hub of the library over servers of both eras, in this process and as programs.

mod calls;
mod commands;
mod dual;
mod failures;
mod life;
mod listening;
mod lists;
mod storm;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpwire::bridge::{self, Reach, Upstreams};
use mcpwire::hub::{Hub, Options, Spec};
use mcpwire::link::Link;
use mcpwire::reference::{self, Eras, Settings, Shared};
use mcpwire_proto::conversation::Config;
use mcpwire_proto::meta::key;
use mcpwire_proto::version::V2025_11_25;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::client::Client;
use crate::support::{reach, within};

/// A reference server in this process.
struct Inside {
    shared: Shared,
    /// The connections that were made.
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Inside {
    fn new(eras: Eras) -> Inside {
        Inside::with(Settings { eras, ..Settings::default() })
    }

    fn with(settings: Settings) -> Inside {
        Inside { shared: Shared::new(settings), tasks: Arc::default() }
    }

    fn spec(&self, name: &str) -> Spec {
        let (shared, tasks) = (self.shared.clone(), Arc::clone(&self.tasks));
        let reach = Reach::new(Arc::new(move || {
            let (link, port) = Link::pair();
            tasks.lock().unwrap().push(tokio::spawn(reference::serve(port, shared.clone())));
            Ok((link, None))
        }));
        Spec::new(name, reach, Config { sorted: true, ..Config::default() })
    }

    fn connections(&self) -> usize {
        self.tasks.lock().unwrap().len()
    }

    /// Every connection to it ends.
    async fn is_let_go(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap());
        for task in tasks {
            within("a connection to end", task).await.unwrap();
        }
    }
}

/// The reference server as a program.
fn program(name: &str, era: &str) -> Spec {
    let args: Vec<String> = ["reference", "--stdio", "--era", era].map(str::to_owned).to_vec();
    let reach = Reach::new(Arc::new(move || {
        let (link, goodbye) = reach::stdio(&args);
        Ok((link, Some(goodbye)))
    }));
    Spec::new(name, reach, Config::default())
}

struct Rig {
    hub: Hub,
    ended: JoinHandle<()>,
}

impl Rig {
    fn new(specs: Vec<Spec>) -> Rig {
        Rig::with(specs, Options::default())
    }

    fn with(specs: Vec<Spec>, options: Options) -> Rig {
        let (hub, ended) = Hub::open(specs, options);
        Rig { hub, ended }
    }

    /// A client without sessions, which can be asked for anything.
    fn stateless(&self) -> Client {
        let mut client = Client::stateless((self.hub.link(), tokio::spawn(async {})));
        let all = json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": {} });
        client.declare(key::CLIENT_CAPABILITIES, all);
        client
    }

    /// A client with a session, made to fit by a bridge.
    async fn session(&self) -> Client {
        let upstreams = Upstreams::opened(self.hub.reach()).unwrap();
        let (downstream, port) = Link::pair();
        let config = Config { sorted: true, ..Config::default() };
        let drain = Duration::from_secs(1);
        let bridge = tokio::spawn(async move {
            bridge::run(downstream, upstreams, config, std::future::pending::<()>(), drain).await;
        });
        // A client's link is the other way round.
        let (link, other) = Link::pair();
        let (mut rx, tx) = (other.rx, port.tx);
        tokio::spawn(async move {
            while let Some(packet) = rx.recv().await {
                if tx.send(mcpwire::link::Event::Packet(packet)).await.is_err() {
                    return;
                }
            }
        });
        let (mut rx, tx) = (port.rx, other.tx);
        tokio::spawn(async move {
            while let Some(packet) = rx.recv().await {
                if tx.send(mcpwire::link::Event::Packet(packet)).await.is_err() {
                    return;
                }
            }
        });
        Client::open((link, bridge), V2025_11_25).await
    }

    /// The hub ends when nobody uses it any more.
    async fn end(self) {
        drop(self.hub);
        within("the hub to end", self.ended).await.unwrap();
    }
}

async fn names(client: &mut Client, list: &str, member: &str, key: &str) -> Vec<String> {
    let id = client.request(list, json!({})).await;
    let listed = client.result(id).await;
    listed[member].as_array().unwrap().iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

async fn tools(client: &mut Client) -> Vec<String> {
    names(client, "tools/list", "tools", "name").await
}

/// What the tool `info` of a server tells.
async fn info(client: &mut Client, server: &str) -> Value {
    serde_json::from_str(&client.call(&format!("{server}__info"), json!({})).await).unwrap()
}

/// The process of a server.
async fn process(client: &mut Client, server: &str) -> u32 {
    info(client, server).await["process"].as_u64().and_then(|id| id.try_into().ok()).unwrap()
}
