//! What passes between the two sides, and in which form.

use serde_json::json;

use super::{connected, finish, initialize_params, open};
use crate::support::process::Mcpwire;
use crate::support::scratch::Scratch;
use crate::support::script::Script;

#[tokio::test]
async fn stdout_carries_json_only_and_debug_logs_every_message_with_its_session() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start_with(&["connect", &server.url()], &[("DEBUG", "1")]);
    open(&mut client, &mut server, "2025-11-25").await;
    client.request(1, "tools/call", json!({"name": "x", "arguments": {"password": "hunter2"}})).await;
    server.expect("tools/call").await.result(json!({"content": "hunter3"})).await;
    client.message().await;
    let log = finish(client, server).await;
    let stamp = |line: &str| line.len() > 26 && line.starts_with("[20") && line[24..].starts_with("Z] [");
    assert!(log.lines().all(stamp), "{log}");
    for part in
        ["[DEBUG] [wire] client -> server request tools/call id=1", "server -> client result id=1", "session=s…"]
    {
        assert!(log.contains(part), "no {part:?} in\n{log}");
    }
    assert!(!log.contains("hunter"), "payloads are not logged:\n{log}");
}

#[tokio::test]
async fn the_log_holds_neither_whole_session_ids_nor_values_of_variables() {
    let mut server = Script::start().await;
    let scratch = Scratch::new();
    let config = scratch.path().join("mcp.json");
    let url = format!("http://{}/${{SECRET_PATH}}/mcp", server.address());
    std::fs::write(&config, json!({"mcpServers": {"docs": {"url": url}}}).to_string()).unwrap();
    let args = ["connect", "--config", config.to_str().unwrap(), "docs", "-v"];
    let mut client = Mcpwire::start_with(&args, &[("SECRET_PATH", "s3cret")]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    let initialize = server.expect("initialize").await;
    assert_eq!(initialize.target, "/s3cret/mcp");
    initialize.answer(307, &[("location", "/s3cret/mcp/")], "").await;
    server.expect("initialize").await.initialized("0123456789abcdef0123456789abcdef").await;
    client.message().await;
    client.notify("notifications/initialized").await;
    server.rest_of_handshake().await;
    let log = finish(client, server).await;
    assert!(log.contains("session=01234567…") && !log.contains("0123456789abcdef"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
}

#[tokio::test]
async fn payloads_are_logged_when_asked_for() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url(), "--log-payloads"]);
    open(&mut client, &mut server, "2025-11-25").await;
    let log = finish(client, server).await;
    assert!(log.contains(r#""clientInfo":{"name":"test""#), "{log}");
}

#[tokio::test]
async fn a_bad_line_is_answered_and_the_next_one_served() {
    let (mut server, mut client) = connected(&[]).await;
    for (line, code, id) in [
        ("nonsense", -32700, json!(null)),
        ("null", -32600, json!(null)),
        ("[]", -32600, json!(null)),
        ("17", -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":4}"#, -32600, json!(4)),
        (r#"[{"jsonrpc":"2.0","id":5,"method":"ping"}]"#, -32600, json!(null)),
    ] {
        client.send_text(line).await;
        let answer = client.message().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
    }
    client.request(6, "ping", json!({})).await;
    server.expect("ping").await.result(json!({})).await;
    assert_eq!(client.message().await, json!({"jsonrpc": "2.0", "id": 6, "result": {}}));
    let log = finish(client, server).await;
    assert!(log.contains("the client sent no message: parse error"), "{log}");
}

#[tokio::test]
async fn headers_name_what_we_take_and_the_session() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start_with(
        &["connect", &server.url(), "-H", "Authorization: Bearer ${TEST_TOKEN}", "-H", "X-Two: b"],
        &[("TEST_TOKEN", "t0p")],
    );
    client.request(0, "initialize", initialize_params("2025-06-18")).await;
    let first = server.expect("initialize").await;
    assert_eq!(first.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.header("authorization"), Some("Bearer t0p"));
    assert_eq!(first.header("x-two"), Some("b"));
    assert_eq!((first.header("mcp-session-id"), first.header("mcp-protocol-version")), (None, None));
    first.initialized("abc-123").await;
    client.message().await;
    client.notify("notifications/initialized").await;
    let second = server.expect("notifications/initialized").await;
    assert_eq!(second.header("mcp-session-id"), Some("abc-123"));
    assert_eq!(second.header("mcp-protocol-version"), Some("2025-06-18"));
    second.accept().await;
    let get = server.expect("GET").await;
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    assert_eq!(get.header("mcp-session-id"), Some("abc-123"));
    get.refuse(405, "").await;
    client.close_stdin();
    let last = server.expect("DELETE").await;
    assert_eq!(last.header("mcp-session-id"), Some("abc-123"));
    last.refuse(500, "whatever").await;
    let log = client.finish().await;
    assert!(!log.contains("t0p"), "secrets are not logged");
}

#[tokio::test]
async fn a_session_named_by_a_first_answer_is_kept_without_a_handshake() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url()]);
    client.request(1, "tools/list", json!({})).await;
    let first = server.expect("tools/list").await;
    let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, first.id());
    first.answer(200, &[("content-type", "application/json"), ("mcp-session-id", "early")], &body).await;
    client.message().await;
    client.request(2, "tools/list", json!({})).await;
    let second = server.expect("tools/list").await;
    assert_eq!(second.header("mcp-session-id"), Some("early"));
    second.result(json!({})).await;
    client.message().await;
    finish(client, server).await;
}

