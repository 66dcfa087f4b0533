//! Servers that die, hang, never come or come back cost nobody but their own callers anything.

use std::time::Instant;

use mcpwire_proto::session::legacy;
use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::support::proc;

fn waiting(spec: Spec, wait: u64, timeout: Option<u64>) -> Spec {
    let relay = legacy::Config {
        wait: Duration::from_millis(wait),
        timeout: timeout.map(Duration::from_millis),
        ..legacy::Config::default()
    };
    Spec { config: Config { relay, ..spec.config }, ..spec }
}

/// A program that is not there.
fn missing(name: &str) -> Spec {
    let reach = Reach::new(Arc::new(move || {
        let (link, goodbye) = reach::program("/nowhere/at/all", &[]);
        Ok((link, Some(goodbye)))
    }));
    Spec::new(name, reach, Config::default())
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_of_a_call_comes_back() {
    for era in ["session", "stateless"] {
        let rig = Rig::new(vec![program("a", era), program("b", "session")]);
        let mut client = rig.stateless();
        let pid = process(&mut client, "a").await;
        let doomed = client.start("a__slow", json!({ "ms": 60_000 })).await;
        let fine = client.start("b__slow", json!({ "ms": 300 })).await;
        // The program has read the call when it has answered a later one.
        client.call("b__echo", json!({ "message": "x" })).await;
        proc::kill(pid);
        let error = client.error(doomed).await;
        assert!(error.contains("MCP server not connected: a"), "{error}");
        client.said(fine).await;
        assert_ne!(process(&mut client, "a").await, pid, "a new one answers");
        client.assert_quiet().await;
        client.close().await;
        rig.end().await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_does_not_hurt_the_others() {
    let begun = Instant::now();
    let rig = Rig::new(vec![missing("bad"), program("good", "session")]);
    let mut client = rig.session().await;
    assert!(tools(&mut client).await.iter().all(|tool| tool.starts_with("good__")));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(client.call("good__echo", json!({ "message": "x" })).await, "x");
    client.close().await;
    rig.end().await;
}

#[tokio::test]
async fn calls_to_a_server_that_fails_again_and_again_fail_at_once() {
    let catalogue =
        r#"{"capabilities":{"tools":{}},"tools":[{"name":"x"}],"prompts":[],"resources":[],"resourceTemplates":[]}"#;
    let bad = Spec { cached: mcpwire::hub::Catalogue::from_json(catalogue), ..waiting(missing("bad"), 100, None) };
    let rig = Rig::new(vec![bad, program("good", "stateless")]);
    let mut client = rig.stateless();
    let mut last = String::new();
    for _ in 0..6 {
        let id = client.start("bad__x", json!({})).await;
        last = client.error(id).await;
        assert!(last.contains("MCP server not connected: bad"), "{last}");
    }
    assert!(last.contains("tried again"), "{last}");
    let begun = Instant::now();
    let id = client.start("bad__x", json!({})).await;
    client.error(id).await;
    assert!(begun.elapsed() < Duration::from_millis(90), "it is not tried for this call");
    assert_eq!(client.call("good__echo", json!({ "message": "x" })).await, "x");
    client.close().await;
    rig.end().await;
}

#[tokio::test]
async fn a_server_that_hangs_holds_up_its_own_calls_alone() {
    let rig = Rig::new(vec![waiting(program("a", "session"), 1_000, Some(500)), program("b", "session")]);
    let mut client = rig.stateless();
    let pid = process(&mut client, "a").await;
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let hung = client.start("a__echo", json!({ "message": "x" })).await;
    assert_eq!(client.call("b__echo", json!({ "message": "y" })).await, "y");
    let error = client.error(hung).await;
    assert!(error.contains("a: timed out"), "{error}");
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(client.call("a__echo", json!({ "message": "z" })).await, "z");
    client.close().await;
    rig.end().await;
}
