//! What servers ask of their client.

use std::sync::Arc;
use std::time::Duration;

use mcpwire::client::{Client, Handler, Options, Reply, RequestOptions, Root, RpcError, content};
use mcpwire::reference::{Eras, Settings};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Program, in_memory};
use crate::support::within;

#[derive(Default)]
struct Person {
    /// Told when a question has been dropped.
    dropped: Arc<Notify>,
}

struct TellsDrop(Arc<Notify>);

impl Drop for TellsDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Handler for Person {
    fn roots(&self) -> Option<Vec<Root>> {
        Some(vec![Root { uri: "file:///work".into(), name: Some("work".into()) }])
    }

    fn sample<'a>(&'a self, params: Value) -> Reply<'a> {
        Box::pin(async move {
            let said = &params["messages"][0]["content"]["text"];
            Ok(
                json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": format!("you said {said}")}}),
            )
        })
    }

    fn elicit<'a>(&'a self, params: Value) -> Reply<'a> {
        let dropped = TellsDrop(Arc::clone(&self.dropped));
        Box::pin(async move {
            match params["message"].as_str() {
                Some("wait") => {
                    let _dropped = dropped;
                    std::future::pending().await
                }
                Some("panic") => panic!("a handler that fails"),
                Some("error") => Err(RpcError::new(-1, "not now")),
                _ => Ok(json!({"action": "accept", "content": {"username": "ada", "email": "ada@example.com"}})),
            }
        })
    }
}

fn person() -> Options {
    Options {
        capabilities: json!({"roots": {}, "sampling": {}, "elicitation": {}}),
        handler: Arc::new(Person::default()),
        ..Options::default()
    }
}

async fn ask(program: &mut Program, id: Value, method: &str, params: Value) -> Value {
    program.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await;
    let answer = program.hear().await;
    assert_eq!(answer["id"], id, "{answer}");
    answer
}

#[tokio::test]
async fn a_server_that_asks_is_answered() {
    let mut program = Program::new();
    let client = program.connected(person()).await;
    // Our own ids are numbers, too: they are not mixed up.
    let pong = ask(&mut program, json!(1), "ping", json!({})).await;
    assert_eq!(pong["result"], json!({}));
    let roots = ask(&mut program, json!("r"), "roots/list", json!({})).await;
    assert_eq!(roots["result"], json!({"roots": [{"uri": "file:///work", "name": "work"}]}));
    let params = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 1});
    let sampled = ask(&mut program, json!(2), "sampling/createMessage", params).await;
    assert_eq!(sampled["result"]["content"]["text"], r#"you said "hi""#);
    let error = ask(&mut program, json!(3), "elicitation/create", json!({"message": "error"})).await;
    assert_eq!(error["error"], json!({"code": -1, "message": "not now"}));
    let panicked = ask(&mut program, json!(4), "elicitation/create", json!({"message": "panic"})).await;
    assert_eq!(panicked["error"], json!({"code": -32603, "message": "the handler failed"}));
    let unknown = ask(&mut program, json!(5), "no/such", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    assert!(client.connected());
    client.close().await;
}

#[tokio::test]
async fn without_a_handler_ping_is_answered_and_the_rest_refused() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    assert_eq!(ask(&mut program, json!("p"), "ping", json!({})).await["result"], json!({}));
    for method in ["roots/list", "sampling/createMessage", "elicitation/create", "x"] {
        assert_eq!(ask(&mut program, json!("q"), method, json!({})).await["error"]["code"], -32601, "{method}");
    }
    client.close().await;
}

#[tokio::test]
async fn a_question_that_is_taken_back_is_not_answered() {
    let mut program = Program::new();
    let handler = Arc::new(Person::default());
    let options = Options { handler: handler.clone(), ..person() };
    let client = program.connected(options).await;
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "wait"}});
    program.say(&question.to_string()).await;
    // Answered while the question waits.
    assert_eq!(ask(&mut program, json!("p"), "ping", json!({})).await["result"], json!({}));
    let back = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q"}});
    program.say(&back.to_string()).await;
    within("the question to be dropped", handler.dropped.notified()).await;
    assert_eq!(ask(&mut program, json!("p2"), "ping", json!({})).await["id"], "p2");
    client.close().await;
}

#[tokio::test]
async fn calls_that_ask_get_their_answers_in_both_eras() {
    for eras in [Eras::Session, Eras::Stateless] {
        let (_, reach) = in_memory(Settings { eras, ..Settings::default() });
        let client = Client::connect(reach, person()).await.unwrap();
        let call = async |tool: &str, arguments: Value| {
            let options = RequestOptions::within(Duration::from_secs(10));
            let result = client
                .call_tool(tool, arguments, options)
                .await
                .unwrap_or_else(|error| panic!("{eras:?} {tool}: {error}"));
            content::text(&result)
        };
        assert!(call("roots", json!({})).await.contains("file:///work"), "{eras:?}");
        let sampled = call("test_sampling", json!({"prompt": "hello"})).await;
        assert!(sampled.contains("you said") && sampled.contains("hello"), "{eras:?}: {sampled}");
        let elicited = call("test_elicitation", json!({"message": "who?"})).await;
        assert!(elicited.contains("ada"), "{eras:?}: {elicited}");
        client.close().await;
    }
}

#[tokio::test]
async fn progress_and_logs_of_a_call_arrive_in_both_eras() {
    for eras in [Eras::Session, Eras::Stateless] {
        let (_, reach) = in_memory(Settings { eras, ..Settings::default() });
        let client = Client::connect(reach, Options::default()).await.unwrap();
        let (tell, mut told) = tokio::sync::mpsc::channel(100);
        let options = RequestOptions::default().on_progress(move |progress| {
            let _ = tell.try_send(progress.progress);
        });
        client.call_tool("test_tool_with_progress", (), options).await.unwrap();
        let mut steps = Vec::new();
        while let Ok(step) = told.try_recv() {
            steps.push(step);
        }
        assert_eq!(steps, [0.0, 50.0, 100.0], "{eras:?}");
        client.close().await;
    }
}
