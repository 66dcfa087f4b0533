//! `mcpwire doctor` against servers with every fault it knows.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::ask::{BINARY, Said, run};
use crate::connect::network::Authority;
use crate::support::process::Mcpwire;
use crate::support::scratch::Scratch;
use crate::support::script::Script;

/// What the doctor says of a target, with its exit code checked.
async fn examined(args: &[&str]) -> Value {
    let Said { code, stdout, stderr } = run(&[&["doctor", "--json", "--patience", "3s"], args].concat()).await;
    let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}{stderr}"));
    assert_eq!(code, Some(if report["status"] == "pass" { 0 } else { 1 }), "{report}");
    report
}

fn finding<'a>(report: &'a Value, code: &str) -> Option<&'a Value> {
    report["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code)
}

/// There is this problem, told with what to do about it.
#[track_caller]
fn assert_problem(report: &Value, code: &str, text: &str) {
    let found = finding(report, code).unwrap_or_else(|| panic!("no {code}: {report:#}"));
    assert_eq!(found["level"], "problem", "{found}");
    let said = format!("{} {}", found["text"], found["advice"]);
    assert!(said.contains(text), "{said}");
    assert!(found["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{found}");
    assert_eq!(report["status"], "fail");
}

async fn shell(script: &str) -> Value {
    examined(&["--", "sh", "-c", script]).await
}

#[tokio::test]
async fn a_server_that_works_is_described() {
    let report = examined(&["--", BINARY, "reference", "--stdio"]).await;
    assert_eq!(report["status"], "pass", "{report:#}");
    assert_eq!((&report["era"], &report["transport"]), (&json!("both"), &json!("stdio")));
    assert_eq!(report["server"]["name"], "mcpwire-reference");
    assert!(report["capabilities"]["tools"].is_object() && report["counts"]["tools"].as_u64() > Some(10));
    for time in ["start", "initialize", "list", "pingP50"] {
        assert!(report["latencies"][time].as_f64().is_some_and(|time| time > 0.0), "{time}: {report:#}");
    }
    let said = run(&["doctor", "sample:"]).await.ok();
    assert!(said.contains("mcpwire-sample") && said.ends_with("it works\n"), "{said}");
}

#[tokio::test]
async fn eras_and_transports_are_told_apart() {
    for (era, flags) in [("session", ["--era", "session"]), ("stateless", ["--era", "stateless"])] {
        let report = examined(&["--", BINARY, "reference", "--stdio", flags[0], flags[1]]).await;
        assert_eq!((&report["status"], &report["era"]), (&json!("pass"), &json!(era)), "{report:#}");
        let mut server = Mcpwire::start(&["reference", flags[0], flags[1]]);
        let report = examined(&[&server.line().await.unwrap()]).await;
        assert_eq!((&report["status"], &report["era"]), (&json!("pass"), &json!(era)), "{report:#}");
        assert_eq!(report["transport"], "streamable http");
    }
    let mut server = Mcpwire::start(&["reference", "--sse"]);
    let url = server.line().await.unwrap();
    let report = examined(&[&url]).await;
    assert_eq!(report["session"], json!({"id": true, "stream": true, "delete": true}), "{report:#}");
    assert!(report["latencies"]["connect"].is_f64() && report["latencies"]["dns"].is_f64());
    let report = examined(&[&url.replace("/mcp", "/sse")]).await;
    assert_eq!((&report["status"], &report["transport"]), (&json!("pass"), &json!("http+sse")), "{report:#}");
    let report = examined(&[&url.replace("/mcp", "/elsewhere")]).await;
    assert_problem(&report, "not-found", "/mcp");
}

#[tokio::test]
async fn programs_that_fail_are_understood() {
    assert_problem(&examined(&["--", "no-such-program"]).await, "cannot-start", "PATH");
    let folder = Scratch::new();
    std::fs::write(folder.path().join("text"), "just a text").unwrap();
    assert_problem(&examined(&["--", &folder.file("text")]).await, "cannot-start", "chmod");
    let (gone, done, killed, silent, http, mute) = tokio::join!(
        shell("echo the database is gone >&2; exit 7"),
        shell("read line; exit 0"),
        shell("kill -9 $$"),
        shell("while read line; do :; done"),
        shell("echo Listening on http://127.0.0.1:3000; while read line; do :; done"),
        shell("exec >&-; sleep 100"),
    );
    assert_problem(&gone, "exited", "code 7");
    assert_problem(&gone, "exited", "the database is gone");
    assert_eq!(gone["exitCode"], 7);
    assert_problem(&done, "exited", "stdin is closed");
    assert_problem(&killed, "exited", "signal 9");
    assert_problem(&silent, "silent", "--patience");
    assert_problem(&http, "silent", "serve HTTP");
    assert_eq!(finding(&http, "junk-on-stdout").unwrap()["level"], "warning");
    assert_problem(&mute, "closed-stdout", "stdout open");
}

#[tokio::test]
async fn junk_on_stdout_and_a_slow_end_are_warnings() {
    let serve = format!("echo starting up; echo 'ready!'; exec {BINARY} reference --stdio");
    let lsp = r#"printf 'Content-Length: 2\r\n\r\n{}'; sleep 100"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2099-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}"#;
    let answer = format!("read line; echo '{answer}'; sleep 100");
    let (served, framed, report) = tokio::join!(shell(&serve), shell(lsp), shell(&answer));
    assert_eq!(served["status"], "pass", "{served:#}");
    assert!(finding(&served, "junk-on-stdout").unwrap()["text"].as_str().unwrap().contains("2 lines"));
    assert!(finding(&framed, "junk-on-stdout").unwrap()["advice"].as_str().unwrap().contains("language servers"));
    for warning in ["does-not-end", "unknown-version"] {
        assert!(finding(&report, warning).is_some_and(|found| found["level"] == "warning"), "{warning}: {report:#}");
    }
}

#[tokio::test]
async fn ports_where_nobody_is_are_told() {
    assert_problem(&examined(&["http://127.0.0.1:1/mcp"]).await, "refused", "start the server");
    assert_problem(&examined(&["http://no-such-host.invalid/mcp"]).await, "dns", "no-such-host.invalid");
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", deaf.local_addr().unwrap());
    assert_problem(&examined(&[&url]).await, "silent", "3s");
    let rude = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", rude.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = rude.accept().await {
            let _ = stream.write_all(b"220 mail.example ESMTP\r\n").await;
        }
    });
    assert_problem(&examined(&[&url]).await, "no-http", "no HTTP");
    let tls = url.replace("http://", "https://");
    assert_problem(&examined(&[&tls]).await, "tls", "http://");
    serving.abort();
}

