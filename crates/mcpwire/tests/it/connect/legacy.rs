//! Servers that speak HTTP+SSE (2024-11-05), mcp-hub among them.

use serde_json::{Value, json};

use super::initialize_params;
use crate::support::process::Mcpwire;
use crate::support::script::{Exchange, Script};

const VERSION: &str = "2024-11-05";

/// A server, a client that has done the handshake with it, and the stream of session `s1`.
async fn connected(args: &[&str]) -> (Script, Mcpwire, Exchange) {
    let mut server = Script::start().await;
    let url = server.url();
    let mut client = Mcpwire::start(&[&["connect", url.as_str(), "--transport", "sse"], args].concat());
    let stream = open(&mut client, &mut server).await;
    (server, client, stream)
}

pub(super) async fn open(client: &mut Mcpwire, server: &mut Script) -> Exchange {
    client.request(0, "initialize", initialize_params(VERSION)).await;
    let mut stream = begin(server, "s1").await;
    greet(server, &mut stream, "s1").await;
    assert_eq!(client.message().await["result"]["serverInfo"]["name"], "hub");
    client.notify("notifications/initialized").await;
    taken(server, "notifications/initialized", "s1").await;
    stream
}

/// Serves the GET that begins a session.
async fn begin(server: &mut Script, session: &str) -> Exchange {
    let get = server.expect("GET").await;
    assert_eq!((get.target.as_str(), get.header("accept")), ("/mcp", Some("text/event-stream")));
    let mut stream = get.stream().await;
    stream.event(&format!("event: endpoint\ndata: /messages?sessionId={session}\n\n")).await;
    stream
}

/// Answers `initialize`.
async fn greet(server: &mut Script, stream: &mut Exchange, session: &str) {
    let initialize = taken(server, "initialize", session).await;
    assert_eq!(initialize["params"], initialize_params(VERSION));
    let info = json!({"name": "hub", "version": "1"});
    answer(stream, &initialize, json!({"protocolVersion": VERSION, "capabilities": {}, "serverInfo": info})).await;
}

/// Takes a message as mcp-hub does.
async fn taken(server: &mut Script, method: &str, session: &str) -> Value {
    let post = server.expect(method).await;
    assert_eq!(post.target, format!("/messages?sessionId={session}"));
    let message = post.message();
    post.answer(202, &[], "Accepted").await;
    message
}

async fn answer(stream: &mut Exchange, request: &Value, result: Value) {
    stream.send(json!({"result": result, "jsonrpc": "2.0", "id": request["id"]})).await;
}

/// The session after a loss: its stream, with the handshake done behind the client's back.
async fn reopened(server: &mut Script, session: &str) -> Exchange {
    let mut stream = begin(server, session).await;
    greet(server, &mut stream, session).await;
    taken(server, "notifications/initialized", session).await;
    stream
}

/// Ends the client and sees its stream closed; nothing else is asked of the server.
pub(super) async fn finish(mut client: Mcpwire, mut server: Script, stream: Exchange) -> String {
    client.close_stdin();
    stream.closed().await;
    let log = client.finish().await;
    server.assert_idle();
    log
}

