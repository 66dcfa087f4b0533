//! `mcpwire status` against a running `mcpwire expose`.

use serde_json::{Value, json};

use crate::ask::{BINARY, run};
use crate::support::client::Client;
use crate::support::process::Mcpwire;
use crate::support::{reach, within};

/// Starts `mcpwire expose` and gives its URL.
async fn expose(rest: &[&str]) -> (Mcpwire, String) {
    let mut process = Mcpwire::start(&[&["expose", "--http", "127.0.0.1:0", "--print-url"], rest].concat());
    let url = process.line().await.expect("the URL");
    (process, url)
}

#[tokio::test]
async fn the_servers_of_a_hub_are_shown_with_what_they_did() {
    let (_front, url) =
        expose(&["--prefix", "always", "--no-cache", "sample:", "--", BINARY, "reference", "--stdio"]).await;
    let mut client = Client::open(reach::http(&url), "2025-11-25").await;
    assert_eq!(client.call("mcpwire__echo", json!({"message": "hello"})).await, "hello");
    let told = within("both to be up", async {
        loop {
            let told = run(&["status", &url, "--json"]).await.json();
            if told["targets"].as_array().unwrap().iter().all(|target| target["state"] == "up") {
                return told;
            }
        }
    })
    .await;
    let target = |name: &str| -> Value {
        told["targets"].as_array().unwrap().iter().find(|target| target["name"] == name).expect(name).clone()
    };
    assert!(target("mcpwire")["tools"].as_u64() > Some(10), "{told}");
    assert!(target("mcpwire")["calls"].as_u64() >= Some(1) && target("mcpwire")["failed"] == 0, "{told}");
    assert!(target("sample")["tools"].as_u64() > Some(0), "{told}");
    // Without /mcp, and as a table.
    let table = run(&["status", url.trim_end_matches("/mcp")]).await.ok();
    let mut lines = table.lines();
    assert!(lines.next().is_some_and(|head| head.starts_with("NAME") && head.ends_with("LAST ERROR")), "{table}");
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.iter().map(|row| (row[0], row[1])).collect::<Vec<_>>(), [("sample", "up"), ("mcpwire", "up")]);
    assert!(rows[1].contains(&"ms"), "{table}");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_down() {
    let (_front, url) = expose(&["--no-cache", "sample:", "--", "no-such-program"]).await;
    let told = within("it to be down", async {
        loop {
            let said = run(&["status", &url]).await;
            if said.stdout.contains(" down ") {
                return said;
            }
        }
    })
    .await;
    assert_eq!(told.code, Some(1));
    assert!(told.stdout.contains("cannot start no-such-program"), "{}", told.stdout);
}

#[tokio::test]
async fn a_server_that_is_down_and_a_front_that_is_not_there_are_faults() {
    let (front, url) = expose(&["--token", "s3cret", "http://127.0.0.1:1/mcp"]).await;
    let refused = run(&["status", &url]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(refused.stderr.contains("401") && refused.stderr.contains("--token"), "{}", refused.stderr);
    let idle = run(&["status", &url, "--token", "s3cret"]).await.ok();
    assert!(idle.contains(" idle "), "{idle}");
    // Somebody who waits for it.
    let mut waiter = Mcpwire::start(&["connect", &url, "-H", "Authorization: Bearer s3cret"]);
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    waiter.request(1, "initialize", params).await;
    let down = within("it to be down", async {
        loop {
            let said = run(&["status", &url, "-H", "Authorization: Bearer s3cret"]).await;
            if said.stdout.contains(" down ") {
                return said;
            }
        }
    })
    .await;
    assert_eq!(down.code, Some(1), "{}{}", down.stdout, down.stderr);
    assert!(down.stdout.contains("ago: ") && down.stdout.contains("refused"), "{}", down.stdout);
    drop(front);
    let gone = within("the front to be gone", async {
        loop {
            let said = run(&["status", &url, "--token", "s3cret"]).await;
            if said.stdout.is_empty() {
                return said;
            }
        }
    })
    .await;
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("127.0.0.1"), "{}", gone.stderr);
}
