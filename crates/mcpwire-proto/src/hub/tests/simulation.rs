//! Many clients and servers at random, with deaths, delays and changes: each request is answered once, to its client, and by
//! its server.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::Kind;

const SERVERS: u64 = 4;
const CLIENTS: u64 = 5;
const STEPS: usize = 400;

/// What a client waits for: the nonce of its request, and the server that must answer, if only one may.
type Expected = BTreeMap<(Client, u64), (u64, Option<String>)>;

struct World {
    rig: Rig,
    random: fastrand::Rng,
    servers: Vec<(Server, Spec)>,
    /// Requests that are with servers.
    under_way: Vec<(Server, Message)>,
    expected: Expected,
    clients: BTreeSet<Client>,
    next: u64,
    answered: usize,
}

#[test]
fn every_request_is_answered_once_by_the_right_server() {
    let mut answered = 0;
    for seed in 0..200 {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.settle();
        answered += world.answered;
    }
    assert!(answered > 5_000, "{answered}");
}

impl World {
    fn new(seed: u64) -> World {
        let random = fastrand::Rng::with_seed(seed);
        let prefix = Prefix::ALL[usize::try_from(seed % 2).expect("small")];
        let specs: Vec<Spec> = (0..SERVERS)
            .map(|n| if n % 2 == 0 { spec(&format!("s{n}")) } else { cached(&format!("s{n}"), &["only", "all"]) })
            .collect();
        let (rig, servers) = Rig::with(Config { prefix, seed, ..Config::default() }, specs.clone());
        let servers = servers.into_iter().zip(specs).collect();
        let (under_way, expected) = (Vec::new(), Expected::new());
        let mut world =
            World { rig, random, servers, under_way, expected, clients: BTreeSet::new(), next: 0, answered: 0 };
        (1..=CLIENTS).for_each(|number| world.join(number));
        world
    }

    fn join(&mut self, number: u64) {
        let client = self.rig.join(number);
        self.clients.insert(client);
    }

    fn client(&mut self) -> Client {
        let clients: Vec<Client> = self.clients.iter().copied().collect();
        clients[self.random.usize(..clients.len())]
    }

    fn step(&mut self) {
        match self.random.u32(..100) {
            0..35 => self.ask(),
            35..75 => self.serve_one(),
            75..80 => self.cancel(),
            80..82 => self.leave(),
            82..86 => self.die(),
            86..88 => self.close(),
            88..90 => self.reconfigure(),
            _ => {
                let time = ms(self.random.u64(..2_000));
                self.rig.pass(time);
            }
        }
        self.collect();
    }

