//! What the server does, whatever the era: one plain match for what is answered at once, one for what may ask first.

use mcpwire_proto::method;

use super::args::Args;
use super::call::Call;
use super::client::Client;
use super::reply::{Refusal, Reply};
use super::shared::Shared;
use super::{completion, prompts, resources, tools};

/// Answers what needs nothing but the request; `None` if that is not such a method.
pub(super) fn look_up(method: &str, params: &Args, client: &Client, shared: &Shared) -> Option<Reply> {
    Some(match method {
        method::TOOLS_LIST => tools::list(params, client, shared),
        method::RESOURCES_LIST => resources::list(params, shared),
        method::RESOURCES_TEMPLATES_LIST => resources::list_templates(params, shared),
        method::PROMPTS_LIST => prompts::list(params, shared),
        method::COMPLETION_COMPLETE => completion::complete(params),
        _ => return None,
    })
}

/// What may take its time, and may ask the client before it is done.
#[derive(Debug)]
pub(super) enum Work {
    Tool { name: String, args: Args },
    Prompt(Args),
    Read(Args),
}

impl Work {
    /// The work that a request stands for; `None` if that is not such a method.
    pub(super) fn of(method: &str, params: Args, shared: &Shared) -> Result<Option<Work>, Refusal> {
        Ok(Some(match method {
            method::TOOLS_CALL => {
                let name = tools::find(params.text("name")?, shared)?;
                Work::Tool { name, args: params.object("arguments")? }
            }
            method::PROMPTS_GET => Work::Prompt(params),
            method::RESOURCES_READ => Work::Read(params),
            _ => return Ok(None),
        }))
    }

    pub(super) fn is_tool(&self) -> bool {
        matches!(self, Work::Tool { .. })
    }

    pub(super) async fn run(self, mut call: Call) -> Reply {
        match self {
            Work::Tool { name, args } => tools::call(&mut call, &name, &args).await,
            Work::Prompt(params) => prompts::prompt(&mut call, &params).await,
            Work::Read(params) => resources::read(&mut call, &params).await,
        }
    }
}
