//! `mcpwire connect` against a scripted server.

mod certificates;
mod errors;
mod http2;
mod hub;
mod legacy;
mod lifecycle;
pub mod network;
mod recovery;
mod resuming;
mod streams;
mod wire;

use serde_json::{Value, json};

use crate::support::process::Mcpwire;
use crate::support::script::{Exchange, Script};

fn initialize_params(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

/// A server, and a client that has done the handshake with it through the bridge, as session `s1`.
async fn connected(args: &[&str]) -> (Script, Mcpwire) {
    let mut server = Script::start().await;
    let url = server.url();
    let mut client = Mcpwire::start(&[&["connect", url.as_str()], args].concat());
    open(&mut client, &mut server, "2025-11-25").await;
    (server, client)
}

async fn open(client: &mut Mcpwire, server: &mut Script, version: &str) {
    client.request(0, "initialize", initialize_params(version)).await;
    server.expect("initialize").await.initialized("s1").await;
    assert_eq!(client.message().await["result"]["protocolVersion"], version);
    client.notify("notifications/initialized").await;
    server.rest_of_handshake().await;
}

/// Ends the client and sees the session deleted; gives what was logged.
async fn finish(mut client: Mcpwire, mut server: Script) -> String {
    client.close_stdin();
    server.expect("DELETE").await.answer(200, &[], "").await;
    let log = client.finish().await;
    server.assert_idle();
    log
}

/// A client whose server offers a listening stream, which is given.
async fn listening() -> (Script, Mcpwire, Exchange) {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url()]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    server.expect("initialize").await.initialized("s1").await;
    client.message().await;
    client.notify("notifications/initialized").await;
    server.expect("notifications/initialized").await.accept().await;
    let stream = server.expect("GET").await.stream().await;
    (server, client, stream)
}

/// Serves what follows a new session's `initialize` in any order: the GET, which is refused, and the request that is given.
async fn reopened(server: &mut Script, session: &str) -> Exchange {
    server.expect("initialize").await.initialized(session).await;
    server.expect("notifications/initialized").await.accept().await;
    let (a, b) = (server.next().await, server.next().await);
    let (get, request) = if a.method == "GET" { (a, b) } else { (b, a) };
    get.refuse(405, "").await;
    request
}
