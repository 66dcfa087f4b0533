//! How the program ends: with the client, by force, and with us.

use serde_json::json;

use super::{child, connected, expect_echo, scripted};
use crate::support::process::Mcpwire;
use crate::support::{runs, until};

/// The process whose number the script has written to stderr.
async fn told_pid(client: &Mcpwire, what: &str) -> u32 {
    client.logged(&format!("{what}=")).await;
    let log = client.stderr();
    log.split_once(&format!("{what}=")).unwrap().1.lines().next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_program_ends_with_the_client() {
    let client = connected(&[]).await;
    let pid = child(&client, 0).await;
    client.finish().await;
    assert!(!runs(pid));
}

#[tokio::test]
async fn the_program_ends_when_we_are_asked_to_stop() {
    let mut client = connected(&[]).await;
    let pid = child(&client, 0).await;
    client.signal("TERM");
    assert_eq!(client.wait().await.code(), Some(0));
    assert!(!runs(pid));
}

#[tokio::test]
async fn what_the_program_has_started_ends_too() {
    let mut client = scripted(&[], r#"sleep 1000 & echo "left=$!" >&2; exec "$MCPWIRE" reference --stdio"#);
    client.open_session().await;
    let left = told_pid(&client, "left").await;
    assert!(runs(left));
    client.finish().await;
    until("the grandchild to end", || !runs(left)).await;
}

#[tokio::test]
async fn what_a_crashed_program_has_started_ends_before_the_next_one() {
    let script = r#"sleep 1000 & echo "left=$!" >&2; exec "$MCPWIRE" reference --stdio"#;
    let mut client = scripted(&[], script);
    client.open_session().await;
    let left = told_pid(&client, "left").await;
    super::kill(child(&client, 0).await);
    child(&client, 1).await;
    until("the grandchild to end", || !runs(left)).await;
    client.finish().await;
}

#[tokio::test]
async fn a_program_that_ignores_the_end_is_killed() {
    // It reads no stdin, and it and its sleep ignore SIGTERM.
    let mut client =
        scripted(&["--drain", "10ms"], r#"trap "" TERM; echo "trapped=$$" >&2; while :; do sleep 1; done"#);
    client.request(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
    let pid = told_pid(&client, "trapped").await;
    client.close_stdin();
    assert_eq!(client.message().await["error"]["code"], -32603);
    let log = client.finish().await;
    assert!(!runs(pid));
    assert!(log.contains("it was ended by signal 9"), "{log}");
}

#[tokio::test]
async fn the_program_dies_with_us_even_if_we_are_killed() {
    // It does not read stdin, so that only the signal can end it.
    let mut client = scripted(&[], r#"echo "waits=$$" >&2; exec sleep 1000"#);
    client.request(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
    let pid = told_pid(&client, "waits").await;
    assert!(runs(pid));
    client.signal("KILL");
    client.wait().await;
    until("the child to end", || !runs(pid)).await;
}

#[tokio::test]
async fn a_second_signal_leaves_nothing_behind() {
    let mut client = connected(&["--drain", "1h"]).await;
    client.call(1, "slow", json!({"ms": 60_000})).await;
    expect_echo(&mut client, 2).await;
    let pid = child(&client, 0).await;
    client.signal("TERM");
    client.logged("stopping").await;
    client.signal("TERM");
    assert_eq!(client.wait().await.code(), Some(130));
    until("the child to end", || !runs(pid)).await;
}

/// It answers `initialize` and reads nothing more, so its pipe, our queues and the client's pipe fill up.
#[tokio::test]
async fn a_program_that_does_not_read_does_not_outlive_a_client_that_has_sent_too_much() {
    let script = r#"read -r line
        printf '{"jsonrpc":"2.0","id":"open","result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}\n'
        exec sleep 1000"#;
    let mut client = scripted(&["--drain", "200ms"], script);
    client.open_session().await;
    let pid = child(&client, 0).await;
    let padding = "x".repeat(3000);
    let calls = (1..=1200).map(|id| {
        let params = json!({"name": "echo", "arguments": {"message": padding}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    });
    let cancels = [1, 450].map(|id| {
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string()
    });
    let text: Vec<String> = calls.chain(cancels).collect();
    client.send_text(&text.join("\n")).await;
    client.close_stdin();
    let mut answered = Vec::new();
    while let Some(line) = client.line().await {
        let answer: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert!(answer["error"].is_object(), "{answer}");
        answered.extend(answer["id"].as_u64());
    }
    assert_eq!(client.wait().await.code(), Some(0), "{}", client.stderr());
    assert!(!runs(pid), "the program outlives its client");
    answered.sort_unstable();
    let expected: Vec<u64> = (1..=1200).filter(|id| ![1, 450].contains(id)).collect();
    assert_eq!(answered, expected, "each call is answered once, and cancelled ones are not");
}

/// Its refusals fill our stdout, and what is left of its requests our stdin: the end is behind them.
#[tokio::test]
async fn a_program_that_does_not_read_does_not_outlive_a_client_that_does_not_read_either() {
    let mut client = scripted(&["--drain", "200ms"], r#"echo "deaf=$$" >&2; exec sleep 1000"#);
    let requests = (1..=6000).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string());
    client.send_text(&requests.collect::<Vec<_>>().join("\n")).await;
    let pid = told_pid(&client, "deaf").await;
    client.close_stdin();
    assert_eq!(client.wait().await.code(), Some(0), "{}", client.stderr());
    assert!(!runs(pid), "the program outlives its client");
}
