//! `mcpwire request` against every kind of target, with a handshake and without.

use std::fs;

use serde_json::{Value, json};

use super::{BINARY, run, with_reference};
use crate::support::process::Mcpwire;
use crate::support::reach::quic_address;
use crate::support::scratch::Scratch;
use crate::support::script::Script;

/// With a handshake, and without one in the version that needs none.
const WAYS: [&[&str]; 3] =
    [&[], &["--no-handshake", "--protocol", "2026-07-28"], &["--direct", "--protocol", "2026-07-28"]];

/// Asks for the tools in every way, and checks that there are some.
async fn assert_asked(target: &[&str]) {
    for how in WAYS {
        let behind = target.first() == Some(&"--");
        let (before, after) = if behind { (&[][..], target) } else { (target, &[][..]) };
        let args = [&["request"], before, &["tools/list", "--json"], how, after].concat();
        let listed = run(&args).await.json();
        assert!(listed["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "{args:?}: {listed}");
    }
}

#[tokio::test]
async fn programs_folders_and_sockets_are_asked() {
    assert_asked(&["--", BINARY, "reference", "--stdio"]).await;
    assert_asked(&["sample:"]).await;
    // A folder opens no session, and a session-era server that insists on one says so.
    let listed = run(&["request", "sample:", "tools/list", "--direct", "--json"]).await.json();
    assert!(listed["tools"].is_array() && listed.get("resultType").is_none(), "{listed}");
    let refused = with_reference(&["request", "tools/list", "--direct"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("expected initialize first"), "{}", refused.stderr);
    let scratch = Scratch::new();
    let path = scratch.file("s");
    let mut server = Mcpwire::start(&["reference", "--unix", &path]);
    let url = server.line().await.expect("the address");
    assert_asked(&[&url]).await;
}

#[tokio::test]
async fn http_servers_are_asked() {
    let mut server = Mcpwire::start(&["reference", "--sse", "--era", "both"]);
    let url = server.line().await.expect("the address");
    let listed = run(&["request", &url, "tools/list", "--json"]).await.json();
    assert!(listed["tools"].is_array());
    let listed = run(&["request", &url, "tools/list", "--json", "--direct", "--protocol", "2026-07-28"]).await.json();
    assert_eq!(listed["resultType"], "complete");
    // The older transport has a stream for a session, and nothing without it.
    let older = url.replace("/mcp", "/sse");
    let listed = run(&["request", &older, "tools/list", "--json", "--transport", "sse"]).await.json();
    assert!(listed["tools"].is_array());
    let refused = run(&["request", &older, "tools/list", "--direct", "--transport", "sse"]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
}

#[tokio::test]
async fn quic_servers_of_either_protocol_are_asked() {
    let scratch = Scratch::new();
    let certs = scratch.file("certs");
    let args = ["expose", "--quic", "127.0.0.1:0", "--certs-dir", &certs, "--", BINARY, "reference", "--stdio"];
    let front = Mcpwire::start(&args);
    front.logged("listening on quic://").await;
    let at = quic_address(&front.stderr());
    assert_asked(&[&format!("quic://{at}"), "--certs-dir", &certs]).await;
    let orchestra = format!("quic://{at}");
    let listed = run(&["request", &orchestra, "tools/list", "--direct", "--json", "--certs-dir", &certs]).await.json();
    assert!(listed["tools"].is_array(), "{listed}");
    assert_asked(&[&format!("quic+mcp://{at}"), "--certs-dir", &certs]).await;
}

#[tokio::test]
async fn configured_servers_are_asked_within_their_policy() {
    let scratch = Scratch::new();
    let file = scratch.file("mcp.json");
    let entry = json!({"command": BINARY, "args": ["reference", "--stdio"], "include": ["echo"]});
    fs::write(&file, json!({"mcpServers": {"ref": entry}}).to_string()).unwrap();
    assert_asked(&["ref", "--config", &file]).await;
    for how in WAYS {
        let call = r#"{"name":"add","arguments":{"a":1,"b":2}}"#;
        let said = run(&[&["request", "ref", "tools/call", call, "--config", &file], how].concat()).await;
        assert_eq!(said.code, Some(1), "{}", said.stdout);
        assert!(said.stderr.contains("unknown tool: add"), "{}", said.stderr);
    }
}

#[tokio::test]
async fn results_are_printed_for_people_and_for_programs_and_exit_codes_tell() {
    let echo = r#"{"name":"echo","arguments":{"message":"hi"}}"#;
    for how in WAYS {
        let ask = async |args: &[&str]| with_reference(&[&["request"], args, how].concat()).await;
        let shown = ask(&["tools/call", echo]).await.ok();
        assert!(shown.starts_with("{\n  \"") && shown.contains("\"content\": [\n    {\n"), "{shown}");
        let value: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(value["content"][0]["text"], "hi");
        let raw = ask(&["tools/call", echo, "--json"]).await.ok();
        assert_eq!((raw.lines().count(), serde_json::from_str::<Value>(&raw).unwrap()), (1, value));
        let unknown = ask(&["no/such/method"]).await;
        assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""));
        assert!(unknown.stderr.contains("MCP error -32601"), "{}", unknown.stderr);
        let failed = ask(&["tools/call", r#"{"name":"test_error_handling"}"#]).await;
        assert_eq!(failed.code, Some(3), "{}", failed.stderr);
        for wrong in ["[1]", "nonsense"] {
            let said = ask(&["tools/list", wrong]).await;
            assert_eq!(said.code, Some(2), "{}", said.stderr);
        }
        let silent = run(&[&["request", "x", "--timeout", "100ms"], how, &["--", "sleep", "60"]].concat()).await;
        assert_eq!(silent.code, Some(1), "{}", silent.stderr);
        let nobody = run(&[&["request", "http://127.0.0.1:1/mcp", "x"], how].concat()).await;
        assert_eq!((nobody.code, nobody.stderr.lines().count()), (Some(1), 1), "{}", nobody.stderr);
    }
    assert_eq!(run(&["request", "sample:"]).await.code, Some(2));
    let help = run(&["request", "--help"]).await.ok();
    assert!(help.contains("METHOD [JSON]") && help.contains("--no-handshake"), "{help}");
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).await.ok();
        assert!(script.contains("no-handshake"), "{shell}");
    }
}

#[tokio::test]
async fn without_a_handshake_the_request_is_all_that_is_sent() {
    let mut server = Script::start().await;
    let url = server.url();
    let serve = async {
        let asked = server.expect("vendor/method").await;
        assert_eq!(asked.message()["params"], json!({"a": 1}));
        asked.result(json!({"b": 2})).await;
    };
    let args = ["request", &url, "vendor/method", r#"{"a":1}"#, "--no-handshake"];
    let (said, ()) = tokio::join!(run(&args), serve);
    assert_eq!(said.ok(), "{\n  \"b\": 2\n}\n");
    server.assert_idle();
}
