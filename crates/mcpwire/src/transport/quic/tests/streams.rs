//! MCP over QUIC, stream by stream.

use quinn::{Endpoint, RecvStream, SendStream};
use serde_json::{Value, json};

use super::peers::{Front, loopback, within};
use crate::transport::lines::Lines;
use crate::transport::quic::{MCP_ALPN, tls};

struct Client {
    connection: quinn::Connection,
    endpoint: Endpoint,
    _main: (SendStream, Lines<RecvStream>),
}

async fn next(lines: &mut Lines<RecvStream>) -> Option<Value> {
    match within("a line", lines.next()).await.unwrap()? {
        mcpwire_proto::frame::line::Line::Text(text) => Some(serde_json::from_slice(&text).unwrap()),
        line => panic!("{line:?}"),
    }
}

impl Client {
    async fn open(front: &Front) -> Client {
        let identity = front.folder.certs().identity("c").unwrap();
        let endpoint = Endpoint::client(loopback()).unwrap();
        let config = tls::client(&identity, MCP_ALPN).unwrap();
        let connection = within("a connection", endpoint.connect_with(config, front.at, "localhost").unwrap()).await;
        let connection = connection.unwrap();
        let (mut output, input) = connection.open_bi().await.unwrap();
        output.write_all(b"main\n").await.unwrap();
        let client = Client { connection, endpoint, _main: (output, Lines::new(input, 1 << 20)) };
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answers =
            client.ask("request 0", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
        assert_eq!(answers.last().unwrap()["result"]["protocolVersion"], "2025-11-25");
        client
    }

    async fn stream(&self, text: &str) -> (SendStream, Lines<RecvStream>) {
        let (mut output, input) = within("a stream", self.connection.open_bi()).await.unwrap();
        output.write_all(text.as_bytes()).await.unwrap();
        (output, Lines::new(input, 1 << 20))
    }

    /// All that comes on the stream of a request.
    async fn ask(&self, header: &str, request: Value) -> Vec<Value> {
        let (_output, mut lines) = self.stream(&format!("{header}\n{request}\n")).await;
        let mut all = Vec::new();
        while let Some(message) = next(&mut lines).await {
            all.push(message);
        }
        all
    }
}

fn call(id: u64, tool: &str, with: Value) -> Value {
    let params = json!({"name": tool, "arguments": with, "_meta": {"progressToken": id}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[tokio::test]
async fn what_belongs_to_a_request_comes_on_its_stream_and_the_response_ends_it() {
    let front = Front::start(false);
    let client = Client::open(&front).await;
    let said = client.ask("request 0", call(1, "progress", json!({"steps": 2, "ms": 0}))).await;
    let methods: Vec<_> = said.iter().map(|message| message["method"].as_str()).collect();
    assert_eq!(methods, [Some("notifications/progress"), Some("notifications/progress"), None]);
    assert_eq!(said[2]["id"], 1);
    drop(client);
    front.stop().await;
}

#[tokio::test]
async fn a_request_waits_for_what_was_sent_before_it() {
    let front = Front::start(false);
    let mut client = Client::open(&front).await;
    let (_output, mut lines) =
        client.stream(&format!("request 1\n{}\n", call(1, "echo", json!({"message": "m"})))).await;
    tokio::select! {
        biased;
        came = next(&mut lines) => panic!("{came:?}"),
        // Another request comes and goes meanwhile.
        answers = client.ask("request 0", call(2, "echo", json!({"message": "n"}))) => assert_eq!(answers.len(), 1),
    }
    client._main.0.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await.unwrap();
    assert_eq!(next(&mut lines).await.unwrap()["id"], 1);
}

#[tokio::test]
async fn streams_that_make_no_sense_cost_only_themselves() {
    let front = Front::start(false);
    let client = Client::open(&front).await;
    for text in ["GET / HTTP/1.1\n", "request x\n", "main\n", "request 0\nno json\n", "request 0\n[1]\n"] {
        let (mut output, mut lines) = client.stream(text).await;
        output.finish().unwrap();
        let said = next(&mut lines).await.unwrap();
        assert!(said["error"]["code"].is_i64(), "{text:?}: {said}");
    }
    let said = client.ask("request 0", json!({"jsonrpc": "2.0", "id": 4})).await;
    assert_eq!((&said[0]["id"], &said[0]["error"]["code"]), (&json!(4), &json!(-32600)), "{said:?}");
    let (_slow, _input) = client.stream(&format!("request 0\n{}\n", call(1, "slow", json!({"ms": 600_000})))).await;
    within("the slow call to start", async {
        loop {
            let said = client.ask("request 0", call(2, "info", json!({}))).await;
            if said[0]["result"]["structuredContent"]["running"] == 2 {
                break;
            }
        }
    })
    .await;
    let twice = client.ask("request 0", call(1, "echo", json!({"message": "m"}))).await;
    assert!(twice[0]["error"]["message"].as_str().unwrap().contains("still in use"), "{twice:?}");
    assert_eq!(client.ask("request 0", call(3, "echo", json!({"message": "m"}))).await.len(), 1);
}

#[tokio::test]
async fn a_stream_that_is_dropped_cancels_its_request() {
    let front = Front::start(false);
    let client = Client::open(&front).await;
    let running = async |calls: u64| {
        within("calls to start or end", async {
            loop {
                let said = client.ask("request 0", call(9, "info", json!({}))).await;
                if said[0]["result"]["structuredContent"]["running"] == calls {
                    return;
                }
            }
        })
        .await;
    };
    let (mut output, input) = client.stream(&format!("request 0\n{}\n", call(1, "slow", json!({"ms": 600_000})))).await;
    running(2).await;
    output.reset(quinn::VarInt::from_u32(0)).unwrap();
    drop(input);
    running(1).await;
}

/// A stream that is never given back would be one less for the rest of the connection.
#[tokio::test]
async fn cancelled_requests_leave_no_stream_behind() {
    let front = Front::start(false);
    let client = Client::open(&front).await;
    for id in 10..1500 {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        let text = format!("request 0\n{}\n{cancel}\n", call(id, "slow", json!({"ms": 600_000})));
        let (mut output, input) = client.stream(&text).await;
        output.finish().unwrap();
        drop(input);
    }
    assert_eq!(client.ask("request 0", call(1, "echo", json!({"message": "m"}))).await.len(), 1);
}

#[tokio::test]
async fn a_client_may_move_to_another_address() {
    let front = Front::start(false);
    let client = Client::open(&front).await;
    let (_output, mut lines) = client.stream(&format!("request 0\n{}\n", call(1, "slow", json!({"ms": 200})))).await;
    let before = client.endpoint.local_addr().unwrap();
    client.endpoint.rebind(std::net::UdpSocket::bind(loopback()).unwrap()).unwrap();
    assert_ne!(client.endpoint.local_addr().unwrap(), before);
    let mut said = next(&mut lines).await.unwrap();
    while said["method"] == "notifications/progress" {
        said = next(&mut lines).await.unwrap();
    }
    assert_eq!(said["id"], 1);
    assert_eq!(client.ask("request 0", call(2, "echo", json!({"message": "m"}))).await[0]["id"], 2);
}
