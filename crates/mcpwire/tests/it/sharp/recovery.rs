//! Targets that are not there yet, or not any more.

use std::fs;

use serde_json::json;

use super::{AGES, Exposed, REFERENCE, VERSION, call, initialize};
use crate::support::ask::ask;
use crate::support::client::Client;
use crate::support::scratch::Scratch;
use crate::support::script::Script;
use crate::support::{proc, reach, runs, until, within};

/// A server that is not there, and its URL.
async fn absent() -> (std::net::SocketAddr, String) {
    let reserved = Script::start().await;
    let (address, url) = (reserved.address(), reserved.url());
    reserved.stop().await;
    (address, url)
}

#[tokio::test]
async fn a_target_that_is_down_at_the_start_is_told_and_the_bridge_lives_on() {
    let (address, url) = absent().await;
    let exposed = Exposed::start(&["--wait", "300ms"], &[&url]).await;
    assert_eq!(exposed.health().await.1["state"], "idle");
    let refused = exposed.post(&[], &initialize()).await.json();
    let text = refused["error"]["message"].as_str().expect("an error");
    assert!(text.contains("cannot reach the server") && text.contains("refused"), "{refused}");
    let health = exposed.healthy(503, "down").await;
    assert!(health["lastError"]["text"].as_str().is_some_and(|text| text.contains("refused")), "{health}");

    let mut server = Script::start_at(address).await;
    let serve = async {
        server.expect("initialize").await.initialized("s1").await;
        server.rest_of_handshake().await;
    };
    let (client, ()) = tokio::join!(exposed.client(), serve);
    assert_eq!(exposed.health().await.0, 200);
    let ((), ()) = tokio::join!(client.close(), async { server.expect("DELETE").await.accept().await });
    exposed.stop().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_told_and_the_bridge_lives_on() {
    let exposed = Exposed::start(&[], &["--", "mcpwire-no-such-program"]).await;
    for _ in 0..2 {
        let refused = exposed.post(&[], &initialize()).await.json();
        let text = refused["error"]["message"].as_str().expect("an error");
        assert!(text.contains("cannot start mcpwire-no-such-program"), "{refused}");
        exposed.healthy(503, "down").await;
    }
    exposed.stop().await;
}

#[tokio::test]
async fn a_kill_of_a_shared_server_counts_once_however_many_clients_there_are() {
    let exposed = Exposed::start(&["--share"], &REFERENCE).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(exposed.client().await);
    }
    for kills in 1..=3 {
        proc::kill(exposed.children()[0]);
        for client in &mut clients {
            // Asked again of the new server, should it have been lost with the old one.
            let id = client.request("tools/list", json!({})).await;
            client.result(id).await;
        }
        let health = exposed.healthy(200, "up").await;
        assert_eq!(health["restarts"], kills, "{health}");
    }
    drop(clients);
    exposed.stop().await;
}

/// Clients that are gone as soon as their call has crashed the server.
#[tokio::test]
async fn crashes_under_clients_that_do_not_stay_are_counted() {
    let exposed = Exposed::start(&[], &REFERENCE).await;
    for _ in 0..3 {
        let session = exposed.session().await;
        proc::kill(exposed.children()[0]);
        exposed.post(&[("mcp-session-id", &session)], &call(1, "info", json!({}), "t")).await;
        let headers = [("mcp-session-id", session.as_str())];
        assert_eq!(ask(&exposed.address, "DELETE", "/mcp", &headers, "").await.status, 204);
        until("the session to end", || exposed.children().is_empty()).await;
    }
    let (_, health) = exposed.health().await;
    assert_eq!(health["restarts"], 3, "{health}");

    let exposed = Exposed::start(&[], &REFERENCE).await;
    let mut client = Client::stateless(reach::http(&exposed.url));
    for crashes in 1..=3 {
        let process = client.info().await["process"].as_u64().and_then(|id| id.try_into().ok()).expect("a process id");
        proc::kill(process);
        until("the process to be gone", || !runs(process)).await;
        within("the crash to be counted", async { while exposed.health().await.1["restarts"] != crashes {} }).await;
    }
    client.close().await;
}

/// A child that is started again only when a file is gone.
#[tokio::test]
async fn a_child_killed_in_mid_call_is_told_the_next_call_works_and_health_tells_the_truth() {
    let scratch = Scratch::new();
    let broken = scratch.file("broken");
    let script = r#"test -e "$BROKEN" && exit 3; exec "$MCPWIRE" reference --stdio"#;
    let (broken_is, mcpwire_is) = (format!("BROKEN={broken}"), format!("MCPWIRE={}", reach::MCPWIRE));
    let options = ["--env", &broken_is, "--env", &mcpwire_is];
    let exposed = Exposed::start(&options, &["--", "sh", "-c", script]).await;
    assert_eq!(exposed.health().await, (200, exposed.healthy(200, "idle").await));

    let mut client = exposed.client().await;
    let server = client.info().await;
    let health = exposed.healthy(200, "up").await;
    assert_eq!((&health["sessions"], &health["restarts"]), (&json!(1), &json!(0)), "{health}");

    let id = client.start("slow", json!({"ms": AGES})).await;
    within("the call to run", async { while client.info().await["running"] != 2 {} }).await;
    fs::write(&broken, "").expect("the file is new");
    proc::kill(server["process"].as_u64().and_then(|id| id.try_into().ok()).expect("a process id"));
    let error = client.error(id).await;
    assert!(error.contains("signal 9") && error.contains("was not sent again"), "{error}");
    let health = exposed.healthy(503, "down").await;
    assert!(health["lastError"]["text"].is_string(), "{health}");

    let id = client.start("count", json!({})).await;
    fs::remove_file(&broken).expect("the file is there");
    assert!(client.said(id).await.contains(r#""value":1"#), "it ran once");
    let health = exposed.healthy(200, "up").await;
    assert_eq!(health["restarts"], 1, "{health}");
    assert_ne!(client.info().await["instance"], server["instance"]);
    client.close().await;
    assert_eq!(exposed.healthy(200, "idle").await["sessions"], 0);
    exposed.stop().await;
}

#[tokio::test]
async fn a_backend_that_comes_up_late_sends_list_changed_and_it_reaches_the_client() {
    let (address, url) = absent().await;
    let exposed = Exposed::start(&[], &[&url]).await;
    let mut client = Client::new(reach::http(&exposed.url));
    let id = client.initialize(VERSION).await;
    exposed.process.logged("next try in").await;

    let mut server = Script::start_at(address).await;
    server.expect("initialize").await.initialized("s1").await;
    client.result(id).await;
    client.notify("notifications/initialized", json!({})).await;
    server.expect("notifications/initialized").await.accept().await;
    let mut stream = server.expect("GET").await.stream().await;
    stream.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    client.expect("notifications/tools/list_changed").await;
    let ((), ()) = tokio::join!(client.close(), async { server.expect("DELETE").await.accept().await });
    exposed.stop().await;
}

#[tokio::test]
async fn a_restarted_backend_with_other_tools_is_told_as_list_changed() {
    let exposed = Exposed::start(&[], &REFERENCE).await;
    let mut client = exposed.client().await;
    client.call("register", json!({"kind": "tool", "name": "extra"})).await;
    client.expect("notifications/tools/list_changed").await;
    let id = client.request("tools/list", json!({})).await;
    client.result(id).await;
    proc::kill(exposed.children()[0]);
    client.expect("notifications/tools/list_changed").await;
    client.assert_quiet().await;
    client.close().await;
    exposed.stop().await;
}
