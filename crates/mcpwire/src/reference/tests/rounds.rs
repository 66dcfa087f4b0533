//! Questions in rounds: asked by an answer, answered by the next request, tied together by a state that nobody can forge.

use super::*;
use crate::reference::Settings;

const ASKS: &str = "test_input_required_result_";

fn call(tool: &str) -> Value {
    json!({ "name": format!("{ASKS}{tool}"), "arguments": {} })
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// The next round of a request, with these answers, and with the state that was given.
fn retry(params: &Value, asked: &Value, answers: Value) -> Value {
    let mut params = params.clone();
    params["inputResponses"] = answers;
    if let Some(state) = asked.get("requestState") {
        params["requestState"] = state.clone();
    }
    modern(params)
}

impl Client {
    /// Sends a request that must be answered by questions; gives that answer.
    async fn asked(&mut self, method: &str, params: Value) -> Value {
        let result = self.request(method, params).await;
        assert_eq!(result["resultType"], "input_required", "{result}");
        assert!(result.get("ttlMs").is_none(), "{result}");
        result
    }

    async fn complete(&mut self, method: &str, params: Value) -> Value {
        let result = self.request(method, params).await;
        assert_eq!(result["resultType"], "complete", "{result}");
        result
    }
}

#[tokio::test]
async fn one_question_of_each_kind() {
    let mut client = Client::silent(&Shared::default());
    let sampled = json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m" });
    let roots = json!({ "roots": [{ "uri": "file:///a" }] });
    for (tool, key, method, answer, text) in [
        ("elicitation", "user_name", "elicitation/create", accept(json!({ "name": "Alice" })), "Hello, Alice!"),
        ("elicitation", "user_name", "elicitation/create", json!({ "action": "decline" }), "Hello, nothing!"),
        ("sampling", "capital_question", "sampling/createMessage", sampled, "The model said: Paris"),
        ("list_roots", "client_roots", "roots/list", roots, r#"Roots: [{"uri":"file:///a"}]"#),
    ] {
        let asked = client.asked("tools/call", modern(call(tool))).await;
        assert_eq!(asked["inputRequests"][key]["method"], method);
        assert_eq!(asked["inputRequests"].as_object().unwrap().len(), 1);
        assert!(asked.get("requestState").is_none(), "there is nothing to carry: {asked}");
        let done = client.complete("tools/call", retry(&call(tool), &asked, json!({ key: answer }))).await;
        assert_eq!(text_of(&done), text);
    }
    client.close().await;
}

#[tokio::test]
async fn prompts_and_resources_ask_too() {
    let mut client = Client::silent(&Shared::default());
    let params = json!({ "name": format!("{ASKS}prompt") });
    let asked = client.asked("prompts/get", modern(params.clone())).await;
    let answers = json!({ "user_context": accept(json!({ "context": "tests" })) });
    let done = client.complete("prompts/get", retry(&params, &asked, answers)).await;
    assert_eq!(done["messages"][0]["content"]["text"], "Prompt with context: tests");

    let params = json!({ "uri": "test://asking-resource" });
    let asked = client.asked("resources/read", modern(params.clone())).await;
    let answers = json!({ "reader": accept(json!({ "name": "Alice" })) });
    let done = client.complete("resources/read", retry(&params, &asked, answers)).await;
    assert_eq!((&done["contents"][0]["text"], &done["ttlMs"]), (&json!("Read by Alice."), &json!(0)));
    client.close().await;
}

#[tokio::test]
async fn several_questions_at_once_are_asked_again_until_all_are_answered() {
    let mut client = Client::silent(&Shared::default());
    let call = call("multiple_inputs");
    let asked = client.asked("tools/call", modern(call.clone())).await;
    let keys = |asked: &Value| asked["inputRequests"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&asked), ["client_roots", "greeting", "user_name"]);
    let greeting = json!({ "role": "assistant", "content": { "type": "text", "text": "Hi" }, "model": "m" });
    let asked = client.asked("tools/call", retry(&call, &asked, json!({ "greeting": greeting }))).await;
    assert_eq!(keys(&asked), ["client_roots", "user_name"]);
    let answers = json!({ "user_name": accept(json!({ "name": "Alice" })), "client_roots": { "roots": [] } });
    let done = client.complete("tools/call", retry(&call, &asked, answers)).await;
    assert_eq!(text_of(&done), "Hi Alice, roots: 0");
    client.close().await;
}

#[tokio::test]
async fn the_second_round_knows_the_first() {
    let mut client = Client::silent(&Shared::default());
    let call = call("multi_round");
    let one = client.asked("tools/call", modern(call.clone())).await;
    let name = json!({ "step1": accept(json!({ "name": "Alice" })) });
    let two = client.asked("tools/call", retry(&call, &one, name)).await;
    assert_ne!(one["requestState"], two["requestState"]);
    assert!(two["inputRequests"].get("step2").is_some() && two["inputRequests"].get("step1").is_none(), "{two}");
    // An answer that was taken is not taken back.
    let colour = json!({ "step2": accept(json!({ "color": "blue" })), "step1": accept(json!({ "name": "Eve" })) });
    let done = client.complete("tools/call", retry(&call, &two, colour)).await;
    assert_eq!(text_of(&done), "Alice likes blue.");
    client.close().await;
}

#[tokio::test]
async fn a_client_may_be_sent_away_without_a_question() {
    let mut client = Client::silent(&Shared::default());
    let call = json!({ "name": "again", "arguments": { "times": 3 } });
    let mut params = modern(call.clone());
    for _ in 0..3 {
        let asked = client.asked("tools/call", params).await;
        assert!(asked.get("inputRequests").is_none(), "{asked}");
        params = modern(call.clone());
        params["requestState"] = asked["requestState"].clone();
    }
    assert_eq!(text_of(&client.complete("tools/call", params).await), "That was often enough.");
    client.close().await;
}

#[tokio::test]
async fn only_a_state_of_ours_for_the_same_request_is_taken() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    let call = call("tampered_state");
    let asked = client.asked("tools/call", modern(call.clone())).await;
    let answers = json!({ "confirm": accept(json!({ "ok": true })) });
    let good = retry(&call, &asked, answers.clone());
    let state = asked["requestState"].as_str().unwrap().to_owned();

    let mut forged =
        vec![format!("{state}-TAMPERED"), String::new(), ".".into(), state.replace("\"round\":1", "\"round\":2")];
    forged.extend((0..state.len()).step_by(7).map(|cut| state[..cut].to_owned()));
    for forged in forged {
        let mut params = good.clone();
        params["requestState"] = json!(forged);
        let (code, message) = client.refusal("tools/call", params).await;
        assert!(code == -32602 && message.contains("requestState"), "{forged}: {code} {message}");
    }
    // The state of one request is none of another's, be it another tool or other arguments.
    for (member, value) in
        [("name", json!(format!("{ASKS}request_state"))), ("arguments", json!({ "more": 1 })), ("other", json!(1))]
    {
        let mut params = good.clone();
        params[member] = value;
        assert_eq!(client.refusal("tools/call", params).await.0, -32602, "{member}");
    }
    // Without the state the answer does not count.
    client.asked("tools/call", retry(&call, &json!({}), answers)).await;
    let mut other = Client::silent(&Shared::default());
    assert_eq!(other.refusal("tools/call", good.clone()).await.0, -32602);
    assert_eq!(text_of(&client.complete("tools/call", good).await), "state-ok: true");
    client.close().await;
    other.close().await;
}

