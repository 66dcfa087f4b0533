//! What clients ask for: answered from the merged catalogue, or sent to the server that serves it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answers::{Call, Owed, Turn};
use super::asker::Asker;
use super::catalogue::Part;
use super::{Client, Effect, Hub, Place, Server, Waiting};
use crate::filter::Filter;
use crate::meta::{Declared, key};
use crate::method::Method;
use crate::object::quoted;
use crate::version::STATELESS_ERA;
use crate::{Fault, Id, Kind, Message, code, meta, method};

/// The most requests that are with one server at once.
const MOST_CALLS: usize = 10_000;
/// The most requests that wait for servers to be known.
const MOST_WAITING: usize = 10_000;

/// What routing has to know of a request; the rest is not read.
#[derive(Deserialize, Default)]
pub(super) struct Params<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "ref")]
    reference: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cursor: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub notifications: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Deserialize)]
struct Reference<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
    #[serde(skip)]
    level_beside: bool,
    #[serde(borrow, default, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    fn reference(&self) -> Option<Reference<'a>> {
        serde_json::from_str(self.reference?.get()).ok()
    }
}

impl<'a> Meta<'a> {
    /// What stands beside a request counts as if it were in it.
    fn is_from(&mut self, declared: Declared<'a>) {
        self.version = declared.version;
        self.client_info = declared.client_info;
        self.capabilities = declared.capabilities;
        self.level_beside = declared.log_level.is_some();
    }

    fn wants_logs(&self) -> bool {
        self.level_beside || self.log_level.is_some()
    }
}

