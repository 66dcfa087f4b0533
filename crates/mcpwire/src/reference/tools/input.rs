//! The tools by which the official conformance suite tries what a server asks for before it answers (2026-07-28, Multi
//! Round-Trip Requests). In a session they ask the same by requests of their own.

use serde_json::{Value, json};

use super::asking::sampled;
use super::{content, tool};
use crate::reference::call::Call;
use crate::reference::question::Question;
use crate::reference::reply::Reply;

pub(super) fn tools() -> Vec<Value> {
    let plain = [
        ("test_streaming_elicitation", "Asks the user for a name"),
        ("test_input_required_result_elicitation", "Asks the user for a name"),
        ("test_input_required_result_sampling", "Asks the model for the capital of France"),
        ("test_input_required_result_list_roots", "Asks the client for its roots"),
        ("test_input_required_result_request_state", "Asks the user to confirm, and knows its question again"),
        ("test_input_required_result_tampered_state", "Asks the user to confirm, and knows its question again"),
        ("test_input_required_result_multiple_inputs", "Asks the user, the model and the client at once"),
        ("test_input_required_result_multi_round", "Asks the user for a name, and then for a colour"),
        ("test_input_required_result_capabilities", "Asks only what the client can answer"),
    ];
    plain.iter().map(|(name, text)| tool(name, text, json!({}), &[])).collect()
}

fn name() -> Question {
    Question::field("user_name", "What is your name?", "name", "string")
}

/// What the user put into a field of a form; `nothing` if it was not accepted.
fn field<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer["content"][name].as_str().unwrap_or("nothing")
}

pub(super) async fn elicitation(call: &mut Call) -> Reply {
    let answer = call.ask(name()).await?;
    Ok(content::said(format!("Hello, {}!", field(&answer, "name"))))
}

pub(super) async fn sampling(call: &mut Call) -> Reply {
    let question = Question::sampling("capital_question", "What is the capital of France?", 100);
    let answer = call.ask(question).await?;
    Ok(content::said(format!("The model said: {}", sampled(&answer))))
}

pub(super) async fn roots(call: &mut Call) -> Reply {
    let answer = call.ask(Question::roots("client_roots")).await?;
    Ok(content::said(format!("Roots: {}", answer["roots"])))
}

pub(super) async fn request_state(call: &mut Call) -> Reply {
    let answer = call.ask(Question::field("confirm", "Please confirm", "ok", "boolean").sealed()).await?;
    Ok(content::said(format!("state-ok: {}", answer["content"]["ok"])))
}

pub(super) async fn several(call: &mut Call) -> Reply {
    let greeting = Question::sampling("greeting", "Generate a greeting", 50);
    let [name, greeting, roots] = call.ask_all([name().sealed(), greeting, Question::roots("client_roots")]).await?;
    let roots = roots["roots"].as_array().map_or(0, Vec::len);
    Ok(content::said(format!("{} {}, roots: {roots}", sampled(&greeting), field(&name, "name"))))
}

pub(super) async fn rounds(call: &mut Call) -> Reply {
    let step = Question::field("step1", "Step 1: What is your name?", "name", "string").sealed();
    let name = call.ask(step).await?;
    let step = Question::field("step2", "Step 2: What is your favorite color?", "color", "string");
    let colour = call.ask(step).await?;
    Ok(content::said(format!("{} likes {}.", field(&name, "name"), field(&colour, "color"))))
}

pub(super) async fn offered(call: &mut Call) -> Reply {
    let greeting = Question::sampling("greeting", "Generate a greeting", 50);
    let questions = [name(), greeting, Question::roots("client_roots")];
    let questions = questions.into_iter().filter(|question| call.client.offers(question.skill)).collect();
    let count = call.ask_list(questions).await?.len();
    Ok(content::said(format!("The client answered {count} questions.")))
}
