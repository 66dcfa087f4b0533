//! `include` and `exclude` of a configured server hold on every way to it: fronts, commands and the library's client.

use std::fs;

use mcpwire::client::{self, RequestOptions};
use mcpwire::config::{self, Environment, Resolver};
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::process::Mcpwire;
use crate::support::reach::{self, MCPWIRE};
use crate::support::scratch::Scratch;

/// A configuration of the reference server, which offers some of its tools only.
fn configured(scratch: &Scratch, server: Value) -> String {
    let path = scratch.file("mcp.json");
    let mut entry = json!({"include": ["echo", "info", "s*"], "exclude": ["slow*"]});
    for (key, value) in server.as_object().unwrap() {
        entry[key] = value.clone();
    }
    fs::write(&path, json!({"mcpServers": {"ref": entry}}).to_string()).unwrap();
    path
}

fn reference(era: &str) -> Value {
    json!({"command": MCPWIRE, "args": ["reference", "--stdio", "--era", era]})
}

/// Lists and calls, in whichever era the client is of. `prefix` is what the hub adds to names.
async fn assert_limited(mut client: Client, prefix: &str) {
    let id = client.request("tools/list", json!({})).await;
    let listed = client.result(id).await;
    let names: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(names.contains(&&*format!("{prefix}echo")), "{names:?}");
    let allowed = |name: &&str| {
        let name = name.strip_prefix(prefix).unwrap();
        (name == "echo" || name == "info" || name.starts_with('s')) && !name.starts_with("slow")
    };
    assert!(names.iter().all(allowed), "{names:?}");
    assert_eq!(client.call(&format!("{prefix}echo"), json!({"message": "hi"})).await, "hi");
    for tool in ["slow", "count", "no-such-tool"] {
        let id = client.start(&format!("{prefix}{tool}"), json!({})).await;
        let refusal = client.refusal(id).await;
        assert_eq!(refusal["code"], -32602, "{refusal}");
        assert!(refusal["message"].as_str().unwrap().contains(&format!("unknown tool: {prefix}{tool}")), "{refusal}");
    }
    client.close().await;
}

async fn assert_limited_in_both_eras(connect: impl Fn() -> (mcpwire::link::Link, tokio::task::JoinHandle<()>)) {
    assert_limited(Client::open(connect(), "2025-11-25").await, "").await;
    assert_limited(Client::stateless(connect()), "").await;
}

#[tokio::test]
async fn connect_to_an_excluding_entry_by_name() {
    for era in ["both", "session", "stateless"] {
        let scratch = Scratch::new();
        let file = configured(&scratch, reference(era));
        let args = ["connect", "--config", &file, "ref"].map(str::to_owned);
        assert_limited_in_both_eras(|| reach::stdio(&args)).await;
    }
}

#[tokio::test]
async fn expose_of_an_excluding_entry_by_name() {
    for (era, share) in [("both", false), ("session", true), ("stateless", false), ("both", true)] {
        let scratch = Scratch::new();
        let (file, socket) = (configured(&scratch, reference(era)), scratch.file("socket"));
        let mut args = vec!["expose", "--config", &file, "ref", "--http", "127.0.0.1:0", "--print-url"];
        args.extend(["--unix", &socket]);
        args.extend(share.then_some("--share"));
        let mut front = Mcpwire::start(&args);
        let url = front.line().await.expect("the URL");
        front.logged("listening on unix:").await;
        assert_limited_in_both_eras(|| reach::http(&url)).await;
        assert_limited_in_both_eras(|| reach::unix(&socket)).await;
        let sse = reach::sse(&url.replace("/mcp", "/sse"));
        assert_limited(Client::open(sse, "2025-11-25").await, "").await;
        front.signal("TERM");
        assert_eq!(front.wait().await.code(), Some(0));
    }
}

