//! Unix sockets: the front of the library, and `mcpwire connect unix:PATH` as its client.

use std::future::pending;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use mcpwire::bridge::{self, Upstreams};
use mcpwire::link::Link;
use mcpwire::reference::{self, Shared};
use mcpwire::transport::unix::{self, Listener, Options};
use mcpwire_proto::conversation::Config;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::support::process::Mcpwire;
use crate::support::scratch::Scratch;
use crate::support::within;

/// The reference server on a socket.
struct Server {
    stop: oneshot::Sender<()>,
    done: JoinHandle<()>,
}

impl Server {
    async fn start(path: &str) -> Server {
        let listener = Listener::bind(Path::new(path)).await.expect("the path is free");
        let (links, mut opened) = mpsc::channel::<Link>(4);
        let (stop, stopped) = oneshot::channel();
        let front = unix::serve(listener, Options::default(), links, async { drop(stopped.await) });
        let take = async move {
            let mut sessions = JoinSet::new();
            let shared = Shared::default();
            while let Some(client) = opened.recv().await {
                let (server, port) = Link::pair();
                sessions.spawn(reference::serve(port, shared.clone()));
                let server = Upstreams::only(server);
                sessions.spawn(async {
                    bridge::run(client, server, Config::default(), pending::<()>(), Duration::from_secs(10)).await;
                });
            }
            sessions.join_all().await;
        };
        let done = tokio::spawn(async {
            tokio::join!(front, take);
        });
        Server { stop, done }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        within("the server to end", self.done).await.unwrap();
    }
}

async fn connected(path: &str) -> Mcpwire {
    let mut client = Mcpwire::start(&["connect", &format!("unix:{path}")]);
    client.open_session().await;
    client
}

async fn expect_echo(client: &mut Mcpwire, id: u64, text: &str) {
    client.call(id, "echo", json!({"message": text})).await;
    let answer = client.message().await;
    assert!(answer["id"] == id && answer["result"]["content"][0]["text"] == text, "call {id}");
}

#[tokio::test]
async fn clients_on_a_socket_are_served_each_on_its_own() {
    let scratch = Scratch::new();
    let path = scratch.file("s");
    let server = Server::start(&path).await;
    let mut clients = [connected(&path).await, connected(&path).await];
    for client in &mut clients {
        // The same id at the same time: each gets its own answer.
        client.call(1, "info", json!({})).await;
    }
    let mut sessions = Vec::new();
    for client in &mut clients {
        sessions.push(client.message().await["result"]["structuredContent"]["session"].clone());
        expect_echo(client, 2, &"0123456789".repeat(1_000_000)).await;
    }
    assert_ne!(sessions[0], sessions[1]);
    for client in clients {
        client.finish().await;
    }
    server.stop().await;
}

#[tokio::test]
async fn the_socket_file_is_ours_alone_and_goes_with_us() {
    let scratch = Scratch::new();
    let path = scratch.file("s");
    let server = Server::start(&path).await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing else was left there");
    server.stop().await;
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_left_by_a_dead_process_is_replaced_and_others_are_not() {
    let scratch = Scratch::new();
    let (stale, live, file) = (scratch.file("stale"), scratch.file("live"), scratch.file("file"));
    drop(UnixListener::bind(&stale).unwrap());
    Server::start(&stale).await.stop().await;

    let server = Server::start(&live).await;
    let error = Listener::bind(Path::new(&live)).await.unwrap_err();
    assert!(error.to_string().contains("another process serves this socket"), "{error}");
    let mut client = connected(&live).await;
    expect_echo(&mut client, 1, "still there").await;
    client.finish().await;
    server.stop().await;

    std::fs::write(&file, "precious").unwrap();
    let error = Listener::bind(Path::new(&file)).await.unwrap_err();
    assert!(error.to_string().contains("no socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[tokio::test]
async fn a_socket_that_another_took_over_is_left_to_it() {
    let scratch = Scratch::new();
    let path = scratch.file("s");
    let first = Server::start(&path).await;
    std::fs::remove_file(&path).unwrap();
    let second = Server::start(&path).await;
    first.stop().await;
    connected(&path).await.finish().await;
    second.stop().await;
}

#[tokio::test]
async fn a_server_that_comes_late_is_waited_for_and_one_that_restarts_is_found_again() {
    let scratch = Scratch::new();
    let path = scratch.file("s");
    let mut client = Mcpwire::start(&["connect", &format!("unix:{path}")]);
    client.request(0, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
    client.logged("next try in").await;
    let server = Server::start(&path).await;
    assert_eq!(client.message().await["id"], 0);
    client.notify("notifications/initialized").await;
    expect_echo(&mut client, 1, "first").await;
    server.stop().await;
    client.logged("the server is gone: it closed the connection").await;
    client.call(2, "echo", json!({"message": "second"})).await;
    let server = Server::start(&path).await;
    assert_eq!(client.message().await["result"]["content"][0]["text"], "second");
    client.finish().await;
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_stays_away_is_an_error_without_its_path() {
    let scratch = Scratch::new();
    let path = scratch.file("s");
    let mut client = Mcpwire::start(&["connect", &format!("unix:{path}"), "--wait", "200ms"]);
    client.request(0, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
    let answer = client.message().await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("cannot connect to the socket: No such file") && !text.contains(&path), "{text}");
    client.finish().await;
}

#[tokio::test]
async fn a_stopped_front_finishes_what_is_under_way() {
    let scratch = Scratch::new();
    let path = scratch.file("s");
    let server = Server::start(&path).await;
    let (input, mut output) = UnixStream::connect(&path).await.unwrap().into_split();
    let mut lines = BufReader::new(input).lines();
    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}});
    let slow = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow", "arguments": {"ms": 200}}});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    output.write_all(format!("{open}\n{slow}\n{ping}\n").as_bytes()).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let line = within("an answer", lines.next_line()).await.unwrap().unwrap();
        ids.push(serde_json::from_str::<Value>(&line).unwrap()["id"].clone());
    }
    assert_eq!(ids, [0, 2]);
    server.stop().await;
    let line = within("the last answer", lines.next_line()).await.unwrap().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], 1);
    let mut rest = Vec::new();
    within("the end", lines.into_inner().read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty());
    assert!(UnixStream::connect(&path).await.is_err());
}

#[tokio::test]
async fn a_client_that_sends_no_more_still_gets_its_answers() {
    let scratch = Scratch::new();
    let path = scratch.file("s");
    let server = Server::start(&path).await;
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}});
    stream.write_all(format!("{open}\nnonsense\n").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut text = String::new();
    within("the end", stream.read_to_string(&mut text)).await.unwrap();
    let mut codes: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["error"]["code"].clone()).collect();
    codes.sort_by_key(Value::to_string);
    assert_eq!(codes, [json!(-32700), json!(null)]);
    server.stop().await;
}
