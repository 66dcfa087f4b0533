//! What many servers offer together, and under which names.

use std::collections::BTreeSet;

use mcpwire::hub::Prefix;
use mcpwire_proto::hub::Config as HubConfig;

use super::*;

#[tokio::test]
async fn the_lists_of_all_eras_are_merged_in_order() {
    let old = Inside::with(Settings { eras: Eras::Session, page_size: 3, ..Settings::default() });
    let new = Inside::with(Settings { eras: Eras::Stateless, page_size: 5, ..Settings::default() });
    let rig = Rig::new(vec![old.spec("old"), new.spec("new")]);
    for mut client in [rig.stateless(), rig.session().await] {
        let tools = tools(&mut client).await;
        let (first, second) = tools.split_at(tools.len() / 2);
        assert!(first.len() > 20, "{tools:?}");
        let bare = |prefix: &str, tools: &[String]| -> Vec<String> {
            tools.iter().map(|tool| tool.strip_prefix(prefix).unwrap().to_owned()).collect()
        };
        assert_eq!(bare("old__", first), bare("new__", second));
        let prompts = names(&mut client, "prompts/list", "prompts", "name").await;
        assert!(prompts.iter().any(|name| name.starts_with("new__")), "{prompts:?}");
        let uris = names(&mut client, "resources/list", "resources", "uri").await;
        assert_eq!(uris.iter().collect::<BTreeSet<_>>().len(), uris.len(), "each is there once");
        assert_eq!(names(&mut client, "resources/templates/list", "resourceTemplates", "uriTemplate").await.len(), 1);
        client.close().await;
    }
    rig.end().await;
    old.is_let_go().await;
    new.is_let_go().await;
}

#[tokio::test]
async fn one_server_is_shown_as_what_it_is() {
    let server = Inside::new(Eras::Both);
    let config = HubConfig { prefix: Prefix::Never, ..HubConfig::default() };
    let rig = Rig::with(vec![server.spec("one")], Options { config, ..Options::default() });
    let mut client = rig.stateless();
    let mut plain = Client::stateless(direct(&server));
    for method in ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let mut told = Vec::new();
        for client in [&mut client, &mut plain] {
            let id = client.request(method, json!({})).await;
            let mut result = client.result(id).await;
            // How long it may be kept is for each to say.
            result["ttlMs"] = json!(null);
            result["cacheScope"] = json!(null);
            told.push(result);
        }
        assert_eq!(told[0], told[1], "{method}");
    }
    client.close().await;
    rig.end().await;
}

/// A link to the server itself.
fn direct(server: &Inside) -> (Link, JoinHandle<()>) {
    let (link, port) = Link::pair();
    (link, tokio::spawn(reference::serve(port, server.shared.clone())))
}

#[tokio::test]
async fn names_follow_the_prefix() {
    for (prefix, first, second) in [
        (Prefix::Always, "a.1__echo", "b__echo"),
        (Prefix::Conflict, "a.1__echo", "b__echo"),
        (Prefix::Never, "echo", "echo_2"),
        (Prefix::Mcp, "mcp__a_echo", "mcp__b_echo"),
    ] {
        let (a, b) = (Inside::new(Eras::Session), Inside::new(Eras::Stateless));
        let config = HubConfig { prefix, ..HubConfig::default() };
        let rig = Rig::with(vec![a.spec("a.1"), b.spec("b")], Options { config, ..Options::default() });
        let mut client = rig.stateless();
        let offered = tools(&mut client).await;
        assert_eq!(offered.iter().collect::<BTreeSet<_>>().len(), offered.len());
        for (name, (mine, other)) in [(first, (&a, &b)), (second, (&b, &a))] {
            assert!(offered.iter().any(|tool| tool == name), "{name} {offered:?}");
            let before = (mine.shared.calls(), other.shared.calls());
            assert_eq!(client.call(name, json!({ "message": name })).await, name);
            assert_eq!((mine.shared.calls(), other.shared.calls()), (before.0 + 1, before.1));
        }
        client.close().await;
        rig.end().await;
    }
}

#[tokio::test]
async fn the_hub_and_its_first_client_share_a_session() {
    let old = Inside::new(Eras::Session);
    // As it is with programs: it cannot be told to which call a message belongs.
    let spec = Spec { config: Config::default(), ..old.spec("old") };
    let rig = Rig::new(vec![spec]);
    let mut client = rig.session().await;
    tools(&mut client).await;
    assert_eq!(info(&mut client, "old").await["client"], "table", "the server knows who its client is");
    assert_eq!(old.connections(), 1);
    assert_eq!(client.call("old__echo", json!({ "message": "x" })).await, "x");
    let id = client.request("resources/subscribe", json!({ "uri": "test://watched-resource" })).await;
    client.result(id).await;
    assert_eq!(old.connections(), 1);
    let mut other = rig.stateless();
    other.declare(key::CLIENT_INFO, json!({ "name": "other", "version": "1" }));
    assert_eq!(info(&mut other, "old").await["client"], "other");
    assert_eq!(old.connections(), 2, "another sort of client has a session of its own");
    client.close().await;
    other.close().await;
    rig.end().await;
    old.is_let_go().await;
}
