//! The methods of MCP that an orchestrator can serve, one line each.

use mcpwire_proto::version::{SESSION_ERA, V2025_11_25};
use mcpwire_proto::{Failure, Fault, Kind, Message, method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::reply::{Outcome, Refusal, Reply, Stop};
use super::{Orchestrator, era, lists, resources, tools};

pub(super) async fn answer(orchestrator: &Orchestrator, message: &Message) -> Outcome {
    match serve(orchestrator, message).await {
        Ok(result) => Outcome::Reply(Reply::Result(result)),
        Err(Stop::Refused(refusal)) => Outcome::Reply(Reply::Refused(refusal)),
        Err(Stop::Failed(failure)) => Outcome::Failed(failure),
    }
}

async fn serve(orchestrator: &Orchestrator, message: &Message) -> Result<String, Stop> {
    let Kind::Request { id, method } = message.kind() else { return Ok(String::new()) };
    era::check(message, method)?;
    let result = match &**method {
        method::PING => json!({}),
        method::INITIALIZE => initialize(orchestrator, message).await?,
        method::DISCOVER => {
            reach(orchestrator).await?;
            era::discover()
        }
        method::TOOLS_LIST => lists::tools(orchestrator, id).await?,
        method::TOOLS_CALL => return tools::call(orchestrator, id, message).await,
        method::PROMPTS_LIST => lists::prompts(orchestrator, id).await?,
        method::PROMPTS_GET => lists::prompt(orchestrator, id, message).await?,
        method::RESOURCES_LIST => resources::list(orchestrator, id).await?,
        method::RESOURCES_TEMPLATES_LIST => resources::templates(),
        method::RESOURCES_READ => resources::read(orchestrator, id, message).await?,
        method::LOGGING_SET_LEVEL => set_level(message)?,
        other => return Err(Fault::UnknownMethod(other.to_owned()).into()),
    };
    Ok(result.to_string())
}

/// The parameters of a request; without any they are as if empty.
pub(super) fn params<T: DeserializeOwned>(message: &Message) -> Result<T, Refusal> {
    serde_json::from_str(message.payload().unwrap_or("{}")).map_err(|error| Fault::Params(error.to_string()).into())
}

/// What every client is told of the orchestrator.
pub(super) fn capabilities() -> Value {
    json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true }, "resources": {} })
}

pub(super) fn server_info() -> Value {
    json!({ "name": "orchestra", "version": "1.0.0" })
}

/// Answered here; but a client whose orchestrator cannot be reached is to hear of it now and not later.
async fn initialize(orchestrator: &Orchestrator, message: &Message) -> Result<Value, Stop> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        #[serde(default)]
        protocol_version: String,
    }
    let asked: Params = params(message)?;
    reach(orchestrator).await?;
    let version = SESSION_ERA.into_iter().find(|known| *known == asked.protocol_version).unwrap_or(V2025_11_25);
    let mut capabilities = capabilities();
    capabilities["logging"] = json!({});
    Ok(json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "serverInfo": server_info(),
        "_sessionId": orchestrator.session,
    }))
}

async fn reach(orchestrator: &Orchestrator) -> Result<(), Stop> {
    match orchestrator.peer.connection().await {
        Ok(_) => Ok(()),
        Err(why) => Err(Stop::Failed(Failure::NotConnected(why))),
    }
}

/// The level is taken and has no effect: an orchestrator sends no log messages.
fn set_level(message: &Message) -> Result<Value, Refusal> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        level: String,
    }
    let Params { level } = params(message)?;
    if method::LOG_LEVELS.contains(&level.as_str()) {
        return Ok(json!({}));
    }
    Err(Refusal::params(format!("invalid log level: {level:?}")))
}
