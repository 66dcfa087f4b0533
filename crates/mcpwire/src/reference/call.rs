//! What a running call may do: report progress, log, and ask the client.

use mcpwire_proto::{Id, Lane, Message, method};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::args::excerpt;
use super::client::{Client, Skill};
use super::logging::Level;
use super::question::Question;
use super::reply::Refusal;
use super::rounds::Rounds;
use super::shared::{Running, Shared};
use super::wire::Outbox;

/// One call, on its own task. All it sends rides on the stream of the request that started it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: Id,
    /// Where progress is to be reported, if anywhere.
    pub(super) token: Option<Value>,
    /// The number of the session in this server, in the era that has sessions.
    pub(super) session: Option<u64>,
    pub(super) client: Client,
    /// The least level of log messages that the client wants, if it wants any.
    pub(super) level: watch::Receiver<Option<Level>>,
    pub(super) outbox: Outbox,
    pub(super) asking: Asking,
    pub(super) shared: Shared,
    pub(super) _running: Option<Running>,
}

/// How a call gets answers from its client.
#[derive(Debug)]
pub(super) enum Asking {
    /// By requests of its own, while it waits.
    Live(mpsc::Sender<Ask>),
    /// By ending, and being called again with the answers.
    Rounds(Rounds),
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
        // If the client is gone, the server's loop ends this call.
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
        let wanted = self.level.borrow().is_some_and(|least| level >= least);
        if wanted {
            let params = json!({ "level": level.name(), "logger": logger, "data": data });
            self.notify(method::LOG_MESSAGE, params).await;
        }
    }

    /// Goes no further unless the client offers all of these.
    pub(super) fn need(&self, skills: impl IntoIterator<Item = Skill>) -> Result<(), Refusal> {
        let lacking: Vec<Skill> = skills.into_iter().filter(|skill| !self.client.offers(*skill)).collect();
        if lacking.is_empty() { Ok(()) } else { Err(Refusal::Needs(lacking)) }
    }

    /// Asks the client. What follows runs when the answer is there; what came before may run once more for it.
    pub(super) async fn ask(&mut self, question: Question) -> Result<Value, Refusal> {
        let [answer] = self.ask_all([question]).await?;
        Ok(answer)
    }

    /// Asks several questions at once.
    pub(super) async fn ask_all<const N: usize>(&mut self, questions: [Question; N]) -> Result<[Value; N], Refusal> {
        let answers = self.ask_list(questions.into()).await?;
        answers.try_into().map_err(|_| Refusal::Failed("expected as many answers as there are questions".into()))
    }

    pub(super) async fn ask_list(&mut self, questions: Vec<Question>) -> Result<Vec<Value>, Refusal> {
        self.need(questions.iter().map(|question| question.skill))?;
        match &mut self.asking {
            Asking::Rounds(rounds) => rounds.answers(questions, &self.shared),
            Asking::Live(ask) => ask_live(&self.id, ask, questions, &self.shared).await.map_err(Refusal::Failed),
        }
    }

    /// Has the client come again that often, where calls can.
    pub(super) fn again(&self, times: u64) -> Result<(), Refusal> {
        match &self.asking {
            Asking::Rounds(rounds) => rounds.again(times, &self.shared),
            Asking::Live(_) => Ok(()),
        }
    }
}

/// Asks and waits for the answers, up to the server's deadline. The error is a text for people.
async fn ask_live(
    call: &Id,
    asks: &mpsc::Sender<Ask>,
    questions: Vec<Question>,
    shared: &Shared,
) -> Result<Vec<Value>, String> {
    let deadline = shared.settings().ask_deadline;
    let methods: Vec<&str> = questions.iter().map(|question| question.method).collect();
    let methods = methods.join(", ");
    match timeout(deadline, wait_live(call, asks, questions)).await {
        Ok(answers) => answers,
        Err(_) => Err(format!("expected an answer to {methods} within {deadline:?}, came none")),
    }
}

/// All are asked before the first answer is waited for.
async fn wait_live(call: &Id, asks: &mpsc::Sender<Ask>, questions: Vec<Question>) -> Result<Vec<Value>, String> {
    let ended = |method: &str| format!("the session ended before {method} was answered");
    let mut waiting = Vec::new();
    for Question { method, params, .. } in questions {
        let (answer, answered) = oneshot::channel();
        let ask = Ask { call: call.clone(), method, params, answer };
        asks.send(ask).await.map_err(|_| ended(method))?;
        waiting.push((method, answered));
    }
    let mut answers = Vec::new();
    for (method, answered) in waiting {
        match answered.await.map_err(|_| ended(method))? {
            Answer::Given(result) => answers.push(result),
            Answer::Refused(error) => {
                return Err(format!("the client refused {method}: {}", excerpt(&error.to_string())));
            }
        }
    }
    Ok(answers)
}
