//! The commands for a person at a shell, against real servers.

mod request;
mod terminal;

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::process::Mcpwire;
use crate::support::script::Script;
use crate::support::{proc, runs, until, within};

pub const BINARY: &str = env!("CARGO_BIN_EXE_mcpwire");

/// How a command ended, and what it said.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    #[track_caller]
    pub fn json(self) -> Value {
        let text = self.ok();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("not JSON: {e}: {text}"))
    }
}

/// Runs mcpwire, without a terminal.
pub async fn run(args: &[&str]) -> Said {
    let mut command = Command::new(BINARY);
    command.args(args).stdin(Stdio::null()).env_remove("LOG_LEVEL").env_remove("DEBUG").kill_on_drop(true);
    let output = within("the command to end", command.output()).await.expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
    Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs mcpwire with the reference server as the program behind `--`.
pub async fn with_reference(args: &[&str]) -> Said {
    run(&[args, &["--", BINARY, "reference", "--stdio"]].concat()).await
}

#[tokio::test]
async fn lists_are_tables_for_people_and_json_for_programs() {
    let tools = with_reference(&["tools"]).await.ok();
    let add = tools.lines().find(|line| line.starts_with("add ")).expect("there is add");
    assert!(add.contains("a:number b:number"), "{add}");
    assert!(!tools.contains('\x1b'), "no colours without a terminal");
    let tools = with_reference(&["tools", "--json"]).await.json();
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "add"), "{tools}");
    let resources = with_reference(&["resources"]).await.ok();
    assert!(resources.contains("test://static-text") && resources.contains("TEMPLATE"), "{resources}");
    let resources = with_reference(&["resources", "--json"]).await.json();
    assert!(resources["resourceTemplates"].as_array().is_some_and(|templates| !templates.is_empty()));
    let prompts = with_reference(&["prompts"]).await.ok();
    assert!(prompts.lines().any(|line| line.starts_with("test_prompt_with_arguments") && line.contains("arg1 arg2")));
    let prompts = run(&["prompts", "sample:", "--json"]).await.json();
    assert!(prompts["prompts"].as_array().is_some_and(|prompts| !prompts.is_empty()));
}

