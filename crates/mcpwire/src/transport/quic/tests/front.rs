//! The front against a caller by hand, with the reference server behind it.

use serde_json::{Value, json};

use super::peers::{Front, address, read, shutdown, text, within};
use crate::transport::quic::frame;
use crate::transport::quic::proto::{
    BootRequest, HealthRequest, ListPromptsRequest, ListToolsRequest, PluginManifest, PluginRequest, PromptGetRequest,
    Request, Response, ShutdownRequest, StorageDeleteRequest, StorageListRequest, StorageReadRequest,
    StorageWriteRequest, StreamCancel, StreamStart, Struct, Subscribe, ToolRequest, ToolResponse,
};
use crate::transport::quic::{FrontOptions, Manifest, register, value};

pub(super) fn arguments(value: Value) -> Option<Struct> {
    let Value::Object(object) = value else { panic!("no object") };
    Some(value::to_struct(object).unwrap())
}

pub(super) fn tool(name: &str, with: Value) -> Request {
    Request::ToolCall(ToolRequest { tool_name: name.into(), arguments: arguments(with), ..Default::default() })
}

#[tokio::test]
async fn tools_and_prompts_of_any_server_are_listed_and_called() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let Response::ListTools(list) = caller.call(Request::ListTools(ListToolsRequest {})).await else { panic!() };
    let add = list.tools.into_iter().find(|tool| tool.name == "add").unwrap();
    assert_eq!(value::to_object(add.input_schema.unwrap())["type"], "object");
    assert_eq!(text(caller.call(tool("echo", json!({"message": "hi"}))).await), "hi");
    // Whole numbers arrive as such: the tool takes no others.
    assert_eq!(text(caller.call(tool("progress", json!({"steps": 2, "ms": 0}))).await), "Took 2 steps.");
    let Response::ListPrompts(list) = caller.call(Request::ListPrompts(ListPromptsRequest {})).await else { panic!() };
    assert!(list.prompts.iter().any(|prompt| prompt.name == "test_simple_prompt"));
    let get = |name: &str| Request::PromptGet(PromptGetRequest { prompt_name: name.into(), ..Default::default() });
    let Response::PromptGet(prompt) = caller.call(get("test_simple_prompt")).await else { panic!() };
    assert_eq!(prompt.messages[0].role, "user");
    let Response::PromptGet(none) = caller.call(get("none")).await else { panic!() };
    assert!(none.messages.is_empty() && !none.description.is_empty());
    front.stop().await;
}

#[tokio::test]
async fn what_goes_wrong_is_told_under_a_code() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let failure = async |request| match caller.call(request).await {
        Response::ToolCall(ToolResponse { success: false, error_code, error_message, .. }) => {
            (error_code, error_message)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(failure(tool("none", json!({}))).await, ("tool_not_found".into(), r#"tool "none" not found"#.into()));
    assert_eq!(failure(tool("test_error_handling", json!({}))).await.0, "tool_error");
    assert_eq!(failure(tool("add", json!({"a": "x"}))).await.0, "invalid_params");
    let unknown = failure(Request::Subscribe(Subscribe::default())).await;
    assert_eq!(unknown, ("unknown_request".into(), "unrecognized request type".into()));
}

#[tokio::test]
async fn what_is_more_than_text_comes_with_all_of_it() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let answer = caller.call(tool("test_image_content", json!({}))).await;
    let Response::ToolCall(ToolResponse { success: true, result, .. }) = answer else { panic!("{answer:?}") };
    let result = value::to_object(result.unwrap());
    assert_eq!(result["text"], "[image image/png]");
    let whole: Value = serde_json::from_str(result["_mcp"].as_str().unwrap()).unwrap();
    assert_eq!(whole["content"][0]["type"], "image");
}

#[tokio::test]
async fn a_plugins_life() {
    let (asked, mut shut_down) = shutdown();
    let front = Front::start_with(false, FrontOptions { shutdown: Some(asked), ..FrontOptions::default() });
    let caller = front.caller().await;
    let health = |response| match response {
        Response::Health(health) => health.status,
        other => panic!("{other:?}"),
    };
    assert_eq!(health(caller.call(Request::Health(HealthRequest {})).await), 1);
    let manifest = PluginManifest { id: "x".into(), ..Default::default() };
    assert!(
        matches!(caller.call(Request::Register(Box::new(manifest))).await, Response::Register(said) if said.accepted)
    );
    assert!(matches!(caller.call(Request::Boot(BootRequest::default())).await, Response::Boot(said) if said.ready));
    assert_eq!(health(caller.call(Request::Health(HealthRequest {})).await), 1);
    let end = Request::Shutdown(ShutdownRequest { timeout_seconds: 5 });
    assert!(matches!(caller.call(end).await, Response::Shutdown(said) if said.clean));
    within("to be told", shut_down.recv()).await.unwrap();
}

#[tokio::test]
async fn a_client_cannot_end_a_front_that_is_no_plugin() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let end = Request::Shutdown(ShutdownRequest { timeout_seconds: 5 });
    assert!(matches!(caller.call(end).await, Response::Shutdown(said) if said.clean));
    assert_eq!(text(caller.call(tool("echo", json!({"message": "still here"}))).await), "still here");
}

#[tokio::test]
async fn a_plugin_registers_with_an_orchestrator() {
    let front = Front::start(false);
    let identity = front.folder.certs().identity("p-client").unwrap();
    register(address(front.at), &identity, &Manifest::new("p", "d")).await.unwrap();
}

#[tokio::test]
async fn resources_are_storage_that_cannot_be_written() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let list = Request::StorageList(StorageListRequest { prefix: "notes/".into(), ..Default::default() });
    assert!(matches!(caller.call(list).await, Response::StorageList(list) if list.entries.is_empty()));
    let read = Request::StorageRead(StorageReadRequest { path: "notes/none.md".into(), ..Default::default() });
    assert!(matches!(caller.call(read).await, Response::StorageRead(found) if found.version == 0));
    let write = Request::StorageWrite(StorageWriteRequest { path: "notes/a.md".into(), ..Default::default() });
    assert!(
        matches!(caller.call(write).await, Response::StorageWrite(said) if !said.success && !said.error.is_empty())
    );
    let delete = Request::StorageDelete(StorageDeleteRequest { path: "notes/a.md".into(), ..Default::default() });
    assert!(matches!(caller.call(delete).await, Response::StorageDelete(said) if !said.success));
}

