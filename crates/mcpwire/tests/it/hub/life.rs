//! How a hub begins, changes and ends.

use std::time::Instant;

use mcpwire::hub::Catalogue;

use super::*;
use crate::support::{runs, until};

#[tokio::test]
async fn only_what_changed_is_started_anew() {
    let rig = Rig::new(vec![program("a", "session"), program("b", "session")]);
    let mut client = rig.session().await;
    let (a, b) = (process(&mut client, "a").await, process(&mut client, "b").await);
    let slow = client.start("a__slow", json!({ "ms": 500 })).await;
    let changed = Spec { hash: "2".into(), ..program("b", "session") };
    rig.hub.apply(vec![program("a", "session"), changed, program("c", "stateless")]).await;
    client.expect("notifications/tools/list_changed").await;
    assert!(!client.said(slow).await.is_empty(), "what is under way elsewhere goes on");
    assert_eq!(process(&mut client, "a").await, a);
    assert_ne!(process(&mut client, "b").await, b);
    assert!(tools(&mut client).await.contains(&"c__echo".to_owned()));
    until("the old one to end", || !runs(b)).await;
    rig.hub.apply(vec![program("a", "session")]).await;
    client.expect("notifications/tools/list_changed").await;
    assert!(tools(&mut client).await.iter().all(|tool| tool.starts_with("a__")));
    let id = client.start("c__echo", json!({ "message": "x" })).await;
    assert_eq!(client.code(id).await, -32602);
    // Lists may have changed more than once.
    client.notify("notifications/cancelled", json!({ "requestId": 0 })).await;
    drop(client);
    rig.end().await;
    until("the last one to end", || !runs(a)).await;
}

#[tokio::test]
async fn programs_end_with_the_hub() {
    let rig = Rig::new(vec![program("a", "session"), program("b", "stateless")]);
    let mut client = rig.stateless();
    let pids = [process(&mut client, "a").await, process(&mut client, "b").await];
    client.start("a__slow", json!({ "ms": 60_000 })).await;
    drop(rig.hub);
    assert!(pids.iter().all(|pid| runs(*pid)), "a client is still there");
    assert_eq!(client.call("b__echo", json!({ "message": "x" })).await, "x");
    drop(client);
    within("the hub to end", rig.ended).await.unwrap();
    assert!(pids.iter().all(|pid| !runs(*pid)), "nothing is left behind");
}

#[tokio::test]
async fn what_is_known_from_before_is_offered_while_the_server_starts() {
    let kept: Arc<Mutex<Option<Catalogue>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let on_catalogue: mcpwire::hub::OnCatalogue = Arc::new(move |name, hash, catalogue| {
        assert_eq!((name, hash), ("a", "h"));
        *keep.lock().unwrap() = Catalogue::from_json(&catalogue.to_json());
    });
    let options = Options { on_catalogue: Some(on_catalogue), ..Options::default() };
    let rig = Rig::with(vec![Spec { hash: "h".into(), ..program("a", "session") }], options);
    let mut client = rig.stateless();
    let live = tools(&mut client).await;
    client.close().await;
    rig.end().await;
    let cached = kept.lock().unwrap().take();
    assert!(cached.is_some());

    // A server that takes its time.
    let late = Arc::new(Mutex::new(None));
    let hold = Arc::clone(&late);
    let reach = Reach::new(Arc::new(move || {
        let (link, port) = Link::pair();
        *hold.lock().unwrap() = Some(port);
        Ok((link, None))
    }));
    let spec = Spec { cached, ..Spec::new("a", reach, Config::default()) };
    let begun = Instant::now();
    let rig = Rig::new(vec![spec]);
    let mut client = rig.stateless();
    client.assert_quiet().await;
    assert!(begun.elapsed() < Duration::from_millis(200), "what it can do is told at once: {:?}", begun.elapsed());
    assert_eq!(tools(&mut client).await, live, "in time, and complete");
    assert!((200..5_000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    let id = client.start("a__echo", json!({ "message": "deferred" })).await;
    let port = late.lock().unwrap().take().unwrap();
    let server = tokio::spawn(reference::serve(port, Shared::new(Settings::default())));
    assert_eq!(client.said(id).await, "deferred");
    client.close().await;
    rig.end().await;
    within("the server to end", server).await.unwrap();
}

#[tokio::test]
async fn a_hub_without_servers_offers_nothing() {
    let rig = Rig::new(Vec::new());
    let mut client = rig.session().await;
    assert!(tools(&mut client).await.is_empty());
    client.assert_quiet().await;
    client.close().await;
    rig.end().await;
}
