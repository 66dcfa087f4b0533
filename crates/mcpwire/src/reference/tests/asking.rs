//! Requests of the server's: sampling, elicitation, roots; answered, refused, left open, not offered.

use super::*;
use crate::reference::Settings;

#[tokio::test]
async fn sampling_passes_the_prompt_and_the_answer() {
    let mut client = Client::open(&Shared::default()).await;
    let plain = json!({ "type": "text", "text": "hello" });
    for content in [plain.clone(), json!([plain])] {
        let id = client.start_call("test_sampling", json!({ "prompt": "say hello" })).await;
        let answer = json!({ "role": "assistant", "content": content, "model": "m" });
        let params = client.reply(&id, "sampling/createMessage", answer).await;
        let message = json!({ "role": "user", "content": { "type": "text", "text": "say hello" } });
        assert_eq!(params, json!({ "messages": [message], "maxTokens": 100 }));
        assert_eq!(text_of(&client.answer(&id).await["result"]), "LLM response: hello");
    }
    client.close().await;
}

#[tokio::test]
async fn elicitation_passes_what_the_user_did() {
    let mut client = Client::open(&Shared::default()).await;
    let cases = [
        (json!({ "action": "accept", "content": { "a": 1 } }), r#"User response: <action: accept, content: {"a":1}>"#),
        (json!({ "action": "decline" }), "User response: <action: decline, content: {}>"),
        (json!([]), "User response: <action: none, content: {}>"),
    ];
    for (answer, text) in cases {
        let id = client.start_call("test_elicitation", json!({ "message": "who?" })).await;
        let params = client.reply(&id, "elicitation/create", answer).await;
        assert_eq!(params["message"], "who?");
        assert_eq!(params["requestedSchema"]["required"], json!(["username", "email"]));
        assert_eq!(text_of(&client.answer(&id).await["result"]), text);
    }
    client.close().await;
}

#[tokio::test]
async fn forms_carry_defaults_and_every_kind_of_choice() {
    let mut client = Client::open(&Shared::default()).await;
    let accept = json!({ "action": "accept", "content": { "n": 1 } });
    let id = client.start_call("test_elicitation_sep1034_defaults", json!({})).await;
    let params = client.reply(&id, "elicitation/create", accept.clone()).await;
    let properties = &params["requestedSchema"]["properties"];
    let defaults =
        [("name", json!("John Doe")), ("age", json!(30)), ("score", json!(95.5)), ("status", json!("active"))];
    for (name, default) in defaults {
        assert_eq!(properties[name]["default"], default, "{name}");
    }
    assert_eq!(properties["verified"]["default"], true);
    assert_eq!(properties["age"]["type"], "integer");
    let text = text_of(&client.answer(&id).await["result"]);
    assert_eq!(text, r#"Elicitation completed: action=accept, content={"n":1}"#);

    let id = client.start_call("test_elicitation_sep1330_enums", json!({})).await;
    let params = client.reply(&id, "elicitation/create", accept).await;
    let properties = &params["requestedSchema"]["properties"];
    let options = json!(["option1", "option2", "option3"]);
    assert_eq!(properties["untitledSingle"]["enum"], options);
    assert_eq!(properties["titledSingle"]["oneOf"][1], json!({ "const": "value2", "title": "Second Option" }));
    assert_eq!(properties["legacyEnum"]["enumNames"], json!(["Option One", "Option Two", "Option Three"]));
    assert_eq!(properties["untitledMulti"]["items"], json!({ "type": "string", "enum": options }));
    assert_eq!(properties["titledMulti"]["items"]["anyOf"][2], json!({ "const": "value3", "title": "Third Choice" }));
    client.answer(&id).await;
    client.close().await;
}

#[tokio::test]
async fn a_page_to_open_is_told_as_done() {
    let mut client = Client::open(&Shared::default()).await;
    let id = client.start_call("elicit_url", json!({ "url": "https://example.com/" })).await;
    let params = client.reply(&id, "elicitation/create", json!({ "action": "accept" })).await;
    assert_eq!((&params["mode"], &params["url"]), (&json!("url"), &json!("https://example.com/")));
    let done = client.next_of(&id).await;
    assert_eq!(done["method"], "notifications/elicitation/complete");
    assert_eq!(done["params"]["elicitationId"], params["elicitationId"]);
    client.answer(&id).await;
    client.close().await;
}

#[tokio::test]
async fn questions_of_several_calls_do_not_mix() {
    let mut client = Client::open(&Shared::default()).await;
    let calls = [client.start_call("roots", json!({})).await, client.start_call("roots", json!({})).await];
    let first = client.next_of(&calls[0]).await;
    let second = client.next_of(&calls[1]).await;
    for (request, call, uri) in [(second, &calls[1], "file:///b"), (first, &calls[0], "file:///a")] {
        let id = Id::from_json(&request["id"].to_string()).unwrap();
        client.send(Message::result(&id, &json!({ "roots": [{ "uri": uri }] }).to_string())).await;
        let text = text_of(&client.answer(call).await["result"]);
        assert_eq!(text, format!(r#"Roots: [{{"uri":"{uri}"}}]"#));
    }
    client.close().await;
}

#[tokio::test]
async fn a_refusal_of_the_client_is_a_failed_call() {
    let mut client = Client::open(&Shared::default()).await;
    let call = client.start_call("test_sampling", json!({ "prompt": "p" })).await;
    let request = client.next_of(&call).await;
    let id = Id::from_json(&request["id"].to_string()).unwrap();
    client.send(Message::error(Some(&id), -1, "the user said no")).await;
    let result = client.answer(&call).await["result"].take();
    assert!(failed(&result) && text_of(&result).contains("the user said no"), "{result}");
    client.close().await;
}

#[tokio::test]
async fn a_question_left_open_ends_with_its_deadline_and_is_withdrawn() {
    let settings = Settings { ask_deadline: Duration::from_millis(1), ..Settings::default() };
    let mut client = Client::open(&Shared::new(settings)).await;
    let call = client.start_call("roots", json!({})).await;
    let request = client.next_of(&call).await;
    let withdrawn = client.next_of(&call).await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    let result = client.answer(&call).await["result"].take();
    assert!(failed(&result) && text_of(&result).contains("within 1ms"), "{result}");
    client.close().await;
}

#[tokio::test]
async fn what_the_client_does_not_offer_is_not_asked() {
    let mut client = Client::open_as(&Shared::default(), "2025-11-25", json!({ "elicitation": {} })).await;
    for (tool, arguments, offer) in [
        ("test_sampling", json!({ "prompt": "p" }), "sampling"),
        ("roots", json!({}), "roots"),
        ("elicit_url", json!({ "url": "https://example.com/" }), "elicitation by url"),
    ] {
        let result = client.call(tool, arguments).await;
        assert!(failed(&result), "{result}");
        assert_eq!(text_of(&result), format!("the client does not offer {offer}"));
    }
    client.close().await;
}
