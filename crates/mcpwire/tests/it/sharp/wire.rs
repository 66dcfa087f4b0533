//! Odd but sound ways to write messages, large ones, and many at once.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::{AGES, Exposed, REFERENCE, call};
use crate::support::client::Client;
use crate::support::scratch::Scratch;
use crate::support::script::Script;
use crate::support::within;

/// A client of a scripted HTTP server through `expose`.
async fn scripted() -> (Exposed, Script, Client) {
    let mut server = Script::start().await;
    let exposed = Exposed::start(&[], &[&server.url()]).await;
    let serve = async {
        server.expect("initialize").await.initialized("s1").await;
        server.rest_of_handshake().await;
    };
    let (client, ()) = tokio::join!(exposed.client(), serve);
    (exposed, server, client)
}

async fn finish(exposed: Exposed, mut server: Script, client: Client) {
    let ((), ()) = tokio::join!(client.close(), async { server.expect("DELETE").await.accept().await });
    server.assert_idle();
    exposed.stop().await;
}

#[tokio::test]
async fn ten_megabytes_pass_each_way() {
    let exposed = Exposed::start(&[], &REFERENCE).await;
    let mut client = exposed.client().await;
    let text = "0123456789".repeat(1_000_000);
    assert!(client.call("echo", json!({"message": text})).await == text, "the text was changed");
    client.close().await;
    exposed.stop().await;
}

#[tokio::test]
async fn a_notification_is_answered_with_an_empty_202() {
    let exposed = Exposed::start(&[], &REFERENCE).await;
    let session = exposed.session().await;
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let reply = exposed.post(&[("mcp-session-id", &session)], notification).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));
    exposed.stop().await;
}

#[tokio::test]
async fn empty_answers_of_the_server_to_a_notification_are_nothing() {
    let (exposed, mut server, mut client) = scripted().await;
    for status in [202, 204, 200] {
        client.notify("notifications/x", json!({})).await;
        server.expect("notifications/x").await.answer(status, &[], "").await;
    }
    let ping = async { server.expect("ping").await.result(json!({})).await };
    tokio::join!(client.assert_quiet(), ping);
    finish(exposed, server, client).await;
}

#[tokio::test]
async fn pretty_printed_answers_pass() {
    let (exposed, mut server, mut client) = scripted().await;
    let id = client.request("tools/list", json!({})).await;
    let answer = server.expect("tools/list").await;
    let id_there = answer.id();
    let body = format!(
        "{{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": {id_there},\n  \"result\": {{\n    \"a b\": [ 1 ]\n  }}\n}}\n"
    );
    answer.json(&body).await;
    assert_eq!(client.result(id).await, json!({"a b": [1]}));
    finish(exposed, server, client).await;
}

#[tokio::test]
async fn data_without_a_space_crlf_and_data_over_several_lines_pass() {
    let (exposed, mut server, mut client) = scripted().await;
    for (space, end, comma) in [("", "\n", ","), (" ", "\r\n", ","), ("", "\r", ","), (" ", "\n", ",\ndata:")] {
        let id = client.request("tools/list", json!({})).await;
        let mut stream = server.expect("tools/list").await.stream().await;
        let data = format!(r#"{{"jsonrpc":"2.0"{comma}"id":{}{comma}"result":{{"n":{id}}}}}"#, stream.id());
        stream.event(&format!(":{end}event:{space}message{end}data:{space}{data}{end}{end}")).await;
        stream.end().await;
        assert_eq!(client.result(id).await, json!({"n": id}), "{end:?}");
    }
    finish(exposed, server, client).await;
}

#[tokio::test]
async fn progress_goes_with_its_own_request_when_several_are_in_flight() {
    let exposed = Exposed::start(&[], &REFERENCE).await;
    let session = exposed.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let (a, b, c) = (
        call(1, "progress", json!({"steps": 9, "ms": 5}), "token a"),
        call(2, "progress", json!({"steps": 8, "ms": 5}), "token b"),
        call(3, "progress", json!({"steps": 7, "ms": 5}), "token c"),
    );
    let (a, b, c) = tokio::join!(exposed.post(&headers, &a), exposed.post(&headers, &b), exposed.post(&headers, &c));
    for (reply, token, steps) in [(a, "token a", 9), (b, "token b", 8), (c, "token c", 7)] {
        assert_eq!(reply.body.matches("notifications/progress").count(), steps, "{}", reply.body);
        assert_eq!(reply.body.matches(token).count(), steps, "{}", reply.body);
        assert!(reply.body.contains(&format!("Took {steps} steps.")), "{}", reply.body);
    }
    exposed.stop().await;
}

#[tokio::test]
async fn a_slow_call_holds_up_neither_ping_nor_cancel() {
    for options in [&[][..], &["--share"]] {
        let exposed = Exposed::start(options, &REFERENCE).await;
        let mut client = exposed.client().await;
        let id = client.start("slow", json!({"ms": AGES})).await;
        client.assert_quiet().await;
        within("the call to run", async { while client.info().await["running"] != 2 {} }).await;
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        assert_eq!(client.code(id).await, -32800);
        within("the call to end", async { while client.info().await["running"] != 1 {} }).await;
        client.close().await;
        exposed.stop().await;
    }
}

/// Its id is all that a client has to find out which of its requests was no good.
#[tokio::test]
async fn a_request_without_a_method_is_refused_under_its_id() {
    let socket = Scratch::new();
    let path = socket.file("s");
    let exposed = Exposed::start(&["--unix", &path], &REFERENCE).await;
    let text = r#"{"jsonrpc":"2.0","id":4}"#;
    let session = exposed.session().await;
    let stateless = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    for headers in [&[("mcp-session-id", session.as_str())][..], &[], &stateless] {
        let reply = exposed.post(headers, text).await;
        let error = reply.json();
        assert_eq!((reply.status, &error["id"], &error["error"]["code"]), (400, &json!(4), &json!(-32600)), "{error}");
    }
    let mut unix = BufReader::new(UnixStream::connect(&path).await.expect("somebody listens"));
    unix.write_all(format!("{text}\n").as_bytes()).await.expect("it is read");
    let mut line = String::new();
    within("an answer", unix.read_line(&mut line)).await.expect("a line");
    let error: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(4), &json!(-32600)), "{error}");
    drop(unix);
    exposed.stop().await;
}