/// Answers every request alike while the doctor looks.
async fn answering(status: u16, headers: &'static [(&'static str, &'static str)], body: &'static str) -> Value {
    let mut server = Script::start().await;
    let url = server.url();
    let serving = tokio::spawn(async move {
        loop {
            server.next().await.answer(status, headers, body).await;
        }
    });
    let report = examined(&[&url]).await;
    serving.abort();
    report
}

#[tokio::test]
async fn web_servers_that_are_no_mcp_servers_are_told() {
    let page = answering(200, &[("content-type", "text/html")], "<!doctype html><title>Hi</title>").await;
    assert_problem(&page, "not-mcp", "an HTML page");
    assert_problem(&answering(200, &[("content-type", "application/json")], "{\"ok\":true}").await, "not-mcp", "/mcp");
    assert_problem(&answering(404, &[], "no such page").await, "not-found", "no such page");
    assert_problem(&answering(405, &[], "").await, "not-mcp", "POST");
    assert_problem(&answering(403, &[], "bad host").await, "forbidden", "Host");
    assert_problem(&answering(502, &[], "").await, "server-error", "502");
    assert_problem(&answering(302, &[("location", "https://a.example/login")], "").await, "redirect", "a.example");
}

#[tokio::test]
async fn credentials_that_are_missing_are_told_with_all_hints() {
    let mut server = Script::start().await;
    let url = server.url();
    let asking = tokio::spawn(async move {
        let args = ["-H", "Authorization: Bearer s3cret", &url];
        (examined(&args).await, url)
    });
    let challenge = r#"Bearer resource_metadata="/meta""#;
    server.expect("initialize").await.answer(401, &[("www-authenticate", challenge)], "").await;
    let fetched = server.next().await;
    assert_eq!((fetched.method.as_str(), fetched.target.as_str()), ("GET", "/meta"));
    assert_eq!(fetched.header("authorization"), None, "metadata are public");
    fetched
        .json(r#"{"resource":"x","authorization_servers":["https://id.example"],"scopes_supported":["read"]}"#)
        .await;
    let (report, _) = asking.await.unwrap();
    assert_problem(&report, "unauthorized", "expired");
    assert!(finding(&report, "metadata").unwrap()["text"].as_str().unwrap().contains("https://id.example"));
    assert_eq!(report["auth"]["metadata"]["scopes_supported"], json!(["read"]));
    assert!(!report.to_string().contains("s3cret"));

    let report = answering(401, &[], "").await;
    assert_problem(&report, "unauthorized", "--header");
    assert!(finding(&report, "no-challenge").is_some() && finding(&report, "no-metadata").is_some());
}

#[tokio::test]
async fn metadata_on_another_host_are_not_fetched() {
    let (mut server, mut elsewhere) = (Script::start().await, Script::start().await);
    let url = server.url();
    let challenge = format!(r#"Bearer resource_metadata="{}?key=s3cret""#, elsewhere.url());
    let serving = tokio::spawn(async move {
        loop {
            server.next().await.answer(401, &[("www-authenticate", &challenge)], "").await;
        }
    });
    let report = examined(&[&url]).await;
    serving.abort();
    let note = finding(&report, "metadata-elsewhere").expect("a note")["text"].as_str().unwrap();
    assert!(note.contains(&elsewhere.address().to_string()), "{note}");
    elsewhere.assert_idle();
}

#[tokio::test]
async fn certificates_that_are_not_trusted_are_told() {
    let authority = Authority::new("doctor");
    let server = Script::start_tls(authority.acceptor("localhost", false)).await;
    let url = format!("https://localhost:{}/mcp", server.address().port());
    assert_problem(&examined(&[&url]).await, "certificate", "--ca");
    let server = Script::start_tls(authority.acceptor("another.name", false)).await;
    let url = format!("https://localhost:{}/mcp", server.address().port());
    assert_problem(
        &examined(&[&url, "--ca", &authority.file("ca.pem")]).await,
        "certificate",
        "it is for another.name, and not for localhost",
    );
}

#[tokio::test]
async fn lists_that_fail_or_are_unsound_are_told() {
    let hello = r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"","version":"1"}}}"#;
    let tools = r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"string"}}]}}"#;
    let error = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"boom"}}"#;
    let script = format!(
        r#"while read -r line; do id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
        case "$line" in
          *'"initialize"'*) answer='{hello}';;
          *tools/list*) answer='{tools}';;
          *) answer='{error}';;
        esac
        [ -n "$id" ] && printf '%s\n' "$answer" | sed "s/ID/$id/"; done"#
    );
    let report = shell(&script).await;
    assert_problem(&report, "list-failed", "boom");
    for warning in ["no-name", "double-tool", "bad-schema", "no-ping"] {
        assert!(finding(&report, warning).is_some_and(|found| found["level"] == "warning"), "{warning}: {report:#}");
    }
}