fn start(stream_id: &str, name: &str, with: Value) -> Request {
    Request::StreamStart(StreamStart {
        stream_id: stream_id.into(),
        tool_name: name.into(),
        arguments: arguments(with),
        caller_plugin: "test".into(),
    })
}

#[tokio::test]
async fn progress_comes_in_pieces_before_the_result() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let mut input = caller.start(start("s", "progress", json!({"steps": 2, "ms": 0}))).await;
    let mut kinds = Vec::new();
    loop {
        match read(&mut input).await {
            Response::StreamChunk(chunk) => {
                assert_eq!((chunk.stream_id.as_str(), chunk.sequence), ("s", kinds.len() as i64));
                kinds.push((chunk.content_type, String::from_utf8(chunk.data).unwrap()));
            }
            Response::StreamEnd(end) => {
                assert!(end.success && end.total_chunks == 3, "{end:?}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(kinds[0].1.contains(r#""progress":1"#) && kinds[1].1.contains(r#""progress":2"#), "{kinds:?}");
    assert_eq!(kinds[2].1, "Took 2 steps.");
}

#[tokio::test]
async fn a_call_in_pieces_can_be_cancelled_and_an_unknown_one_ends_at_once() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let mut none = caller.start(start("n", "none", json!({}))).await;
    assert!(matches!(read(&mut none).await, Response::StreamEnd(end) if end.error_code == "tool_not_found"));
    let mut slow = caller.start(start("s", "slow", json!({"ms": 600_000}))).await;
    running(&caller, 2).await;
    caller.start(Request::StreamCancel(StreamCancel { stream_id: "s".into() })).await;
    assert!(matches!(read(&mut slow).await, Response::StreamEnd(end) if end.error_code == "cancelled"));
    running(&caller, 1).await;
}

/// As Orchestra's own clients do it.
#[tokio::test]
async fn a_call_in_pieces_can_be_cancelled_on_its_own_stream() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let frame = |request| {
        let request = PluginRequest { request_id: "id".into(), request: Some(request) };
        frame::encode(&request).unwrap()
    };
    let (mut output, mut slow) = caller.connection.open_bi().await.unwrap();
    output.write_all(&frame(start("s", "slow", json!({"ms": 600_000})))).await.unwrap();
    running(&caller, 2).await;
    output.write_all(&frame(Request::StreamCancel(StreamCancel { stream_id: "s".into() }))).await.unwrap();
    assert!(matches!(read(&mut slow).await, Response::StreamEnd(end) if end.error_code == "cancelled"));
    running(&caller, 1).await;
}

#[tokio::test]
async fn a_caller_that_stops_waiting_cancels_its_call() {
    let front = Front::start(false);
    let caller = front.caller().await;
    let slow = caller.start(tool("slow", json!({"ms": 600_000}))).await;
    running(&caller, 2).await;
    drop(slow);
    running(&caller, 1).await;
}

/// Waits until so many calls are under way at the server, the one that asks included.
async fn running(caller: &super::peers::Caller, calls: u64) {
    within("calls to start or end", async {
        loop {
            let info: Value = serde_json::from_str(&text(caller.call(tool("info", json!({}))).await)).unwrap();
            if info["running"] == calls {
                return;
            }
        }
    })
    .await;
}