fn error_text(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn the_stream_comes_first_and_names_where_messages_go() {
    for flag in [&["--transport", "sse"][..], &["--mcp-hub-mode"]] {
        let mut server = Script::start().await;
        let url = server.url();
        let mut client = Mcpwire::start(&[&["connect", url.as_str(), "-H", "X-Key: k"], flag].concat());
        client.request(0, "initialize", initialize_params(VERSION)).await;
        let get = server.expect("GET").await;
        assert_eq!((get.header("accept"), get.header("x-key")), (Some("text/event-stream"), Some("k")));
        assert_eq!((get.header("content-type"), get.header("mcp-session-id")), (None, None));
        let mut stream = get.stream().await;
        stream.event(": hello\r\n\r\nevent: endpoint\r\nda").await;
        server.assert_idle();
        stream.event("ta: messages/?session_id=1\r\n\r\n").await;
        let post = server.expect("initialize").await;
        assert_eq!((post.target.as_str(), post.header("x-key")), ("/messages/?session_id=1", Some("k")));
        assert_eq!(post.header("content-type"), Some("application/json"));
        let request = post.message();
        post.answer(202, &[], "Accepted").await;
        answer(&mut stream, &request, json!({"protocolVersion": VERSION, "capabilities": {}})).await;
        assert_eq!(client.message().await["id"], 0);
        finish(client, server, stream).await;
    }
}

#[tokio::test]
async fn it_is_found_out_when_initialize_is_refused() {
    let no_id = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Missing sessionId parameter"},"id":null}"#;
    for (status, body) in [(404, "<pre>Cannot POST /mcp</pre>"), (405, ""), (400, no_id)] {
        let mut server = Script::start().await;
        let mut client = Mcpwire::start(&["connect", &server.url()]);
        client.request(0, "initialize", initialize_params(VERSION)).await;
        server.expect("initialize").await.refuse(status, body).await;
        let mut stream = begin(&mut server, "s1").await;
        greet(&mut server, &mut stream, "s1").await;
        client.message().await;
        client.notify("notifications/initialized").await;
        taken(&mut server, "notifications/initialized", "s1").await;
        client.request(1, "tools/call", json!({"name": "x"})).await;
        let call = taken(&mut server, "tools/call", "s1").await;
        answer(&mut stream, &call, json!({"ok": true})).await;
        assert_eq!(client.message().await, json!({"jsonrpc": "2.0", "id": 1, "result": {"ok": true}}));
        // It is remembered: a new session begins with the stream at once.
        stream.end().await;
        let stream = reopened(&mut server, "s2").await;
        finish(client, server, stream).await;
    }
}

#[tokio::test]
async fn a_server_that_answers_the_request_itself_is_not_asked_for_a_stream() {
    let own = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no such version"}}"#;
    let cases =
        [(400, own, "no such version", true), (401, "", "401", false), (403, "", "403", false), (406, "", "406", true)];
    for (status, body, says, asked) in cases {
        let mut server = Script::start().await;
        let mut client = Mcpwire::start(&["connect", &server.url()]);
        client.request(0, "initialize", initialize_params(VERSION)).await;
        server.expect("initialize").await.refuse(status, body).await;
        if asked {
            server.expect("server/discover").await.refuse(status, "").await;
        }
        assert!(error_text(&client.message().await).contains(says));
        client.finish().await;
        server.assert_idle();
    }
}

#[tokio::test]
async fn a_server_that_speaks_neither_is_told_by_its_first_refusal() {
    for (status, kind) in [(404, "text/plain"), (405, "text/plain"), (200, "text/html")] {
        let mut server = Script::start().await;
        let mut client = Mcpwire::start(&["connect", &server.url()]);
        client.request(0, "initialize", initialize_params(VERSION)).await;
        server.expect("initialize").await.refuse(404, "Cannot POST /mcp").await;
        server.expect("GET").await.answer(status, &[("content-type", kind)], "no stream").await;
        server.expect("server/discover").await.refuse(404, "Cannot POST /mcp").await;
        let answer = client.message().await;
        assert_eq!(error_text(&answer), "HTTP 404 Not Found: Cannot POST /mcp");
        client.finish().await;
        server.assert_idle();
    }
}

#[tokio::test]
async fn only_the_transport_that_is_asked_for_is_tried() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url(), "--transport", "http"]);
    client.request(0, "initialize", initialize_params(VERSION)).await;
    server.expect("initialize").await.refuse(404, "none here").await;
    server.expect("server/discover").await.refuse(404, "none here").await;
    assert!(error_text(&client.message().await).contains("none here"));
    client.finish().await;
    let mut client = Mcpwire::start(&["connect", &server.url(), "--transport", "sse"]);
    client.request(0, "initialize", initialize_params(VERSION)).await;
    server.expect("GET").await.refuse(405, "none here").await;
    assert_eq!(error_text(&client.message().await), "HTTP 405 Method Not Allowed: none here");
    client.finish().await;
    server.assert_idle();
}

#[tokio::test]
async fn streamable_http_goes_before_and_stays() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url(), "--transport", "auto"]);
    super::open(&mut client, &mut server, VERSION).await;
    client.request(1, "tools/list", json!({})).await;
    server.expect("tools/list").await.refuse(404, "").await;
    server.expect("initialize").await.initialized("s2").await;
    server.expect("notifications/initialized").await.accept().await;
    let (a, b) = (server.next().await, server.next().await);
    let (get, list) = if a.method == "GET" { (a, b) } else { (b, a) };
    get.refuse(405, "").await;
    list.result(json!({})).await;
    assert_eq!(client.message().await["id"], 1);
    super::finish(client, server).await;
}