#[tokio::test]
async fn quic_fronts_of_an_excluding_entry() {
    let scratch = Scratch::new();
    let (file, certs) = (configured(&scratch, reference("both")), scratch.file("certs"));
    let front = Mcpwire::start(&["expose", "--config", &file, "ref", "--quic", "127.0.0.1:0", "--certs-dir", &certs]);
    front.logged("listening on quic://").await;
    let at = reach::quic_address(&front.stderr());
    assert_limited_in_both_eras(|| reach::quic_mcp(at, &certs)).await;
    let mut tools = Mcpwire::start(&["tools", &format!("quic://{at}"), "--certs-dir", &certs, "--json"]);
    let listed = tools.line().await.unwrap();
    assert!(listed.contains(r#""echo""#) && !listed.contains(r#""slow""#), "{listed}");
    let at = format!("quic://{at}");
    for (tool, code) in [("echo", 0), ("slow", 3)] {
        let arguments = r#"{"message":"hi","ms":1}"#;
        let mut call = Mcpwire::start(&["call", &at, tool, "--args", arguments, "--certs-dir", &certs]);
        assert_eq!(call.wait().await.code(), Some(code), "{tool}: {}", call.stderr());
    }
}

#[tokio::test]
async fn a_hub_with_an_excluding_entry() {
    let scratch = Scratch::new();
    let file = configured(&scratch, reference("both"));
    for (args, prefix) in [
        (&["connect", "--no-cache", "--config", &file][..], "ref__"),
        (&["connect", "--no-cache", "--config", &file, "x=ref"], "x__"),
        (&["connect", "--no-cache", "--prefix", "never", "--config", &file, "ref"], ""),
    ] {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        assert_limited(Client::open(reach::stdio(&args), "2025-11-25").await, prefix).await;
        assert_limited(Client::stateless(reach::stdio(&args)), prefix).await;
    }
}

#[tokio::test]
async fn an_excluding_entry_behind_a_url_and_one_with_a_command_for_a_value() {
    let mut server = Mcpwire::start(&["reference", "--http", "127.0.0.1:0"]);
    let url = server.line().await.expect("the URL");
    for entry in [
        json!({"url": url}),
        json!({"url": url, "headers": {"X-Token": "!echo t0p"}}),
        json!({"command": MCPWIRE, "args": ["reference", "--stdio"], "env": {"TOKEN": "!echo t0p"}}),
    ] {
        let scratch = Scratch::new();
        let file = configured(&scratch, entry);
        let args = ["connect", "--config", &file, "ref"].map(str::to_owned);
        assert_limited_in_both_eras(|| reach::stdio(&args)).await;
    }
}

#[tokio::test]
async fn commands_on_an_excluding_entry() {
    let scratch = Scratch::new();
    let file = configured(&scratch, reference("both"));
    let mut tools = Mcpwire::start(&["tools", "--config", &file, "ref", "--json"]);
    let listed: Value = serde_json::from_str(&tools.line().await.unwrap()).unwrap();
    let names: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"echo") && !names.contains(&"slow") && !names.contains(&"count"), "{names:?}");

    let mut call = Mcpwire::start(&["call", "--config", &file, "ref", "echo", "message=hi"]);
    assert_eq!(call.line().await.as_deref(), Some("hi"));
    // With a schema and without one.
    for (argument, says) in [("ms=1", "there is no tool \"slow\""), (r#"--args={"ms":1}"#, "unknown tool: slow")] {
        let mut call = Mcpwire::start(&["call", "--config", &file, "ref", "slow", argument]);
        assert_eq!(call.wait().await.code(), Some(1));
        call.logged(says).await;
    }

    let mut doctor = Mcpwire::start(&["doctor", "--config", &file, "ref", "--json"]);
    let mut report = String::new();
    while let Some(line) = doctor.line().await {
        report.push_str(&line);
    }
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["counts"]["tools"], names.len(), "{report}");
}

#[tokio::test]
async fn the_librarys_client_on_an_excluding_entry() {
    let scratch = Scratch::new();
    let file = configured(&scratch, reference("both"));
    let environment = Environment::new(None, scratch.path().to_owned(), |_| None);
    let found = config::load(&environment, &config::Options { files: vec![file.into()], project: false });
    let target = found.servers[0].target(&Resolver::new(environment)).await.unwrap();
    let client = client::Client::connect(target, client::Options::default()).await.unwrap();
    let tools = client.list_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "echo") && tools.iter().all(|tool| tool.name != "slow"));
    let error = client.call_tool("slow", json!({"ms": 1}), RequestOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("unknown tool: slow"), "{error}");
    client.close().await;
}
