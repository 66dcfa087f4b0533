//! Clients beside one another, and what becomes of sessions that nobody comes back to.

use serde_json::json;

use super::{AGES, Exposed, REFERENCE, initialize};
use crate::support::ask::ask;
use crate::support::{proc, reach, until};

#[tokio::test]
async fn two_clients_on_one_child_with_the_same_request_ids_get_their_own_answers() {
    let exposed = Exposed::start(&["--share"], &REFERENCE).await;
    let (mut a, mut b) = (exposed.client().await, exposed.client().await);
    let token = json!("same");
    for round in 0..20 {
        let first = a.start_with_token("progress", json!({"steps": 3, "ms": 1}), &token).await;
        let second = b.start_with_token("progress", json!({"steps": 5}), &token).await;
        assert_eq!(first, second, "both count from 1");
        for (client, steps) in [(&mut a, 3), (&mut b, 5)] {
            for step in 1..=steps {
                assert_eq!(client.expect("notifications/progress").await["params"]["progress"], step);
            }
            assert_eq!(client.said(first).await, format!("Took {steps} steps."), "round {round}");
            client.assert_quiet().await;
        }
    }
    assert_eq!(exposed.children().len(), 1);
    a.close().await;
    b.close().await;
    exposed.stop().await;
}

#[tokio::test]
async fn abandoned_sessions_give_their_children_and_memory_back() {
    const SESSIONS: usize = 20;
    let exposed = Exposed::start(&["--session-idle", "1s"], &REFERENCE).await;
    let mut memory = Vec::new();
    for _ in 0..3 {
        for _ in 0..SESSIONS {
            exposed.session().await;
        }
        assert!(!exposed.children().is_empty());
        until("all children to end", || exposed.children().is_empty()).await;
        assert_eq!(exposed.healthy(200, "idle").await["sessions"], 0);
        memory.push(proc::memory(exposed.process.id()));
    }
    // The first round warms up.
    assert!(memory[2] < memory[0] + 1024, "memory grows, in kB: {memory:?}");
    exposed.stop().await;
}

#[tokio::test]
async fn too_many_connected_sessions_are_refused_and_the_limit_is_named() {
    let exposed = Exposed::start(&["--max-sessions", "1"], &REFERENCE).await;
    let mut client = exposed.client().await;
    client.start("slow", json!({"ms": AGES})).await;
    while client.info().await["running"] != 2 {}
    let refused = exposed.post(&[], &initialize()).await;
    assert!(refused.status == 503 && refused.body.contains("--max-sessions"), "{}", refused.body);
    assert_eq!(exposed.children().len(), 1);
    drop(client);
    exposed.stop().await;
}

#[tokio::test]
async fn abandoned_sessions_do_not_lock_others_out() {
    let exposed = Exposed::start(&["--max-sessions", "3"], &REFERENCE).await;
    for _ in 0..12 {
        exposed.session().await;
    }
    let mut client = exposed.client().await;
    assert_eq!(client.call("echo", json!({"message": "hi"})).await, "hi");
    until("the children of others to end", || exposed.children().len() <= 3).await;
    client.close().await;
    exposed.stop().await;
}

#[tokio::test]
async fn delete_frees_the_child() {
    let exposed = Exposed::start(&[], &REFERENCE).await;
    let session = exposed.session().await;
    assert_eq!(exposed.children().len(), 1);
    let headers = [("mcp-session-id", session.as_str())];
    assert_eq!(ask(&exposed.address, "DELETE", "/mcp", &headers, "").await.status, 204);
    until("the child to end", || exposed.children().is_empty()).await;
    let late = exposed.post(&headers, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert_eq!(late.status, 404);
    exposed.stop().await;
}

#[tokio::test]
async fn a_client_of_http_sse_that_goes_away_frees_its_child() {
    let exposed = Exposed::start(&[], &REFERENCE).await;
    let url = exposed.url.replace("/mcp", "/sse");
    let client = crate::support::client::Client::open(reach::sse(&url), "2024-11-05").await;
    assert_eq!(exposed.children().len(), 1);
    client.close().await;
    until("the child to end", || exposed.children().is_empty()).await;
    exposed.stop().await;
}
