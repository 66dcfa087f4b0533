//! How the program is started, and what passes.

use serde_json::json;

use super::{MCPWIRE, child, connected, expect_echo, scripted, started};
use crate::support::process::Mcpwire;
use crate::support::scratch::Scratch;

#[tokio::test]
async fn lists_calls_and_progress_pass() {
    let mut client = connected(&[]).await;
    client.request(1, "tools/list", json!({})).await;
    assert!(client.message().await["result"]["tools"].as_array().unwrap().len() > 5);
    let params = json!({"name": "progress", "arguments": {"steps": 3}, "_meta": {"progressToken": "p"}});
    client.request(2, "tools/call", params).await;
    for step in 1..=3 {
        let told = client.message().await;
        assert_eq!((&told["params"]["progressToken"], &told["params"]["progress"]), (&json!("p"), &json!(step)));
    }
    assert_eq!(client.message().await["id"], 2);
    assert_eq!(started(&client).len(), 1);
    let log = client.finish().await;
    assert!(log.contains("it exited with code 0"), "{log}");
}

#[tokio::test]
async fn ten_megabytes_pass_each_way() {
    let mut client = connected(&[]).await;
    let text = "0123456789".repeat(1_000_000);
    client.call(1, "echo", json!({"message": text})).await;
    assert!(client.message().await["result"]["content"][0]["text"] == *text);
    client.finish().await;
}

#[tokio::test]
async fn two_hundred_calls_are_in_flight_at_once() {
    let mut client = connected(&[]).await;
    for id in 0..200 {
        client.call(id, "slow", json!({"ms": 100})).await;
    }
    let mut ids = Vec::new();
    for _ in 0..200 {
        ids.push(client.message().await["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..200));
    client.finish().await;
}

#[tokio::test]
async fn progress_keeps_a_call_alive_and_silence_does_not() {
    let mut client = connected(&["--timeout", "1s"]).await;
    let slow = |token: Option<&str>| json!({"name": "slow", "arguments": {"ms": 3000}, "_meta": token.map(|token| json!({"progressToken": token}))});
    client.request(1, "tools/call", slow(Some("p"))).await;
    client.request(2, "tools/call", slow(None)).await;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let message = client.message().await;
        if message.get("id").is_some() {
            answers.push((message["id"].clone(), message.get("result").is_some()));
        }
    }
    assert_eq!(answers, [(json!(2), false), (json!(1), true)]);
    client.finish().await;
}

#[tokio::test]
async fn nothing_is_started_before_the_first_message() {
    let client = Mcpwire::start(&["connect", "--", MCPWIRE, "reference", "--stdio"]);
    client.logged("connecting stdin and stdout to mcpwire").await;
    let log = client.finish().await;
    assert!(!log.contains("started as process"), "{log}");
}

#[tokio::test]
async fn environment_and_directory_are_set() {
    let scratch = Scratch::new();
    let cwd = scratch.file("");
    let args = ["--env", "PLAIN=a b", "--env", "EXPANDED=<${OURS}>", "--cwd", &cwd];
    let script = r#"echo "$PLAIN $EXPANDED $OURS $(pwd -P)" >&2; exec "$MCPWIRE" reference --stdio"#;
    let args = [&["connect"], &args[..], &["--", "sh", "-c", script]].concat();
    let mut client = Mcpwire::start_with(&args, &[("OURS", "ours"), ("MCPWIRE", MCPWIRE)]);
    client.open_session().await;
    let directory = scratch.path().canonicalize().unwrap();
    client.logged(&format!("[INFO] [child] sh: a b <ours> ours {}", directory.display())).await;
    client.finish().await;
}

#[tokio::test]
async fn a_program_in_the_working_directory_is_found() {
    let scratch = Scratch::new();
    std::os::unix::fs::symlink(MCPWIRE, scratch.path().join("server")).unwrap();
    let args = ["connect", "--cwd", &scratch.file(""), "--", "./server", "reference", "--stdio"];
    let mut client = Mcpwire::start(&args);
    client.open_session().await;
    expect_echo(&mut client, 1).await;
    client.finish().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_error_and_tried_again_when_asked() {
    let scratch = Scratch::new();
    let data = scratch.file("data");
    std::fs::write(&data, "no program").unwrap();
    let late = scratch.file("late");
    for (program, why) in [("no-such-program", "No such file"), (&data, "Permission denied"), (&late, "No such file")] {
        let mut client = Mcpwire::start(&["connect", "--", program, "reference", "--stdio"]);
        client.request(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
        let answer = client.message().await;
        let text = answer["error"]["message"].as_str().unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
        let name = program.rsplit('/').next().unwrap();
        assert!(text.starts_with(&format!("cannot start {name}: {why}")), "{text}");
        assert!(!text.contains('/'), "an error tells no paths: {text}");
        if program == late {
            std::os::unix::fs::symlink(MCPWIRE, program).unwrap();
            client.open_session().await;
            expect_echo(&mut client, 2).await;
        }
        client.finish().await;
    }
}

#[tokio::test]
async fn the_guard_adds_nothing_to_the_log_or_the_arguments() {
    let script = r#"echo "args: $# $1 $2" >&2; exec "$MCPWIRE" reference --stdio"#;
    let args = ["connect", "--", "sh", "-c", script, "name", "--flag", "--"];
    let mut client = Mcpwire::start_with(&args, &[("MCPWIRE", MCPWIRE)]);
    client.open_session().await;
    client.logged("sh: args: 2 --flag --").await;
    let log = client.finish().await;
    assert!(!log.contains("guard"), "{log}");
}

#[tokio::test]
async fn a_bad_command_line_says_what_is_wrong() {
    for (args, says) in [
        (&["tools", "http://localhost:1/", "--", "true"][..], "cannot be used with"),
        (&["connect", "http://localhost:1/", "--cwd", "/"], "COMMAND"),
        (&["connect", "unix:x", "--env", "A=B"], "COMMAND"),
        (&["connect", "--env", "NOVALUE", "--", "true"], "NAME=VALUE"),
        (&["connect", "unix:"], "unix:PATH"),
        (&["connect", "--"], "TARGET"),
    ] {
        let mut client = Mcpwire::start(args);
        assert_eq!(client.wait().await.code(), Some(2), "{args:?}");
        client.logged(says).await;
    }
    for (args, says) in [
        (["connect", "--env", "A=${NO_SUCH_VARIABLE}", "--", "true"], "NO_SUCH_VARIABLE is not set"),
        (["connect", "--cwd", "/no/such/directory", "--", "true"], "is no directory"),
    ] {
        let mut client = Mcpwire::start(&args);
        assert_eq!(client.wait().await.code(), Some(1), "{args:?}");
        client.logged(says).await;
    }
}

#[tokio::test]
async fn a_child_leads_a_group_of_its_own() {
    let mut client = scripted(&[], r#"exec "$MCPWIRE" reference --stdio"#);
    client.open_session().await;
    let pid = child(&client, 0).await;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let group = stat.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap();
    assert_eq!(group, pid.to_string());
    client.finish().await;
}
