//! What a running tool call may do: report progress, log, and ask the client.

use mcpwire_proto::{Id, Lane, Message, method};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::args::excerpt;
use super::initialize::Client;
use super::logging::Level;
use super::outbox::Outbox;
use super::shared::{Running, Shared};

/// One call, on its own task. All it sends rides on the stream of the request that started it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: Id,
    /// Where progress is to be reported, if anywhere.
    pub(super) token: Option<Value>,
    /// The number of the session in this server.
    pub(super) session: u64,
    pub(super) client: Client,
    /// The least level of log messages that the client wants.
    pub(super) level: watch::Receiver<Level>,
    pub(super) outbox: Outbox,
    pub(super) ask: mpsc::Sender<Ask>,
    pub(super) shared: Shared,
    pub(super) _running: Running,
}

/// A request of a call's to the client, on its way through the session's loop.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) call: Id,
    pub(super) method: &'static str,
    pub(super) params: Value,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// What the client made of it.
#[derive(Debug)]
pub(super) enum Answer {
    Given(Value),
    /// Holds the JSON-RPC error object.
    Refused(Value),
}

impl Call {
    pub(super) async fn notify(&self, method: &str, params: Value) {
        let message = Message::notification(method, Some(&params.to_string()));
        // If the client is gone, the session's loop ends this call.
        let _ = self.outbox.send(Lane::Request(self.id.clone()), message).await;
    }

    /// Reports progress, if the client gave a token for it.
    pub(super) async fn progress(&self, done: u64, total: u64, text: &str) {
        if let Some(token) = &self.token {
            let params = json!({ "progressToken": token, "progress": done, "total": total, "message": text });
            self.notify(method::PROGRESS, params).await;
        }
    }

    /// Logs to the client, if it wants messages of this level.
    pub(super) async fn log(&self, level: Level, logger: &str, data: Value) {
        if level >= *self.level.borrow() {
            let params = json!({ "level": level.name(), "logger": logger, "data": data });
            self.notify(method::LOG_MESSAGE, params).await;
        }
    }

    /// Asks the client and waits for its answer, up to the server's deadline. The error is a text for people.
    pub(super) async fn ask(&self, method: &'static str, params: Value) -> Result<Value, String> {
        let (answer, answered) = oneshot::channel();
        let ask = Ask { call: self.id.clone(), method, params, answer };
        let deadline = self.shared.settings().ask_deadline;
        let wait = async {
            self.ask.send(ask).await.ok()?;
            answered.await.ok()
        };
        match timeout(deadline, wait).await {
            Ok(Some(Answer::Given(result))) => Ok(result),
            Ok(Some(Answer::Refused(error))) => {
                Err(format!("the client refused {method}: {}", excerpt(&error.to_string())))
            }
            Ok(None) => Err(format!("the session ended before {method} was answered")),
            Err(_) => Err(format!("expected an answer to {method} within {deadline:?}, came none")),
        }
    }
}
