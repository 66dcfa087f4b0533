//! The target against an orchestrator by hand: what it asks, and what it makes of the answers.

use std::sync::Arc;

use mcpwire_proto::meta::key;
use serde_json::{Value, json};

use super::peers::{Client, Folder, Orchestrator, loopback, refused, within};
use crate::transport::quic::proto::{
    Kind, ListPromptsResponse, ListToolsResponse, PluginRequest, PromptArgument, PromptContent, PromptDefinition,
    PromptGetResponse, PromptMessage, Request, Response, StorageEntry, StorageListResponse, StorageReadResponse,
    Struct, ToolDefinition, ToolResponse, Value as Field,
};
use crate::transport::quic::value;

fn fields(value: Value) -> Option<Struct> {
    let Value::Object(object) = value else { panic!("no object") };
    Some(value::to_struct(object).unwrap())
}

fn succeeded(result: Value) -> Response {
    Response::ToolCall(ToolResponse { success: true, result: fields(result), ..Default::default() })
}

fn called(tool: &str, arguments: Option<Struct>) -> Vec<Response> {
    vec![match tool {
        "text" => succeeded(json!({"text": "hi", "more": 1})),
        "json" => succeeded(json!({"b": [1, 2.5], "a": {"n": 3}})),
        "nothing" => succeeded(json!({})),
        "no mcp" => succeeded(json!({"_mcp": "[1]"})),
        "empty" => Response::ToolCall(ToolResponse { success: true, ..Default::default() }),
        "echo" => Response::ToolCall(ToolResponse { success: true, result: arguments, ..Default::default() }),
        "code" => refused("validation_error", ""),
        "slow" => return Vec::new(),
        "odd" => Response::ListTools(ListToolsResponse::default()),
        other => refused("tool_not_found", &format!("no plugin provides tool {other:?}")),
    }]
}

