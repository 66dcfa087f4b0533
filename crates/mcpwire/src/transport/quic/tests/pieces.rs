//! Tools that answer in pieces, tools that do not, and orchestrators that do not know the difference.

use std::sync::Arc;

use serde_json::{Value, json};

use super::peers::{Client, Folder, Orchestrator, loopback, refused};
use super::target::{call, script};
use crate::transport::quic::proto::{PluginRequest, Request, Response, StreamChunk, StreamEnd};

/// Pieces of a tool that streams; others do not.
fn streaming(request: PluginRequest) -> Vec<Response> {
    match request.request {
        Some(Request::StreamStart(start)) if start.tool_name == "count" => {
            let chunk = |sequence: i64, data: &str| {
                Response::StreamChunk(StreamChunk {
                    stream_id: start.stream_id.clone(),
                    data: data.into(),
                    content_type: "application/octet-stream".into(),
                    sequence,
                })
            };
            let end =
                StreamEnd { stream_id: start.stream_id.clone(), success: true, total_chunks: 2, ..Default::default() };
            vec![chunk(0, "one "), chunk(1, "two"), Response::StreamEnd(end)]
        }
        Some(Request::StreamStart(start)) => vec![Response::StreamEnd(StreamEnd {
            stream_id: start.stream_id,
            error_code: "tool_not_found".into(),
            ..Default::default()
        })],
        _ => script(request),
    }
}

#[tokio::test]
async fn pieces_of_an_answer_are_told_as_progress() {
    let folder = Folder::new();
    let orchestrator = Orchestrator::start(&folder, loopback(), Arc::new(streaming));
    let mut client = Client::new(&folder, orchestrator.at);
    client.open().await;
    let id = client.start("tools/call", json!({"name": "count", "_meta": {"progressToken": "t"}})).await;
    for (progress, said) in [(1, "one "), (2, "two")] {
        let params = client.message().await["params"].take();
        assert_eq!(params, json!({"progressToken": "t", "progress": progress, "message": said}));
    }
    let answer = client.message().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!("one two")));
    // A tool that has no pieces to give is called once, and asked for them only the first time.
    for _ in 0..2 {
        let params = json!({"name": "text", "_meta": {"progressToken": 1}});
        assert_eq!(client.result("tools/call", params).await["content"][0]["text"], "hi");
    }
    let seen = orchestrator.seen.lock().unwrap();
    let count =
        |fits: fn(&Request) -> bool| seen.iter().filter_map(|seen| seen.request.as_ref()).filter(|r| fits(r)).count();
    assert_eq!(count(|request| matches!(request, Request::ToolCall(_))), 2);
    assert_eq!(count(|request| matches!(request, Request::StreamStart(_))), 2);
}

/// A streaming tool of a plugin of Orchestra is not found by a plain call.
#[tokio::test]
async fn a_tool_that_answers_only_in_pieces_is_found() {
    let only_pieces = |request: PluginRequest| match &request.request {
        Some(Request::ToolCall(call)) if call.tool_name != "text" => {
            vec![refused("tool_not_found", &format!("tool {:?} not found", call.tool_name))]
        }
        _ => streaming(request),
    };
    let folder = Folder::new();
    let orchestrator = Orchestrator::start(&folder, loopback(), Arc::new(only_pieces));
    let mut client = Client::new(&folder, orchestrator.at);
    client.open().await;
    let counted = call(&mut client, "count", json!({})).await;
    assert_eq!(counted, json!({"content": [{"type": "text", "text": "one two"}]}));
    for _ in 0..2 {
        let unknown = call(&mut client, "none", json!({})).await;
        assert_eq!(unknown, json!({"content": [{"type": "text", "text": "tool \"none\" not found"}], "isError": true}));
    }
    let seen = orchestrator.seen.lock().unwrap();
    let streams = seen.iter().filter(|seen| matches!(seen.request, Some(Request::StreamStart(_))));
    assert_eq!(streams.count(), 2, "what has no pieces is asked for them once");
}

fn is_stream_start(request: &PluginRequest) -> bool {
    matches!(request.request, Some(Request::StreamStart(_)))
}

fn with_progress(tool: &str) -> Value {
    json!({"name": tool, "_meta": {"progressToken": 1}})
}

#[tokio::test]
async fn an_unknown_tool_was_not_executed_even_if_the_orchestrator_closes_the_stream_of_the_second_try() {
    let folder = Folder::new();
    let orchestrator = Orchestrator::start_closing(&folder, loopback(), Arc::new(script), is_stream_start);
    let mut client = Client::new(&folder, orchestrator.at);
    client.open().await;
    let unknown = json!({"content": [{"type": "text", "text": "no plugin provides tool \"none\""}], "isError": true});
    assert_eq!(call(&mut client, "none", json!({})).await, unknown);
    assert_eq!(client.result("tools/call", with_progress("none")).await, unknown);
    let called = client.result("tools/call", with_progress("other")).await;
    assert_eq!(called["content"][0]["text"], "no plugin provides tool \"other\"", "{called}");
}

#[tokio::test]
async fn a_tool_that_is_offered_may_have_been_executed_when_its_stream_is_closed() {
    let folder = Folder::new();
    let orchestrator = Orchestrator::start_closing(&folder, loopback(), Arc::new(script), is_stream_start);
    let mut client = Client::new(&folder, orchestrator.at);
    client.open().await;
    // It is in the list, and not found by a plain call: it may answer in pieces only.
    let answer = client.ask("tools/call", json!({"name": "z"})).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("may have been executed"), "{answer}");
    let answer = client.ask("tools/call", with_progress("a")).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("may have been executed"), "{answer}");
    let seen = orchestrator.seen.lock().unwrap();
    let calls = seen.iter().filter(|seen| match &seen.request {
        Some(Request::ToolCall(call)) => call.tool_name == "a",
        _ => false,
    });
    assert_eq!(calls.count(), 0, "it was called a second time");
}

/// Clients that always ask for progress would be without tools.
#[tokio::test]
async fn a_tool_whose_stream_was_closed_is_called_plainly_the_next_time() {
    let answers = |mut request: PluginRequest| {
        if let Some(Request::ToolCall(called)) = &mut request.request {
            called.tool_name = "text".into();
        }
        script(request)
    };
    let folder = Folder::new();
    let orchestrator = Orchestrator::start_closing(&folder, loopback(), Arc::new(answers), is_stream_start);
    let mut client = Client::new(&folder, orchestrator.at);
    client.open().await;
    assert!(client.ask("tools/call", with_progress("a")).await["error"].is_object());
    assert_eq!(client.result("tools/call", with_progress("a")).await["content"][0]["text"], "hi");
}
