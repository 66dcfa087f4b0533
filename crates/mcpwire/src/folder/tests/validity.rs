//! Every kind of answer, held against the published JSON schema of each version.

use mcpwire_proto::version;
use serde_json::{Value, json};

use super::Client;
use super::stateless::modern;
use crate::folder::Folder;
use crate::schema::{Side, assert_message};

fn questions() -> Vec<(&'static str, Value)> {
    let read = |uri: &str| ("resources/read", json!({ "uri": uri }));
    let call = |tool: &str, arguments: Value| {
        ("tools/call", json!({ "name": format!("relevant-data.{tool}"), "arguments": arguments }))
    };
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "deploy-it" }, "argument": { "name": "environment", "value": "s" },
    });
    vec![
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        read("orchestr8://registry"),
        read("orchestr8://skills"),
        read("orchestr8://skills/rest-api-design"),
        read("orchestr8://examples/blue-square.png"),
        read("orchestr8://match?query=rest+api"),
        read("orchestr8://match?query=rest+api&mode=full"),
        read("orchestr8://agents/none"),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "deploy-it", "arguments": { "service": "api" } })),
        ("prompts/get", json!({ "name": "deploy-it" })),
        ("completion/complete", complete),
        ("tools/list", json!({})),
        call("describeCategory", json!({ "categoryId": "people" })),
        call("searchRecords", json!({ "categoryId": "people", "limit": 2 })),
        call("searchRecords", json!({})),
        call("ask", json!({ "question": "list apps" })),
        call("insight", json!({ "categoryId": "people" })),
        call("insight", json!({ "categoryId": "people", "recordId": "person-001" })),
        call("none", json!({})),
        ("no/such", json!({})),
    ]
}

#[tokio::test]
async fn every_answer_fits_the_schema_of_its_version() {
    for version in version::ALL {
        let stateless = version::STATELESS_ERA.contains(&version);
        let mut client = Client::silent(&Folder::sample());
        let (open, params) = match stateless {
            true => ("server/discover", modern(json!({}))),
            false => ("initialize", json!({ "protocolVersion": version, "capabilities": {} })),
        };
        let opened = client.answer(open, params).await;
        assert_message(version, Side::Server, &opened, Some(open));
        for (method, params) in questions() {
            let params = if stateless { modern(params) } else { params };
            let answer = client.answer(method, params).await;
            assert_message(version, Side::Server, &answer, Some(method));
        }
        client.close().await;
    }
}

/// Structured content is held against the schema that the tool itself declares.
#[tokio::test]
async fn results_fit_what_their_tools_declare() {
    let mut client = Client::open(&Folder::sample(), "2025-11-25").await;
    let list = client.request("tools/list", json!({})).await;
    let mut checked = 0;
    for (_, params) in questions().into_iter().filter(|(method, _)| *method == "tools/call") {
        let tool = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == params["name"]);
        let (Some(tool), result) = (tool, client.answer("tools/call", params.clone()).await) else { continue };
        if result["result"]["isError"] == true {
            continue;
        }
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.add_resource("mcp:tool", tool["outputSchema"].clone()).unwrap();
        let schema = compiler.compile("mcp:tool", &mut schemas).unwrap();
        let valid = schemas.validate(&result["result"]["structuredContent"], schema);
        assert!(valid.is_ok(), "{params}: {:#}", valid.unwrap_err());
        checked += 1;
    }
    assert_eq!(checked, 5);
    client.close().await;
}
