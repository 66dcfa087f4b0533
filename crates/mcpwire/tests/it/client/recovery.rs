//! Servers that go away under a client, and clients that go away over a server.

use std::sync::Arc;
use std::time::Duration;

use mcpwire::client::{Client, Options, RequestOptions};
use mcpwire::reference::Settings;
use mcpwire::transport::child;
use serde_json::json;

use super::{Ear, Program, fail_fast, in_memory, reach_by, shell};
use crate::support::proc::kill;
use crate::support::script::Script;
use crate::support::{reach, runs, until, within};

#[tokio::test]
async fn a_program_that_dies_is_started_again_and_the_client_goes_on() {
    let mut program = Program::new();
    let ear = Arc::new(Ear::default());
    let client = program.connected(Options { handler: ear.clone(), ..Options::default() }).await;
    let first = program.pid();
    kill(first);
    ear.hears("error: it was ended by signal 9").await;
    assert!(client.connected());
    let serve = async {
        program.shake_hands(json!({"tools": {}})).await;
        let ping = program.expect("ping").await;
        program.answer(&ping, json!({})).await;
    };
    let (pong, ()) = tokio::join!(client.ping(), serve);
    pong.unwrap();
    let second = program.pid();
    assert_ne!(first, second);
    within("the end", client.close()).await;
    assert!(!runs(second));
    assert_eq!(ear.heard().last().unwrap(), "closed: as wished");
}

#[tokio::test]
async fn a_program_that_dies_in_the_handshake_is_an_error_at_once() {
    let mut program = Program::new();
    let ear = Arc::new(Ear::default());
    let reach = program.reach();
    let serve = async {
        program.expect("initialize").await;
        kill(program.pid());
    };
    let (client, ()) =
        within("the error", async { tokio::join!(Client::connect(reach, fail_fast(&ear)), serve) }).await;
    assert_eq!(client.unwrap_err().to_string(), "Transport closed");
    assert_eq!(ear.heard().last().unwrap(), "closed: it was ended by signal 9");
}

#[tokio::test]
async fn a_program_that_dies_in_every_handshake_is_given_up() {
    let reach = reach_by(|| child::connect(shell("read -r line; exit 7", &[])));
    let error = within("the error", Client::connect(reach, Options::default())).await.unwrap_err();
    assert!(error.to_string().contains("it exited with code 7"), "{error}");
}

#[tokio::test]
async fn a_client_that_does_not_recover_opens_no_second_session() {
    let ear = Arc::new(Ear::default());
    let mut server = Script::start().await;
    let url = server.url();
    let serve = async {
        server.expect("initialize").await.initialized("s1").await;
        server.expect("notifications/initialized").await.accept().await;
        server.expect("GET").await.stream().await.end().await;
        server.expect("GET").await.refuse(404, "no such session").await;
        ear.hears("error: ").await;
        server.expect("ping").await.refuse(404, "no such session").await;
    };
    let ask = async {
        let client = Client::connect(reach_by(move || reach::http(&url)), fail_fast(&ear)).await.unwrap();
        ear.hears("error: ").await;
        let error = client.ping().await.unwrap_err();
        assert_eq!(error.to_string(), "HTTP 404: no such session");
        client
    };
    let (client, ()) = tokio::join!(ask, serve);
    server.assert_idle();
    assert!(client.connected());
}

#[tokio::test]
async fn a_program_that_never_answers_the_handshake_is_given_up_and_ended() {
    let mut program = Program::new();
    let options = Options { name: "mute".into(), connect_timeout: Duration::from_millis(300), ..Options::default() };
    let reach = program.reach();
    let (client, initialize) =
        within("the error", async { tokio::join!(Client::connect(reach, options), program.expect("initialize")) })
            .await;
    assert_eq!(client.unwrap_err().to_string(), "Connection to MCP server \"mute\" timed out after 300ms");
    assert_eq!(initialize["method"], "initialize");
    assert!(!runs(program.pid()), "connect waits for the end of what it has started");
    let more = tokio::time::timeout(Duration::from_millis(50), program.hear()).await;
    assert!(more.is_err(), "a handshake is not cancelled: {more:?}");
}

#[tokio::test]
async fn the_last_clone_takes_the_program_with_it() {
    for recover in [true, false] {
        let mut program = Program::new();
        let ear = Arc::new(Ear::default());
        let client = program.connected(Options { recover, ..fail_fast(&ear) }).await;
        let pid = program.pid();
        let clone = client.clone();
        drop(client);
        let pending = tokio::spawn(async move {
            let asking = clone.request("x", (), RequestOptions::default());
            tokio::time::timeout(Duration::from_millis(300), asking).await
        });
        program.expect("x").await;
        assert!(runs(pid));
        assert!(pending.await.unwrap().is_err(), "it was dropped while it was pending, and the client with it");
        until("the program to end", || !runs(pid)).await;
        ear.hears("closed: as wished").await;
        until("the handler to be let go", || Arc::strong_count(&ear) == 1).await;
    }
}

#[tokio::test]
async fn clients_that_are_dropped_in_the_middle_leave_no_tasks() {
    let (shared, reach) = in_memory(Settings::default());
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..50 {
        let client = Client::connect(reach.clone(), Options::default()).await.unwrap();
        for _ in 0..10 {
            let client = client.clone();
            tokio::spawn(async move {
                let call = client.call_tool("slow", json!({"ms": 60_000}), RequestOptions::default());
                let _ = tokio::time::timeout(Duration::from_millis(20), call).await;
            });
        }
    }
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    until("the tasks to end", || tasks() <= before).await;
    until("the calls to end", || shared.running() == 0).await;
}