/// Where a request goes.
pub(super) enum Route<'a> {
    /// To a server, with a name in it replaced.
    To(Server, Option<(&'a RawValue, String)>),
    /// To these, one after the other, until one has the prompt or the resource of this name or address.
    InTurn(Part, String, VecDeque<Server>),
    /// Nowhere yet: a server that is not known yet may have it.
    Wait,
    Refused(Fault),
}

impl Hub {
    pub fn handle_client(&mut self, client: Client, message: Message, now: Instant) {
        match message.kind() {
            Kind::Request { id, .. } => {
                let Some(guest) = self.clients.get_mut(&client) else { return };
                if guest.under_way.contains_key(id) {
                    let fault = Fault::Shape(format!("expected a new request id, came {id}, which is still in use"));
                    let refusal = fault.to_message(None);
                    return self.effects.push_back(Effect::ToClient(client, refusal.into()));
                }
                guest.under_way.insert(id.clone(), Place::Waiting);
                self.serve(client, &message, now, now);
            }
            Kind::Notification { method } if *method == method::CANCELLED => self.cancelled(client, &message, now),
            // Of the stateless era there are no others, and nothing was asked of the client.
            _ => tracing::debug!(target: "hub", "dropped a client's {message}: it belongs to no request"),
        }
    }

    /// Answers a request that came at that time, sends it on, or lets it wait.
    pub(super) fn serve(&mut self, client: Client, message: &Message, asked: Instant, now: Instant) {
        let (Some(id), Some(method)) = (message.id(), message.method()) else { return };
        let mut params: Params<'_> = match message.payload().map(serde_json::from_str) {
            Some(Ok(params)) => params,
            Some(Err(error)) => return self.refuse(client, id, &Fault::Params(error.to_string())),
            None => Params::default(),
        };
        if let Some(sender) = message.sender() {
            params.meta.is_from(sender.declared());
        }
        if let Err(fault) = check(method, &params) {
            return self.refuse(client, id, &fault);
        }
        if self.identity.is_none() {
            self.identity = Some(Asker::of(message, identity(&params.meta)));
            if self.greet_until.is_some() {
                self.begin(now);
            }
        }
        match &**method {
            method::DISCOVER if self.capabilities_are_ready(now) => {
                let answer = self.merged.discovered(id);
                self.answer(client, id, answer);
            }
            method::DISCOVER => self.wait(client, id, message, asked),
            method::LISTEN => {
                let wanted: Option<Filter> =
                    params.notifications.and_then(|wanted| serde_json::from_str(wanted.get()).ok());
                let asker = Asker::of(message, identity(&params.meta));
                self.listen(client, id, asker, wanted, now);
            }
            list => match Part::of(list) {
                // Everything is on the first page.
                Some(_) if params.cursor.is_some() => {
                    self.refuse(client, id, &Fault::Params("expected no cursor: none was given".into()));
                }
                Some(part) if self.lists_are_ready(now) && self.is_refreshed(part, asked, now) => {
                    let answer = self.listed(part, id, now);
                    self.answer(client, id, answer);
                }
                Some(_) => self.wait(client, id, message, asked),
                None => self.send_on(client, id, message, method, &params, (asked, now)),
            },
        }
    }

    fn wait(&mut self, client: Client, id: &Id, message: &Message, asked: Instant) {
        if self.waiting.len() >= MOST_WAITING {
            return self.refuse(client, id, &Fault::Upstream("too much waits for the servers already".into()));
        }
        self.waiting.push_back(Waiting { client, request: message.clone(), asked });
    }

    fn send_on(
        &mut self,
        client: Client,
        id: &Id,
        message: &Message,
        method: &Method,
        params: &Params<'_>,
        (asked, now): (Instant, Instant),
    ) {
        let (server, edit, turn) = match self.route(client, method, params, now) {
            Route::To(server, edit) => match self.admit(server, now) {
                Ok(()) => (server, edit, None),
                Err(fault) => return self.refuse(client, id, &fault),
            },
            Route::InTurn(part, address, mut rest) => match self.admit_first(&mut rest, now) {
                Ok(server) => {
                    let request = message.clone();
                    (server, None, Some(Turn { request, part, address, rest, refused: None }))
                }
                Err(Some(fault)) => return self.refuse(client, id, &fault),
                Err(None) => return self.answer(client, id, unknown_resource(id, &address)),
            },
            Route::Wait => return self.wait(client, id, message, asked),
            Route::Refused(fault) => return self.refuse(client, id, &fault),
        };
        let ours = self.fresh_id();
        let edit = edit.map(|(found, name)| (found.get(), quoted(&name)));
        let mut parts: Vec<(&str, &str)> = edit.iter().map(|(found, name)| (*found, name.as_str())).collect();
        let token = params.meta.token.and_then(|token| Id::from_json(token.get()));
        if let Some(found) = params.meta.token.filter(|_| token.is_some()) {
            parts.push((found.get(), ours.as_json()));
        }
        let request = message.rewritten(&ours, &parts);
        let call = Call { client, id: id.clone(), token, server, wants_logs: params.meta.wants_logs(), turn };
        if let Some(place) = self.clients.get_mut(&client).and_then(|guest| guest.under_way.get_mut(id)) {
            *place = Place::Server(ours.clone());
        }
        let _ = self.owed.open(ours, Owed::Call(Box::new(call)));
        self.effects.push_back(Effect::ToServer(server, request));
    }

    /// Takes a call in for a server, or says why not.
    pub(super) fn admit(&mut self, server: Server, now: Instant) -> Result<(), Fault> {
        let Some(upstream) = self.upstream(server) else {
            return Err(Fault::Upstream("MCP server not connected: it was taken out".into()));
        };
        let name = &upstream.spec.name;
        if upstream.breaker.is_open() || !upstream.open {
            let when = match upstream.retry_at {
                Some(at) => format!("it is tried again in {:.1?}", at.saturating_duration_since(now)),
                None => "it is being tried again".to_owned(),
            };
            return Err(Fault::Upstream(format!("MCP server not connected: {name}: it failed several times; {when}")));
        }
        if upstream.calls >= MOST_CALLS {
            return Err(Fault::Upstream(format!("too many requests: {MOST_CALLS} are with {name} already")));
        }
        upstream.calls += 1;
        Ok(())
    }

    /// Takes a call in for the first of these servers that is available; else the reason of the first that is not.
    pub(super) fn admit_first(
        &mut self,
        servers: &mut VecDeque<Server>,
        now: Instant,
    ) -> Result<Server, Option<Fault>> {
        let mut why = None;
        while let Some(server) = servers.pop_front() {
            match self.admit(server, now) {
                Ok(()) => return Ok(server),
                Err(fault) => why = why.or(Some(fault)),
            }
        }
        Err(why)
    }

    fn route<'a>(&self, client: Client, method: &Method, params: &Params<'a>, now: Instant) -> Route<'a> {
        match &**method {
            method::TOOLS_CALL => self.route_name(client, Part::Tools, params.name, now),
            method::PROMPTS_GET => self.route_name(client, Part::Prompts, params.name, now),
            method::RESOURCES_READ => self.route_uri(client, params.uri, now),
            method::COMPLETION_COMPLETE => match params.reference() {
                Some(Reference { name: Some(name), .. }) => self.route_name(client, Part::Prompts, Some(name), now),
                Some(Reference { uri, .. }) => self.route_uri(client, uri, now),
                None => Route::Refused(Fault::Params("expected ref to be an object".into())),
            },
            _ => match &*self.upstreams {
                // There is no doubt whom it is for.
                [only] => Route::To(only.server, None),
                _ => match self.merged.method(method) {
                    Some(server) => Route::To(server, None),
                    None if !self.lists_are_ready(now) => Route::Wait,
                    None => Route::Refused(Fault::UnknownMethod(method.to_string())),
                },
            },
        }
    }

    /// A client wants an answer no more.
    fn cancelled(&mut self, client: Client, notification: &Message, now: Instant) {
        let Some(id) = meta::cancelled_request(notification) else { return };
        let Some(place) = self.clients.get_mut(&client).and_then(|guest| guest.under_way.remove(&id)) else { return };
        match place {
            Place::Server(ours) => {
                let Some((ours, owed)) = self.owed.settle(&ours) else { return };
                self.count_off(&owed);
                let cancelled = meta::with_cancelled_request(notification, &ours);
                self.effects.push_back(Effect::ToServer(owed.server(), cancelled));
            }
            Place::Waiting => {
                self.waiting.retain(|waiting| waiting.client != client || waiting.request.id() != Some(&id));
            }
            Place::Listening => self.unlisten(client, &id, now),
        }
    }
}

