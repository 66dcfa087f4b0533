//! Lists over several pages, and the other typed methods, against the reference server in both eras.

use mcpwire::client::{Client, Options, RequestOptions, content};
use mcpwire::reference::{Eras, Settings};
use serde_json::json;

use super::{Program, in_memory};
use crate::support::within;

#[tokio::test]
async fn every_page_is_followed() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    let serve = async {
        for (cursor, page) in [
            (None, json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "one"})),
            (Some("one"), json!({"tools": [], "nextCursor": "two"})),
            (Some("two"), json!({"tools": [{"title": "nameless"}, {"name": "b", "new": {"field": 1.10}}]})),
        ] {
            let list = program.expect("tools/list").await;
            assert_eq!(list["params"]["cursor"].as_str(), cursor);
            program.answer(&list, page).await;
        }
    };
    let (tools, ()) = tokio::join!(client.list_tools(), serve);
    let tools = tools.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(tools[0].input_schema.as_ref().unwrap().get(), r#"{"type":"object"}"#);
    assert_eq!(tools[1].raw(), r#"{"name":"b","new":{"field":1.1}}"#, "unknown fields are kept");
    client.close().await;
}

#[tokio::test]
async fn a_server_that_goes_in_circles_or_answers_nonsense_is_an_error() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    let serve = async {
        for _ in 0..2 {
            let list = program.expect("tools/list").await;
            program.answer(&list, json!({"tools": [], "nextCursor": "same"})).await;
        }
    };
    let (tools, ()) = tokio::join!(client.list_tools(), serve);
    assert_eq!(tools.unwrap_err().to_string(), r#"tools/list: the server named the cursor "same" twice"#);
    for (result, says) in [
        (json!({}), "expected tools, came none"),
        (json!({"tools": 1}), "expected a list of tools"),
        (json!([]), "expected an object"),
    ] {
        let serve = async {
            let list = program.expect("tools/list").await;
            program.answer(&list, result).await;
        };
        let (tools, ()) = tokio::join!(client.list_tools(), serve);
        let error = tools.unwrap_err().to_string();
        assert!(error.starts_with("tools/list: ") && error.contains(says), "{error}");
    }
    client.close().await;
}

#[tokio::test]
async fn what_the_server_has_not_declared_is_not_asked_for() {
    let mut program = Program::new();
    let reach = program.reach();
    let (client, _) = tokio::join!(Client::connect(reach, Options::default()), program.shake_hands(json!({})));
    let client = client.unwrap();
    assert!(client.list_tools().await.unwrap().is_empty());
    assert!(client.list_resources().await.unwrap().is_empty());
    assert!(client.list_templates().await.unwrap().is_empty());
    assert!(client.list_prompts().await.unwrap().is_empty());
    let serve = async {
        let first = program.expect("ping").await;
        program.answer(&first, json!({})).await;
    };
    tokio::join!(client.ping(), serve).0.unwrap();
    client.close().await;
}

#[tokio::test]
async fn the_typed_methods_work_with_servers_of_both_eras() {
    let both = [true, false].into_iter();
    for (eras, recover) in
        both.flat_map(|recover| [Eras::Session, Eras::Stateless, Eras::Both].map(|eras| (eras, recover)))
    {
        let (_, reach) = in_memory(Settings { eras, page_size: 3, ..Settings::default() });
        let client =
            within("the handshake", Client::connect(reach, Options { recover, ..Options::default() })).await.unwrap();
        let tools = client.list_tools().await.unwrap();
        assert!(tools.len() > 10 && tools.iter().any(|tool| tool.name == "echo"), "{eras:?}");
        let echo = client.call_tool("echo", json!({"message": "hé"}), RequestOptions::default()).await.unwrap();
        assert_eq!((content::text(&echo).as_str(), echo.is_error), ("hé", false), "{eras:?}");
        let failed = client.call_tool("test_error_handling", (), RequestOptions::default()).await.unwrap();
        assert!(failed.is_error && content::text(&failed).starts_with("Error: "), "{eras:?}");
        let resources = client.list_resources().await.unwrap();
        let read = client.read_resource(&resources[0].uri).await.unwrap();
        assert_eq!(read.contents[0].uri, resources[0].uri);
        assert!(!client.list_templates().await.unwrap().is_empty());
        let prompts = client.list_prompts().await.unwrap();
        let simple = prompts.iter().find(|prompt| prompt.arguments.is_empty()).unwrap();
        let prompt = client.get_prompt(&simple.name, ()).await.unwrap();
        assert!(content::part_text(prompt.messages[0].content.get()).is_some());
        let with = prompts.iter().find(|prompt| !prompt.arguments.is_empty()).unwrap();
        let reference = json!({"type": "ref/prompt", "name": with.name});
        client.complete(reference, &with.arguments[0].name, "").await.unwrap();
        client.ping().await.unwrap();
        client.set_level("warning").await.unwrap();
        client.subscribe(&resources[0].uri).await.unwrap();
        client.unsubscribe(&resources[0].uri).await.unwrap();
        within("the end", client.close()).await;
    }
}
