//! `mcpwire connect -- command`: a program on stdio behind the bridge.

mod ends;
mod link;
mod output;
mod restarts;
mod starts;

use serde_json::json;

use crate::support::process::Mcpwire;
use crate::support::until;

const MCPWIRE: &str = env!("CARGO_BIN_EXE_mcpwire");

/// A client of the reference server on stdio, through the bridge.
async fn connected(args: &[&str]) -> Mcpwire {
    let command = ["--", MCPWIRE, "reference", "--stdio", "--log-level", "error"];
    let mut client = Mcpwire::start(&[&["connect"], args, &command].concat());
    client.open_session().await;
    client
}

/// A client of a shell script, through the bridge.
fn scripted(args: &[&str], script: &str) -> Mcpwire {
    let env = [("MCPWIRE", MCPWIRE)];
    Mcpwire::start_with(&[&["connect"], args, &["--", "sh", "-c", script]].concat(), &env)
}

/// The process of the nth child, counted from 0, once it was started.
async fn child(client: &Mcpwire, nth: usize) -> u32 {
    let mut pid = None;
    until(&format!("child {nth}"), || {
        pid = started(client).get(nth).copied();
        pid.is_some()
    })
    .await;
    pid.unwrap()
}

/// The processes that were started so far.
fn started(client: &Mcpwire) -> Vec<u32> {
    let log = client.stderr();
    log.lines().filter_map(|line| line.split_once("started as process ")?.1.parse().ok()).collect()
}

fn kill(pid: u32) {
    let status = std::process::Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// Calls a tool and expects its text.
async fn expect_echo(client: &mut Mcpwire, id: u64) {
    client.call(id, "echo", json!({"message": "hello"})).await;
    let answer = client.message().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!("hello")), "{answer}");
}
