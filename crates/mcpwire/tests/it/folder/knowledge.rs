//! Prompts, resources and matching.

use serde_json::{Value, json};

use super::{LIBRARY, ask, everywhere, library, read, refused, with_version};
use crate::support::client::Client;
use crate::support::scratch::Scratch;

#[tokio::test]
async fn the_list_begins_with_registry_and_listings() {
    let folder = library();
    with_version(&folder.file(""), "2025-06-18", async |client| {
        let list = ask(client, "resources/list", json!({})).await;
        let uris: Vec<&str> =
            list["resources"].as_array().unwrap().iter().map(|entry| entry["uri"].as_str().unwrap()).collect();
        let expected = [
            "registry",
            "workflows",
            "agents",
            "skills",
            "patterns",
            "examples",
            "guides",
            "examples/delta",
            "examples/note.txt",
            "patterns/epsilon",
            "guides/a%20b",
            "guides/gamma",
            "workflows/zeta",
            "agents/_fragments/nested",
            "agents/alpha",
            "skills/beta",
        ];
        assert_eq!(uris, expected.map(|path| format!("orchestr8://{path}")));
        let alpha =
            list["resources"].as_array().unwrap().iter().find(|entry| entry["uri"] == "orchestr8://agents/alpha");
        let alpha = alpha.unwrap();
        assert_eq!((&alpha["name"], &alpha["mimeType"]), (&json!("orchestr8://agents/alpha"), &json!("text/markdown")));
        assert_eq!(alpha["description"], "Resource: orchestr8://agents/alpha");
    })
    .await;
}

#[tokio::test]
async fn registry_and_listings_count_what_there_is() {
    let folder = library();
    everywhere(&folder.file(""), async |client| {
        let registry: Value = serde_json::from_str(&read(client, "orchestr8://registry").await).unwrap();
        assert_eq!((&registry["version"], &registry["totalResources"]), (&json!("1.0.0"), &json!(9)));
        let counts = json!({"agents": 2, "skills": 1, "patterns": 1, "examples": 2, "guides": 2, "workflows": 1});
        assert_eq!(registry["categories"], counts);
        assert!(registry["searchUri"].is_string() && registry["usage"].is_string());
        let listing: Value = serde_json::from_str(&read(client, "orchestr8://examples").await).unwrap();
        assert_eq!((&listing["category"], &listing["count"]), (&json!("examples"), &json!(2)));
        let first = json!({
            "name": "delta", "uri": "orchestr8://examples/delta", "description": "Resource: orchestr8://examples/delta",
            "mimeType": "application/json",
        });
        assert_eq!(listing["resources"][0], first);
    })
    .await;
}

#[tokio::test]
async fn files_are_read_as_they_are() {
    let folder = library();
    let alpha = LIBRARY.iter().find(|(name, _)| name.ends_with("alpha.md")).unwrap().1;
    everywhere(&folder.file(""), async |client| {
        assert_eq!(read(client, "orchestr8://agents/alpha").await, alpha, "with its front matter");
        assert_eq!(read(client, "orchestr8://agents/alpha.md").await, alpha);
        assert_eq!(read(client, "orchestr8://agents/_fragments/nested").await.lines().last(), Some("# Nested"));
        assert_eq!(read(client, "orchestr8://examples/delta").await, "{\"delta\": 4}\n");
        assert_eq!(read(client, "orchestr8://patterns/epsilon").await, "epsilon: 5\n");
        assert_eq!(read(client, "orchestr8://examples/note.txt").await, "plain\n");
        assert_eq!(read(client, "orchestr8://guides/a%20b").await, "# Space\n");
    })
    .await;
}

#[tokio::test]
async fn what_is_no_text_is_a_blob() {
    everywhere(super::SAMPLE, async |client| {
        let result = ask(client, "resources/read", json!({"uri": "orchestr8://examples/blue-square.png"})).await;
        assert_eq!(result["contents"][0]["mimeType"], "image/png");
        assert!(result["contents"][0]["blob"].as_str().unwrap().starts_with("iVBORw0KGgo"), "{result}");
        assert!(result["contents"][0].get("text").is_none());
    })
    .await;
}

