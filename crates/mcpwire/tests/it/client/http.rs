//! Over Streamable HTTP.

use std::sync::Arc;
use std::time::Duration;

use mcpwire::client::{Client, Error, Options, RequestOptions};
use serde_json::json;

use super::{Ear, chain, fail_fast, over_http, reach_by};
use crate::support::script::Script;
use crate::support::{reach, within};

#[tokio::test]
async fn a_json_answer_is_the_result() {
    let (mut server, client) = over_http(Options::default()).await;
    let serve = async {
        let call = server.expect("tools/call").await;
        assert_eq!(call.message()["params"], json!({"name": "add", "arguments": {"a": 1}}));
        assert_eq!(call.header("content-type"), Some("application/json"));
        assert_eq!(call.header("accept"), Some("application/json, text/event-stream"));
        call.result(json!({"content": [{"type": "text", "text": "1"}]})).await;
    };
    let (result, ()) = tokio::join!(client.call_tool("add", json!({"a": 1}), RequestOptions::default()), serve);
    assert_eq!(mcpwire::client::content::text(&result.unwrap()), "1");
}

#[tokio::test]
async fn a_stream_may_hold_notifications_and_answers_of_others_before_ours() {
    let ear = Arc::new(Ear::default());
    let (mut server, client) = over_http(Options { handler: ear.clone(), ..Options::default() }).await;
    let serve = async {
        let call = server.expect("x").await;
        let id = call.id();
        let mut stream = call.stream().await;
        stream.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "working"}})).await;
        stream.send(json!({"jsonrpc": "2.0", "id": "another", "result": {"wrong": true}})).await;
        // Over several data lines, and without the space.
        stream
            .event(&format!("data:{{\"jsonrpc\": \"2.0\",\ndata: \"id\": {id},\ndata: \"result\": {{\"ok\": 1}}}}\n\n"))
            .await;
        stream.end().await;
    };
    let (answer, ()) = tokio::join!(client.request("x", (), RequestOptions::default()), serve);
    let ok: serde_json::Value = answer.unwrap().read().unwrap();
    assert_eq!(ok, json!({"ok": 1}));
    assert_eq!(ear.heard(), [r#"notifications/message {"data":"working"}"#]);
}

#[tokio::test]
async fn a_stream_that_ends_before_the_answer_is_no_response() {
    let ear = Arc::new(Ear::default());
    let (mut server, client) = over_http(fail_fast(&ear)).await;
    let serve = async {
        let call = server.expect("tools/list").await;
        let id = call.id();
        let mut stream = call.stream().await;
        stream.send(json!({"jsonrpc": "2.0", "method": "notifications/message"})).await;
        stream.end().await;
        id
    };
    let (answer, id) = tokio::join!(client.request("tools/list", (), RequestOptions::default()), serve);
    let expected = format!("No response received for request ID {id} <- the stream ended");
    assert_eq!(chain(&answer.unwrap_err()), expected);
    assert!(client.connected(), "only this request has failed");
    server.assert_idle();
}

#[tokio::test]
async fn a_client_that_recovers_asks_again_where_that_does_no_harm() {
    let (mut server, client) = over_http(Options::default()).await;
    let serve = async {
        server.expect("tools/list").await.stream().await.end().await;
        server.expect("tools/list").await.result(json!({"tools": [{"name": "a"}]})).await;
        server.expect("tools/call").await.stream().await.end().await;
    };
    let ask = async {
        let tools = client.list_tools().await.unwrap();
        assert_eq!(tools[0].name, "a");
        client.call_tool("a", (), RequestOptions::default()).await.unwrap_err()
    };
    let (error, ()) = tokio::join!(ask, serve);
    assert!(error.to_string().contains("may have been executed and was not sent again"), "{error}");
    server.assert_idle();
}

#[tokio::test]
async fn the_session_is_kept_sent_and_deleted() {
    let (mut server, client) = over_http(Options::default()).await;
    let serve = async {
        let ping = server.expect("ping").await;
        assert_eq!(ping.header("mcp-session-id"), Some("s1"));
        ping.result(json!({})).await;
        let note = server.expect("notifications/x").await;
        assert_eq!((note.header("mcp-session-id"), &note.message()["id"]), (Some("s1"), &json!(null)));
        note.accept().await;
    };
    let ask = async {
        client.ping().await.unwrap();
        client.notify("notifications/x", ()).await.unwrap();
    };
    tokio::join!(ask, serve);
    let delete = async {
        let delete = server.expect("DELETE").await;
        assert_eq!(delete.header("mcp-session-id"), Some("s1"));
        delete.refuse(500, "no").await; // nobody minds
    };
    within("the end", async { tokio::join!(client.close(), delete) }).await;
    server.assert_idle();
}

#[tokio::test]
async fn an_http_error_is_told_with_what_it_says_of_credentials() {
    let ear = Arc::new(Ear::default());
    for options in [fail_fast(&ear), Options::default()] {
        let (mut server, client) = over_http(options).await;
        for (status, headers, body, text) in [
            (500, vec![], "boom", "HTTP 500: boom"),
            (
                401,
                vec![("www-authenticate", "Bearer realm=\"x\"")],
                "who?",
                "HTTP 401: who? [WWW-Authenticate: Bearer realm=\"x\"]",
            ),
            (
                403,
                vec![("mcp-auth-server", "https://auth.example")],
                "",
                "HTTP 403:  [Mcp-Auth-Server: https://auth.example]",
            ),
            (
                401,
                vec![("www-authenticate", "Bearer"), ("mcp-auth-server", "https://auth.example")],
                "no: never",
                "HTTP 401: no: never [WWW-Authenticate: Bearer; Mcp-Auth-Server: https://auth.example]",
            ),
        ] {
            let serve = async { server.expect("x").await.answer(status, &headers, body).await };
            let (answer, ()) = tokio::join!(client.request("x", (), RequestOptions::default()), serve);
            let error = answer.unwrap_err();
            assert_eq!(error.to_string(), text);
            assert!(matches!(&error, Error::Http(error) if error.status == status), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_handshake_is_told_with_its_status() {
    let mut server = Script::start().await;
    let url = server.url();
    let serve = async {
        let headers = [("www-authenticate", "Bearer resource_metadata=\"https://x/.well-known\"")];
        server.expect("initialize").await.answer(401, &headers, "unauthorized").await;
    };
    let connect = Client::connect(reach_by(move || reach::http(&url)), Options::default());
    let (client, ()) = tokio::join!(connect, serve);
    assert_eq!(
        client.unwrap_err().to_string(),
        "HTTP 401: unauthorized [WWW-Authenticate: Bearer resource_metadata=\"https://x/.well-known\"]"
    );
}

#[tokio::test]
async fn a_lost_session_fails_or_is_opened_anew() {
    let ear = Arc::new(Ear::default());
    let (mut server, client) = over_http(fail_fast(&ear)).await;
    let serve = async { server.expect("ping").await.refuse(404, "no such session").await };
    let (pong, ()) = tokio::join!(client.ping(), serve);
    assert_eq!(pong.unwrap_err().to_string(), "HTTP 404: no such session");
    server.assert_idle();

    let (mut server, client) = over_http(Options::default()).await;
    let serve = async {
        server.expect("ping").await.refuse(404, "no such session").await;
        server.expect("initialize").await.initialized("s2").await;
        server.expect("notifications/initialized").await.accept().await;
        for _ in 0..2 {
            let next = server.next().await;
            match next.rpc_method().as_str() {
                "GET" => next.refuse(405, "").await,
                _ => {
                    assert_eq!(next.header("mcp-session-id"), Some("s2"));
                    next.result(json!({})).await;
                }
            }
        }
    };
    tokio::join!(client.ping(), serve).0.unwrap();
}

#[tokio::test]
async fn a_body_that_is_no_json_fails_its_request_only() {
    let (mut server, client) = over_http(Options::default()).await;
    let serve = async {
        server.expect("x").await.json("{\"jsonrpc\": \"2.0\", oops").await;
        server.expect("ping").await.result(json!({})).await;
    };
    let ask = async {
        let error = client.request("x", (), RequestOptions::default()).await.unwrap_err();
        assert!(
            error.to_string().contains("expected a JSON-RPC message") && error.to_string().contains("parse error"),
            "{error}"
        );
        client.ping().await.unwrap();
    };
    tokio::join!(ask, serve);
}

#[tokio::test]
async fn notifications_are_accepted_with_202_or_refused_for_the_handler_to_hear() {
    let ear = Arc::new(Ear::default());
    let (mut server, client) = over_http(Options { handler: ear.clone(), ..Options::default() }).await;
    client.notify("notifications/a", ()).await.unwrap();
    server.expect("notifications/a").await.accept().await;
    client.notify("notifications/b", json!({"b": 1})).await.unwrap();
    let b = server.expect("notifications/b").await;
    assert_eq!(b.message(), json!({"jsonrpc": "2.0", "method": "notifications/b", "params": {"b": 1}}));
    b.answer(200, &[], "").await;
    client.notify("notifications/c", ()).await.unwrap();
    server.expect("notifications/c").await.refuse(500, "no").await;
    ear.hears("error: ").await;
    assert_eq!(ear.heard(), ["error: notifications/c failed: HTTP 500: no"]);
}

#[tokio::test]
async fn a_server_without_a_listening_stream_is_fine_and_one_with_it_is_heard() {
    let ear = Arc::new(Ear::default());
    // The handshake has refused the GET with 405.
    let (mut server, client) = over_http(Options { handler: ear.clone(), ..Options::default() }).await;
    tokio::join!(client.ping(), async { server.expect("ping").await.result(json!({})).await }).0.unwrap();
    assert_eq!(ear.heard(), Vec::<String>::new());
    server.assert_idle();

    let mut server = Script::start().await;
    let url = server.url();
    let options = Options { handler: ear.clone(), ..Options::default() };
    let serve = async {
        server.expect("initialize").await.initialized("s1").await;
        server.expect("notifications/initialized").await.accept().await;
        let mut listening = server.expect("GET").await.stream().await;
        listening.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
        listening
    };
    let (client, _listening) = tokio::join!(Client::connect(reach_by(move || reach::http(&url)), options), serve);
    ear.hears("list_changed").await;
    drop(client);
}

#[tokio::test]
async fn the_timeout_covers_headers_bodies_and_streams() {
    for how in ["nothing", "half a body", "a silent stream"] {
        let (mut server, client) =
            over_http(Options { timeout: Duration::from_millis(200), ..Options::default() }).await;
        let serve = async {
            let mut call = server.expect("x").await;
            let id = call.id();
            match how {
                "nothing" => {}
                "half a body" => {
                    call.write("HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
                        .await;
                }
                _ => call = call.stream().await,
            }
            let cancelled = server.expect("notifications/cancelled").await;
            assert_eq!(cancelled.message()["params"]["requestId"], id);
            cancelled.accept().await;
            call
        };
        let (answer, _held) = tokio::join!(client.request("x", (), RequestOptions::default()), serve);
        assert_eq!(answer.unwrap_err().to_string(), "Request timeout after 200ms", "{how}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_that_says_so() {
    let server = Script::start().await;
    let url = server.url();
    server.stop().await;
    let options = Options { recover: false, ..Options::default() };
    let reach = reach_by(move || reach::http(&url));
    let error = within("the error", Client::connect(reach.clone(), options)).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)) && error.to_string().contains("refused"), "{error}");
    // One that recovers waits for it, and not for ever.
    let options = Options { name: "far".into(), connect_timeout: Duration::from_millis(300), ..Options::default() };
    let error = within("the error", Client::connect(reach, options)).await.unwrap_err();
    assert_eq!(error.to_string(), "Connection to MCP server \"far\" timed out after 300ms");
}

#[tokio::test]
async fn an_older_sse_server_is_a_server_like_others() {
    let mut server = Script::start().await;
    let url = server.url();
    let ear = Arc::new(Ear::default());
    let options = Options { handler: ear.clone(), ..Options::default() };
    let serve = async {
        let mut stream = server.expect("GET").await.stream().await;
        stream.event("event: endpoint\ndata: /messages?session=1\n\n").await;
        let initialize = server.expect("initialize").await;
        assert_eq!(initialize.target, "/messages?session=1");
        let id = initialize.id();
        initialize.accept().await;
        let result =
            json!({"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}});
        stream.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
        server.expect("notifications/initialized").await.accept().await;
        let ping = server.expect("ping").await;
        let id = ping.id();
        ping.accept().await;
        stream.send(json!({"jsonrpc": "2.0", "method": "notifications/hello"})).await;
        stream.send(json!({"jsonrpc": "2.0", "id": id, "result": {}})).await;
        stream
    };
    let ask = async {
        let client = Client::connect(reach_by(move || reach::sse(&url)), options).await.unwrap();
        client.ping().await.unwrap();
        client
    };
    let (client, _stream) = tokio::join!(ask, serve);
    assert_eq!(client.server().protocol_version, "2024-11-05");
    assert_eq!(ear.heard(), ["notifications/hello none"]);
}
