//! How conversations begin: requests behind an unanswered handshake, servers that are slow to start, questions that no
//! client can spoil, and questions that no server may ask.

use mcpwire_proto::meta::key;
use mcpwire_proto::version::V2026_07_28;
use serde_json::{Value, json};

use crate::support::ask::ask;
use crate::support::process::Mcpwire;
use crate::support::scratch::Scratch;

const MCPWIRE: &str = env!("CARGO_BIN_EXE_mcpwire");

fn initialize() -> String {
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string()
}

fn stateless(id: u64, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({key::PROTOCOL_VERSION: V2026_07_28, key::CLIENT_CAPABILITIES: {}});
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// The reference server behind a shell script, which has its arguments in `$@`.
fn scripted(script: &str, era: &str) -> Mcpwire {
    let command = ["connect", "--", "sh", "-c", script, MCPWIRE, "reference", "--stdio", "--era", era];
    Mcpwire::start(&command)
}

#[tokio::test]
async fn requests_pipelined_behind_initialize_are_answered_in_every_pair_of_eras() {
    let echo = json!({"name": "echo", "arguments": {"message": "hello"}});
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": echo});
    let session = [
        initialize(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string(),
        call.to_string(),
    ];
    let modern = [
        stateless(1, "server/discover", json!({})),
        stateless(2, "tools/list", json!({})),
        stateless(3, "tools/call", echo),
    ];
    for server in ["session", "stateless", "both"] {
        for lines in [&session[..], &modern] {
            let mut client = scripted(r#"exec "$0" "$@""#, server);
            client.send_text(&lines.join("\n")).await;
            client.close_stdin();
            let mut answered = Vec::new();
            while let Some(line) = client.line().await {
                let answer: Value = serde_json::from_str(&line).expect("JSON");
                if answer["id"].is_u64() {
                    assert!(answer["result"].is_object(), "{server}: {answer}");
                    answered.push(answer["id"].as_u64());
                }
            }
            answered.sort_unstable();
            assert_eq!(answered, [Some(1), Some(2), Some(3)], "{server}: {}", lines[0]);
            client.finish().await;
        }
    }
}

/// Its first three seconds of silence are taken for a sign of the session era, while it only starts.
#[tokio::test]
async fn a_slow_program_of_both_eras_never_sees_both_openings() {
    let scratch = Scratch::new();
    let script = format!(r#"sleep 4; tee -a {}.$$ | exec "$0" "$@""#, scratch.file("seen"));
    let mut client = scripted(&script, "both");
    client.send_text(&stateless(1, "tools/list", json!({}))).await;
    let list = client.message().await;
    assert_eq!((&list["id"], &list["result"]["resultType"]), (&json!(1), &json!("complete")), "{list}");
    client.send_text(&stateless(2, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))).await;
    let acknowledged = client.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    client.close_stdin();
    while client.line().await.is_some() {}
    client.finish().await;
    let mut used = 0;
    for file in std::fs::read_dir(scratch.path()).expect("a folder") {
        let seen = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        let methods: Vec<String> = seen.lines().map(method_of).collect();
        let (asked, opened) = (methods.contains(&"server/discover".into()), methods.contains(&"initialize".into()));
        assert!(!(asked && opened), "{methods:?}");
        used += usize::from(methods.len() > 1);
    }
    assert_eq!(used, 1, "one process serves the client");
}

fn method_of(line: &str) -> String {
    let message: Value = serde_json::from_str(line).expect("JSON");
    message["method"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_client_with_an_invalid_log_level_is_refused_and_does_not_decide_the_servers_era() {
    let mut client = scripted(r#"exec "$0" "$@""#, "both");
    let mut call: Value =
        serde_json::from_str(&stateless(1, "tools/call", json!({"name": "count", "arguments": {"name": "n"}})))
            .expect("JSON");
    call["params"]["_meta"][key::LOG_LEVEL] = json!("loud");
    client.send(call).await;
    let refusal = client.message().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(1), &json!(-32602)), "{refusal}");
    let count = json!({"name": "count", "arguments": {"name": "n"}});
    client.send_text(&stateless(2, "tools/call", count)).await;
    let answer = client.message().await;
    assert_eq!(answer["result"]["structuredContent"]["value"], 1, "the refused call was not executed: {answer}");
    let log = client.finish().await;
    assert!(!log.contains("needs sessions"), "{log}");
}

/// A program of the stateless era that asks its client in the middle of a call all the same, and says what came of it.
const ASKS: &str = r#"
    discovered='"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"'
    form='"message":"Name?","requestedSchema":{"type":"object","properties":{}}'
    while read -r line; do
        id=$(printf '%s' "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/')
        case $line in
            *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
            *server/discover*) printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "$id" "$discovered" ;;
            *tools/call*) call=$id; printf '{"jsonrpc":"2.0","id":77,"method":"elicitation/create","params":{%s}}\n' "$form" ;;
            *'"error"'*) text=refused ;;
            *'"result"'*) text=answered ;;
        esac
        [ -z "$text" ] ||
            printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":"%s"}]}}\n' "$call" "$text"
    done"#;

#[tokio::test]
async fn a_question_of_a_stateless_program_reaches_a_client_on_stdio_and_its_answer_the_program() {
    let mut client = Mcpwire::start(&["connect", "--", "sh", "-c", ASKS]);
    client.send_text(&stateless(1, "tools/call", json!({"name": "t", "arguments": {}}))).await;
    let question = client.message().await;
    assert_eq!((&question["id"], &question["method"]), (&json!(77), &json!("elicitation/create")), "{question}");
    client.send(json!({"jsonrpc": "2.0", "id": 77, "result": {"action": "decline"}})).await;
    let answer = client.message().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(1), &json!("answered")), "{answer}");
    client.finish().await;
}

#[tokio::test]
async fn a_question_of_a_stateless_program_is_refused_where_no_client_can_be_asked() {
    let mut old = Mcpwire::start(&["connect", "--", "sh", "-c", ASKS]);
    old.open_session().await;
    old.call(1, "t", json!({})).await;
    let answer = old.message().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(1), &json!("refused")), "{answer}");
    old.finish().await;

    let mut exposed = Mcpwire::start(&["expose", "--http", "127.0.0.1:0", "--print-url", "--", "sh", "-c", ASKS]);
    let url = exposed.line().await.expect("a URL");
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", V2026_07_28),
        ("mcp-method", "tools/call"),
        ("mcp-name", "t"),
    ];
    let body = stateless(1, "tools/call", json!({"name": "t", "arguments": {}}));
    let reply = ask(&address, "POST", "/mcp", &headers, &body).await;
    assert!(reply.status == 200 && reply.body.contains("refused"), "{} {}", reply.status, reply.body);
    exposed.signal("TERM");
    assert_eq!(exposed.wait().await.code(), Some(0));
}
