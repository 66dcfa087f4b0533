//! Over a program's stdin and stdout.

use std::sync::Arc;
use std::time::Duration;

use mcpwire::client::{Client, Implementation, Options, RequestOptions};
use mcpwire::transport::child;
use serde_json::json;

use super::{Ear, Program, chain, fail_fast, reach_by, shell};
use crate::support::{runs, within};

#[tokio::test]
async fn the_handshake_says_who_we_are_and_ends_with_initialized() {
    let mut program = Program::new();
    let options = Options {
        client_info: Implementation { name: "agent".into(), version: "7".into(), title: None },
        capabilities: json!({"roots": {"listChanged": false}}),
        ..Options::default()
    };
    let reach = program.reach();
    let (client, initialize) =
        tokio::join!(Client::connect(reach, options), program.shake_hands(json!({"tools": {}, "x": {"y": 1}})));
    assert_eq!(
        initialize["params"],
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {"listChanged": false}},
            "clientInfo": {"name": "agent", "version": "7"},
        })
    );
    let client = client.unwrap();
    let server = client.server();
    assert_eq!((server.protocol_version.as_str(), server.info.name.as_str()), ("2025-11-25", "program"));
    assert!(server.can("tools") && !server.can("prompts"));
    assert!(server.raw().contains(r#""x":{"y":1}"#), "what is not known is kept: {}", server.raw());
    client.close().await;
}

#[tokio::test]
async fn a_malformed_line_and_json_that_is_no_message_cost_nothing() {
    let mut program = Program::new();
    let ear = Arc::new(Ear::default());
    let client = program.connected(fail_fast(&ear)).await;
    let serve = async {
        let ping = program.expect("ping").await;
        for line in ["Starting up...", "{\"jsonrpc\":", "", "7", "null", "\"text\"", "{}", "[1]", "{\"id\":1}", "\u{0}"]
        {
            program.say(line).await;
        }
        program.answer(&ping, json!({})).await;
    };
    let (pong, ()) = tokio::join!(client.ping(), serve);
    pong.unwrap();
    assert!(client.connected());
    client.close().await;
}

#[tokio::test]
async fn when_the_program_ends_all_that_is_pending_is_rejected() {
    let mut program = Program::new();
    let ear = Arc::new(Ear::default());
    let client = program.connected(fail_fast(&ear)).await;
    let call = |n: u32| {
        let client = client.clone();
        tokio::spawn(async move { client.request("x", json!({"n": n}), RequestOptions::default()).await })
    };
    let calls: Vec<_> = (0..3).map(call).collect();
    for _ in 0..3 {
        program.expect("x").await;
    }
    crate::support::proc::kill(program.pid());
    for call in calls {
        let error = within("the rejection", call).await.unwrap().unwrap_err();
        assert_eq!(chain(&error), "Transport closed <- it was ended by signal 9");
    }
    assert!(!client.connected());
    assert_eq!(client.ping().await.unwrap_err().to_string(), "Transport not connected");
    assert_eq!(client.notify("x", ()).await.unwrap_err().to_string(), "Transport not connected");
    within("the end", client.closed()).await;
    let heard = ear.heard();
    assert_eq!(heard.last().unwrap(), "closed: it was ended by signal 9", "{heard:?}");
    assert_eq!(heard.iter().filter(|heard| heard.starts_with("closed")).count(), 1, "{heard:?}");
}

#[tokio::test]
async fn close_ends_the_program_and_may_be_said_again() {
    let mut program = Program::new();
    let ear = Arc::new(Ear::default());
    let client = program.connected(fail_fast(&ear)).await;
    let pid = program.pid();
    let pending = tokio::spawn({
        let client = client.clone();
        async move { client.ping().await }
    });
    program.expect("ping").await;
    assert!(runs(pid));
    within("the end", async { tokio::join!(client.close(), client.close()) }).await;
    assert!(!runs(pid), "close waits for the program");
    assert_eq!(pending.await.unwrap().unwrap_err().to_string(), "Transport closed");
    client.close().await;
    assert_eq!(ear.heard(), ["closed: as wished"]);
}

#[tokio::test]
async fn a_program_that_floods_stderr_does_not_stop() {
    let flood = r#"yes 'something to say' | head -c 20000000 >&2
        read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
        yes 'and more' | head -c 20000000 >&2
        read -r line; read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{}}'; cat > /dev/null"#;
    let reach = reach_by(move || child::connect(shell(flood, &[])));
    let client = within("the handshake", Client::connect(reach, Options::default())).await.unwrap();
    within("the answer", client.ping()).await.unwrap();
    client.close().await;
}

#[tokio::test]
async fn the_program_has_its_environment_and_its_directory() {
    let program = Program::new();
    let say = r#"read -r line
        printf '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"instructions":"%s %s %s"}}\n' "$OWN" "$PWD" "${PATH:+inherited}"
        cat > /dev/null"#;
    let folder = program.folder.path().canonicalize().unwrap();
    let options = child::Options { cwd: Some(folder.clone()), ..shell(say, &[("OWN", "set")]) };
    let client = Client::connect(reach_by(move || child::connect(options.clone())), Options::default()).await.unwrap();
    let expected = format!("set {} inherited", folder.display());
    assert_eq!(client.server().instructions.as_deref(), Some(expected.as_str()));
    client.close().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_error_that_says_so() {
    let options = child::Options { program: "no-such-program".into(), ..shell("", &[]) };
    for recover in [true, false] {
        let options = options.clone();
        let reach = reach_by(move || child::connect(options.clone()));
        let error = Client::connect(reach, Options { recover, ..Options::default() }).await.unwrap_err();
        assert!(error.to_string().contains("cannot start test: No such file"), "{error}");
    }
}

#[tokio::test]
async fn a_notification_that_cannot_be_handed_over_times_out() {
    // It answers the handshake, and never reads again.
    let deaf = r#"read -r line
        printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
        exec sleep 1000"#;
    let reach = reach_by(move || child::connect(shell(deaf, &[])));
    let options = Options { timeout: Duration::from_millis(200), ..Options::default() };
    let client = Client::connect(reach, options).await.unwrap();
    let text = "x".repeat(10_000);
    let error = within("the pipes to be full", async {
        loop {
            if let Err(error) = client.notify("notifications/x", json!({"text": text})).await {
                return error;
            }
        }
    })
    .await;
    assert_eq!(error.to_string(), "Notify timeout after 200ms");
    assert_eq!(client.ping().await.unwrap_err().to_string(), "Request timeout after 200ms");
    within("the end", client.close()).await;
}
