//! The common methods with their types: lists whole, over as many pages as there are.

use std::collections::HashSet;

use mcpwire_proto::{Object, code, method};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{
    CallResult, Client, Completion, Error, Prompt, PromptResult, ReadResult, RequestOptions, Resource, Template, Tool,
    Whole,
};

/// The most pages of a list. A server that has more is not to be believed.
const MOST_PAGES: usize = 10_000;

impl Client {
    /// All tools; none, without asking, if the server has not declared any.
    pub async fn list_tools(&self) -> Result<Vec<Whole<Tool>>, Error> {
        self.list("tools", method::TOOLS_LIST, "tools").await
    }

    /// All resources; none, without asking, if the server has not declared any.
    pub async fn list_resources(&self) -> Result<Vec<Whole<Resource>>, Error> {
        self.list("resources", method::RESOURCES_LIST, "resources").await
    }

    /// All templates of resources. Servers with resources need not know the method: then there are none.
    pub async fn list_templates(&self) -> Result<Vec<Whole<Template>>, Error> {
        match self.list("resources", method::RESOURCES_TEMPLATES_LIST, "resourceTemplates").await {
            Err(error) if error.code() == Some(code::METHOD_NOT_FOUND.into()) => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// All prompts; none, without asking, if the server has not declared any.
    pub async fn list_prompts(&self) -> Result<Vec<Whole<Prompt>>, Error> {
        self.list("prompts", method::PROMPTS_LIST, "prompts").await
    }

    /// Calls a tool. A tool that fails is a result, too: see [`CallResult::is_error`].
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: RequestOptions,
    ) -> Result<Whole<CallResult>, Error> {
        let params = NamedCall { name, arguments: object(&arguments)? };
        self.request(method::TOOLS_CALL, params, options).await?.read()
    }

    pub async fn read_resource(&self, uri: &str) -> Result<Whole<ReadResult>, Error> {
        self.simple(method::RESOURCES_READ, json!({"uri": uri})).await?.read()
    }

    /// A prompt, filled in. The arguments of prompts are texts.
    pub async fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<Whole<PromptResult>, Error> {
        let params = NamedCall { name, arguments: object(&arguments)? };
        self.simple(method::PROMPTS_GET, params).await?.read()
    }

    /// What may follow in an argument. `reference` is `{"type": "ref/prompt", "name": …}` or
    /// `{"type": "ref/resource", "uri": …}`.
    pub async fn complete(&self, reference: Value, argument: &str, value: &str) -> Result<Completion, Error> {
        #[derive(Deserialize)]
        struct Completed {
            completion: Completion,
        }
        let params = json!({"ref": reference, "argument": {"name": argument, "value": value}});
        let completed: Completed = self.simple(method::COMPLETION_COMPLETE, params).await?.read()?;
        Ok(completed.completion)
    }

    pub async fn ping(&self) -> Result<(), Error> {
        self.simple(method::PING, ()).await.map(drop)
    }

    /// From which level on the server is to send log messages, as in `warning`.
    pub async fn set_level(&self, level: &str) -> Result<(), Error> {
        self.simple(method::LOGGING_SET_LEVEL, json!({"level": level})).await.map(drop)
    }

    /// The handler hears of changes of this resource from now on, also when the server was restarted since.
    pub async fn subscribe(&self, uri: &str) -> Result<(), Error> {
        self.simple(method::RESOURCES_SUBSCRIBE, json!({"uri": uri})).await.map(drop)
    }

    pub async fn unsubscribe(&self, uri: &str) -> Result<(), Error> {
        self.simple(method::RESOURCES_UNSUBSCRIBE, json!({"uri": uri})).await.map(drop)
    }

    async fn simple(&self, method: &str, params: impl Serialize) -> Result<super::Answer, Error> {
        self.request(method, params, RequestOptions::default()).await
    }

    async fn list<T: DeserializeOwned>(
        &self,
        capability: &str,
        method: &str,
        member: &'static str,
    ) -> Result<Vec<Whole<T>>, Error> {
        let mut listed = Vec::new();
        if !self.server().can(capability) {
            return Ok(listed);
        }
        let unexpected = |why: String| Error::Unexpected { method: method.to_owned(), why };
        let mut seen = HashSet::new();
        let mut params = json!({});
        for _ in 0..MOST_PAGES {
            let answer = self.simple(method, &params).await?;
            let page = Object::parse(answer.raw()).ok_or_else(|| unexpected("expected an object".to_owned()))?;
            let items = page.get(member).ok_or_else(|| unexpected(format!("expected {member}, came none")))?;
            let items: Vec<&RawValue> = serde_json::from_str(items)
                .map_err(|error| unexpected(format!("expected a list of {member}: {error}")))?;
            for item in items {
                match serde_json::from_str(item.get()) {
                    Ok(item) => listed.push(item),
                    // One bad entry does not hurt the others.
                    Err(error) => tracing::warn!(target: "client", "{method}: skipped an entry: {error}"),
                }
            }
            let Some(cursor) = page.string("nextCursor") else { return Ok(listed) };
            if !seen.insert(cursor.clone()) {
                return Err(unexpected(format!("the server named the cursor {cursor:?} twice")));
            }
            params = json!({"cursor": cursor});
        }
        Err(unexpected(format!("more than {MOST_PAGES} pages")))
    }
}

#[derive(Serialize)]
struct NamedCall<'a> {
    name: &'a str,
    arguments: Box<RawValue>,
}

/// Arguments are an object, empty if there are none.
fn object(arguments: &impl Serialize) -> Result<Box<RawValue>, Error> {
    let text = super::request::params_text(arguments)?;
    RawValue::from_string(text).map_err(|error| Error::Params(error.to_string()))
}
