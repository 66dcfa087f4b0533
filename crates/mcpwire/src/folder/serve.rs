//! The protocol around a folder, of both eras: handshakes, subscriptions, and one loop per client that answers in order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use mcpwire_proto::meta::key;
use mcpwire_proto::method::Method;
use mcpwire_proto::version::{self, SESSION_ERA, STATELESS_ERA, V2025_11_25, V2026_07_28};
use mcpwire_proto::{Fault, Id, Kind, Lane, Message, Packet, meta, method};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::answer::{Dialect, answer, object, text, wrong};
use super::catalog::{Catalog, Changes};
use super::reply::{Body, Refusal, Reply, excerpt};
use super::{Folder, State, resources};
use crate::channel::Sender;
use crate::link::{Event, Port};

/// How long a client of the stateless era may go by what it has read. Who listens is told earlier.
const TTL_MS: u32 = 1000;
/// How many resources one client may watch, and how many streams it may listen on.
const MOST_SUBSCRIPTIONS: usize = 1024;
const MOST_LISTENERS: usize = 64;

/// The client has closed its end.
struct Gone;

/// Serves one client until it closes its end.
pub(super) async fn serve(port: Port, folder: Folder) {
    let Port { tx, mut rx } = port;
    let state = Arc::clone(&folder.0.state);
    let mut changes = state.changes.subscribe();
    let mut session = Session {
        state,
        tx,
        version: None,
        declared: Offer::default(),
        subscriptions: BTreeSet::new(),
        listeners: HashMap::new(),
    };
    loop {
        let done = tokio::select! {
            biased;
            change = changes.recv() => session.tell(change).await,
            packet = rx.recv() => match packet {
                Some(packet) => session.handle(packet.message).await,
                None => break,
            },
        };
        if done.is_err() {
            return;
        }
    }
    session.end_listeners();
}

/// What a folder has to offer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Offer {
    prompts: bool,
    resources: bool,
    tools: bool,
}

/// What a client of the stateless era wants to be told on a stream.
#[derive(Debug, Default)]
struct Listener {
    kinds: Offer,
    uris: BTreeSet<String>,
}

/// One client, owned by its loop.
struct Session {
    state: Arc<State>,
    tx: Sender<Event>,
    /// Agreed upon by `initialize`.
    version: Option<&'static str>,
    /// What `initialize` was answered with: nothing else is told of.
    declared: Offer,
    subscriptions: BTreeSet<String>,
    listeners: HashMap<Id, Listener>,
}

impl Session {
    async fn handle(&mut self, message: Message) -> Result<(), Gone> {
        match message.kind() {
            Kind::Request { id, method } => {
                let reply = self.request(id, method, &message).await;
                match reply {
                    Some(reply) => self.send(Lane::Request(id.clone()), reply).await,
                    None => Ok(()),
                }
            }
            Kind::Notification { .. } if message.is(method::CANCELLED) => {
                // Everything but a stream is answered by the time this is read.
                if let Some(id) = meta::cancelled_request(&message) {
                    self.listeners.remove(&id);
                }
                Ok(())
            }
            // No question was asked, and other notifications are of no use here.
            Kind::Notification { .. } | Kind::Result { .. } | Kind::Error { .. } => Ok(()),
        }
    }

    /// Serves a request; `None` if it stays open.
    async fn request(&mut self, id: &Id, method: &Method, message: &Message) -> Option<Message> {
        let (dialect, params) = match self.dialect(message) {
            Ok(read) => read,
            Err(refusal) => return Some(refusal.to_message(id)),
        };
        if dialect.stateless && *method == method::LISTEN {
            return match self.listen(id, &params).await {
                Ok(()) => None,
                Err(refusal) => Some(refusal.to_message(id)),
            };
        }
        let reply = if dialect.stateless {
            match &**method {
                method::DISCOVER => Ok(self.discover()),
                _ if method.is_gone() => Err(Fault::UnknownMethod(method.to_string()).into()),
                _ => self.answer(dialect, method, params).await,
            }
        } else {
            match &**method {
                method::INITIALIZE => Ok(self.initialize(&params)),
                method::PING => Ok(json!({}).into()),
                method::RESOURCES_SUBSCRIBE => self.subscribe(&params).await,
                method::RESOURCES_UNSUBSCRIBE => self.unsubscribe(&params),
                _ => self.answer(dialect, method, params).await,
            }
        };
        Some(match reply {
            Ok(body) if dialect.stateless => Message::result(id, &self.complete(&body)),
            Ok(body) => Message::result(id, &body.json),
            Err(refusal) => refusal.to_message(id),
        })
    }

