//! What is refused, and how it is told.

use mcpwire_proto::version::V2025_11_25;
use serde_json::json;

use super::{ask, everywhere, library, refused, with_version};
use crate::support::scratch::Scratch;

#[tokio::test]
async fn faults_are_told_and_the_session_goes_on() {
    let folder = library();
    let root = folder.path().canonicalize().unwrap().display().to_string();
    everywhere(&folder.file(""), async |client| {
        for uri in [
            "orchestr8://agents/none",
            "orchestr8://Agents",
            "orchestr8://agents/../../etc/passwd",
            "orchestr8://agents/..%2f..%2fetc%2fpasswd",
            "orchestr8:///etc/passwd",
            "file:///etc/passwd",
            "not a uri",
            "orchestr8://nothing/match?query=x",
        ] {
            let id = client.request("resources/read", json!({ "uri": uri })).await;
            let error = client.refusal(id).await;
            let expected =
                json!({"code": -32602, "message": format!("Resource not found: {uri}"), "data": {"uri": uri}});
            assert_eq!(error, expected);
        }
        for (uri, told) in [
            ("orchestr8://agents/match", "Invalid dynamic URI. \"query\" parameter is required for match URIs."),
            ("orchestr8://match?query=", "Invalid dynamic URI. \"query\" parameter is required for match URIs."),
            ("orchestr8://match?query=a&maxTokens=abc", "Invalid maxTokens parameter. Expected number, got: abc"),
        ] {
            assert_eq!(refused(client, "resources/read", json!({ "uri": uri })).await, (-32602, told.to_owned()));
        }
        for (method, params, code) in [
            ("resources/read", json!({}), -32602),
            ("resources/read", json!({"uri": 7}), -32602),
            ("prompts/get", json!({"name": "deploy-it", "arguments": {"service": 7}}), -32602),
            ("prompts/get", json!({"name": "deploy-it", "arguments": []}), -32602),
            ("completion/complete", json!({"ref": {"type": "x"}, "argument": {"name": "a", "value": ""}}), -32602),
            ("tools/list", json!({}), -32601),
            ("logging/setLevel", json!({"level": "info"}), -32601),
            ("no/such", json!({}), -32601),
        ] {
            let (came, told) = refused(client, method, params.clone()).await;
            assert_eq!(came, code, "{method} {params}: {told}");
            assert!(!told.contains(&root), "{told}");
        }
        assert!(ask(client, "resources/list", json!({})).await["resources"].is_array());
    })
    .await;
}

#[tokio::test]
async fn what_is_not_there_is_not_declared() {
    let folder = Scratch::new();
    super::write(&folder, &[("data/things/records.json", "[]")]);
    with_version(&folder.file(""), V2025_11_25, async |client| {
        let first = ask(client, "initialize", json!({"protocolVersion": "2024-11-05", "capabilities": {}})).await;
        assert_eq!(first["protocolVersion"], "2024-11-05");
        assert_eq!(first["capabilities"], json!({"tools": {"listChanged": true}}));
        assert_eq!(ask(client, "ping", json!({})).await, json!({}));
        for method in ["prompts/list", "prompts/get"] {
            assert_eq!(refused(client, method, json!({"name": "x"})).await.0, -32601);
        }
    })
    .await;
    let folder = Scratch::new();
    super::write(&folder, &[("resources/agents/a.md", "x")]);
    with_version(&folder.file(""), V2025_11_25, async |client| {
        let first = ask(client, "initialize", json!({"protocolVersion": "2030-01-01", "capabilities": {}})).await;
        assert_eq!(first["protocolVersion"], "2025-11-25", "the newest one that is known");
        let expected = json!({"resources": {"listChanged": true, "subscribe": true}, "completions": {}});
        assert_eq!(first["capabilities"], expected);
        let (code, _) = refused(client, "resources/subscribe", json!({"uri": "orchestr8://agents/none"})).await;
        assert_eq!(code, -32602);
    })
    .await;
}
