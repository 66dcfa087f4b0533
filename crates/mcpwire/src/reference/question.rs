//! Questions to the client, the same in both eras: how they are put is left to the call.

use mcpwire_proto::method;
use serde_json::{Value, json};

use super::client::Skill;
use super::tools::content;

/// A question of a call's to its client.
#[derive(Debug)]
pub(super) struct Question {
    /// Names it within its call.
    pub(super) key: &'static str,
    pub(super) skill: Skill,
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// Whether an answer counts only together with the `requestState` that was given with the question.
    pub(super) sealed: bool,
}

impl Question {
    /// Asks the user to fill in a form. Before 2025-11-25 there was no other mode and no name for it.
    pub(super) fn form(key: &'static str, message: &str, schema: Value) -> Question {
        let params = json!({ "message": message, "requestedSchema": schema });
        Question { key, skill: Skill::Form, method: method::ELICITATION_CREATE, params, sealed: false }
    }

    /// Asks the user for one text, number or choice.
    pub(super) fn field(key: &'static str, message: &str, name: &str, kind: &str) -> Question {
        let properties = json!({ name: { "type": kind } });
        Question::form(key, message, json!({ "type": "object", "properties": properties, "required": [name] }))
    }

    /// Asks the user to open a web page.
    pub(super) fn page(key: &'static str, message: &str, url: &str) -> Question {
        let params = json!({ "mode": "url", "message": message, "url": url });
        Question { key, skill: Skill::Url, method: method::ELICITATION_CREATE, params, sealed: false }
    }

    /// Asks the client's model.
    pub(super) fn sampling(key: &'static str, prompt: &str, most_tokens: u32) -> Question {
        let messages = json!([{ "role": "user", "content": content::text(prompt) }]);
        let params = json!({ "messages": messages, "maxTokens": most_tokens });
        Question { key, skill: Skill::Sampling, method: method::SAMPLING_CREATE_MESSAGE, params, sealed: false }
    }

    pub(super) fn roots(key: &'static str) -> Question {
        Question { key, skill: Skill::Roots, method: method::ROOTS_LIST, params: json!({}), sealed: false }
    }

    pub(super) fn sealed(self) -> Question {
        Question { sealed: true, ..self }
    }
}
