//! `mcpwire connect` against a scripted server.

mod errors;
mod hub;
mod legacy;
mod lifecycle;
mod network;
mod recovery;
mod streams;
mod wire;

use serde_json::{Value, json};

use crate::support::process::Mcpwire;
use crate::support::script::Script;

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
