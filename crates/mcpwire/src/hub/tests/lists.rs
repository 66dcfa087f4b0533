//! What many servers offer together.

use super::*;

#[tokio::test]
async fn the_lists_of_all_eras_are_merged_in_order() {
    let old = Upstream::with(Settings { eras: Eras::Session, page_size: 3, ..Settings::default() });
    let new = Upstream::with(Settings { eras: Eras::Stateless, page_size: 5, ..Settings::default() });
    let (hub, ended) = open(vec![old.spec("old"), new.spec("new")]);
    let mut client = Client::new(&hub, "c");
    let tools = client.tools().await;
    let half = tools.len() / 2;
    assert!(half > 20, "{tools:?}");
    let strip = |prefix: &str, tools: &[String]| -> Vec<String> {
        tools.iter().map(|tool| tool.strip_prefix(prefix).expect("a prefix").to_owned()).collect()
    };
    assert_eq!(strip("old__", &tools[..half]), strip("new__", &tools[half..]));
    assert!(client.names("prompts/list", "prompts", "name").await.iter().any(|name| name.starts_with("new__")));
    let uris = client.names("resources/list", "resources", "uri").await;
    let unique: std::collections::BTreeSet<&String> = uris.iter().collect();
    assert_eq!(unique.len(), uris.len(), "the first has a URI, and the second is left out");
    assert!(!client.names("resources/templates/list", "resourceTemplates", "uriTemplate").await.is_empty());
    let found = client.ask("server/discover", json!({})).await.expect("a result");
    assert_eq!(found["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(old.connections(), 1, "one session is enough for the hub and its first client");
    drop(client);
    end(hub, ended).await;
    assert!(old.is_let_go().await && new.is_let_go().await);
}