pub(super) fn script(request: PluginRequest) -> Vec<Response> {
    match request.request {
        Some(Request::ToolCall(call)) => called(&call.tool_name, call.arguments),
        Some(Request::ListTools(_)) => {
            let tool = |name: &str, schema| ToolDefinition {
                name: name.into(),
                description: "d".into(),
                input_schema: schema,
            };
            let tools =
                vec![tool("z", fields(json!({"type": "object", "minimum": 1}))), tool("a", None), tool("z", None)];
            vec![Response::ListTools(ListToolsResponse { tools })]
        }
        Some(Request::ListPrompts(_)) => {
            let arguments = vec![PromptArgument { name: "x".into(), description: String::new(), required: true }];
            let prompts = vec![PromptDefinition { name: "p".into(), description: "d".into(), arguments }];
            vec![Response::ListPrompts(ListPromptsResponse { prompts })]
        }
        Some(Request::PromptGet(get)) if get.prompt_name == "p" => {
            let content = PromptContent { r#type: "text".into(), text: get.arguments["x"].clone() };
            let messages = vec![PromptMessage { role: "user".into(), content: Some(content) }];
            vec![Response::PromptGet(PromptGetResponse { description: "d".into(), messages })]
        }
        Some(Request::PromptGet(_)) => {
            vec![Response::PromptGet(PromptGetResponse { description: "no such prompt".into(), messages: Vec::new() })]
        }
        Some(Request::StorageList(list)) if list.prefix == "notes/" => {
            let entries = vec![StorageEntry { path: "notes/N-1.md".into(), size: 2, version: 1 }];
            vec![Response::StorageList(StorageListResponse { entries })]
        }
        Some(Request::StorageList(_)) => vec![Response::StorageList(StorageListResponse::default())],
        Some(Request::StorageRead(read)) if read.path == "notes/N-1.md" => {
            vec![Response::StorageRead(StorageReadResponse {
                content: b"# N".to_vec(),
                version: 1,
                ..Default::default()
            })]
        }
        Some(Request::StorageRead(_)) => vec![Response::StorageRead(StorageReadResponse::default())],
        _ => vec![refused("unknown_request", "unrecognized request type")],
    }
}

async fn opened(folder: &Folder) -> (Orchestrator, Client, Value) {
    let orchestrator = Orchestrator::start(folder, loopback(), Arc::new(script));
    let mut client = Client::new(folder, orchestrator.at);
    let said = client.open().await;
    (orchestrator, client, said)
}

pub(super) async fn call(client: &mut Client, tool: &str, arguments: Value) -> Value {
    client.result("tools/call", json!({"name": tool, "arguments": arguments})).await
}

#[tokio::test]
async fn the_handshake_answers_the_version_that_was_asked_for() {
    let folder = Folder::new();
    let (_orchestrator, mut client, said) = opened(&folder).await;
    assert_eq!(said["protocolVersion"], "2025-06-18");
    assert_eq!(said["serverInfo"], json!({"name": "orchestra", "version": "1.0.0"}));
    for capability in ["tools", "prompts", "resources", "logging"] {
        assert!(said["capabilities"][capability].is_object(), "{said}");
    }
    assert_eq!(said["_sessionId"].as_str().unwrap().len(), 36);
    assert_eq!(client.result("ping", json!({})).await, json!({}));
    let answer = client.ask("some/unknown", json!({})).await;
    assert_eq!(answer["error"], json!({"code": -32601, "message": "method not found: some/unknown"}));
}

#[tokio::test]
async fn tools_and_results_are_mapped() {
    let folder = Folder::new();
    let (orchestrator, mut client, said) = opened(&folder).await;
    let tools = client.result("tools/list", json!({})).await;
    let expected = json!({"tools": [
        {"name": "a", "description": "d", "inputSchema": {"type": "object"}},
        {"name": "z", "description": "d", "inputSchema": {"type": "object", "minimum": 1}},
    ]});
    assert_eq!(tools, expected);
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let error = |text: &str| json!({"content": [{"type": "text", "text": text}], "isError": true});
    assert_eq!(call(&mut client, "text", json!({})).await, text("hi"));
    assert_eq!(call(&mut client, "json", json!({})).await, text(r#"{"a":{"n":3},"b":[1,2.5]}"#));
    assert_eq!(call(&mut client, "empty", json!({})).await, text(""));
    assert_eq!(call(&mut client, "nothing", json!({})).await, text("{}"), "a result that is there is shown");
    assert_eq!(call(&mut client, "no mcp", json!({})).await, text(r#"{"_mcp":"[1]"}"#));
    assert_eq!(call(&mut client, "echo", json!({"n": 1, "f": 0.5})).await, text(r#"{"f":0.5,"n":1}"#));
    assert_eq!(call(&mut client, "code", json!({})).await, error("tool error: validation_error"));
    assert_eq!(call(&mut client, "nope", json!({})).await, error(r#"no plugin provides tool "nope""#));
    let odd = client.ask("tools/call", json!({"name": "odd"})).await;
    assert_eq!(odd["error"], json!({"code": -32603, "message": "unexpected response type from orchestrator"}));
    let missing = client.ask("tools/call", json!({"arguments": {}})).await;
    assert_eq!(missing["error"], json!({"code": -32602, "message": "missing required parameter: name"}));
    let seen = orchestrator.seen.lock().unwrap();
    let call = seen.iter().find_map(|seen| match &seen.request {
        Some(Request::ToolCall(call)) => Some((seen.request_id.clone(), call.clone())),
        _ => None,
    });
    let (request_id, call) = call.unwrap();
    assert_eq!(request_id, "stdio-tc-3");
    assert_eq!(
        (call.caller_plugin.as_str(), call.session_id.as_str()),
        ("transport.stdio", said["_sessionId"].as_str().unwrap())
    );
}

#[tokio::test]
async fn numbers_that_would_change_are_refused_before_they_are_sent() {
    let folder = Folder::new();
    let (orchestrator, mut client, _) = opened(&folder).await;
    let answer = client.ask("tools/call", json!({"name": "echo", "arguments": {"n": 9_007_199_254_740_993_u64}})).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(orchestrator.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn prompts_and_resources_are_mapped() {
    let folder = Folder::new();
    let (_orchestrator, mut client, _) = opened(&folder).await;
    let prompts = client.result("prompts/list", json!({})).await;
    assert_eq!(
        prompts,
        json!({"prompts": [{"name": "p", "description": "d", "arguments": [{"name": "x", "required": true}]}]})
    );
    let prompt = client.result("prompts/get", json!({"name": "p", "arguments": {"x": "hello"}})).await;
    assert_eq!(
        prompt,
        json!({"description": "d", "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]})
    );
    let none = client.ask("prompts/get", json!({"name": "q"})).await;
    assert_eq!(none["error"], json!({"code": -32603, "message": "orchestrator prompt_get failed: no such prompt"}));
    let uri = "orchestra://notes/N-1";
    let listed = client.result("resources/list", json!({})).await;
    assert_eq!(listed, json!({"resources": [{"uri": uri, "name": "N-1", "mimeType": "text/markdown"}]}));
    let read = client.result("resources/read", json!({"uri": uri})).await;
    assert_eq!(read, json!({"contents": [{"uri": uri, "mimeType": "text/markdown", "text": "# N"}]}));
    let missing = client.ask("resources/read", json!({"uri": "orchestra://notes/N-2"})).await;
    assert_eq!(missing["error"]["code"], -32002);
    let templates = client.result("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 3);
    let level = client.ask("logging/setLevel", json!({"level": "loud"})).await;
    assert_eq!(level["error"], json!({"code": -32602, "message": r#"invalid log level: "loud""#}));
}

#[tokio::test]
async fn a_slow_call_holds_nothing_up_and_can_be_cancelled() {
    let folder = Folder::new();
    let (orchestrator, mut client, _) = opened(&folder).await;
    let slow = client.start("tools/call", json!({"name": "slow"})).await;
    assert_eq!(client.result("ping", json!({})).await, json!({}));
    within("the call to arrive", async {
        while orchestrator.seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}})).await;
    assert_eq!(call(&mut client, "text", json!({})).await["content"][0]["text"], "hi");
}

#[tokio::test]
async fn fifty_calls_at_once_get_their_own_answers() {
    let folder = Folder::new();
    let (_orchestrator, mut client, _) = opened(&folder).await;
    let mut owed = std::collections::BTreeMap::new();
    for n in 0..50 {
        let id = client.start("tools/call", json!({"name": "echo", "arguments": {"text": format!("call {n}")}})).await;
        owed.insert(id, format!("call {n}"));
    }
    while !owed.is_empty() {
        let answer = client.message().await;
        let expected = owed.remove(&answer["id"].as_u64().unwrap()).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], expected);
    }
}

#[tokio::test]
async fn a_result_of_mcp_comes_back_as_it_was() {
    let whole = r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}],"structuredContent":{"n":1.10}}"#;
    let mut result = Struct::default();
    result.fields.insert("_mcp".into(), Field { kind: Some(Kind::String(whole.into())) });
    let answer = Response::ToolCall(ToolResponse { success: true, result: Some(result), ..Default::default() });
    let folder = Folder::new();
    let orchestrator = Orchestrator::start(&folder, loopback(), Arc::new(move |_| vec![answer.clone()]));
    let mut client = Client::new(&folder, orchestrator.at);
    client.open().await;
    let expected: Value = serde_json::from_str(whole).unwrap();
    assert_eq!(call(&mut client, "x", json!({})).await, expected);
}

#[tokio::test]
async fn a_call_in_a_vanished_orchestrator_fails_and_the_next_one_works() {
    let folder = Folder::new();
    let (orchestrator, mut client, _) = opened(&folder).await;
    let lost = client.start("tools/call", json!({"name": "slow"})).await;
    client.result("ping", json!({})).await;
    within("the call to arrive", async {
        while orchestrator.seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let at = orchestrator.at;
    orchestrator.vanish();
    let anew = Orchestrator::start(&folder, at, Arc::new(script));
    let answer = client.message().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(lost), &json!(-32603)), "{answer}");
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("was not sent again"), "{said}");
    let id = client.start("tools/call", json!({"name": "text"})).await;
    let mut told = Vec::new();
    loop {
        let message = client.message().await;
        if message["id"] == id {
            assert_eq!(message["result"]["content"][0]["text"], "hi");
            break;
        }
        told.push(message["method"].as_str().unwrap().to_owned());
    }
    assert_eq!(told, ["notifications/tools/list_changed", "notifications/prompts/list_changed"]);
    assert_eq!(anew.seen.lock().unwrap().len(), 1, "the lost call was sent again");
}

#[tokio::test]
async fn an_orchestrator_that_is_not_there_is_told_as_an_error() {
    let folder = Folder::new();
    let nobody = std::net::UdpSocket::bind(loopback()).unwrap();
    let mut client = Client::new(&folder, nobody.local_addr().unwrap());
    let answer = client.ask("initialize", json!({"protocolVersion": "2025-06-18"})).await;
    assert_eq!(answer["error"]["code"], -32603);
    assert!(answer["error"]["message"].as_str().unwrap().contains("does not answer"), "{answer}");
}

#[tokio::test]
async fn many_who_wait_for_an_orchestrator_wait_no_longer_than_one() {
    let folder = Folder::new();
    let nobody = std::net::UdpSocket::bind(loopback()).unwrap();
    let mut client = Client::new(&folder, nobody.local_addr().unwrap());
    // Without a session each of them is tried by itself.
    let asked: std::collections::BTreeSet<u64> = {
        let mut asked = std::collections::BTreeSet::new();
        for _ in 0..20 {
            asked.insert(client.start("tools/list", json!({})).await);
        }
        asked
    };
    let mut answered = std::collections::BTreeSet::new();
    while answered.len() < asked.len() {
        let answer = client.message().await;
        assert_eq!(answer["error"]["code"], -32603);
        answered.insert(answer["id"].as_u64().unwrap());
    }
    assert_eq!(answered, asked);
}

#[tokio::test]
async fn requests_of_the_stateless_era_are_answered_in_their_form() {
    let folder = Folder::new();
    let orchestrator = Orchestrator::start(&folder, loopback(), Arc::new(script));
    let mut client = Client::new(&folder, orchestrator.at);
    let meta = json!({key::PROTOCOL_VERSION: "2026-07-28", key::CLIENT_CAPABILITIES: {}});
    let said = client.result("server/discover", json!({"_meta": meta})).await;
    assert!(said["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert_eq!(
        (&said["resultType"], &said["ttlMs"], &said["cacheScope"]),
        (&json!("complete"), &json!(0), &json!("private"))
    );
    assert_eq!(said["_meta"][key::SERVER_INFO]["name"], "orchestra");
    let tools = client.result("tools/list", json!({"_meta": meta})).await;
    assert_eq!((&tools["resultType"], &tools["ttlMs"]), (&json!("complete"), &json!(0)));
    let called = client.result("tools/call", json!({"name": "text", "_meta": meta})).await;
    assert_eq!(called["resultType"], "complete");
    assert!(called.get("ttlMs").is_none());
    let missing = client.ask("resources/read", json!({"uri": "orchestra://notes/none", "_meta": meta})).await;
    assert_eq!(missing["error"]["code"], -32602);
    assert_eq!(client.ask("ping", json!({"_meta": meta})).await["error"]["code"], -32601);
    let newer = json!({key::PROTOCOL_VERSION: "2099-01-01", key::CLIENT_CAPABILITIES: {}});
    let answer = client.ask("tools/list", json!({"_meta": newer})).await;
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["requested"]),
        (&json!(-32022), &json!("2099-01-01"))
    );
    client
        .start(
            "subscriptions/listen",
            json!({"_meta": meta, "notifications": {"toolsListChanged": true, "resourcesListChanged": true}}),
        )
        .await;
    let acknowledged = client.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({"toolsListChanged": true}));
}