#[tokio::test]
async fn a_state_expires() {
    let mut client = Client::silent(&Shared::new(Settings { state_lifetime: Duration::ZERO, ..Settings::default() }));
    let asked = client.asked("tools/call", modern(call("request_state"))).await;
    let params = retry(&call("request_state"), &asked, json!({}));
    let refusal = client.refusal("tools/call", params).await;
    assert_eq!(refusal, (-32602, "invalid params: the requestState has expired".into()));
    client.close().await;
}

#[tokio::test]
async fn a_server_with_the_same_secret_goes_on_where_another_was() {
    let settings = Settings { state_secret: Some("secret".into()), ..Settings::default() };
    let mut one = Client::silent(&Shared::new(settings.clone()));
    let asked = one.asked("tools/call", modern(call("multi_round"))).await;
    one.close().await;
    let mut two = Client::silent(&Shared::new(settings));
    let answers = json!({ "step1": accept(json!({ "name": "Alice" })) });
    two.asked("tools/call", retry(&call("multi_round"), &asked, answers)).await;
    two.close().await;
}

#[tokio::test]
async fn wrong_answers_are_refused_and_missing_ones_asked_again() {
    let mut client = Client::silent(&Shared::default());
    let elicitation = call("elicitation");
    for (answers, text) in [
        (json!({ "user_name": 12345 }), "expected an object as user_name, came 12345"),
        (Value::Null, "expected an object as inputResponses, came null"),
        (json!([]), "expected an object as inputResponses, came []"),
    ] {
        let refusal = client.refusal("tools/call", retry(&elicitation, &json!({}), answers)).await;
        assert_eq!(refusal, (-32602, format!("invalid params: {text}")));
    }
    let state = json!({ "requestState": 1 });
    assert_eq!(client.refusal("tools/call", retry(&elicitation, &state, json!({}))).await.0, -32602);
    let other = json!({ "wrong_key": accept(json!({})) });
    let asked = client.asked("tools/call", retry(&elicitation, &json!({}), other)).await;
    assert!(asked["inputRequests"].get("user_name").is_some(), "{asked}");
    let more = json!({ "user_name": accept(json!({ "name": "Alice" })), "other": accept(json!({})) });
    let done = client.complete("tools/call", retry(&elicitation, &json!({}), more)).await;
    assert_eq!(text_of(&done), "Hello, Alice!");
    client.close().await;
}