    fn ask(&mut self) {
        let client = self.client();
        self.next += 1;
        // Ids are the same for all clients, as those of real ones are.
        let used = |id: &u64| self.expected.contains_key(&(client, *id));
        let id = (1..).find(|id| !used(id)).expect("a number");
        let nonce = self.next;
        let at = self.random.usize(..self.servers.len());
        let name = self.servers[at].1.name.clone();
        match self.random.u32(..10) {
            0 => {
                self.expected.insert((client, id), (0, None));
                self.rig.asks(client, id, method::TOOLS_LIST, "");
            }
            1 => {
                self.expected.insert((client, id), (nonce, None));
                self.rig.asks(client, id, method::RESOURCES_READ, &format!(r#""uri":"u://{nonce}","nonce":{nonce}"#));
            }
            _ => {
                self.expected.insert((client, id), (nonce, Some(name.clone())));
                let params = format!(r#""name":"{name}__all","nonce":{nonce}"#);
                self.rig.asks(client, id, method::TOOLS_CALL, &params);
            }
        }
    }

    /// Takes what was sent out, and checks it.
    fn collect(&mut self) {
        for (server, queue) in &mut self.rig.to_servers {
            for message in queue.drain(..) {
                if let Some(id) = meta::cancelled_request(&message).filter(|_| message.is(method::CANCELLED)) {
                    self.under_way.retain(|(at, request)| at != server || request.id() != Some(&id));
                } else if message.is_request() {
                    self.under_way.push((*server, message));
                }
            }
        }
        for (client, queue) in &mut self.rig.to_clients {
            for packet in queue.drain(..) {
                let (Kind::Result { id } | Kind::Error { id: Some(id) }) = packet.message.kind() else { continue };
                let id: u64 = id.as_json().parse().expect("a number");
                let expected = self.expected.remove(&(*client, id));
                let (nonce, name) = expected.unwrap_or_else(|| panic!("{client:?} got {} unasked", packet.message));
                self.answered += 1;
                let told: Value = serde_json::from_slice(packet.message.as_bytes()).expect("JSON");
                if let Some(echo) = told["result"].get("nonce") {
                    assert_eq!(*echo, nonce);
                    let by = told["result"]["by"].as_str().map(str::to_owned);
                    assert!(name.is_none() || name == by, "{told}");
                }
            }
        }
    }

    fn serve_one(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let at = self.random.usize(..self.under_way.len());
        let (server, request) = self.under_way.swap_remove(at);
        let Some((_, spec)) = self.servers.iter().find(|(known, _)| *known == server) else { return };
        let params: Value = serde_json::from_str(request.payload().expect("params")).expect("JSON");
        let name = spec.name.clone();
        let both = json!([{ "name": "all" }, { "name": format!("tool{}", self.random.u32(..3)) }]);
        match request.method().map(|method| &**method) {
            Some(method::DISCOVER) => {
                self.rig.answers(server, &request, &json!({ "capabilities": { "tools": {}, "resources": {} } }));
            }
            Some(method::TOOLS_LIST) => {
                let ttl = self.random.u32(..2) * 1000;
                let list = json!({ "tools": both, "ttlMs": ttl, "cacheScope": "public" });
                self.rig.answers(server, &request, &list);
            }
            Some(method::LISTEN) => self.rig.acknowledge(server, &request),
            Some(method::RESOURCES_READ) if self.random.bool() => {
                self.rig.server_says(server, Message::error(request.id(), -32602, "none"));
            }
            Some(list) => match Part::of(list) {
                Some(part) => self.rig.answers(server, &request, &json!({ part.member(): [] })),
                None => {
                    assert!(params.get("name").is_none_or(|name| name == "all"), "{params}");
                    self.rig.answers(server, &request, &json!({ "nonce": params["nonce"], "by": name }));
                }
            },
            None => {}
        }
        // Some say everything twice.
        if self.random.u32(..20) == 0 {
            self.rig.answers(server, &request, &json!({ "nonce": params["nonce"], "by": name }));
        }
    }

    fn cancel(&mut self) {
        let open: Vec<(Client, u64)> = self.expected.keys().copied().collect();
        if open.is_empty() {
            return;
        }
        let (client, id) = open[self.random.usize(..open.len())];
        self.expected.remove(&(client, id));
        self.rig.says(
            client,
            &format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#),
        );
    }

    fn leave(&mut self) {
        let client = self.client();
        self.clients.remove(&client);
        self.expected.retain(|(owner, _), _| *owner != client);
        self.rig.hub.handle_leave(client, self.rig.now);
        self.rig.pump();
        self.next += 1;
        self.join(1000 + self.next);
    }

    /// A server dies, and its bridge says so for every request.
    fn die(&mut self) {
        let (server, _) = self.servers[self.random.usize(..self.servers.len())];
        let (dead, rest) = std::mem::take(&mut self.under_way).into_iter().partition(|(at, _)| *at == server);
        self.under_way = rest;
        let dead: Vec<(Server, Message)> = dead;
        for (_, request) in dead {
            let fault = Fault::Upstream("the connection to the server was lost before the answer came".into());
            self.rig.server_says(server, fault.to_message(request.id()));
        }
    }

    /// The bridge itself ends.
    fn close(&mut self) {
        let (server, _) = self.servers[self.random.usize(..self.servers.len())];
        self.under_way.retain(|(at, _)| *at != server);
        self.rig.hub.handle_closed(server, "it ended", self.rig.now);
        self.rig.pump();
    }

    fn reconfigure(&mut self) {
        let mut specs: Vec<Spec> = self.servers.iter().map(|(_, spec)| spec.clone()).collect();
        let at = self.random.usize(..specs.len());
        specs[at].hash = self.random.u32(..2).to_string();
        self.random.shuffle(&mut specs);
        let servers = self.rig.hub.handle_specs(specs.clone(), self.rig.now);
        self.servers = servers.into_iter().zip(specs).collect();
        self.rig.pump();
    }

    /// Everybody gets to answer, and time goes by: then nobody waits for anything.
    fn settle(&mut self) {
        for _ in 0..50 {
            while !self.under_way.is_empty() {
                self.serve_one();
                self.collect();
            }
            self.rig.pass(ms(5_000));
            self.collect();
        }
        assert!(self.expected.is_empty(), "{:?}", self.expected);
        assert_eq!(self.rig.hub.load(), 0);
        assert_eq!(self.rig.hub.owed.iter().filter(|(_, owed)| !matches!(owed, Owed::Listen { .. })).count(), 0);
        assert!(self.rig.hub.upstreams.iter().all(|upstream| upstream.live && upstream.calls == 0));
        assert!(self.rig.hub.owed.len() <= self.servers.len(), "one listen for each server");
    }
}
