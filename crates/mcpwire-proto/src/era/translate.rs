//! Single messages, said the way of the other era. Who needs which is left to the machines beside this file.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::identity::Identity;
use crate::meta::key;
use crate::method::{self, Method};
use crate::object::quoted;
use crate::version::{SESSION_ERA, V2025_11_25};
use crate::{Id, Message, Object, code};

/// The extension whose session-era form is another one. It is withheld across the seam.
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// What a session-era client said of itself, for the requests that it sends to a server of the other era.
pub(super) fn identity(initialize: &Message, version: &'static str) -> Identity {
    let params = initialize.members().unwrap_or_default();
    let capabilities = params.object("capabilities").map(without_tasks).unwrap_or_default();
    Identity::new(version, params.get("clientInfo"), &capabilities)
}

/// A stateless request as a session-era server takes it: without what its sender says of itself, and with a token of
/// ours for its progress if it wants to hear of that.
pub(super) fn unsigned(request: &Message, progress_token: Option<&Id>) -> Message {
    let Some(mut params) = request.members() else { return request.clone() };
    remove_input(&mut params);
    if let Some(mut meta) = params.object("_meta") {
        for name in [key::PROTOCOL_VERSION, key::CLIENT_INFO, key::CLIENT_CAPABILITIES, key::LOG_LEVEL] {
            meta.remove(name);
        }
        if let Some(token) = progress_token {
            meta.set("progressToken", token.as_json());
        }
        let rest = (!meta.is_empty()).then(|| meta.text());
        match rest {
            Some(rest) => params.set("_meta", rest),
            None => params.remove("_meta"),
        }
    }
    request.with_members(&params)
}

/// A retry without the input it carries, as the request it repeats.
pub(super) fn without_input(request: &Message) -> Message {
    let Some(mut params) = request.members() else { return request.clone() };
    remove_input(&mut params);
    request.with_members(&params)
}

fn remove_input(params: &mut Object<'_>) {
    params.remove("inputResponses");
    params.remove("requestState");
}

/// Removes keys from `_meta`, and `_meta` itself if that leaves it empty. An object without these keys keeps its bytes.
fn remove_from_meta(members: &mut Object<'_>, keys: &[&str]) {
    let Some(mut meta) = members.object("_meta") else { return };
    if keys.iter().all(|key| meta.get(key).is_none()) {
        return;
    }
    keys.iter().for_each(|key| meta.remove(key));
    let rest = (!meta.is_empty()).then(|| meta.text());
    match rest {
        Some(rest) => members.set("_meta", rest),
        None => members.remove("_meta"),
    }
}

