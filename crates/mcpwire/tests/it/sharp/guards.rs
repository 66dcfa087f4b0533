//! Who is let in, and with how much.

use super::{Exposed, REFERENCE, initialize};
use crate::support::ask::ask;

#[tokio::test]
async fn an_evil_host_or_origin_is_refused_and_the_flag_is_named() {
    let exposed = Exposed::start(&[], &REFERENCE).await;
    for (header, value, flag) in
        [("host", "evil.example", "--allow-host"), ("origin", "http://evil.example", "--allow-origin")]
    {
        let refused = exposed.post(&[(header, value)], &initialize()).await;
        assert!(refused.status == 403 && refused.body.contains(flag), "{}", refused.body);
        assert_eq!(refused.header("access-control-allow-origin"), None);
        for path in ["/sse", "/health", "/metrics", "/mcp"] {
            let headers = [(header, value), ("accept", "text/event-stream")];
            assert_eq!(ask(&exposed.address, "GET", path, &headers, "").await.status, 403, "{path}");
        }
    }
    assert_eq!(exposed.children(), [0; 0], "nothing was started for them");
    exposed.stop().await;
}

#[tokio::test]
async fn a_host_and_an_origin_that_were_allowed_are_served() {
    let options = ["--allow-host", "mcp.example", "--allow-origin", "https://app.example"];
    let exposed = Exposed::start(&options, &REFERENCE).await;
    let headers = [("host", "mcp.example:8080"), ("origin", "https://app.example")];
    let reply = exposed.post(&headers, &initialize()).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example"));
    exposed.stop().await;
}

#[tokio::test]
async fn a_token_is_required_of_every_request_when_there_is_one() {
    let exposed = Exposed::start(&["--token", "s3cret"], &REFERENCE).await;
    for headers in [&[][..], &[("authorization", "Bearer wrong")], &[("authorization", "s3cret")]] {
        let refused = exposed.post(headers, &initialize()).await;
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")), "{}", refused.body);
        for path in ["/sse", "/health", "/metrics"] {
            let headers = [headers, &[("accept", "text/event-stream")]].concat();
            assert_eq!(ask(&exposed.address, "GET", path, &headers, "").await.status, 401, "{path}");
        }
    }
    assert_eq!(exposed.children(), [0; 0], "nothing was started for them");
    let served = exposed.post(&[("authorization", "Bearer s3cret")], &initialize()).await;
    assert_eq!(served.status, 200, "{}", served.body);
    assert!(!exposed.process.stderr().contains("s3cret"));
    exposed.stop().await;
}

#[tokio::test]
async fn beyond_loopback_a_token_is_made_up_and_told_once() {
    let mut process = crate::support::process::Mcpwire::start(
        &[&["expose", "--http", "0.0.0.0:0", "--print-url"], &REFERENCE[..]].concat(),
    );
    let url = process.line().await.expect("the URL");
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").replace("0.0.0.0", "127.0.0.1");
    process.logged("Authorization: Bearer ").await;
    let log = process.stderr();
    let token = log.split_once("Authorization: Bearer ").and_then(|(_, rest)| rest.lines().next()).expect("a token");
    assert!(token.len() >= 32 && log.matches(token).count() == 1, "{log}");
    assert_eq!(ask(&address, "GET", "/health", &[], "").await.status, 401);
    let headers = [("authorization", &*format!("Bearer {token}"))];
    assert_eq!(ask(&address, "GET", "/health", &headers, "").await.status, 200);
    process.signal("TERM");
    assert_eq!(process.wait().await.code(), Some(0));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_413_and_the_flag_is_named() {
    let exposed = Exposed::start(&["--max-message", "100kB"], &REFERENCE).await;
    let session = exposed.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let ping = |padding: usize| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{"x":"{}"}}}}}}"#, "x".repeat(padding))
    };
    let refused = exposed.post(&headers, &ping(100_000)).await;
    assert!(refused.status == 413 && refused.body.contains("--max-message"), "{}", refused.body);
    let served = exposed.post(&headers, &ping(90_000)).await;
    assert_eq!((served.status, served.json()["result"].is_object()), (200, true), "the session goes on");
    exposed.stop().await;
}