#[tokio::test]
async fn a_server_that_changes_its_transport_is_followed() {
    let mut server = Script::start().await;
    let mut client = Mcpwire::start(&["connect", &server.url()]);
    client.request(0, "initialize", initialize_params(VERSION)).await;
    server.expect("initialize").await.refuse(404, "").await;
    let mut stream = begin(&mut server, "s1").await;
    greet(&mut server, &mut stream, "s1").await;
    client.message().await;
    client.notify("notifications/initialized").await;
    taken(&mut server, "notifications/initialized", "s1").await;
    stream.end().await;
    server.expect("GET").await.refuse(405, "").await;
    server.expect("initialize").await.initialized("s2").await;
    server.rest_of_handshake().await;
    client.request(1, "ping", json!({})).await;
    let ping = server.expect("ping").await;
    assert_eq!((ping.target.as_str(), ping.header("mcp-session-id")), ("/mcp", Some("s2")));
    ping.result(json!({})).await;
    assert_eq!(client.message().await["id"], 1);
    super::finish(client, server).await;
}

#[tokio::test]
async fn an_endpoint_on_another_origin_is_refused() {
    let mut elsewhere = Script::start().await;
    for transport in ["sse", "auto"] {
        let mut server = Script::start().await;
        let mut client = Mcpwire::start(&["connect", &server.url(), "--transport", transport]);
        client.request(0, "initialize", initialize_params(VERSION)).await;
        if transport == "auto" {
            server.expect("initialize").await.refuse(405, "").await;
        }
        let mut stream = server.expect("GET").await.stream().await;
        stream.event(&format!("event: endpoint\ndata: {}\n\n", elsewhere.url())).await;
        if transport == "auto" {
            server.expect("server/discover").await.refuse(405, "").await;
        }
        let answer = client.message().await;
        assert!(error_text(&answer).contains("expected an endpoint on the origin of the stream"), "{answer}");
        assert!(error_text(&answer).contains(&elsewhere.url()), "{answer}");
        stream.closed().await;
        client.finish().await;
        server.assert_idle();
    }
    elsewhere.assert_idle();
}

#[tokio::test]
async fn an_endpoint_that_never_comes_is_not_waited_for_for_ever() {
    for (transport, says) in [("sse", "came none within 1s"), ("auto", "HTTP 404 Not Found: no POST")] {
        let mut server = Script::start().await;
        let mut client = Mcpwire::start(&["connect", &server.url(), "--transport", transport, "--wait", "1s"]);
        client.request(0, "initialize", initialize_params(VERSION)).await;
        if transport == "auto" {
            server.expect("initialize").await.refuse(404, "no POST").await;
        }
        let mut stream = server.expect("GET").await.stream().await;
        stream.event(": nothing to see\n\nevent: ping\ndata: 1\n\n").await;
        if transport == "auto" {
            server.expect("server/discover").await.refuse(404, "no POST").await;
        }
        let answer = client.message().await;
        assert!(error_text(&answer).contains(says), "{answer}");
        stream.closed().await;
        client.finish().await;
    }
}

#[tokio::test]
async fn answers_find_their_requests_in_any_order() {
    let (mut server, mut client, mut stream) = connected(&[]).await;
    let ids = [json!(1), json!("1"), json!(2), json!("mcpwire-1")];
    for id in &ids {
        client.request(id.clone(), "tools/call", json!({"for": id})).await;
    }
    let mut calls = Vec::new();
    for _ in &ids {
        calls.push(taken(&mut server, "tools/call", "s1").await);
    }
    calls.sort_by_key(|call| call["id"].to_string());
    for call in calls.iter().rev() {
        answer(&mut stream, call, call["params"].clone()).await;
        let answered = client.message().await;
        assert_eq!((&answered["id"], &answered["result"]["for"]), (&call["id"], &call["id"]));
    }
    finish(client, server, stream).await;
}

#[tokio::test]
async fn what_has_no_id_and_what_the_server_asks_reach_the_client() {
    let (mut server, mut client, mut stream) = connected(&[]).await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    stream.event(&format!("data:{changed}\n\n")).await;
    assert_eq!(client.message().await, changed);
    let asked = json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"});
    stream.send(asked.clone()).await;
    assert_eq!(client.message().await, asked);
    let roots = json!({"jsonrpc": "2.0", "id": 7, "result": {"roots": []}});
    client.send(roots.clone()).await;
    assert_eq!(taken(&mut server, "response", "s1").await, roots);
    client.notify("notifications/roots/list_changed").await;
    taken(&mut server, "notifications/roots/list_changed", "s1").await;
    finish(client, server, stream).await;
}

