//! The stateless era: every request says who asks, and is served by that alone (2026-07-28).

use mcpwire_proto::error::code;
use mcpwire_proto::meta::key;
use mcpwire_proto::method::Method;
use mcpwire_proto::version::{self, V2026_07_28};
use mcpwire_proto::{Fault, Id, Message, method};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::args::Args;
use super::call::{Asking, Call};
use super::calls::Calls;
use super::client::Client;
use super::features::{Work, look_up};
use super::identity;
use super::logging::Level;
use super::reply::{Refusal, Reply, error, lacks, no_resource};
use super::rounds::Rounds;
use super::shared::{Eras, Shared};
use super::wire::Outbox;

/// How long lists and the server's description may be kept. Those who listen are told of changes before.
const LIST_TTL_MS: u64 = 60_000;

/// What becomes of a request.
pub(super) enum Served {
    Answered(Message),
    /// A call was started that answers later.
    Started,
    /// It opens a subscription: what it wants to hear of.
    Listens(Args),
}

/// Whether a request belongs to this era: it says so in its `_meta`, or no other era has its method.
pub(super) fn claims(method: &str, params: &Args) -> bool {
    let says = |meta: &Map<String, Value>| {
        [key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES, key::CLIENT_INFO].iter().any(|key| meta.contains_key(*key))
    };
    params.value("_meta").and_then(Value::as_object).is_some_and(says)
        || matches!(method, method::DISCOVER | method::LISTEN)
}

/// Serves one request, in a task of its own if that may take time.
pub(super) fn request(
    id: &Id,
    method: &Method,
    params: Args,
    calls: &mut Calls,
    outbox: &Outbox,
    shared: &Shared,
) -> Served {
    match serve(id, method, params, calls, outbox, shared) {
        Ok(served) => served,
        Err(refusal) => Served::Answered(to_message(id, method, Err(refusal))),
    }
}

fn serve(
    id: &Id,
    method: &Method,
    params: Args,
    calls: &mut Calls,
    outbox: &Outbox,
    shared: &Shared,
) -> Result<Served, Refusal> {
    let meta = params.object("_meta")?;
    let (client, level) = sender(&meta, shared.settings().eras)?;
    if let Some(reply) = look_up(method, &params, &client, shared) {
        return Ok(Served::Answered(to_message(id, method, reply)));
    }
    match &**method {
        method::DISCOVER => return Ok(Served::Answered(to_message(id, method, Ok(discover(shared.settings().eras))))),
        method::LISTEN => return Ok(Served::Listens(params)),
        _ => {}
    }
    if !method.may_ask() {
        return Err(Fault::UnknownMethod(method.to_string()).into());
    }
    let rounds = Rounds::read(method, &params, shared)?;
    let Some(work) = Work::of(method, params, shared)? else {
        return Err(Fault::UnknownMethod(method.to_string()).into());
    };
    calls.admit(id)?;
    let call = Call {
        id: id.clone(),
        token: meta.progress_token()?,
        session: None,
        client,
        level: watch::channel(level).1,
        outbox: outbox.clone(),
        asking: Asking::Rounds(rounds),
        shared: shared.clone(),
        _running: work.is_tool().then(|| shared.start_call()),
    };
    let (id, method) = (id.clone(), method.clone());
    calls.start(id.clone(), async move { to_message(&id, &method, work.run(call).await) });
    Ok(Served::Started)
}

/// Who asks, and the least level of log messages it wants.
fn sender(meta: &Args, eras: Eras) -> Result<(Client, Option<Level>), Fault> {
    let requested = meta.text(key::PROTOCOL_VERSION)?;
    if !version::STATELESS_ERA.contains(&requested) {
        return Err(Fault::Version { requested: requested.to_owned(), supported: eras.versions() });
    }
    if meta.value(key::CLIENT_CAPABILITIES).is_none() {
        return Err(meta.wrong("an object", key::CLIENT_CAPABILITIES));
    }
    let capabilities = Value::Object(meta.object(key::CLIENT_CAPABILITIES)?.into_map());
    let name = meta.object(key::CLIENT_INFO)?.optional_text("name")?.unwrap_or_default().to_owned();
    let level = match meta.value(key::LOG_LEVEL) {
        Some(_) => Some(Level::read(meta, key::LOG_LEVEL)?),
        None => None,
    };
    Ok((Client { version: V2026_07_28, name, capabilities }, level))
}

fn discover(eras: Eras) -> Value {
    json!({
        "supportedVersions": eras.versions(),
        "capabilities": identity::capabilities(),
        "instructions": identity::INSTRUCTIONS,
    })
}

/// A result with what every result of this era carries.
fn dress(mut result: Value, kind: &str) -> Value {
    result["resultType"] = json!(kind);
    result["_meta"][key::SERVER_INFO] = identity::info(true);
    result
}

fn to_message(id: &Id, method: &Method, reply: Reply) -> Message {
    match reply {
        Ok(mut result) => {
            if method.is_cacheable() {
                // What a resource holds may change with the next call; lists are the same for everyone.
                let (ttl, scope) =
                    if *method == method::RESOURCES_READ { (0, "private") } else { (LIST_TTL_MS, "public") };
                result["ttlMs"] = json!(ttl);
                result["cacheScope"] = json!(scope);
            }
            Message::result(id, &dress(result, "complete").to_string())
        }
        Err(Refusal::Asks { questions, state }) => {
            let mut result = json!({});
            if !questions.is_empty() {
                result["inputRequests"] = Value::Object(questions);
            }
            if let Some(state) = state {
                result["requestState"] = json!(state);
            }
            Message::result(id, &dress(result, "input_required").to_string())
        }
        Err(Refusal::Fault(fault)) => fault.to_message(Some(id)),
        Err(Refusal::NoResource(uri)) => no_resource(id, code::INVALID_PARAMS, &uri),
        Err(Refusal::Needs(skills)) => {
            let mut required: Value = json!({});
            for (name, value) in skills.iter().map(|skill| skill.capability()) {
                match (&mut required[name], value) {
                    (Value::Object(there), Value::Object(more)) => there.extend(more),
                    (none, value) => *none = value,
                }
            }
            error(id, code::MISSING_CLIENT_CAPABILITY, &lacks(&skills), json!({ "requiredCapabilities": required }))
        }
        Err(Refusal::Failed(why)) => Fault::Upstream(why).to_message(Some(id)),
    }
}
