//! Programs that die, under a client that goes on.

use serde_json::json;

use super::{MCPWIRE, child, connected, expect_echo, kill, scripted, started};
use crate::support::process::Mcpwire;
use crate::support::scratch::Scratch;
use crate::support::until;

#[tokio::test]
async fn a_call_cut_by_a_kill_is_an_error_and_the_next_one_works() {
    let mut client = connected(&[]).await;
    client.call(1, "slow", json!({"ms": 60_000})).await;
    expect_echo(&mut client, 2).await;
    kill(child(&client, 0).await);
    let answer = client.message().await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
    assert!(text.contains("it was ended by signal 9") && text.contains("may have been executed"), "{text}");
    expect_echo(&mut client, 3).await;
    assert_eq!(started(&client).len(), 2);
    client.finish().await;
}

#[tokio::test]
async fn a_list_cut_by_a_kill_is_repeated() {
    let scratch = Scratch::new();
    // The first one takes the request and dies of it.
    let script = format!(
        r#"if mkdir {}; then
            head -n 1 | "$MCPWIRE" reference --stdio
            exit 7
        fi
        exec "$MCPWIRE" reference --stdio"#,
        scratch.file("once")
    );
    let mut client = scripted(&[], &script);
    client.request(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
    assert_eq!(client.message().await["id"], 1);
    client.request(2, "tools/list", json!({})).await;
    let answer = client.message().await;
    assert!(answer["id"] == 2 && answer["result"]["tools"].is_array(), "{answer}");
    client.finish().await;
}

#[tokio::test]
async fn a_program_that_dies_while_idle_is_restarted_by_itself() {
    let mut client = connected(&[]).await;
    kill(child(&client, 0).await);
    child(&client, 1).await;
    client.logged("the new session is open").await;
    expect_echo(&mut client, 1).await;
    assert_eq!(started(&client).len(), 2);
    client.finish().await;
}

#[tokio::test]
async fn a_crash_loop_backs_off() {
    let scratch = Scratch::new();
    let script = format!(r#"mkdir {} && exec "$MCPWIRE" reference --stdio; exit 3"#, scratch.file("once"));
    let mut client = scripted(&["--wait", "1s"], &script);
    client.open_session().await;
    expect_echo(&mut client, 1).await;
    kill(child(&client, 0).await);
    until("five tries", || waits(&client).len() >= 5).await;
    let waits = waits(&client);
    assert!(waits[2] >= 200 && waits[3] >= 400 && waits[4] >= 800, "{waits:?}");
    // A request waits for a while, and is told why in the end.
    client.call(2, "echo", json!({"message": "x"})).await;
    let answer = client.message().await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(answer["id"] == 2 && text.contains("it exited with code 3"), "{answer}");
    client.finish().await;
}

fn waits(client: &Mcpwire) -> Vec<u64> {
    let log = client.stderr();
    log.lines().filter_map(|line| line.split_once("next try in ")?.1.strip_suffix(" ms")?.parse().ok()).collect()
}

#[tokio::test]
async fn a_program_that_dies_at_once_is_an_error_that_says_so() {
    let mut client = scripted(&[], "echo 'no configuration' >&2; exit 4");
    for id in 1..=2 {
        client.request(id, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
        let answer = client.message().await;
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(answer["id"] == id && text.contains("it exited with code 4"), "{answer}");
        assert!(!text.contains("no configuration"), "what is on stderr is for the log: {text}");
    }
    let log = client.finish().await;
    assert!(log.contains("[child] sh: no configuration"), "{log}");
    assert!(log.matches("started as process").count() <= 4, "{log}");
}

#[tokio::test]
async fn what_is_held_for_a_restart_is_sent_once_it_is_there() {
    let mut client = Mcpwire::start(&["connect", "--", MCPWIRE, "reference", "--stdio"]);
    client.open_session().await;
    expect_echo(&mut client, 1).await;
    kill(child(&client, 0).await);
    client.logged("the server is gone").await;
    for id in 2..20 {
        client.call(id, "count", json!({"name": "n"})).await;
    }
    let mut counts = Vec::new();
    for id in 2..20 {
        let answer = client.message().await;
        assert_eq!(answer["id"], id, "{answer}");
        counts.push(answer["result"]["structuredContent"]["value"].as_u64().unwrap());
    }
    assert!(counts.into_iter().eq(1..=18), "each call ran once");
    client.finish().await;
}
