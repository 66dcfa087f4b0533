//! The process on its pipes: framing, order, log lines, ends.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{SAMPLE, library, write};
use crate::support::process::Mcpwire;
use crate::support::reach::MCPWIRE;
use crate::support::scratch::Scratch;

/// Writes all at once, closes stdin, and gives the lines of stdout and the exit code.
fn piped(folder: &str, input: &[u8]) -> (Vec<Value>, Option<i32>) {
    let mut child = Command::new(MCPWIRE)
        .args(["connect", folder])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")));
    (lines.collect(), output.status.code())
}

#[test]
fn lines_however_they_come_are_answered_in_order_before_the_end() {
    let input = concat!(
        "\n\r\n",
        r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2024-11-05"}}"#,
        "\r\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
        "this is no JSON\n[]\nnull\n",
        r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":6,"method":7}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":7}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"relevant-data.searchRecords","arguments":{"categoryId":"people"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
    );
    let (lines, code) = piped(SAMPLE, input.as_bytes());
    assert_eq!(code, Some(0));
    let ids: Vec<&Value> = lines.iter().filter(|line| line.get("result").is_some()).map(|line| &line["id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!(1), &json!(2), &json!(3)], "the last line had no end, and counts");
    let codes: Vec<&Value> = lines.iter().filter_map(|line| line.pointer("/error/code")).collect();
    assert_eq!(
        codes,
        [-32700, -32600, -32600, -32600, -32600, -32600].map(|code| json!(code)).iter().collect::<Vec<_>>()
    );
    let refused: Vec<&Value> =
        lines.iter().filter(|line| line.get("error").is_some()).map(|line| &line["id"]).collect();
    assert_eq!(refused, [&json!(null), &json!(null), &json!(null), &json!(5), &json!(6), &json!(7)]);
    assert_eq!(lines.len(), 10, "{lines:?}");
}

#[tokio::test]
async fn a_message_in_pieces_is_one_message_and_requests_before_initialize_are_served() {
    let folder = library();
    let mut client = Mcpwire::start(&["connect", &folder.file("")]);
    client.request(1, "resources/read", json!({"uri": "orchestr8://skills/beta"})).await;
    assert!(client.message().await["result"]["contents"][0]["text"].as_str().unwrap().ends_with("# Beta\n"));
    client.open_session().await;
    client.request("again", "initialize", json!({})).await;
    assert_eq!(client.message().await["result"]["serverInfo"], json!({"name": "orchestr8", "version": "1.0.0"}));
    client.finish().await;
}

#[tokio::test]
async fn log_lines_have_their_form_and_their_level() {
    let folder = library();
    super::write(&folder, &[("resources/agents/bad.md", "---\na: [\n---\n")]);
    let path = folder.file("");
    let mut client = Mcpwire::start_with(&["connect", &path], &[("LOG_LEVEL", "info")]);
    client.open_session().await;
    client.logged("Loaded 9 resources").await;
    client.logged("[WARN] [folder] skipped resources/agents/bad.md:").await;
    let log = client.finish().await;
    let line = log.lines().find(|line| line.contains("Loaded 2 prompts")).unwrap();
    assert!(line.starts_with("[20") && line.contains("Z] [INFO] [folder] "), "{line}");
    let mut client = Mcpwire::start_with(&["connect", &path], &[("LOG_LEVEL", "error")]);
    client.open_session().await;
    client.request(1, "resources/list", json!({})).await;
    client.message().await;
    assert_eq!(client.finish().await, "");
}

#[tokio::test]
async fn signals_end_it_with_code_0() {
    for signal in ["TERM", "INT"] {
        let mut client = Mcpwire::start(&["connect", SAMPLE]);
        client.open_session().await;
        client.signal(signal);
        assert_eq!(client.wait().await.code(), Some(0));
    }
}

#[test]
fn a_folder_that_cannot_be_served_is_told_in_one_line() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path().join("resources")).unwrap();
    for (folder, told) in [(scratch.file(""), "nothing to serve"), (scratch.file("none"), "no such folder")] {
        let output = Command::new(MCPWIRE).args(["connect", &folder]).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.lines().count() == 1 && said.contains(told), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test]
async fn places_can_be_given_by_the_environment() {
    let (folder, empty) = (library(), Scratch::new());
    let (prompts, resources) = (folder.file("prompts"), folder.file("resources"));
    let env = [("PROMPTS_PATH", prompts.as_str()), ("RESOURCES_PATH", resources.as_str()), ("CACHE_SIZE", "2")];
    let mut client = Mcpwire::start_with(&["connect", &empty.file("")], &env);
    client.open_session().await;
    client.request(1, "prompts/list", json!({})).await;
    assert_eq!(client.message().await["result"]["prompts"].as_array().unwrap().len(), 2);
    client.request(2, "resources/read", json!({"uri": "orchestr8://match?query=soup"})).await;
    assert!(client.message().await["result"]["contents"][0]["text"].as_str().unwrap().contains("skills/beta"));
    client.finish().await;
}

#[tokio::test]
async fn broken_category_files_are_reported_on_stderr() {
    let folder = Scratch::new();
    let files = [
        ("data/shops/records.json", "[{\"id\":\"a\"}]"),
        ("data/shops/category.json", "{"),
        ("data/shops/relationships.json", "{}"),
        ("data/shops/schemas/record.json", "[\n1,]"),
        ("data/goods/records.json", "[{\"id\":\"a\"},\n{]"),
        ("data/rows/records.csv", "id,name\n1,2,3\n"),
    ];
    write(&folder, &files);
    let expected = [
        "skipped data/shops/category.json:1: ",
        "skipped data/shops/relationships.json:1: ",
        "skipped data/shops/schemas/record.json:2: ",
        "skipped data/goods/records.json:2: ",
        "skipped data/rows/records.csv:2: ",
    ];
    let mut client = Mcpwire::start(&["connect", &folder.file("")]);
    client.open_session().await;
    let search = json!({"name": "relevant-data.searchRecords", "arguments": {"categoryId": "goods"}});
    client.request(1, "tools/call", search).await;
    assert!(client.message().await["error"]["message"].as_str().unwrap().contains("goods/records.json:2"));
    let stderr = client.finish().await;
    for expected in expected {
        assert_eq!(stderr.matches(expected).count(), 1, "{expected} in {stderr}");
    }
    let list = std::process::Command::new(crate::support::reach::MCPWIRE).args(["tools", &folder.file("")]).output();
    let stderr = String::from_utf8(list.unwrap().stderr).unwrap();
    for expected in expected {
        assert_eq!(stderr.matches(expected).count(), 1, "{expected} in {stderr}");
    }
    assert!(!stderr.contains("[INFO]"), "{stderr}");
}

#[tokio::test]
async fn clients_of_the_era_without_sessions_are_served_on_the_same_pipe() {
    let mut client = Mcpwire::start(&["connect", "sample:"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    client.request(1, "server/discover", json!({ "_meta": meta })).await;
    assert_eq!(client.message().await["result"]["supportedVersions"][0], "2026-07-28");
    client.request(2, "resources/read", json!({"_meta": meta, "uri": "orchestr8://match?query=rest+api"})).await;
    let result = client.message().await["result"].take();
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("private")));
    client.finish().await;
}
