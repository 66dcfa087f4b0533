//! Servers that behave badly, and clients that want too much.

use std::time::Duration;

use mcpwire::client::{Client, Handler, Options, RequestOptions};
use mcpwire::reference::Settings;
use mcpwire::transport::child;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Program, in_memory, reach_by, shell};
use crate::support::reach;
use crate::support::within;

#[tokio::test]
async fn a_thousand_requests_at_once_each_get_their_own_answer() {
    let servers = [
        in_memory(Settings::default()).1,
        reach_by(|| reach::stdio(&["reference", "--stdio", "--log-level", "error"].map(str::to_owned))),
    ];
    for reach in servers {
        let client = Client::connect(reach, Options::default()).await.unwrap();
        let calls: Vec<_> = (0..1000)
            .map(|n| {
                let client = client.clone();
                tokio::spawn(async move {
                    let result =
                        client.call_tool("echo", json!({"message": n.to_string()}), RequestOptions::default()).await;
                    assert_eq!(mcpwire::client::content::text(&result.unwrap()), n.to_string());
                })
            })
            .collect();
        for call in calls {
            within("an answer", call).await.unwrap();
        }
        within("the end", client.close()).await;
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_costs_its_request_only() {
    // 100 MB, of which a client with a limit of 1 MB keeps nothing.
    let huge = r#"read -r line
        printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
        read -r line; read -r line
        printf '{"jsonrpc":"2.0","id":2,"result":{"x":"'; head -c 100000000 /dev/zero | tr '\0' x; printf '"}}\n'
        read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":3,"result":{}}'
        cat > /dev/null"#;
    let options = child::Options { max_message: 1 << 20, ..shell(huge, &[]) };
    let client = Client::connect(reach_by(move || child::connect(options.clone())), Options::default()).await.unwrap();
    let error = within("the error", client.request("x", (), RequestOptions::default())).await.unwrap_err();
    assert!(error.to_string().contains("over 1048576 bytes"), "{error}");
    within("the next answer", client.ping()).await.unwrap();
    client.close().await;
}

#[tokio::test]
async fn a_server_that_talks_without_end_does_not_stop_an_answer() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    let serve = async {
        let ping = program.expect("ping").await;
        for n in 0..5000 {
            program.say(&json!({"jsonrpc": "2.0", "method": "notifications/n", "params": {"n": n}}).to_string()).await;
            program.say(&json!({"jsonrpc": "2.0", "id": n + 1000, "result": {}}).to_string()).await;
        }
        program.answer(&ping, json!({})).await;
    };
    let (pong, ()) = within("the answer", async { tokio::join!(client.ping(), serve) }).await;
    pong.unwrap();
    client.close().await;
}

#[tokio::test]
async fn an_initialize_result_that_is_nonsense_is_an_error() {
    for result in [json!([]), json!("x"), json!({"protocolVersion": 7})] {
        let mut program = Program::new();
        let reach = program.reach();
        let serve = async {
            let initialize = program.expect("initialize").await;
            program.answer(&initialize, result.clone()).await;
        };
        let (client, ()) =
            within("the error", async { tokio::join!(Client::connect(reach, Options::default()), serve) }).await;
        let error = client.unwrap_err().to_string();
        assert!(error.starts_with("initialize: expected another result"), "{error}");
    }
}

#[tokio::test]
async fn a_handler_that_panics_ends_the_client_and_nobody_waits() {
    struct Careless;
    impl Handler for Careless {
        fn on_notification(&self, _: &str, _: Option<&RawValue>) {
            panic!("careless");
        }
    }
    let mut program = Program::new();
    let client = program.connected(Options { handler: std::sync::Arc::new(Careless), ..Options::default() }).await;
    let serve = async {
        program.expect("ping").await;
        program.say(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#).await;
    };
    let (pong, ()) = within("the rejection", async { tokio::join!(client.ping(), serve) }).await;
    assert_eq!(pong.unwrap_err().to_string(), "Transport closed");
    within("the end", client.close()).await;
}

#[tokio::test]
async fn requests_that_nobody_answers_are_forgotten() {
    let mut program = Program::new();
    let client = program.connected(Options::default()).await;
    for _ in 0..100 {
        let asking = client.request("x", (), RequestOptions::within(Duration::from_millis(1)));
        asking.await.unwrap_err();
    }
    assert!(format!("{client:?}").contains("pending: 0"), "{client:?}");
    client.close().await;
}
