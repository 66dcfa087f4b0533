//! What a program does with what its server says and asks by itself.

use std::pin::Pin;

use mcpwire_proto::method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::RpcError;

/// An answer to the server that may take its time.
pub type Reply<'a> = Pin<Box<dyn Future<Output = Result<Value, RpcError>> + Send + 'a>>;

/// Hears what the server says by itself. Every method has a default, and `()` is the handler that does nothing.
///
/// The methods that return no future run in the client's own loop, in the order in which things came: they must not block,
/// and cannot wait for a request of the same client. A server's requests are each answered in a task of their own; if the
/// server takes one back, its task is ended. `ping` is always answered, without asking the handler.
///
/// A handler that holds a clone of its client keeps the connection until [`Client::close`](super::Client::close).
///
/// What a handler can do must be declared in [`Options::capabilities`](super::Options::capabilities), or servers will not
/// ask.
pub trait Handler: Send + Sync + 'static {
    /// Any notification, those of progress included.
    fn on_notification(&self, method: &str, params: Option<&RawValue>) {
        let _ = (method, params);
    }

    /// Any request of the server's but `ping`. The default asks the methods below, and refuses everything else.
    fn on_request<'a>(&'a self, method: &'a str, params: Value) -> Reply<'a> {
        match method {
            method::ROOTS_LIST => {
                let roots = self.roots().ok_or_else(|| RpcError::method_not_found(method));
                Box::pin(async move { roots.map(|roots| json!({"roots": roots})) })
            }
            method::SAMPLING_CREATE_MESSAGE => self.sample(params),
            method::ELICITATION_CREATE => self.elicit(params),
            _ => refuse(method),
        }
    }

    /// The folders that the server may work in (`roots/list`).
    fn roots(&self) -> Option<Vec<Root>> {
        None
    }

    /// Asks a language model (`sampling/createMessage`).
    fn sample<'a>(&'a self, params: Value) -> Reply<'a> {
        let _ = params;
        refuse(method::SAMPLING_CREATE_MESSAGE)
    }

    /// Asks the user (`elicitation/create`).
    fn elicit<'a>(&'a self, params: Value) -> Reply<'a> {
        let _ = params;
        refuse(method::ELICITATION_CREATE)
    }

    /// The connection has ended, for this reason if it was not the caller's wish. Told once, as the last thing.
    fn on_close(&self, why: Option<&str>) {
        let _ = why;
    }

    /// Something went wrong that concerns no request: the server went away and is being connected to again, a notification
    /// did not get through, something came that is no message.
    fn on_error(&self, error: &str) {
        let _ = error;
    }
}

impl Handler for () {}

/// A folder that a server may work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// A `file://` URL.
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

fn refuse<'a>(method: &str) -> Reply<'a> {
    let error = RpcError::method_not_found(method);
    Box::pin(async move { Err(error) })
}
