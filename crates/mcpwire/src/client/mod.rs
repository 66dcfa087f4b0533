//! An MCP client for programs: connects to any target, asks it, and hears what it has to say.
//!
//! A [`Client`] sits on a bridge of its own. So its server may be of any transport and any era, may be restarted under it, and is
//! found again. With [`Options::recover`] off it fails fast instead: when the connection is lost, everything that is pending is
//! rejected with `Transport closed`.
//!
//! ```
//! use mcpwire::client::{Client, Options, RequestOptions, content};
//! use mcpwire::folder::Folder;
//! use mcpwire::target::Target;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Or Target::http("https://example.com/mcp".parse()?), or Target::command("npx", ["-y", "some-server"]).
//! let target = Target::Folder(Folder::sample());
//! let client = Client::connect(target, Options::default()).await?;
//! println!("{} speaks {}", client.server().info.name, client.server().protocol_version);
//!
//! for tool in client.list_tools().await? {
//!     println!("{}: {}", tool.name, tool.description.as_deref().unwrap_or("no description"));
//! }
//! let question = json!({"question": "List people with python skills"});
//! let result = client.call_tool("relevant-data.ask", question, RequestOptions::default()).await?;
//! assert!(!result.is_error, "{}", content::text(&result));
//!
//! // Anything else that the server may know.
//! let answer = client.request("prompts/list", json!({}), RequestOptions::default()).await?;
//! println!("{}", answer.raw());
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Time, and a change of mind
//!
//! A request that is not answered within [`Options::timeout`] fails. So does one that is withdrawn by a [`Cancel`]. Either way, and also when
//! its future is dropped, the server is told with `notifications/cancelled`.
//!
//! ```
//! # use mcpwire::client::{Cancel, Client, Error, Options, RequestOptions};
//! # use mcpwire::reference::{self, Settings, Shared};
//! # use mcpwire::{bridge::Reach, link::Link};
//! # use serde_json::json;
//! # use std::{sync::Arc, time::Duration};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let shared = Shared::new(Settings::default());
//! # let target = Reach::new(Arc::new(move || {
//! #     let (link, port) = Link::pair();
//! #     Ok((link, Some(tokio::spawn(reference::serve(port, shared.clone())))))
//! # }));
//! # let client = Client::connect(target, Options::default()).await?;
//! let slow = json!({"ms": 60_000});
//! let options = RequestOptions::within(Duration::from_millis(50)).on_progress(|now| println!("{}", now.progress));
//! let error = client.call_tool("slow", &slow, options).await.unwrap_err();
//! assert_eq!(error.to_string(), "Request timeout after 50ms");
//!
//! let cancel = Cancel::new();
//! let call = client.call_tool("slow", &slow, RequestOptions::default().cancelled_by(&cancel));
//! let (result, ()) = tokio::join!(call, async { cancel.cancel_because("changed my mind") });
//! assert!(matches!(result, Err(Error::Aborted(reason)) if reason == "changed my mind"));
//! # Ok(())
//! # }
//! ```
//!
//! # What the server says and asks
//!
//! ```
//! use mcpwire::client::{Client, Handler, Options, Reply, Root};
//! # use mcpwire::client::{Error, RequestOptions, content};
//! # use mcpwire::reference::{self, Settings, Shared};
//! # use mcpwire::{bridge::Reach, link::Link};
//! use serde_json::value::RawValue;
//! use serde_json::{Value, json};
//! use std::sync::Arc;
//!
//! struct Agent;
//!
//! impl Handler for Agent {
//!     fn on_notification(&self, method: &str, params: Option<&RawValue>) {
//!         println!("{method} {}", params.map_or("", RawValue::get));
//!     }
//!
//!     fn roots(&self) -> Option<Vec<Root>> {
//!         Some(vec![Root { uri: "file:///home/me/project".into(), name: None }])
//!     }
//!
//!     fn elicit<'a>(&'a self, _question: Value) -> Reply<'a> {
//!         Box::pin(async { Ok(json!({"action": "decline"})) })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let shared = Shared::new(Settings::default());
//! # let target = Reach::new(Arc::new(move || {
//! #     let (link, port) = Link::pair();
//! #     Ok((link, Some(tokio::spawn(reference::serve(port, shared.clone())))))
//! # }));
//! let options = Options {
//!     capabilities: json!({"roots": {}, "elicitation": {}}),
//!     handler: Arc::new(Agent),
//!     ..Options::default()
//! };
//! let client = Client::connect(target, options).await?;
//! # let roots = client.call_tool("roots", (), RequestOptions::default()).await?;
//! # assert!(content::text(&roots).contains("file:///home/me/project"));
//! # Ok(())
//! # }
//! ```

mod books;
mod connection;
pub mod content;
pub mod direct;
mod driver;
mod error;
mod handler;
mod methods;
mod request;
mod tap;
mod types;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcpwire_proto::conversation::Config;
use mcpwire_proto::{Message, method, version};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::books::Books;
use self::connection::Connection;
use crate::bridge::Reach;
use crate::link::Event;

