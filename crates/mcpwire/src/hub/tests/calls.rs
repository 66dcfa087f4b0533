//! Requests that find their server, and what comes back.

use super::*;

#[tokio::test]
async fn calls_go_to_the_server_that_has_the_tool() {
    let old = Upstream::new(Eras::Session);
    let new = Upstream::new(Eras::Stateless);
    let (hub, ended) = open(vec![old.spec("old"), new.spec("new")]);
    let mut client = Client::new(&hub, "c");
    assert_eq!(client.say("old__echo", json!({ "message": "a" })).await, "a");
    assert_eq!((old.shared.calls(), new.shared.calls()), (1, 0));
    assert_eq!(client.say("new__echo", json!({ "message": "b" })).await, "b");
    assert_eq!((old.shared.calls(), new.shared.calls()), (1, 1));
    let error = client.call("echo", json!({})).await.expect_err("no such tool");
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().expect("text").contains("echo"), "{error}");
    drop(client);
    end(hub, ended).await;
    assert!(old.is_let_go().await && new.is_let_go().await);
}
