//! Questions of the stateless era: a call that needs answers ends, and is begun again with them (2026-07-28, Multi
//! Round-Trip Requests). What must be known in the next round goes to the client and back, signed.

use std::time::{SystemTime, UNIX_EPOCH};

use mcpwire_proto::Fault;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::args::Args;
use super::question::Question;
use super::reply::Refusal;
use super::shared::Shared;

/// What a request brings along from the rounds before it.
#[derive(Debug)]
pub(super) struct Rounds {
    /// The request without what changes from round to round: what its state is bound to.
    request: String,
    /// What the client answered in this round.
    given: Map<String, Value>,
    /// Whether it came with a state of ours.
    trusted: bool,
    /// How many rounds there were.
    round: u64,
    /// The answers that were used so far.
    kept: Map<String, Value>,
}

/// What is in a `requestState`.
#[derive(Serialize, Deserialize)]
struct State {
    /// When it expires, in milliseconds since 1970.
    until: u64,
    round: u64,
    answers: Map<String, Value>,
}

impl Rounds {
    pub(super) fn read(method: &str, params: &Args, shared: &Shared) -> Result<Rounds, Fault> {
        let given = params.object("inputResponses")?;
        if let Some(name) = given.names().find(|name| !given.value(name).is_some_and(Value::is_object)) {
            return Err(given.wrong("an object", name));
        }
        let request = json!([method, params.without(&["_meta", "inputResponses", "requestState"])]).to_string();
        let state = match params.optional_text("requestState")? {
            None => None,
            Some(sealed) => Some(open(sealed, &request, shared)?),
        };
        let trusted = state.is_some();
        let (round, kept) = state.map_or_else(Default::default, |state| (state.round, state.answers));
        Ok(Rounds { request, given: given.into_map(), trusted, round, kept })
    }

    /// The answers to these questions, or the refusal that asks those which are open.
    pub(super) fn answers(&mut self, questions: Vec<Question>, shared: &Shared) -> Result<Vec<Value>, Refusal> {
        for question in &questions {
            let counts = self.trusted || !question.sealed;
            if let Some(answer) = self.given.remove(question.key).filter(|_| counts) {
                self.kept.entry(question.key).or_insert(answer);
            }
        }
        let answer = |question: &Question| self.kept.get(question.key).cloned();
        if let Some(answers) = questions.iter().map(answer).collect() {
            return Ok(answers);
        }
        let sealed = !self.kept.is_empty() || questions.iter().any(|question| question.sealed);
        let open = questions.into_iter().filter(|question| !self.kept.contains_key(question.key));
        let open = open.map(|Question { key, method, params, .. }| {
            (key.to_owned(), json!({ "method": method, "params": params }))
        });
        Err(Refusal::Asks { questions: open.collect(), state: sealed.then(|| self.state(shared)) })
    }

    /// Lets the client come again without a question, until it has done so that often.
    pub(super) fn again(&self, times: u64, shared: &Shared) -> Result<(), Refusal> {
        if self.round >= times {
            return Ok(());
        }
        Err(Refusal::Asks { questions: Map::new(), state: Some(self.state(shared)) })
    }

    fn state(&self, shared: &Shared) -> String {
        let lifetime = shared.settings().state_lifetime.as_millis();
        let until = now().saturating_add(u64::try_from(lifetime).unwrap_or(u64::MAX));
        let state = State { until, round: self.round + 1, answers: self.kept.clone() };
        let text = json!(state).to_string();
        shared.seal().seal(&text, &self.request)
    }
}

fn open(sealed: &str, request: &str, shared: &Shared) -> Result<State, Fault> {
    let state = shared.seal().open(sealed, request).and_then(|text| serde_json::from_str::<State>(text).ok());
    match state {
        None => Err(Fault::Params("expected a requestState of this server for this request, came another".into())),
        Some(state) if state.until <= now() => Err(Fault::Params("the requestState has expired".into())),
        Some(state) => Ok(state),
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