#[tokio::test]
async fn there_are_fifteen_templates() {
    let folder = library();
    everywhere(&folder.file(""), async |client| {
        let list = ask(client, "resources/templates/list", json!({})).await;
        let templates: Vec<(&str, &str)> = list["resourceTemplates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| (entry["name"].as_str().unwrap(), entry["uriTemplate"].as_str().unwrap()))
            .collect();
        assert_eq!(templates.len(), 15);
        assert_eq!(templates[0], ("agents-dynamic", "orchestr8://agents/match{+rest}"));
        assert_eq!(templates[1], ("agents-static", "orchestr8://agents/{+resourceId}"));
        assert_eq!(templates[11].0, "best-practices-static");
        assert_eq!(templates[14], ("global-dynamic", "orchestr8://match{+rest}"));
    })
    .await;
}

#[tokio::test]
async fn matches_have_their_known_scores() {
    let folder = library();
    everywhere(&folder.file(""), async |client| {
        let text = read(client, "orchestr8://match?query=typescript+rest+api").await;
        assert!(text.contains("**Query Results:** 1 matched resources\n"), "{text}");
        assert!(text.contains("### 1. Agent: agents/alpha\n\n**Relevance Score:** 111/100\n"), "{text}");
        assert!(text.contains("**Load this resource:** orchestr8://agents/alpha\n"), "{text}");
        let preferred = read(client, "orchestr8://match?query=typescript+rest+api&categories=agent").await;
        assert!(preferred.contains("**Relevance Score:** 126/100"), "{preferred}");
        let all = read(client, "orchestr8://match?query=typescript+rest+api&minScore=5&maxResults=99").await;
        assert_eq!(all.matches("**Relevance Score:** 5/100").count(), 5, "{all}");
        assert!(read(client, "orchestr8://match?query=typescript").await.contains(" 25/100"));
        let fallback = read(client, "orchestr8://match?query=typescript&mode=index").await;
        assert!(fallback.contains("Agent: alpha-declared\n\n**Relevance Score:** 20/100"), "{fallback}");
        assert!(fallback.contains("~1234"), "{fallback}");
        let tagged = read(client, "orchestr8://match?query=typescript&tags=TypeScript").await;
        assert!(tagged.contains("**Query Results:** 0 matched"), "{tagged}");
        assert!(read(client, "orchestr8://match?query=typescript&tags=typescript").await.contains(" 25/100"));
        let twice =
            [read(client, "orchestr8://match?query=soup").await, read(client, "orchestr8://match?query=soup").await];
        assert_eq!(twice[0], twice[1]);
    })
    .await;
}

#[tokio::test]
async fn a_category_in_the_path_narrows_the_search() {
    let folder = library();
    everywhere(&folder.file(""), async |client| {
        let agents = read(client, "orchestr8://agents/match?query=typescript+soup&mode=full").await;
        assert!(agents.contains("## Agent: agents/alpha") && !agents.contains("beta"), "{agents}");
        let guides = read(client, "orchestr8://guides/match?query=roses").await;
        assert!(guides.contains("Pattern: guides/gamma") && guides.contains("orchestr8://guides/gamma\n"), "{guides}");
    })
    .await;
}

#[tokio::test]
async fn full_matches_are_the_texts_themselves() {
    let folder = library();
    everywhere(&folder.file(""), async |client| {
        let text = read(client, "orchestr8://match?query=typescript&mode=full").await;
        let expected = "\n## Agent: agents/alpha\n**Relevance Score:** 25\n**Tags:** typescript, rest-api\n\
             **Capabilities:** REST API design\n\n# Alpha\n\nThe body of alpha.\n\n";
        assert_eq!(text, expected);
        assert_eq!(read(client, "orchestr8://match?query=zzzz&mode=full").await, "", "nothing found is no fault");
    })
    .await;
}

#[tokio::test]
async fn the_best_three_come_whatever_the_budget() {
    let folder = Scratch::new();
    let text = |n: usize| format!("---\ntags: [same]\ncapabilities: []\nuseWhen: []\n---\n{}", "word ".repeat(100 * n));
    let texts: Vec<(String, String)> = (1..=5).map(|n| (format!("resources/skills/s{n}.md"), text(n))).collect();
    let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    super::write(&folder, &files);
    everywhere(&folder.file(""), async |client| {
        let blocks = |text: String| text.matches("## Skill: ").count();
        assert_eq!(blocks(read(client, "orchestr8://match?query=same&mode=full&maxTokens=10").await), 3);
        assert_eq!(blocks(read(client, "orchestr8://match?query=same&mode=full&maxTokens=5000").await), 5);
        assert_eq!(blocks(read(client, "orchestr8://match?query=same&mode=full&maxTokens=1300").await), 4);
    })
    .await;
}

#[tokio::test]
async fn an_index_of_scenarios_is_used_where_there_is_one() {
    let folder = library();
    let entry = |uri: &str, category: &str| {
        json!({
            "scenario": "building an api", "keywords": ["building", "api"], "uri": uri, "category": category,
            "estimatedTokens": 7, "relevance": 100,
        })
    };
    let index = json!({"version": "1", "index": {
        "scenario-1": entry("orchestr8://agents/alpha", "agent"), "scenario-2": entry("orchestr8://skills/beta", "skill"),
    }, "stats": {}});
    let keywords = json!({"version": "1", "keywords": {"api": ["scenario-1", "scenario-2"]}, "stats": {}});
    let (index, keywords) = (index.to_string(), keywords.to_string());
    let files =
        [("resources/.index/usewhen-index.json", index.as_str()), ("resources/.index/keyword-index.json", &keywords)];
    super::write(&folder, &files);
    everywhere(&folder.file(""), async |client| {
        let text = read(client, "orchestr8://match?query=api&mode=index").await;
        assert!(text.starts_with("# Resource Matches: api\n"), "{text}");
        assert!(text.contains("1. **Agent: alpha** (~7 tokens)\n   @orchestr8://agents/alpha\n"), "{text}");
        let other = read(client, "orchestr8://match?query=api&mode=index&categories=skill").await;
        assert!(other.contains("**Query Results:**"), "one candidate is too few: {other}");
    })
    .await;
}

#[tokio::test]
async fn categories_filter_in_index_mode_with_and_without_an_index() {
    let folder = library();
    super::write(&folder, &[("resources/skills/rest.md", "---\ntags: [rest-api]\nuseWhen: []\n---\n# Rest\n")]);
    let suite = async |client: &mut Client| {
        for categories in ["skill", "skills", "Skill", "skill,workflow"] {
            let uri = format!("orchestr8://match?query=rest+api&mode=index&categories={categories}");
            let text = read(client, &uri).await;
            assert!(text.contains("orchestr8://skills/rest"), "{uri}: {text}");
            assert!(!text.contains("orchestr8://agents/") && !text.contains("skills/beta"), "{uri}: {text}");
        }
        let both = read(client, "orchestr8://match?query=rest+api&mode=index&categories=skill,agent").await;
        assert!(both.contains("orchestr8://agents/alpha") && both.contains("orchestr8://skills/rest"), "{both}");
        let none = read(client, "orchestr8://match?query=rest+api&mode=index&categories=workflow").await;
        assert!(none.contains("**Query Results:** 0 matched"), "{none}");
        let tagged = read(client, "orchestr8://match?query=rest+api&mode=index&tags=typescript").await;
        assert!(tagged.contains("alpha") && !tagged.contains("skills/rest"), "{tagged}");
    };
    everywhere(&folder.file(""), &suite).await;
    let entry = |uri: &str, category: &str| json!({"keywords": ["rest", "api"], "uri": uri, "category": category});
    let index = json!({"index": {
        "s1": entry("orchestr8://agents/alpha", "agents"), "s2": entry("orchestr8://agents/alpha", "agent"),
        "s3": entry("orchestr8://skills/rest", "skills"), "s4": entry("orchestr8://skills/rest", ""),
    }})
    .to_string();
    let keywords = json!({"keywords": {"rest": ["s1", "s3"], "api": ["s2", "s4"]}}).to_string();
    let files =
        [("resources/.index/usewhen-index.json", index.as_str()), ("resources/.index/keyword-index.json", &keywords)];
    super::write(&folder, &files);
    everywhere(&folder.file(""), &suite).await;
}

#[tokio::test]
async fn prompts_are_listed_filled_in_and_completed() {
    let folder = library();
    everywhere(&folder.file(""), async |client| {
        let list = ask(client, "prompts/list", json!({})).await;
        let names: Vec<&Value> = list["prompts"].as_array().unwrap().iter().map(|prompt| &prompt["name"]).collect();
        assert_eq!(names, [&json!("deploy-it"), &json!("top")]);
        assert_eq!(list["prompts"][0]["description"], "workflow prompt: deploy-it");
        assert_eq!(list["prompts"][0]["arguments"][0], json!({"name": "service", "required": true}));
        let params = json!({"name": "deploy-it", "arguments": {"service": "api", "env-name": "prod"}});
        let prompt = ask(client, "prompts/get", params).await;
        let text = &prompt["messages"][0]["content"]["text"];
        assert_eq!(text, "Ship api to prod now. api / api $& ${unknown}\n");
        let (code, told) = refused(client, "prompts/get", json!({"name": "deploy-it"})).await;
        assert!(code == -32602 && told.contains("deploy-it") && told.contains("\"service\""), "{code} {told}");
        let (code, told) = refused(client, "prompts/get", json!({"name": "none"})).await;
        assert_eq!((code, told.as_str()), (-32602, "Prompt none not found"));
        let of = |name: &str, value: &str| {
            json!({
                "ref": {"type": "ref/prompt", "name": "deploy-it"}, "argument": {"name": name, "value": value},
            })
        };
        let completion = ask(client, "completion/complete", of("env-name", "pr")).await;
        assert_eq!(completion["completion"]["values"], json!(["prod", "preview"]));
        let completion = ask(client, "completion/complete", of("service", "")).await;
        assert_eq!(completion["completion"], json!({"values": [], "total": 0, "hasMore": false}));
        let template = json!({
            "ref": {"type": "ref/resource", "uri": "orchestr8://agents/{+resourceId}"},
            "argument": {"name": "resourceId", "value": "al"},
        });
        assert_eq!(ask(client, "completion/complete", template).await["completion"]["values"], json!(["alpha"]));
    })
    .await;
}
