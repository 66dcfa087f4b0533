//! How it ends: in peace, and by force.

use serde_json::json;
use tokio::net::TcpStream;

use super::{AGES, Exposed, REFERENCE};
use crate::support::{proc, runs, until, within};

#[tokio::test]
async fn sigterm_lets_calls_finish_ends_the_children_and_exits_with_0() {
    for options in [&[][..], &["--share"]] {
        let mut exposed = Exposed::start(options, &REFERENCE).await;
        let mut client = exposed.client().await;
        let children = exposed.children();
        assert_eq!(children.len(), 1);
        let id = client.start("slow", json!({"ms": 1000})).await;
        within("the call to run", async { while client.info().await["running"] != 2 {} }).await;
        exposed.process.signal("TERM");
        exposed.process.logged("stopping").await;
        until("new clients to be refused", || std::net::TcpStream::connect(&exposed.address).is_err()).await;
        assert_eq!(client.said(id).await, "Waited 1000 ms.");
        assert_eq!(exposed.process.wait().await.code(), Some(0), "{}", exposed.process.stderr());
        assert!(!children.into_iter().any(runs), "a child is left");
    }
}

#[tokio::test]
async fn sigterm_answers_what_takes_too_long_with_an_error() {
    let mut exposed = Exposed::start(&["--drain", "200ms"], &REFERENCE).await;
    let mut client = exposed.client().await;
    let children = exposed.children();
    let id = client.start("slow", json!({"ms": AGES})).await;
    within("the call to run", async { while client.info().await["running"] != 2 {} }).await;
    exposed.process.signal("TERM");
    client.error(id).await;
    assert_eq!(exposed.process.wait().await.code(), Some(0), "{}", exposed.process.stderr());
    assert!(!children.into_iter().any(runs), "a child is left");
    assert!(TcpStream::connect(&exposed.address).await.is_err());
}

#[tokio::test]
async fn sigkill_leaves_no_child() {
    let mut exposed = Exposed::start(&[], &REFERENCE).await;
    for _ in 0..3 {
        exposed.session().await;
    }
    let children = exposed.children();
    assert_eq!(children.len(), 3);
    proc::kill(exposed.process.id());
    exposed.process.wait().await;
    until("the children to end", || !children.iter().any(|child| runs(*child))).await;
}
