//! What the stateless era (2026-07-28) adds to the answers: what the server is, how long a result may be kept, and
//! subscriptions to changes.

use mcpwire_proto::meta::{self, key};
use mcpwire_proto::method::{self, Method};
use mcpwire_proto::object::Object;
use mcpwire_proto::version::{ALL, STATELESS_ERA};
use mcpwire_proto::{Fault, Id, Message, code};
use serde::Deserialize;
use serde_json::{Value, json};

use super::methods;
use super::reply::{Refusal, Reply};

/// Refuses a request of the stateless era in a version that we do not know, or of a method that it does not have.
pub(super) fn check(message: &Message, method: &Method) -> Result<(), Refusal> {
    let Some(declared) = meta::declared(message) else { return Ok(()) };
    let version = declared.version.unwrap_or_default();
    if !STATELESS_ERA.contains(&&*version) {
        return Err(Fault::Version { requested: version.into_owned(), supported: &STATELESS_ERA }.into());
    }
    if method.is_gone() {
        return Err(Fault::UnknownMethod(method.to_string()).into());
    }
    Ok(())
}

pub(super) fn discover() -> Value {
    json!({ "supportedVersions": ALL, "capabilities": methods::capabilities() })
}

/// The answer in the form of the request's era.
pub(super) fn dress(request: &Message, reply: Reply) -> Reply {
    if meta::declared(request).is_none() && !request.is(method::DISCOVER) {
        return reply;
    }
    match reply {
        Reply::Result(text) => Reply::Result(dressed(request, &text).unwrap_or(text)),
        // A missing resource has had a code of its own before.
        Reply::Refused(refusal) if refusal.code == code::RESOURCE_NOT_FOUND => {
            Reply::Refused(refusal.with_code(code::INVALID_PARAMS))
        }
        refused => refused,
    }
}

fn dressed(request: &Message, text: &str) -> Option<String> {
    let mut result = Object::parse(text)?;
    result.set("resultType", r#""complete""#);
    if request.method().is_some_and(Method::is_cacheable) {
        // Nothing tells us of changes behind the orchestrator.
        result.set("ttlMs", "0");
        result.set("cacheScope", r#""private""#);
    }
    let mut about = result.object("_meta").unwrap_or_default();
    about.set(key::SERVER_INFO, methods::server_info().to_string());
    let about = about.to_string();
    result.set("_meta", about);
    Some(result.to_string())
}

/// An open `subscriptions/listen`.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) id: Id,
    wanted: Wanted,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wanted {
    tools_list_changed: bool,
    prompts_list_changed: bool,
}

impl Listening {
    /// Opens it; the message acknowledges what is honoured.
    pub(super) fn open(id: Id, message: &Message) -> Result<(Listening, Message), Refusal> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            notifications: Wanted,
        }
        if let Some(method) = message.method() {
            check(message, method)?;
        }
        let Params { notifications: wanted } = methods::params(message)?;
        let mut honoured = json!({});
        for (name, wanted) in
            [("toolsListChanged", wanted.tools_list_changed), ("promptsListChanged", wanted.prompts_list_changed)]
        {
            if wanted {
                honoured[name] = json!(true);
            }
        }
        let listening = Listening { id, wanted };
        let params = format!(r#"{{"_meta":{},"notifications":{honoured}}}"#, listening.about());
        let acknowledged = Message::notification(method::ACKNOWLEDGED, Some(&params));
        Ok((listening, acknowledged))
    }

    /// The notification of a change as this listener gets it, if it wants it.
    pub(super) fn notification(&self, changed: &str) -> Option<Message> {
        let wanted = match changed {
            method::TOOLS_LIST_CHANGED => self.wanted.tools_list_changed,
            method::PROMPTS_LIST_CHANGED => self.wanted.prompts_list_changed,
            _ => false,
        };
        wanted.then(|| Message::notification(changed, Some(&format!(r#"{{"_meta":{}}}"#, self.about()))))
    }

    fn about(&self) -> String {
        format!(r#"{{"{}":{}}}"#, key::SUBSCRIPTION_ID, self.id)
    }
}
