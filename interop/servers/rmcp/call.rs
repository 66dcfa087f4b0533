//! A request under way: what it asks and tells the client, and what it knows from the rounds before.

use rmcp::ErrorData;
use rmcp::model::{
    CreateMessageResult, ElicitResult, InputRequests, InputRequiredResult, InputResponses, ListRootsResult,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, ServerNotification,
    ServerRequest,
};
use rmcp::service::{RequestContext, RoleServer, ServiceError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Fixture, State, typed};

/// Why a handler has no content to return.
pub enum Stop {
    /// The client has to come back with answers.
    Input(InputRequiredResult),
    /// The tool failed.
    Tool(&'static str),
    /// The request failed.
    Request(ErrorData),
}

impl From<ErrorData> for Stop {
    fn from(error: ErrorData) -> Stop {
        Stop::Request(error)
    }
}

impl From<ServiceError> for Stop {
    fn from(error: ServiceError) -> Stop {
        Stop::Request(ErrorData::internal_error(error.to_string(), None))
    }
}

/// Whether this is an answer to the question: the SDK leaves that to the server.
fn validate(question: &Value, answer: &Value) -> Result<(), ErrorData> {
    let parsed = match question["method"].as_str() {
        Some("elicitation/create") => ElicitResult::deserialize(answer).map(drop),
        Some("sampling/createMessage") => CreateMessageResult::deserialize(answer).map(drop),
        _ => ListRootsResult::deserialize(answer).map(drop),
    };
    parsed.map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

pub struct Call<'a> {
    fixture: &'a Fixture,
    context: RequestContext<RoleServer>,
    given: InputResponses,
    answers: Map<String, Value>,
    /// It carries a state that this server sealed.
    trusted: bool,
}

impl<'a> Call<'a> {
    pub fn new(
        fixture: &'a Fixture,
        context: RequestContext<RoleServer>,
        given: Option<InputResponses>,
        state: Option<&str>,
    ) -> Result<Call<'a>, ErrorData> {
        let opened = state.map(|state| fixture.codec.open_json(state)).transpose();
        let answers = opened.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let trusted = answers.is_some();
        Ok(Call { fixture, context, given: given.unwrap_or_default(), answers: answers.unwrap_or_default(), trusted })
    }

    fn stateless(&self) -> bool {
        self.context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
    }

    /// The answers to these questions, by name.
    pub async fn ask(&mut self, questions: &[(&str, Value)]) -> Result<Map<String, Value>, Stop> {
        self.answers_to(questions, false).await
    }

    /// Such answers count only together with the state that was given with the questions.
    pub async fn ask_sealed(&mut self, questions: &[(&str, Value)]) -> Result<Map<String, Value>, Stop> {
        self.answers_to(questions, true).await
    }

    async fn answers_to(&mut self, questions: &[(&str, Value)], sealed: bool) -> Result<Map<String, Value>, Stop> {
        if !self.stateless() {
            return self.request(questions).await;
        }
        let mut open = InputRequests::new();
        for (name, question) in questions {
            match self.given.get(*name) {
                Some(answer) if self.trusted || !sealed => {
                    validate(question, answer)?;
                    self.answers.insert((*name).to_owned(), answer.clone());
                }
                _ if self.answers.contains_key(*name) => {}
                _ => {
                    open.insert((*name).to_owned(), typed(question.clone())?);
                }
            }
        }
        if open.is_empty() {
            return Ok(self.answers.clone());
        }
        let state = (sealed || !self.answers.is_empty()).then(|| self.fixture.codec.seal_json(&self.answers));
        let state = state.transpose().map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Err(Stop::Input(InputRequiredResult::new(Some(open), state)))
    }

    /// The answers of a session-era client, which is asked while the call waits.
    async fn request(&self, questions: &[(&str, Value)]) -> Result<Map<String, Value>, Stop> {
        let mut answers = Map::new();
        for (name, question) in questions {
            let request: ServerRequest = typed(question.clone())?;
            let answer = json!(self.context.peer.send_request(request).await?);
            answers.insert((*name).to_owned(), answer);
        }
        Ok(answers)
    }

    /// Whether the client can answer this question.
    pub fn offers(&self, question: &Value) -> bool {
        let capability = match question["method"].as_str() {
            Some("elicitation/create") => "elicitation",
            Some("sampling/createMessage") => "sampling",
            _ => "roots",
        };
        json!(self.context.client_capabilities()).get(capability).is_some_and(|offered| !offered.is_null())
    }

    /// Logs a line: a client of the stateless era says with each request whether it wants such.
    pub async fn log(&self, line: &str) -> Result<(), Stop> {
        let wanted = matches!(self.context.meta.log_level(), Some(LoggingLevel::Debug | LoggingLevel::Info));
        if wanted || !self.stateless() {
            let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
            self.context.peer.notify_logging_message(params).await?;
        }
        Ok(())
    }

    pub async fn progress(&self, progress: f64) -> Result<(), Stop> {
        if let Some(token) = self.context.meta.get_progress_token() {
            let params = ProgressNotificationParam::new(token, progress).with_total(100.0);
            self.context.peer.notify_progress(params).await?;
        }
        Ok(())
    }

    /// Changes the state of the server, and tells whoever wants to know.
    pub async fn change(&self, notification: Value, change: impl FnOnce(&mut State)) -> Result<(), Stop> {
        change(&mut self.fixture.state());
        let notification: ServerNotification = typed(notification)?;
        if self.stateless() {
            let sinks = self.fixture.state().sinks.clone();
            for sink in sinks {
                // It refuses what its client did not ask for.
                let _ = sink.send(notification.clone()).await;
            }
            return Ok(());
        }
        let unwatched = match &notification {
            ServerNotification::ResourceUpdatedNotification(update) => {
                !self.fixture.state().watched.contains(&update.params.uri)
            }
            _ => false,
        };
        if !unwatched {
            self.context.peer.send_notification(notification).await?;
        }
        Ok(())
    }
}