#[tokio::test]
async fn only_what_the_client_offers_is_asked() {
    let mut client = Client::silent(&Shared::default());
    for (offered, keys) in [
        (json!({ "sampling": {} }), vec!["greeting"]),
        (json!({ "elicitation": {} }), vec!["user_name"]),
        (json!({ "roots": {}, "elicitation": { "url": {} } }), vec!["client_roots"]),
    ] {
        let asked = client.asked("tools/call", modern_as(offered, call("capabilities"))).await;
        assert_eq!(asked["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), keys);
    }
    let done = client.complete("tools/call", modern_as(json!({}), call("capabilities"))).await;
    assert_eq!(text_of(&done), "The client answered 0 questions.");
    client.close().await;
}

#[tokio::test]
async fn in_a_session_the_same_tools_ask_by_requests() {
    let mut client = Client::open(&Shared::default()).await;
    let id = client.start("tools/call", call("multi_round")).await;
    client.reply(&id, "elicitation/create", accept(json!({ "name": "Alice" }))).await;
    client.reply(&id, "elicitation/create", accept(json!({ "color": "blue" }))).await;
    assert_eq!(text_of(&client.answer(&id).await["result"]), "Alice likes blue.");

    let id = client.start("tools/call", call("multiple_inputs")).await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(client.next_of(&id).await);
    }
    for question in asked.iter().rev() {
        let answer = match question["method"].as_str().unwrap() {
            "elicitation/create" => accept(json!({ "name": "Alice" })),
            "roots/list" => json!({ "roots": [{ "uri": "file:///a" }] }),
            _ => json!({ "role": "assistant", "content": { "type": "text", "text": "Hi" }, "model": "m" }),
        };
        let question = Id::from_json(&question["id"].to_string()).unwrap();
        client.send(Message::result(&question, &answer.to_string())).await;
    }
    assert_eq!(text_of(&client.answer(&id).await["result"]), "Hi Alice, roots: 1");

    let id = client.start("prompts/get", json!({ "name": format!("{ASKS}prompt") })).await;
    client.reply(&id, "elicitation/create", accept(json!({ "context": "tests" }))).await;
    let prompt = client.answer(&id).await["result"].take();
    assert_eq!(prompt["messages"][0]["content"]["text"], "Prompt with context: tests");
    assert_eq!(client.say("again", json!({ "times": 3 })).await, "That was often enough.");
    client.close().await;

    let mut client = Client::open_as(&Shared::default(), SESSION, json!({})).await;
    let params = json!({ "name": format!("{ASKS}prompt") });
    let refusal = client.refusal("prompts/get", params).await;
    assert_eq!(refusal, (-32603, "the client does not offer elicitation by form".into()));
    client.close().await;
}