    /// What the client of this request speaks: it says so in the request itself, or has said so in `initialize`.
    fn dialect(&self, message: &Message) -> Result<(Dialect, Map<String, Value>), Refusal> {
        let params: Map<String, Value> = match message.payload() {
            None | Some("null") => Map::new(),
            Some(text) => serde_json::from_str(text)
                .map_err(|_| Fault::Params(format!("expected an object as params, came {}", excerpt(text))))?,
        };
        let said = params.get("_meta").and_then(|meta| meta.get(key::PROTOCOL_VERSION));
        match said {
            None => Ok((Dialect { version: self.version.unwrap_or(V2025_11_25), stateless: false }, params)),
            Some(Value::String(version)) if version == V2026_07_28 => {
                Ok((Dialect { version: V2026_07_28, stateless: true }, params))
            }
            Some(Value::String(version)) => {
                Err(Fault::Version { requested: version.clone(), supported: &STATELESS_ERA }.into())
            }
            Some(other) => Err(wrong("a string", key::PROTOCOL_VERSION, other).into()),
        }
    }

    /// Hands a request to a thread that may wait for a disk.
    async fn answer(&self, dialect: Dialect, method: &str, params: Map<String, Value>) -> Reply {
        let catalog = self.catalog().await?;
        let (state, method) = (Arc::clone(&self.state), method.to_owned());
        let work = move || answer(&catalog, &state.places, dialect, &method, &params);
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(Fault::Upstream("the request could not be served".into()).into()))
    }

    /// The catalog; waits for the first scan.
    async fn catalog(&self) -> Result<Arc<Catalog>, Refusal> {
        let mut latest = self.state.catalog.subscribe();
        let found = latest.wait_for(Option::is_some).await.ok().and_then(|catalog| catalog.clone());
        found.ok_or_else(|| Fault::Upstream("the folder is no longer served".into()).into())
    }

    /// What there is; before the first scan is done, what a first look says.
    fn offer(&self) -> Offer {
        let glance = &self.state.glance;
        match &*self.state.catalog.borrow() {
            Some(catalog) => Offer {
                prompts: !catalog.prompts.is_empty(),
                resources: !catalog.resources.is_empty(),
                tools: !catalog.data.is_empty(),
            },
            None => Offer { prompts: glance.prompts, resources: glance.resources, tools: glance.data },
        }
    }

    fn initialize(&mut self, params: &Map<String, Value>) -> Body {
        let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let version = SESSION_ERA.into_iter().find(|known| *known == asked).unwrap_or(V2025_11_25);
        self.version = Some(version);
        self.declared = self.offer();
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": capabilities(self.declared),
            "serverInfo": self.info(),
        });
        if let Some(instructions) = self.instructions() {
            result["instructions"] = json!(instructions);
        }
        result.into()
    }

    fn discover(&self) -> Body {
        let mut result = json!({ "supportedVersions": version::ALL, "capabilities": capabilities(self.offer()) });
        if let Some(instructions) = self.instructions() {
            result["instructions"] = json!(instructions);
        }
        Body::cacheable(result.to_string())
    }

    fn info(&self) -> Value {
        let config = self.config(|config| (config.name.clone(), config.version.clone(), config.title.clone()));
        let mut info = json!({ "name": config.0, "version": config.1 });
        if let Some(title) = config.2 {
            info["title"] = json!(title);
        }
        info
    }

    fn instructions(&self) -> Option<String> {
        self.config(|config| config.instructions.clone())
    }

    fn config<T>(&self, read: impl FnOnce(&super::Config) -> T) -> T {
        match &*self.state.catalog.borrow() {
            Some(catalog) => read(&catalog.config),
            None => read(&self.state.glance.config),
        }
    }

    /// A result with what the stateless era adds to it.
    fn complete(&self, body: &Body) -> String {
        let mut text = format!(r#"{{"resultType":"complete","_meta":{}"#, json!({ key::SERVER_INFO: self.info() }));
        if body.cacheable {
            text.push_str(&format!(r#","ttlMs":{TTL_MS},"cacheScope":"private""#));
        }
        // A body is an object, whose first character is its brace.
        let rest = &body.json[1..];
        if rest != "}" {
            text.push(',');
        }
        text + rest
    }

    async fn subscribe(&mut self, params: &Map<String, Value>) -> Reply {
        let uri = text(params, "uri")?;
        if !resources::exists(&*self.catalog().await?, uri) {
            return Err(Refusal::NoResource(uri.to_owned()));
        }
        if self.subscriptions.len() >= MOST_SUBSCRIPTIONS {
            return Err(Fault::Upstream(format!("a session may watch {MOST_SUBSCRIPTIONS} resources")).into());
        }
        self.subscriptions.insert(uri.to_owned());
        Ok(json!({}).into())
    }

    fn unsubscribe(&mut self, params: &Map<String, Value>) -> Reply {
        self.subscriptions.remove(text(params, "uri")?);
        Ok(json!({}).into())
    }

    /// Opens a stream of notifications; it is acknowledged before anything is told on it.
    async fn listen(&mut self, id: &Id, params: &Map<String, Value>) -> Result<(), Refusal> {
        let wanted = object(params, "notifications")?;
        let asks = |name: &str| wanted.get(name).and_then(Value::as_bool).unwrap_or(false);
        let offer = self.offer();
        let kinds = Offer {
            prompts: asks("promptsListChanged") && offer.prompts,
            resources: asks("resourcesListChanged") && offer.resources,
            tools: asks("toolsListChanged") && offer.tools,
        };
        let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten();
        let catalog = self.catalog().await?;
        let uris: BTreeSet<String> = uris
            .filter_map(Value::as_str)
            .filter(|uri| resources::exists(&catalog, uri))
            .take(MOST_SUBSCRIPTIONS)
            .map(str::to_owned)
            .collect();
        if self.listeners.len() >= MOST_LISTENERS || self.listeners.contains_key(id) {
            return Err(Fault::Upstream(format!("a client may listen on {MOST_LISTENERS} streams")).into());
        }
        let mut honoured = Map::new();
        for (name, is) in [
            ("promptsListChanged", kinds.prompts),
            ("resourcesListChanged", kinds.resources),
            ("toolsListChanged", kinds.tools),
        ] {
            if is {
                honoured.insert(name.to_owned(), json!(true));
            }
        }
        if !uris.is_empty() {
            honoured.insert("resourceSubscriptions".to_owned(), json!(uris));
        }
        let params = format!(r#"{{{},"notifications":{}}}"#, subscription(id), Value::Object(honoured));
        self.listeners.insert(id.clone(), Listener { kinds, uris });
        // A client that is gone is noticed by the loop.
        let _ = self.send(Lane::Request(id.clone()), Message::notification(method::ACKNOWLEDGED, Some(&params))).await;
        Ok(())
    }

    /// Ends the streams that are open, as far as anybody still reads.
    fn end_listeners(&mut self) {
        for (id, _) in self.listeners.drain() {
            let message = Message::result(&id, &format!(r#"{{{},"resultType":"complete"}}"#, subscription(&id)));
            let _ = self.tx.try_send(Event::Packet(Packet::new(Lane::Request(id), message)));
        }
    }

    /// Tells the client of changes, by whatever it has asked for.
    async fn tell(&mut self, change: Result<Arc<Changes>, RecvError>) -> Result<(), Gone> {
        let changes = match change {
            Ok(changes) => changes,
            // It missed some: anything may have changed.
            Err(RecvError::Lagged(_)) => {
                let updated = self.listeners.values().flat_map(|listener| &listener.uris).chain(&self.subscriptions);
                Arc::new(Changes { resources: true, prompts: true, tools: true, updated: updated.cloned().collect() })
            }
            Err(RecvError::Closed) => return Ok(()),
        };
        let scheme = self.config(|config| config.scheme.clone());
        if self.version.is_some() {
            for (method, uri) in due(&changes, self.declared, &self.subscriptions, &scheme) {
                let params = uri.map(|uri| json!({ "uri": uri }).to_string());
                self.send(Lane::Main, Message::notification(method, params.as_deref())).await?;
            }
        }
        for (id, listener) in &self.listeners {
            for (method, uri) in due(&changes, listener.kinds, &listener.uris, &scheme) {
                let uri = uri.map(|uri| format!(r#","uri":{}"#, json!(uri))).unwrap_or_default();
                let params = format!("{{{}{uri}}}", subscription(id));
                self.send(Lane::Request(id.clone()), Message::notification(method, Some(&params))).await?;
            }
        }
        Ok(())
    }

    /// Waits while the client is slow to read.
    async fn send(&self, lane: Lane, message: Message) -> Result<(), Gone> {
        self.tx.send(Event::Packet(Packet::new(lane, message))).await.map_err(|_| Gone)
    }
}

fn capabilities(offer: Offer) -> Value {
    let mut capabilities = json!({});
    if offer.resources {
        capabilities["resources"] = json!({ "listChanged": true, "subscribe": true });
    }
    if offer.prompts {
        capabilities["prompts"] = json!({ "listChanged": true });
    }
    if offer.resources || offer.prompts {
        capabilities["completions"] = json!({});
    }
    if offer.tools {
        capabilities["tools"] = json!({ "listChanged": true });
    }
    capabilities
}

/// The notifications that are due: the method, and the URI if it is about one.
fn due<'a>(
    changes: &Changes,
    kinds: Offer,
    uris: &'a BTreeSet<String>,
    scheme: &str,
) -> Vec<(&'static str, Option<&'a str>)> {
    let lists = [
        (method::RESOURCES_LIST_CHANGED, kinds.resources && changes.resources),
        (method::PROMPTS_LIST_CHANGED, kinds.prompts && changes.prompts),
        (method::TOOLS_LIST_CHANGED, kinds.tools && changes.tools),
    ];
    let any = changes.resources || !changes.updated.is_empty();
    let updated =
        uris.iter().filter(|uri| changes.updated.contains(*uri) || (any && resources::is_collective(scheme, uri)));
    let lists = lists.into_iter().filter(|(_, due)| *due).map(|(method, _)| (method, None));
    lists.chain(updated.map(|uri| (method::RESOURCES_UPDATED, Some(uri.as_str())))).collect()
}

/// The `_meta` of what is told on a stream: the id of its request, as the client wrote it.
fn subscription(id: &Id) -> String {
    format!(r#""_meta":{{"{}":{id}}}"#, key::SUBSCRIPTION_ID)
}
