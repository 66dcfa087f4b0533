//! Where the eras meet in single points: statuses of HTTP, equal ids, versions that are laid down, one line for both eras.

use mcpwire_proto::meta::key;
use mcpwire_proto::version::{V2025_06_18, V2025_11_25, V2026_07_28};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::ask::ask;
use crate::support::client::Client;
use crate::support::rig::{Front, Plan, Rig, Speaks, Target};
use crate::table::suite::{AGES, running};

const ONE_ERA: [Speaks; 2] = [Speaks::Session, Speaks::Stateless];

async fn rig(front: Front, server: Speaks) -> Rig {
    Rig::start(Plan { front, target: Target::Child, server, options: &[] }).await
}

fn body(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({key::PROTOCOL_VERSION: V2026_07_28, key::CLIENT_CAPABILITIES: {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn headers(method: &str) -> Vec<(&str, &str)> {
    vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", V2026_07_28),
        ("mcp-method", method),
    ]
}

#[tokio::test]
async fn http_statuses_of_the_stateless_era() {
    for server in ONE_ERA {
        let rig = rig(Front::Streamable, server).await;
        for (method, status, code) in [
            ("server/discover", 200, None),
            ("ping", 404, Some(-32601)),
            ("logging/setLevel", 404, Some(-32601)),
            ("no/such/method", 404, Some(-32601)),
        ] {
            let reply = ask(rig.address(), "POST", "/mcp", &headers(method), &body(method, json!({}))).await;
            assert_eq!((reply.status, reply.json()["error"]["code"].as_i64()), (status, code), "{server:?} {method}");
        }
        let reply =
            ask(rig.address(), "POST", "/mcp", &headers("tools/list"), &body("resources/list", json!({}))).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32020)));
        let newer = body("tools/list", json!({})).replace(V2026_07_28, "2099-01-01");
        let mut named = headers("tools/list");
        named[2].1 = "2099-01-01";
        let reply = ask(rig.address(), "POST", "/mcp", &named, &newer).await;
        let error = reply.json()["error"].take();
        assert_eq!(
            (reply.status, &error["code"], &error["data"]["requested"]),
            (400, &json!(-32022), &json!("2099-01-01"))
        );
        for method in ["GET", "DELETE"] {
            assert_eq!(ask(rig.address(), method, "/mcp", &headers("tools/list"), "").await.status, 405, "{method}");
        }
        rig.finish().await;
    }
}

#[tokio::test]
async fn closing_the_response_cancels_the_call() {
    for server in ONE_ERA {
        let rig = rig(Front::Streamable, server).await;
        let mut client = Client::stateless(rig.connect());
        let body = body("tools/call", json!({"name": "slow", "arguments": {"ms": AGES}}));
        let mut head = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n", rig.address(), body.len());
        for (name, value) in headers("tools/call").into_iter().chain([("mcp-name", "slow")]) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // It says of itself what the other client says, so both are on one server.
        client.declare(key::CLIENT_INFO, Value::Null);
        let mut stream = TcpStream::connect(rig.address()).await.unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        running(&mut client, 2).await;
        drop(stream);
        running(&mut client, 1).await;
        client.close().await;
        rig.finish().await;
    }
}

/// All clients count from 1, and use the same tokens.
#[tokio::test]
async fn equal_ids_of_two_clients() {
    for server in ONE_ERA {
        let rig = rig(Front::Streamable, server).await;
        let mut clients = [Client::stateless(rig.connect()), Client::stateless(rig.connect())];
        let mut calls = Vec::new();
        for (client, steps) in clients.iter_mut().zip([3, 4]) {
            calls.push(client.start_with_token("progress", json!({"steps": steps, "ms": 20}), &json!(7)).await);
        }
        assert_eq!(calls[0], calls[1]);
        for ((client, id), steps) in clients.iter_mut().zip(calls).zip([3, 4]) {
            for step in 1..=steps {
                let params = client.expect("notifications/progress").await["params"].take();
                assert_eq!((&params["progressToken"], &params["progress"]), (&json!(7), &json!(step)));
                assert_eq!(params["total"], steps);
            }
            assert_eq!(client.said(id).await, format!("Took {steps} steps."));
        }
        // Who closes a listen, closes its own.
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        for client in &mut clients {
            client.request("subscriptions/listen", wanted.clone()).await;
            client.expect("notifications/subscriptions/acknowledged").await;
        }
        let [mut first, mut second] = clients;
        first.notify("notifications/cancelled", json!({"requestId": 2})).await;
        first.call("register", json!({"kind": "tool", "name": "extra"})).await;
        let told = second.expect("notifications/tools/list_changed").await;
        assert_eq!(told["params"]["_meta"][key::SUBSCRIPTION_ID], 2);
        for mut client in [first, second] {
            client.assert_quiet().await;
            client.close().await;
        }
        rig.finish().await;
    }
}

#[tokio::test]
async fn the_version_is_laid_down() {
    let lay_down = |options| Plan { front: Front::Connect, target: Target::Child, server: Speaks::Both, options };
    for (options, stateless, session) in [
        (&[][..], V2026_07_28, V2025_06_18),
        (&["--protocol", V2025_11_25], V2025_11_25, V2025_11_25),
        (&["--protocol", V2025_06_18], V2025_06_18, V2025_06_18),
        (&["--protocol", V2026_07_28], V2026_07_28, V2026_07_28),
    ] {
        let rig = Rig::start(lay_down(options)).await;
        let mut client = Client::stateless(rig.connect());
        assert_eq!(client.info().await["protocolVersion"], stateless, "{options:?}");
        client.close().await;
        let mut client = Client::new(rig.connect());
        let id = client.initialize(V2025_06_18).await;
        client.result(id).await;
        client.notify("notifications/initialized", json!({})).await;
        assert_eq!(client.info().await["protocolVersion"], session, "{options:?}");
        client.close().await;
        rig.finish().await;
    }
}

#[tokio::test]
async fn a_session_with_a_server_that_has_none() {
    let rig = rig(Front::Connect, Speaks::Stateless).await;
    let mut client = Client::new(rig.connect());
    let id = client.initialize(V2025_11_25).await;
    let result = client.result(id).await;
    assert_eq!(result["protocolVersion"], V2025_11_25);
    assert!(result["serverInfo"]["name"].is_string() && result["instructions"].is_string(), "{result}");
    assert!(result["capabilities"]["logging"].is_object(), "{result}");
    assert_eq!(result["capabilities"]["resources"]["subscribe"], true, "{result}");
    client.notify("notifications/initialized", json!({})).await;
    let id = client.request("resources/read", json!({"uri": "test://nowhere"})).await;
    assert_eq!(client.code(id).await, -32002);
    let id = client.request("tools/call", json!({"name": "echo"})).await;
    assert_eq!(client.code(id).await, -32602);
    for (tool, text) in [
        ("test_input_required_result_multi_round", "me likes me."),
        ("test_input_required_result_elicitation", "Hello, me!"),
    ] {
        let id = client.start(tool, json!({})).await;
        for _ in 0..text.matches("me").count() {
            let question = client.expect("elicitation/create").await;
            client.answer(&question, json!({"action": "accept", "content": {"name": "me", "color": "me"}})).await;
        }
        assert_eq!(client.said(id).await, text);
    }
    assert_eq!(client.call("again", json!({"times": 3})).await, "That was often enough.");
    client.assert_quiet().await;
    client.close().await;
    rig.finish().await;
}