pub use self::error::{Cause, Error, HttpError, RpcError};
pub use self::handler::{Handler, Reply, Root};
pub use self::request::{Cancel, OnProgress, Progress, RequestOptions};
pub use self::types::{
    CallResult, Completion, Contents, Implementation, Prompt, PromptArgument, PromptMessage, PromptResult, ReadResult,
    Resource, Server, Template, Tool, Whole,
};

/// How a client behaves.
#[derive(Clone)]
pub struct Options {
    /// What the server is called in errors.
    pub name: String,
    pub client_info: Implementation,
    /// What the handler can do, as in `{"roots": {}, "sampling": {}, "elicitation": {}}`.
    pub capabilities: Value,
    /// How long an answer may take; zero is for ever.
    pub timeout: Duration,
    /// How long the handshake may take; zero is for ever.
    pub connect_timeout: Duration,
    /// Whether a lost connection is made anew, and what can be repeated without harm is repeated.
    pub recover: bool,
    pub handler: Arc<dyn Handler>,
    /// How the bridge behaves: how long it waits for a server that cannot be reached, and which version it speaks.
    pub bridge: Config,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            name: "server".to_owned(),
            client_info: Implementation {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                title: None,
            },
            capabilities: json!({}),
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(30),
            recover: true,
            handler: Arc::new(()),
            bridge: Config::default(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Options");
        shown.field("name", &self.name).field("timeout", &self.timeout).field("recover", &self.recover);
        shown.finish_non_exhaustive()
    }
}

/// A connection to a server. Clones are the same connection; it ends with [`Client::close`], or with the last clone.
#[derive(Debug, Clone)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    connection: Connection,
    server: Whole<Server>,
    timeout: Duration,
}

impl Client {
    /// Connects to a [`Target`](crate::target::Target), or to whatever else can be reached, and shakes hands. Must be called in a
    /// runtime.
    pub async fn connect(target: impl Into<Reach>, options: Options) -> Result<Client, Error> {
        let Options { name, client_info, capabilities, timeout: limit, connect_timeout, .. } = options.clone();
        let connection = Connection::open(&target.into(), options)?;
        let hello = json!({
            "protocolVersion": version::V2025_11_25,
            "capabilities": capabilities,
            "clientInfo": client_info,
        });
        let opening =
            request::request(connection.books(), method::INITIALIZE, &hello, RequestOptions::default(), Duration::ZERO);
        let opened = tokio::select! {
            opened = opening => opened.and_then(|answer| answer.read()),
            () = request::until(request::after(connect_timeout)) => {
                Err(Error::ConnectTimeout { name, after: connect_timeout })
            }
        };
        let server = match opened {
            Ok(server) => server,
            Err(error) => {
                connection.end().await;
                return Err(error);
            }
        };
        let client = Client(Arc::new(Inner { connection, server, timeout: limit }));
        client.notify(method::INITIALIZED, ()).await?;
        Ok(client)
    }

    /// What the server said of itself in the handshake.
    pub fn server(&self) -> &Whole<Server> {
        &self.0.server
    }

    /// Whether requests can be made. While a lost server is being found again they can: they wait for it.
    pub fn connected(&self) -> bool {
        self.books().is_open()
    }

    /// Asks anything, and waits for the answer. Dropping the future withdraws the request.
    ///
    /// `params` must be an object, or nothing (`()`), which is sent as an empty one.
    pub async fn request(
        &self,
        method: &str,
        params: impl Serialize,
        options: RequestOptions,
    ) -> Result<Answer, Error> {
        let limit = options.timeout.unwrap_or(self.0.timeout);
        request::request(self.books(), method, &params, options, limit).await
    }

    /// Tells the server something. It is on its way when this returns; if it does not arrive, the handler hears of it.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), Error> {
        let params = request::params_text(&params)?;
        let tx = self.books().sender().ok_or(Error::NotConnected)?;
        let message = Message::notification(method, Some(&params));
        tokio::select! {
            sent = tx.send(Event::Packet(message.into())) => {
                sent.map_err(|_| Error::closed(self.books().why().as_deref()))
            }
            () = request::until(request::after(self.0.timeout)) => Err(Error::NotifyTimeout(self.0.timeout)),
        }
    }

    /// Ends the connection, for all clones; what is pending is rejected. Returns when the server's program is gone, or its
    /// session deleted.
    pub async fn close(&self) {
        self.0.connection.end().await;
    }

    /// Waits until the connection has ended, for whatever reason.
    pub async fn closed(&self) {
        self.0.connection.ended().await;
    }

    fn books(&self) -> &Books {
        self.0.connection.books()
    }
}

/// What a server answered, as it came.
#[derive(Debug, Clone)]
pub struct Answer {
    method: String,
    message: Message,
}

impl Answer {
    /// The text of the result.
    pub fn raw(&self) -> &str {
        self.message.payload().unwrap_or_default()
    }

    /// The result as a type of the caller's.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        let unexpected = |error: serde_json::Error| Error::Unexpected {
            method: self.method.clone(),
            why: format!("expected another result: {error}"),
        };
        serde_json::from_str(self.raw()).map_err(unexpected)
    }
}

/// What `docs/client.md` shows is tried.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/client.md")]
struct Page;