#[tokio::test]
async fn payloads_pass_byte_for_byte_in_both_directions() {
    let (mut server, mut client) = connected(&[]).await;
    let request = r#"{"jsonrpc":"2.0","x-new": 1,"method":"vendor/new","params":{"z":1.10,"a":12345678901234567890123},"id":"q\u00e9"}"#;
    client.send_text(request).await;
    let exchange = server.next().await;
    assert_eq!(exchange.body, request);
    let answer =
        r#"{"id":"qé","result":{"big":98765432109876543210,"f":2.50,"b":{"y":1,"a":2}},"jsonrpc":"2.0","extra":true}"#;
    exchange.json(answer).await;
    // The id comes back as the client wrote it; nothing else changes.
    assert_eq!(client.line().await.unwrap(), answer.replace("qé", r"q\u00e9"));
    finish(client, server).await;
}

#[tokio::test]
async fn a_pretty_printed_answer_becomes_one_line() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/list", json!({})).await;
    server
        .expect("tools/list")
        .await
        .json("{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"result\": {\n    \"a b\": [ 1.10 ]\n  }\n}\n")
        .await;
    assert_eq!(client.line().await.unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{"a b":[1.10]}}"#);
    finish(client, server).await;
}

#[tokio::test]
async fn nothing_is_written_for_202_204_and_empty_bodies() {
    let (mut server, mut client) = connected(&[]).await;
    for status in [202, 204, 200] {
        client.notify("notifications/x").await;
        server.expect("notifications/x").await.answer(status, &[], "").await;
    }
    finish(client, server).await;
}

#[tokio::test]
async fn a_slow_call_holds_nothing_up() {
    let (mut server, mut client) = connected(&[]).await;
    client.request("slow", "tools/call", json!({})).await;
    let slow = server.expect("tools/call").await;
    client.request("fast", "ping", json!({})).await;
    server.expect("ping").await.result(json!({})).await;
    assert_eq!(client.message().await["id"], "fast");
    slow.result(json!({})).await;
    assert_eq!(client.message().await["id"], "slow");
    finish(client, server).await;
}