#[tokio::test]
async fn a_tool_is_called_with_values_of_its_types() {
    assert_eq!(with_reference(&["call", "add", "a=1", "b=2.5"]).await.ok(), "{\"sum\":3.5}\n");
    assert_eq!(with_reference(&["call", "add", "--json", r#"{"a":1,"b":4}"#]).await.ok(), "{\"sum\":5}\n");
    assert_eq!(with_reference(&["call", "add", "--args", r#"{"a":1}"#, "b:=2"]).await.ok(), "{\"sum\":3}\n");
    let whole = with_reference(&["call", "add", "a=1", "--json", "b=1"]).await.json();
    assert_eq!(whole["structuredContent"], json!({"sum": 2}));
    assert_eq!(with_reference(&["call", "echo", "message=5"]).await.ok(), "5\n");
}

#[tokio::test]
async fn exit_codes_tell_what_happened() {
    let failed = with_reference(&["call", "test_error_handling"]).await;
    assert_eq!(failed.code, Some(3), "{}", failed.stderr);
    assert!(failed.stdout.is_empty() && failed.stderr.contains("the tool failed:"), "{}", failed.stderr);
    let failed = with_reference(&["call", "test_error_handling", "--json"]).await;
    assert_eq!(failed.code, Some(3));
    assert!(failed.stdout.contains("\"isError\":true"), "{}", failed.stdout);
    let wrong = with_reference(&["call", "add", "a=x", "b=1"]).await;
    assert_eq!((wrong.code, wrong.stderr.contains("a: expected a number")), (Some(2), true), "{}", wrong.stderr);
    let wrong = with_reference(&["call", "add", "nonsense"]).await;
    assert_eq!((wrong.code, wrong.stderr.contains("NAME=VALUE")), (Some(2), true), "{}", wrong.stderr);
    let none = with_reference(&["call", "nothing", "a=1"]).await;
    assert_eq!((none.code, none.stderr.contains("there is no tool \"nothing\"")), (Some(1), true), "{}", none.stderr);
    let none = with_reference(&["read", "test://nothing"]).await;
    assert_eq!(none.code, Some(1), "{}", none.stderr);
    for (args, said) in [
        (&["tools", "http://127.0.0.1:1/mcp"][..], "refused"),
        (&["tools", "--", "no-such-program"], "cannot start"),
        (&["tools", "--", "false"], "exited with code 1"),
    ] {
        let failed = run(args).await;
        assert_eq!(failed.code, Some(1), "{args:?}");
        assert!(failed.stderr.contains(said), "{}", failed.stderr);
        assert_eq!(failed.stderr.lines().count(), 1, "told once: {}", failed.stderr);
    }
    assert_eq!(run(&["call", "sample:"]).await.code, Some(2));
}

#[tokio::test]
async fn resources_and_prompts_are_printed() {
    let text = with_reference(&["read", "test://static-text"]).await.ok();
    assert_eq!(text, "This is the content of the static text resource.");
    let output =
        Command::new(BINARY).args(["read", "test://static-binary", "--", BINARY, "reference", "--stdio"]).output();
    let output = within("the resource", output).await.unwrap();
    assert!(output.stdout.starts_with(b"\x89PNG"), "bytes as they are");
    let prompt = with_reference(&["prompt", "test_prompt_with_arguments", "arg1=one", "arg2=two"]).await.ok();
    assert!(prompt.starts_with("user:\n") && prompt.contains("one") && prompt.contains("two"), "{prompt}");
    let prompt = with_reference(&["prompt", "test_simple_prompt", "--json"]).await.json();
    assert_eq!(prompt["messages"][0]["role"], "user");
}

#[tokio::test]
async fn pings_are_timed() {
    let told = with_reference(&["ping", "-n", "3", "--interval", "1ms"]).await.ok();
    assert_eq!(told.lines().count(), 5, "{told}");
    let told = with_reference(&["ping", "-n", "3", "--interval", "1ms", "--json"]).await.json();
    assert_eq!(told["pings"].as_array().unwrap().len(), 3);
    assert!(told["p50"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn without_a_terminal_progress_is_lines_and_questions_are_declined() {
    let said = with_reference(&["call", "progress", "steps=2"]).await;
    assert!(said.stderr.contains("progress: 1/2 step 1 of 2\nprogress: 2/2 step 2 of 2\n"), "{}", said.stderr);
    let said = with_reference(&["call", "test_elicitation", "message=who"]).await;
    assert!(said.stderr.contains("declined"), "{}", said.stderr);
    assert!(said.ok().contains("action: decline"));
    let said = with_reference(&["call", "test_sampling", "prompt=x"]).await;
    assert_eq!(said.code, Some(3), "{}", said.stderr);
}

#[tokio::test]
async fn servers_of_the_stateless_era_and_of_http_are_asked_alike() {
    let stateless = ["--", BINARY, "reference", "--stdio", "--era", "stateless"];
    let sum = run(&[&["call", "add", "a=1", "b=2"][..], &stateless[..]].concat()).await.ok();
    assert_eq!(sum, "{\"sum\":3}\n");
    let said = run(&[&["call", "test_elicitation", "message=who"][..], &stateless[..]].concat()).await.ok();
    assert!(said.contains("action: decline"), "{said}");
    let mut server = Mcpwire::start(&["reference", "--sse"]);
    let url = server.line().await.expect("the address");
    assert_eq!(run(&["call", &url, "add", "a=1", "b=2"]).await.ok(), "{\"sum\":3}\n");
    let older = url.replace("/mcp", "/sse");
    assert_eq!(run(&["call", &older, "add", "a=1", "b=2", "--transport", "sse"]).await.ok(), "{\"sum\":3}\n");
}

#[tokio::test]
async fn ctrl_c_cancels_the_call_and_leaves_nothing_behind() {
    let mut server = Script::start().await;
    let url = server.url();
    let mut child = Command::new(BINARY).args(["call", &url, "slow"]).kill_on_drop(true).spawn().unwrap();
    server.expect("initialize").await.initialized("s").await;
    server.expect("notifications/initialized").await.accept().await;
    // The call does not wait for the stream.
    let call = loop {
        let exchange = server.next().await;
        match exchange.rpc_method().as_str() {
            "tools/call" => break exchange,
            _ => exchange.refuse(405, "").await,
        }
    };
    interrupt(child.id().unwrap());
    let cancelled = loop {
        let exchange = server.next().await;
        if exchange.rpc_method() == "notifications/cancelled" {
            break exchange;
        }
        exchange.accept().await;
    };
    assert_eq!(cancelled.message()["params"]["requestId"], call.id());
    cancelled.accept().await;
    let deleted = server.next().await;
    assert_eq!(deleted.method, "DELETE");
    deleted.accept().await;
    let status = within("the command to end", child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(130));

    let args = ["call", "slow", "ms=60000", "--", BINARY, "reference", "--stdio"];
    let mut child = Command::new(BINARY).args(args).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let id = child.id().unwrap();
    let mut below = Vec::new();
    until("the server to run", || {
        below = proc::children(id);
        !below.is_empty()
    })
    .await;
    interrupt(id);
    let status = within("the command to end", child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(130));
    until("the server to be gone", || below.iter().all(|id| !runs(*id))).await;
}

fn interrupt(process: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[tokio::test]
async fn shells_and_man_get_what_they_want() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).await.ok();
        for word in ["doctor", "uninstall", "header"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let page = run(&["man"]).await.ok();
    assert!(page.starts_with(".ie") || page.contains(".TH mcpwire 1"), "{page}");
    let folder = crate::support::scratch::Scratch::new();
    run(&["man", &folder.file("man")]).await.ok();
    for name in ["mcpwire.1", "mcpwire-call.1", "mcpwire-doctor.1"] {
        let page = std::fs::read_to_string(folder.path().join("man").join(name)).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    assert!(!folder.path().join("man/mcpwire-reference.1").exists(), "what is hidden has no page");
}