#[tokio::test]
async fn an_answer_may_come_before_its_request_is_through() {
    let (mut server, mut client, mut stream) = connected(&[]).await;
    for (id, cut) in [(1, false), (2, true)] {
        client.request(id, "tools/call", json!({})).await;
        let post = server.expect("tools/call").await;
        answer(&mut stream, &post.message(), json!({"early": true})).await;
        assert_eq!(client.message().await["result"]["early"], true);
        // How the POST ends does not matter any more.
        if cut { post.cut() } else { post.answer(202, &[], "Accepted").await }
    }
    client.request(3, "ping", json!({})).await;
    let ping = taken(&mut server, "ping", "s1").await;
    answer(&mut stream, &ping, json!({})).await;
    assert_eq!(client.message().await["id"], 3);
    finish(client, server, stream).await;
}

#[tokio::test]
async fn a_lost_stream_answers_or_repeats_everything_that_waits() {
    for whole in [true, false] {
        let (mut server, mut client, stream) = connected(&[]).await;
        client.request(1, "tools/call", json!({})).await;
        taken(&mut server, "tools/call", "s1").await;
        client.request("l", "tools/list", json!({})).await;
        taken(&mut server, "tools/list", "s1").await;
        client.request(2, "vendor/unknown", json!({})).await;
        taken(&mut server, "vendor/unknown", "s1").await;
        if whole {
            stream.end().await
        } else {
            stream.cut()
        }
        let mut failed = [client.message().await, client.message().await];
        failed.sort_by_key(|answer| answer["id"].to_string());
        for (id, answer) in [1, 2].into_iter().zip(&failed) {
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
            assert!(error_text(answer).contains("may have been executed and was not sent again"), "{answer}");
        }
        let mut stream = reopened(&mut server, "s2").await;
        let list = taken(&mut server, "tools/list", "s2").await;
        assert_eq!(list["id"], "l");
        answer(&mut stream, &list, json!({"tools": []})).await;
        assert_eq!(client.message().await, json!({"jsonrpc": "2.0", "id": "l", "result": {"tools": []}}));
        finish(client, server, stream).await;
    }
}

#[tokio::test]
async fn a_restarted_hub_is_greeted_again_behind_the_clients_back() {
    let (server, mut client, stream) = connected(&[]).await;
    let address = server.address();
    // As mcp-hub ends: the last chunk, then nobody listens.
    stream.end().await;
    server.stop().await;
    client.logged("cannot reach the server").await;
    client.request(1, "tools/call", json!({"name": "x"})).await;
    let mut server = Script::start_at(address).await;
    let mut stream = reopened(&mut server, "s2").await;
    let call = taken(&mut server, "tools/call", "s2").await;
    answer(&mut stream, &call, json!({"ok": 1})).await;
    assert_eq!(client.message().await, json!({"jsonrpc": "2.0", "id": 1, "result": {"ok": 1}}));
    finish(client, server, stream).await;
}

#[tokio::test]
async fn a_hub_that_is_starting_is_waited_for() {
    for transport in ["sse", "auto"] {
        let reserved = Script::start().await;
        let (address, url) = (reserved.address(), reserved.url());
        reserved.stop().await;
        let mut client = Mcpwire::start(&["connect", &url, "--transport", transport]);
        client.request(0, "initialize", initialize_params(VERSION)).await;
        client.logged("next try in").await;
        let mut server = Script::start_at(address).await;
        if transport == "auto" {
            server.expect("initialize").await.refuse(404, "Cannot POST /mcp").await;
        }
        server.expect("GET").await.refuse(500, "Error establishing MCP connection").await;
        client.logged("HTTP 500 Internal Server Error: Error establishing MCP connection; next try in").await;
        if transport == "auto" {
            server.expect("initialize").await.refuse(404, "Cannot POST /mcp").await;
        }
        let mut stream = begin(&mut server, "s1").await;
        greet(&mut server, &mut stream, "s1").await;
        assert_eq!(client.message().await["id"], 0);
        finish(client, server, stream).await;
    }
}

#[tokio::test]
async fn a_refused_message_costs_only_its_own_answer() {
    let (mut server, mut client, mut stream) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    let other = taken(&mut server, "tools/call", "s1").await;
    client.request(2, "tools/call", json!({"large": "x".repeat(200_000)})).await;
    server.expect("tools/call").await.refuse(413, "Payload Too Large").await;
    let refused = client.message().await;
    assert_eq!((&refused["id"], &refused["error"]["data"]["status"]), (&json!(2), &json!(413)));
    assert_eq!(error_text(&refused), "HTTP 413 Payload Too Large: Payload Too Large");
    client.notify("notifications/x").await;
    server.expect("notifications/x").await.refuse(400, "Invalid message").await;
    client.logged("[WARN] [bridge] notification notifications/x").await;
    answer(&mut stream, &other, json!({})).await;
    assert_eq!(client.message().await["id"], 1);
    finish(client, server, stream).await;
}

