//! The session era: who the client is, is said once, and kept with its log level and subscriptions (2024-11-05 to
//! 2025-11-25).

use std::collections::{BTreeSet, HashMap};

use mcpwire_proto::error::code;
use mcpwire_proto::version::{SESSION_ERA, V2025_11_25};
use mcpwire_proto::{Fault, Id, Kind, Lane, Message, method};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::args::Args;
use super::call::{Answer, Ask, Asking, Call};
use super::calls::Calls;
use super::client::Client;
use super::features::{Work, look_up};
use super::logging::Level;
use super::reply::{Refusal, Reply, lacks, no_resource};
use super::shared::{Change, Shared};
use super::wire::{Gone, Outbox};
use super::{identity, resources};

/// How many resources one session may watch.
const MOST_SUBSCRIPTIONS: usize = 1024;

/// One client's session, owned by the server's loop.
#[derive(Debug)]
pub(super) struct Session {
    shared: Shared,
    outbox: Outbox,
    /// Who the client is, and the number of its session; `None` until it has sent `initialize`.
    client: Option<(Client, u64)>,
    level: watch::Sender<Option<Level>>,
    subscriptions: BTreeSet<String>,
    ask: mpsc::Sender<Ask>,
    /// What the client is owing us: our id, and the question.
    asked: HashMap<Id, Ask>,
    last_ask: u64,
}

impl Session {
    pub(super) fn new(outbox: Outbox, ask: mpsc::Sender<Ask>, shared: Shared) -> Session {
        Session {
            shared,
            outbox,
            client: None,
            level: watch::Sender::new(Some(Level::Info)),
            subscriptions: BTreeSet::new(),
            ask,
            asked: HashMap::new(),
            last_ask: 0,
        }
    }