/// Refuses what no server of this era serves.
fn check(method: &Method, params: &Params<'_>) -> Result<(), Fault> {
    if method.is_gone() {
        return Err(Fault::UnknownMethod(method.to_string()));
    }
    match params.meta.version.as_deref() {
        Some(version) if STATELESS_ERA.contains(&version) => {}
        Some(version) => {
            return Err(Fault::Version { requested: version.to_owned(), supported: &STATELESS_ERA });
        }
        None => return Err(Fault::Params(format!("expected _meta to hold {}", key::PROTOCOL_VERSION))),
    }
    match params.meta.capabilities {
        Some(capabilities) if capabilities.get().starts_with('{') => Ok(()),
        _ => Err(Fault::Params(format!("expected _meta to hold {}", key::CLIENT_CAPABILITIES))),
    }
}

/// What a request says of its sender, for requests of our own.
fn identity(meta: &Meta<'_>) -> String {
    let mut members = vec![format!(r#""{}":{}"#, key::PROTOCOL_VERSION, quoted(meta.version.as_deref().unwrap_or("")))];
    let rest = [(key::CLIENT_INFO, meta.client_info), (key::CLIENT_CAPABILITIES, meta.capabilities)];
    members.extend(rest.iter().filter_map(|(name, value)| Some(format!(r#""{name}":{}"#, (*value)?.get()))));
    format!("{{{}}}", members.join(","))
}

/// The URI in `data` is what says that it is this error.
fn unknown_resource(id: &Id, uri: &str) -> Message {
    let error = serde_json::json!({
        "code": code::INVALID_PARAMS,
        "message": format!("unknown resource: {uri}"),
        "data": { "uri": uri },
    });
    Message::error_object(Some(id), &error.to_string())
}