/// The `initialize` that opens a session for a stateless client.
pub(super) fn initialize(id: &Id, version: &str, info: Option<&str>, capabilities: &str) -> Message {
    let capabilities = Object::parse(capabilities).map(without_tasks).unwrap_or_default();
    let info = info.unwrap_or(r#"{"name":"mcpwire","version":"0"}"#);
    let params =
        format!(r#"{{"protocolVersion":{},"capabilities":{capabilities},"clientInfo":{info}}}"#, quoted(version));
    Message::request(id, method::INITIALIZE, Some(&params))
}

/// What `server/discover` told, as the answer to `initialize`.
pub(super) fn initialize_result(initialize: &Message, discovered: &str) -> Option<Message> {
    let discovered = Object::parse(discovered)?;
    let wanted = initialize.members().and_then(|params| params.string("protocolVersion"));
    let version = wanted.filter(|version| SESSION_ERA.contains(&version.as_str()));
    let capabilities = discovered.object("capabilities").map(without_tasks).unwrap_or_default();
    let meta = discovered.object("_meta");
    let info = meta.as_ref().and_then(|meta| meta.get(key::SERVER_INFO));
    let mut result = Object::new();
    result.set("protocolVersion", quoted(version.as_deref().unwrap_or(V2025_11_25)));
    result.set("capabilities", capabilities.to_string());
    result.set("serverInfo", info.unwrap_or(r#"{"name":"unknown","version":"unknown"}"#));
    if let Some(instructions) = discovered.get("instructions") {
        result.set("instructions", instructions);
    }
    Some(Message::result(initialize.id()?, &result.to_string()))
}

/// What `initialize` told, as the answer to `server/discover`.
pub(super) fn discover_result(id: &Id, initialized: &Object<'_>, versions: &[&str]) -> Message {
    let capabilities = initialized.object("capabilities").map(without_tasks).unwrap_or_default();
    let mut result = Object::new();
    result.set("resultType", r#""complete""#);
    result.set("supportedVersions", serde_json::json!(versions).to_string());
    result.set("capabilities", capabilities.to_string());
    if let Some(instructions) = initialized.get("instructions") {
        result.set("instructions", instructions);
    }
    // Another client may find other capabilities.
    result.set("ttlMs", "0");
    result.set("cacheScope", r#""private""#);
    if let Some(info) = initialized.get("serverInfo") {
        result.set("_meta", format!("{{{}:{info}}}", quoted(key::SERVER_INFO)));
    }
    Message::result(id, &result.to_string())
}

/// A session-era result as one of the stateless era.
pub(super) fn complete(result: &Message, method: &Method, server_info: Option<&str>) -> Message {
    let Some(mut members) = result.members() else { return result.clone() };
    members.set("resultType", r#""complete""#);
    if method.is_cacheable() {
        members.set("ttlMs", "0");
        members.set("cacheScope", r#""private""#);
    }
    if let Some(info) = server_info {
        let meta = {
            let mut meta = members.object("_meta").unwrap_or_default();
            meta.set(key::SERVER_INFO, info);
            meta.text()
        };
        members.set("_meta", meta);
    }
    result.with_members(&members)
}

/// A complete result without what session-era clients do not know. The server's name is theirs since `initialize`.
pub(super) fn plain(result: &Message, mut members: Object<'_>) -> Message {
    for name in ["resultType", "ttlMs", "cacheScope"] {
        members.remove(name);
    }
    remove_from_meta(&mut members, &[key::SERVER_INFO]);
    result.with_members(&members)
}

/// Whether the result of `server/discover` declares a capability.
pub(super) fn declares(discovered: &str, capability: &str) -> bool {
    let discovered = Object::parse(discovered).unwrap_or_default();
    discovered.object("capabilities").is_some_and(|capabilities| capabilities.get(capability).is_some())
}

#[derive(Deserialize)]
pub(super) struct ErrorObject<'a> {
    pub code: i64,
    #[serde(borrow, default)]
    pub message: Cow<'a, str>,
    #[serde(borrow, default)]
    pub data: Option<&'a RawValue>,
}

/// A missing resource has a code of its own in the session era.
pub(super) fn session_error(error: &Message, request: &Message) -> Message {
    let is_missing = |error: &ErrorObject<'_>| {
        let data = error.data.and_then(|data| Object::parse(data.get()));
        let named = data.and_then(|data| data.string("uri"));
        let asked = request.members().and_then(|params| params.string("uri"));
        error.code == i64::from(code::INVALID_PARAMS) && named.is_some() && named == asked
    };
    match error.read::<ErrorObject<'_>>() {
        Some(told) if request.is(method::RESOURCES_READ) && is_missing(&told) => {
            recoded(error, code::RESOURCE_NOT_FOUND)
        }
        _ => error.clone(),
    }
}

/// The stateless era has no code of its own for a missing resource.
pub(super) fn stateless_error(error: &Message) -> Message {
    match error.read::<ErrorObject<'_>>() {
        Some(told) if told.code == i64::from(code::RESOURCE_NOT_FOUND) => recoded(error, code::INVALID_PARAMS),
        _ => error.clone(),
    }
}

fn recoded(error: &Message, code: i32) -> Message {
    let Some(mut members) = error.members() else { return error.clone() };
    members.set("code", code.to_string());
    error.with_members(&members)
}

/// The pages that a user has to open before the request can be served, as the questions they would be.
pub(super) fn required_urls(error: &Message) -> Vec<Message> {
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        elicitations: Vec<&'a RawValue>,
    }
    let told = error.read::<ErrorObject<'_>>();
    let told = told.filter(|told| told.code == i64::from(code::URL_ELICITATION_REQUIRED));
    let data = told.and_then(|told| serde_json::from_str::<Data<'_>>(told.data?.get()).ok());
    let pages = data.map(|data| data.elicitations).unwrap_or_default();
    let question = |page: &&RawValue| Message::request(&Id::from(0), method::ELICITATION_CREATE, Some(page.get()));
    pages.iter().filter(|page| Object::parse(page.get()).is_some()).map(question).collect()
}

/// The versions that an error names as supported, if it is that error.
pub(super) fn supported_versions(error: &Message) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let told: ErrorObject<'_> = error.read()?;
    let is_it = told.code == i64::from(code::UNSUPPORTED_VERSION);
    is_it.then(|| serde_json::from_str::<Data>(told.data?.get()).ok())?.map(|data| data.supported)
}

/// A notification without the subscription it came for.
pub(super) fn unsubscribed(notification: &Message) -> Message {
    let Some(mut params) = notification.members() else { return notification.clone() };
    remove_from_meta(&mut params, &[key::SUBSCRIPTION_ID]);
    if params.is_empty()
        && let Some(method) = notification.method()
    {
        return Message::notification(method, None);
    }
    notification.with_members(&params)
}

/// A notification for a subscription.
pub(crate) fn subscribed(notification: &Message, subscription: &Id) -> Message {
    let mut params = notification.members().unwrap_or_default();
    let meta = {
        let mut meta = params.object("_meta").unwrap_or_default();
        meta.set(key::SUBSCRIPTION_ID, subscription.as_json());
        meta.text()
    };
    params.set("_meta", meta);
    notification.with_members(&params)
}

/// A question inside an `input_required` result, as a request to a session-era client; `None` if it is no such question.
pub(super) fn question(id: &Id, asked: &str) -> Option<(Message, Method)> {
    let asked = Object::parse(asked)?;
    let method = Method::from(asked.string("method")?.as_str());
    if !is_question(&method) {
        return None;
    }
    let mut params = asked.object("params").unwrap_or_default();
    if params.string("mode").as_deref() == Some("url") && params.get("elicitationId").is_none() {
        // 2025-11-25 requires one. Nobody will refer to it: its notification is gone, too.
        params.set("elicitationId", id.as_json());
    }
    let params = (!params.is_empty()).then(|| params.to_string());
    Some((Message::request(id, &method, params.as_deref()), method))
}

/// A session-era server's request as a question inside an `input_required` result. The stateless era has no
/// `elicitationId`; a session-era client that is asked in the end needs the server's, because
/// `notifications/elicitation/complete` refers to it.
pub(super) fn input_request(request: &Message, keep_elicitation_id: bool) -> String {
    let method = request.method().map(|method| quoted(method)).unwrap_or_default();
    let mut params = request.members().unwrap_or_default();
    if !keep_elicitation_id {
        params.remove("elicitationId");
    }
    params.remove("task");
    if request.is(method::ROOTS_LIST) && params.is_empty() {
        return format!(r#"{{"method":{method}}}"#);
    }
    format!(r#"{{"method":{method},"params":{params}}}"#)
}

/// What a server may ask a client, in either era.
pub(super) fn is_question(method: &Method) -> bool {
    matches!(&**method, method::ELICITATION_CREATE | method::SAMPLING_CREATE_MESSAGE | method::ROOTS_LIST)
}

/// Tasks of 2025-11-25 and the tasks extension are not the same: neither is promised across the seam.
fn without_tasks(mut capabilities: Object<'_>) -> Object<'_> {
    capabilities.remove("tasks");
    let rest = capabilities.object("extensions").map(|mut extensions| {
        extensions.remove(TASKS_EXTENSION);
        (!extensions.is_empty()).then(|| extensions.to_string())
    });
    match rest {
        Some(Some(rest)) => capabilities.set("extensions", rest),
        Some(None) => capabilities.remove("extensions"),
        None => {}
    }
    capabilities
}