    /// The version that was agreed on.
    pub(super) fn version(&self) -> Option<&'static str> {
        self.client.as_ref().map(|(client, _)| client.version)
    }

    /// Serves a request; `None` if a call was started that answers later.
    pub(super) fn request(&mut self, id: &Id, method: &str, params: Args, calls: &mut Calls) -> Option<Message> {
        let reply = match self.serve(id, method, params, calls) {
            Ok(None) => return None,
            Ok(Some(result)) => Ok(result),
            Err(refusal) => Err(refusal),
        };
        Some(to_message(id, reply))
    }

    fn serve(&mut self, id: &Id, method: &str, params: Args, calls: &mut Calls) -> Result<Option<Value>, Refusal> {
        let Some((client, number)) = &self.client else {
            return match method {
                method::PING => Ok(Some(json!({}))),
                method::INITIALIZE => self.initialize(&params).map(Some),
                other if is_known(other) => {
                    Err(Fault::Shape(format!("expected initialize first, came {other}")).into())
                }
                other => Err(Fault::UnknownMethod(other.to_owned()).into()),
            };
        };
        if let Some(reply) = look_up(method, &params, client, &self.shared) {
            return reply.map(Some);
        }
        let result = match method {
            method::PING => json!({}),
            method::INITIALIZE => return Err(Fault::Shape("expected one initialize, came a second".into()).into()),
            method::RESOURCES_SUBSCRIBE => self.subscribe(&params)?,
            method::RESOURCES_UNSUBSCRIBE => self.unsubscribe(&params)?,
            method::LOGGING_SET_LEVEL => self.set_level(&params)?,
            other => {
                let token = params.object("_meta")?.progress_token()?;
                let Some(work) = Work::of(other, params, &self.shared)? else {
                    return Err(Fault::UnknownMethod(other.to_owned()).into());
                };
                calls.admit(id)?;
                let call = Call {
                    id: id.clone(),
                    token,
                    session: Some(*number),
                    client: client.clone(),
                    level: self.level.subscribe(),
                    outbox: self.outbox.clone(),
                    asking: Asking::Live(self.ask.clone()),
                    shared: self.shared.clone(),
                    _running: work.is_tool().then(|| self.shared.start_call()),
                };
                let id = id.clone();
                calls.start(id.clone(), async move { to_message(&id, work.run(call).await) });
                return Ok(None);
            }
        };
        Ok(Some(result))
    }

    fn initialize(&mut self, params: &Args) -> Reply {
        let asked = params.text("protocolVersion")?;
        let version = SESSION_ERA.into_iter().find(|known| *known == asked).unwrap_or(V2025_11_25);
        let capabilities = Value::Object(params.object("capabilities")?.into_map());
        let name = params.object("clientInfo")?.optional_text("name")?.unwrap_or_default().to_owned();
        let client = Client { version, name, capabilities };
        let result = json!({
            "protocolVersion": version,
            "capabilities": identity::capabilities(),
            "serverInfo": identity::info(client.knows_structure()),
            "instructions": identity::INSTRUCTIONS,
        });
        self.client = Some((client, self.shared.open_session()));
        Ok(result)
    }

    fn set_level(&mut self, params: &Args) -> Reply {
        self.level.send_replace(Some(Level::read(params, "level")?));
        Ok(json!({}))
    }

    fn subscribe(&mut self, params: &Args) -> Reply {
        let uri = params.text("uri")?;
        resources::check(uri, &self.shared)?;
        if self.subscriptions.len() >= MOST_SUBSCRIPTIONS {
            return Err(Fault::Upstream(format!("a session may watch {MOST_SUBSCRIPTIONS} resources")).into());
        }
        self.subscriptions.insert(uri.to_owned());
        Ok(json!({}))
    }

    fn unsubscribe(&mut self, params: &Args) -> Reply {
        self.subscriptions.remove(params.text("uri")?);
        Ok(json!({}))
    }

    /// Forgets what a call has asked: it was cancelled by the client.
    pub(super) fn forget(&mut self, call: &Id) {
        self.asked.retain(|_, ask| ask.call != *call);
    }

    /// Takes back what a call has asked, and does not wait for any more.
    pub(super) async fn withdraw(&mut self, call: &Id) -> Result<(), Gone> {
        let unanswered: Vec<Id> =
            self.asked.iter().filter(|(_, ask)| ask.call == *call).map(|(ask, _)| ask.clone()).collect();
        for ask in unanswered {
            self.asked.remove(&ask);
            let params = format!(r#"{{"requestId":{ask},"reason":"the call that asked has ended"}}"#);
            let message = Message::notification(method::CANCELLED, Some(&params));
            self.outbox.send(Lane::Request(call.clone()), message).await?;
        }
        Ok(())
    }

    /// Passes a call's question to the client, on the stream of that call.
    pub(super) async fn ask_client(&mut self, ask: Ask) -> Result<(), Gone> {
        self.last_ask += 1;
        let id = Id::from(self.last_ask);
        let message = Message::request(&id, ask.method, Some(&ask.params.to_string()));
        let lane = Lane::Request(ask.call.clone());
        self.asked.insert(id, ask);
        self.outbox.send(lane, message).await
    }

    /// Hands the client's answer to the call that asked.
    pub(super) fn client_answer(&mut self, id: &Id, message: &Message) {
        let Some(ask) = self.asked.remove(id) else {
            tracing::debug!(target: "reference", "an answer nobody waits for: {message}");
            return;
        };
        let payload = message.read().unwrap_or(Value::Null);
        let failed = matches!(message.kind(), Kind::Error { .. });
        // The call may have given up in this moment; then nobody is told.
        let _ = ask.answer.send(if failed { Answer::Refused(payload) } else { Answer::Given(payload) });
    }

    /// Tells the client of a change; `None` stands for changes that were missed.
    pub(super) async fn tell(&self, change: Option<&Change>) -> Result<(), Gone> {
        if self.client.is_none() {
            return Ok(());
        }
        let all = if change.is_none() { Change::all(&self.subscriptions) } else { Vec::new() };
        for change in change.into_iter().chain(&all) {
            let message = match change {
                Change::Resource(uri) if !self.subscriptions.contains(uri) => continue,
                Change::Resource(uri) => {
                    Message::notification(method::RESOURCES_UPDATED, Some(&json!({ "uri": uri }).to_string()))
                }
                Change::List(item) => Message::notification(item.list_changed(), None),
            };
            self.outbox.send(Lane::Main, message).await?;
        }
        Ok(())
    }
}

/// Whether a method would be served after `initialize`.
fn is_known(method: &str) -> bool {
    matches!(
        method,
        method::TOOLS_LIST
            | method::TOOLS_CALL
            | method::RESOURCES_LIST
            | method::RESOURCES_TEMPLATES_LIST
            | method::RESOURCES_READ
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE
            | method::PROMPTS_LIST
            | method::PROMPTS_GET
            | method::COMPLETION_COMPLETE
            | method::LOGGING_SET_LEVEL
    )
}

fn to_message(id: &Id, reply: Reply) -> Message {
    match reply {
        Ok(result) => Message::result(id, &result.to_string()),
        Err(Refusal::Fault(fault)) => fault.to_message(Some(id)),
        Err(Refusal::NoResource(uri)) => no_resource(id, code::RESOURCE_NOT_FOUND, &uri),
        Err(Refusal::Needs(skills)) => Fault::Upstream(lacks(&skills)).to_message(Some(id)),
        Err(Refusal::Failed(why)) => Fault::Upstream(why).to_message(Some(id)),
        Err(Refusal::Asks { .. }) => {
            Fault::Upstream("a call asked as there is no way to ask".into()).to_message(Some(id))
        }
    }
}