#[tokio::test]
async fn two_hundred_calls_in_flight_are_each_answered_once() {
    let (mut server, mut client) = connected(&[]).await;
    for id in 0..200 {
        client.request(id, "tools/call", json!({})).await;
    }
    let mut waiting = Vec::new();
    for _ in 0..200 {
        waiting.push(server.expect("tools/call").await);
    }
    for exchange in waiting.into_iter().rev() {
        let result = json!({"is": exchange.id()});
        exchange.result(result).await;
    }
    let mut seen = Vec::new();
    for _ in 0..200 {
        let answer = client.message().await;
        assert_eq!(answer["id"], answer["result"]["is"]);
        seen.push(answer["id"].as_u64().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    finish(client, server).await;
}

#[tokio::test]
async fn messages_wait_for_the_handshake_and_keep_their_order() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url()]);
    client.request(0, "initialize", initialize_params("2025-11-25")).await;
    client.notify("notifications/initialized").await;
    client.request(1, "tools/list", json!({})).await;
    let initialize = server.expect("initialize").await;
    server.assert_idle();
    initialize.initialized("s1").await;
    let initialized = server.expect("notifications/initialized").await;
    server.assert_idle();
    initialized.accept().await;
    let (a, b) = (server.next().await, server.next().await);
    let (get, list) = if a.method == "GET" { (a, b) } else { (b, a) };
    get.refuse(405, "").await;
    list.result(json!({})).await;
    assert_eq!(client.message().await["id"], 0);
    assert_eq!(client.message().await["id"], 1);
    finish(client, server).await;
}

#[tokio::test]
async fn ten_megabytes_pass_in_both_directions_and_more_when_allowed() {
    let (mut server, mut client) = connected(&["--max-message", "40MiB"]).await;
    for size in [10_000_000, 25_000_000] {
        let text = "x".repeat(size);
        client.request(1, "tools/call", json!({"text": text})).await;
        let exchange = server.expect("tools/call").await;
        assert_eq!(exchange.message()["params"]["text"].as_str().map(str::len), Some(size));
        exchange.result(json!({"text": text})).await;
        assert_eq!(client.message().await["result"]["text"].as_str().map(str::len), Some(size));
    }
    client.request(2, "tools/call", json!({})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    stream.send(json!({"jsonrpc": "2.0", "id": 2, "result": {"text": "y".repeat(10_000_000)}})).await;
    stream.end().await;
    assert_eq!(client.message().await["result"]["text"].as_str().map(str::len), Some(10_000_000));
    finish(client, server).await;
}

#[tokio::test]
async fn what_is_too_large_costs_only_its_own_answer() {
    let (mut server, mut client) = connected(&["--max-message", "10kB"]).await;
    let long = "x".repeat(20_000);
    let too_large = |answer: serde_json::Value, id: i32, code: i32| {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(code)), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("--max-message"), "{answer}");
    };
    client.request(1, "tools/call", json!({"text": long})).await;
    too_large(client.message().await, 1, -32600);
    client.request(2, "tools/call", json!({})).await;
    server.expect("tools/call").await.result(json!({"text": long})).await;
    too_large(client.message().await, 2, -32603);
    client.request(3, "tools/call", json!({})).await;
    let mut stream = server.expect("tools/call").await.stream().await;
    stream.send(json!({"jsonrpc": "2.0", "id": 3, "result": {"text": long}})).await;
    too_large(client.message().await, 3, -32603);
    client.request(4, "ping", json!({})).await;
    server.expect("ping").await.result(json!({})).await;
    assert_eq!(client.message().await["id"], 4);
    finish(client, server).await;
}

#[tokio::test]
async fn batches_are_split_in_the_version_that_has_them() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url()]);
    open(&mut client, &mut server, "2025-03-26").await;
    client
        .send_text(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"},5]"#)
        .await;
    assert_eq!(client.message().await["error"]["code"], -32600);
    let mut both = [server.next().await, server.next().await];
    both.sort_by_key(|exchange| exchange.rpc_method());
    let [a, b] = both;
    assert_eq!([a.rpc_method(), b.rpc_method()], ["ping", "tools/list"]);
    a.json(r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":1,"result":{}}]"#).await;
    assert_eq!(client.message().await["method"], "notifications/x");
    assert_eq!(client.message().await["id"], 1);
    b.result(json!({})).await;
    assert_eq!(client.message().await["id"], 2);
    finish(client, server).await;
}

#[tokio::test]
async fn an_id_in_use_stays_with_its_first_request() {
    let (mut server, mut client) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    let first = server.expect("tools/call").await;
    client.request(1, "ping", json!({})).await;
    let refusal = client.message().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(null), &json!(-32600)), "{refusal}");
    first.result(json!({"first": true})).await;
    assert_eq!(client.message().await["result"]["first"], true);
    finish(client, server).await;
}