#[tokio::test]
async fn a_session_that_the_server_does_not_know_is_replaced() {
    let (mut server, mut client, stream) = connected(&[]).await;
    client.request(1, "tools/call", json!({"n": 1})).await;
    taken(&mut server, "tools/call", "s1").await;
    client.request(2, "tools/call", json!({"n": 2})).await;
    let unknown = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "Session not found: s1"}, "id": null})
        .to_string();
    server.expect("tools/call").await.refuse(404, &unknown).await;
    // The one that was taken may have been executed; the one that was not is sent again.
    let failed = client.message().await;
    assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(1), &json!(-32603)));
    stream.closed().await;
    let mut stream = reopened(&mut server, "s2").await;
    let again = taken(&mut server, "tools/call", "s2").await;
    assert_eq!((&again["id"], &again["params"]["n"]), (&json!(2), &json!(2)));
    answer(&mut stream, &again, json!({})).await;
    assert_eq!(client.message().await, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    finish(client, server, stream).await;
}

#[tokio::test]
async fn a_call_cut_on_its_way_is_never_sent_twice() {
    let (mut server, mut client, mut stream) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    server.expect("tools/call").await.cut();
    let cut = client.message().await;
    assert!(error_text(&cut).contains("may have been executed and was not sent again"), "{cut}");
    client.request(2, "tools/list", json!({})).await;
    server.expect("tools/list").await.cut();
    let list = taken(&mut server, "tools/list", "s1").await;
    answer(&mut stream, &list, json!({"tools": []})).await;
    assert_eq!(client.message().await["id"], 2);
    finish(client, server, stream).await;
}

#[tokio::test]
async fn a_list_cut_with_its_stream_is_repeated_on_the_next_one() {
    let (mut server, mut client, stream) = connected(&[]).await;
    client.request(1, "tools/list", json!({})).await;
    let post = server.expect("tools/list").await;
    post.cut();
    stream.cut();
    let mut stream = reopened(&mut server, "s2").await;
    let list = taken(&mut server, "tools/list", "s2").await;
    answer(&mut stream, &list, json!({"tools": []})).await;
    assert_eq!(client.message().await["result"], json!({"tools": []}));
    finish(client, server, stream).await;
}

#[tokio::test]
async fn an_answer_over_the_limit_ends_the_wait_for_it() {
    let (mut server, mut client, mut stream) = connected(&["--max-message", "1000"]).await;
    client.request(1, "tools/call", json!({})).await;
    let call = taken(&mut server, "tools/call", "s1").await;
    answer(&mut stream, &call, json!({"large": "x".repeat(2000)})).await;
    let answer = client.message().await;
    assert!(answer["id"] == 1 && error_text(&answer).contains("1000"), "{answer}");
    stream.closed().await;
    let stream = reopened(&mut server, "s2").await;
    finish(client, server, stream).await;
}

#[tokio::test]
async fn a_client_that_initializes_again_gets_a_new_session() {
    let (mut server, mut client, stream) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    taken(&mut server, "tools/call", "s1").await;
    client.request(2, "initialize", initialize_params(VERSION)).await;
    let failed = client.message().await;
    assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(1), &json!(-32603)));
    stream.closed().await;
    let mut stream = begin(&mut server, "s2").await;
    greet(&mut server, &mut stream, "s2").await;
    assert_eq!(client.message().await["id"], 2);
    finish(client, server, stream).await;
}

#[tokio::test]
async fn a_cancelled_request_is_told_to_the_server() {
    let (mut server, mut client, mut stream) = connected(&[]).await;
    client.request(1, "tools/call", json!({})).await;
    taken(&mut server, "tools/call", "s1").await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    assert_eq!(taken(&mut server, "notifications/cancelled", "s1").await["params"]["requestId"], 1);
    client.request(2, "ping", json!({})).await;
    let ping = taken(&mut server, "ping", "s1").await;
    answer(&mut stream, &ping, json!({})).await;
    assert_eq!(client.message().await["id"], 2);
    finish(client, server, stream).await;
}
