//! What the program writes on its stdout and stderr.

use serde_json::json;

use super::{MCPWIRE, connected, expect_echo, scripted};
use crate::support::process::Mcpwire;

#[tokio::test]
async fn junk_on_stdout_is_skipped_and_told_a_few_times() {
    let script = r#"seq -f 'junk %g' 500; printf '\033[2Jred\n{"half": \n'; exec "$MCPWIRE" reference --stdio"#;
    let mut client = scripted(&[], script);
    client.open_session().await;
    expect_echo(&mut client, 1).await;
    let log = client.finish().await;
    assert_eq!(log.matches("skipped a line that is no message").count(), 10, "{log}");
    assert!(log.contains("): junk 1\n") && log.contains("skipped without a word"), "{log}");
}

#[tokio::test]
async fn peers_cannot_forge_log_lines_or_steer_the_terminal() {
    let script = r#"printf 'a\r[INFO] forged\033[2J\033]0;title\007\302\233\n' >&2
        printf 'junk\033[2J\r[INFO] forged\n'; exec "$MCPWIRE" reference --stdio"#;
    let mut client = scripted(&["-v"], script);
    client.open_session().await;
    let method = "x/\r\n[2026-01-01T00:00:00.000Z] [INFO] [bridge] forged\u{1b}[2J\u{202e}";
    client.request(1, method, json!({})).await;
    assert_eq!(client.message().await["error"]["code"], -32601);
    client.send_text("no message \u{1b}[2J\r[INFO] forged").await;
    assert_eq!(client.message().await["error"]["code"], -32700);
    let log = client.finish().await;
    let unprintable = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!log.contains(unprintable), "{log:?}");
    assert!(log.lines().all(|line| line.starts_with("[20") && !line.starts_with("[2026-01-01")), "{log}");
    assert!(log.contains(r"sh: a\r[INFO] forged\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}"), "{log}");
    assert!(log.contains(r"request x/\r\n[2026-01-01"), "{log}");
}

#[tokio::test]
async fn a_flood_on_stderr_does_not_hold_up_the_rest() {
    let script = r#"head -c 1000000 /dev/zero | tr '\0' x >&2; echo >&2
        yes 'a line of the flood' | head -n 50000 >&2; exec "$MCPWIRE" reference --stdio"#;
    let mut client = scripted(&[], script);
    client.open_session().await;
    expect_echo(&mut client, 1).await;
    let log = client.finish().await;
    assert!(log.matches("[child] sh: a line of the flood").count() > 1000, "the log has its share");
    assert!(log.lines().all(|line| line.len() < 5000), "long lines are cut");
}

#[tokio::test]
async fn a_flood_on_stderr_that_nobody_reads_does_not_hold_up_the_rest() {
    let script = format!("yes 'a line of the flood' | head -n 100000 >&2; exec {MCPWIRE} reference --stdio");
    let mut client = Mcpwire::start_deaf(&["connect", "--", "sh", "-c", &script]);
    client.open_session().await;
    expect_echo(&mut client, 1).await;
    client.close_stdin();
    assert_eq!(client.wait().await.code(), Some(0));
}

#[tokio::test]
async fn several_messages_in_one_array_are_taken_apart() {
    let script = r#"
        read -r line
        echo '[{"jsonrpc":"2.0","method":"notifications/a"}, 17, {"jsonrpc":"2.0","id":1,"result":{"ok":true}}]'
        read -r line"#;
    let mut client = scripted(&[], script);
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.message().await["method"], "notifications/a");
    assert_eq!(client.message().await["result"]["ok"], true);
    client.finish().await;
}

#[tokio::test]
async fn an_answer_over_the_limit_is_an_error_and_the_next_one_passes() {
    let mut client = connected(&["--max-message", "100kB"]).await;
    client.call(1, "big", json!({"bytes": 200_000})).await;
    let answer = client.message().await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(answer["id"] == 1 && text.contains("100000 bytes") && text.contains("--max-message"), "{answer}");
    expect_echo(&mut client, 2).await;
    client.finish().await;
}

#[tokio::test]
async fn messages_are_logged_when_asked_for() {
    let mut client = connected(&["-v"]).await;
    expect_echo(&mut client, 1).await;
    let log = client.finish().await;
    assert!(log.contains("[DEBUG] [wire] client -> server request tools/call id=1"), "{log}");
    assert!(log.contains("[DEBUG] [wire] server -> client result id=1"), "{log}");
    assert!(!log.contains("hello"), "payloads are not logged:\n{log}");
}

#[tokio::test]
async fn a_program_that_reports_progress_is_not_timed_out() {
    let mut client = connected(&["--timeout", "1s"]).await;
    let params = json!({"name": "progress", "arguments": {"steps": 15, "ms": 100}, "_meta": {"progressToken": "t"}});
    client.request(1, "tools/call", params).await;
    for step in 1..=15 {
        assert_eq!(client.message().await["params"]["progress"], step);
    }
    assert_eq!(client.message().await["result"]["content"][0]["text"], "Took 15 steps.");
    client.finish().await;
}
