//! Bad input: each a defined answer, none the end of the session.

use super::*;

#[tokio::test]
async fn before_initialize_only_ping_is_served() {
    let shared = Shared::default();
    let mut client = Client::silent(&shared);
    assert_eq!(client.request("ping", json!({})).await, json!({}));
    for method in ["tools/list", "tools/call", "resources/read", "logging/setLevel"] {
        let (code, text) = client.refusal(method, json!({})).await;
        assert_eq!((code, text), (-32600, format!("invalid request: expected initialize first, came {method}")));
    }
    assert_eq!(client.refusal("nonsense", json!({})).await, (-32601, "method not found: nonsense".into()));
    shared.touch("test://watched-resource");
    client.request("ping", json!({})).await;
    client.close().await;
}

#[tokio::test]
async fn a_version_is_agreed() {
    let shared = Shared::default();
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let mut client = Client::silent(&shared);
        let result = client.request("initialize", json!({ "protocolVersion": asked, "capabilities": {} })).await;
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(result["serverInfo"]["name"], "mcpwire-reference");
        client.close().await;
    }
}

#[tokio::test]
async fn initialize_is_taken_once_and_only_whole() {
    let mut client = Client::silent(&Shared::default());
    for (params, text) in [
        (json!({}), "expected a string as protocolVersion, came nothing"),
        (json!({ "protocolVersion": 1 }), "expected a string as protocolVersion, came 1"),
        (json!({ "protocolVersion": "1", "capabilities": [] }), "expected an object as capabilities, came []"),
        (json!([]), "expected an object as params, came []"),
    ] {
        assert_eq!(client.refusal("initialize", params).await, (-32602, format!("invalid params: {text}")));
    }
    let params = json!({ "protocolVersion": "2025-11-25" });
    client.request("initialize", params.clone()).await;
    assert_eq!(client.refusal("initialize", params).await.0, -32600);
    client.close().await;
}

#[tokio::test]
async fn wrong_requests_say_what_was_expected() {
    let mut client = Client::open(&Shared::default()).await;
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let cases = [
        ("nonsense/method", json!({}), -32601, "method not found: nonsense/method"),
        ("tools/call", json!({}), -32602, "expected a string as name, came nothing"),
        ("tools/call", json!({ "name": "none" }), -32602, r#"expected the name of a tool, came "none""#),
        ("tools/call", call("echo", json!({})), -32602, "expected a string as message, came nothing"),
        ("tools/call", call("echo", json!({ "message": 7 })), -32602, "expected a string as message, came 7"),
        ("tools/call", call("echo", json!([1])), -32602, "expected an object as arguments, came [1]"),
        ("tools/call", call("add", json!({ "a": 1, "b": "2" })), -32602, r#"expected a number as b, came "2""#),
        ("tools/call", call("slow", json!({})), -32602, "expected a whole number as ms, came nothing"),
        (
            "tools/call",
            call("slow", json!({ "ms": -1 })),
            -32602,
            "expected a whole number from 0 to 3600000 as ms, came -1",
        ),
        ("tools/call", call("big", json!({ "bytes": 1e30 })), -32602, "expected a whole number from 0 to"),
        ("tools/call", call("log", json!({ "level": "loud", "message": "" })), -32602, "debug to emergency"),
        ("tools/call", call("touch", json!({ "uri": "test://none" })), -32002, "resource not found: test://none"),
        ("tools/call", call("register", json!({ "kind": "tool", "name": "a b" })), -32602, r#"as name, came "a b""#),
        (
            "tools/call",
            call("register", json!({ "kind": "x", "name": "a" })),
            -32602,
            "expected tool, resource or prompt",
        ),
        (
            "tools/call",
            json!({ "name": "echo", "_meta": { "progressToken": {} } }),
            -32602,
            "as progressToken, came {}",
        ),
        ("resources/read", json!({ "uri": "test://none" }), -32002, "resource not found: test://none"),
        ("resources/read", json!({}), -32602, "expected a string as uri, came nothing"),
        ("resources/subscribe", json!({ "uri": "test://template//data" }), -32002, "resource not found"),
        ("prompts/get", json!({ "name": "none" }), -32602, r#"expected the name of a prompt, came "none""#),
        (
            "prompts/get",
            call("test_prompt_with_arguments", json!({ "arg1": "" })),
            -32602,
            "a string as arg2, came nothing",
        ),
        ("completion/complete", json!({}), -32602, "expected an object as ref, came nothing"),
        ("logging/setLevel", json!({ "level": "loud" }), -32602, r#"as level, came "loud""#),
        ("tools/list", json!({ "cursor": "from-999" }), -32602, "expected a nextCursor of this list as cursor, came"),
        ("tools/list", json!([1, 2]), -32602, "expected an object as params, came [1,2]"),
    ];
    for (method, params, code, text) in cases {
        let (came, message) = client.refusal(method, params.clone()).await;
        assert!(came == code && message.contains(text), "{method} {params}: {came} {message}");
    }
    client.request("ping", json!({})).await;
    client.close().await;
}

#[tokio::test]
async fn long_input_is_cut_short_in_errors() {
    let mut client = Client::open(&Shared::default()).await;
    let (_, message) = client.refusal("tools/call", json!({ "name": "ü".repeat(100_000) })).await;
    assert!(message.len() < 250, "{}", message.len());
    let (_, message) = client.refusal("tools/call", json!({ "name": "echo", "arguments": "x".repeat(100_000) })).await;
    assert!(message.len() < 250, "{}", message.len());
    client.close().await;
}

#[tokio::test]
async fn an_id_in_use_is_refused() {
    let mut client = Client::open(&Shared::default()).await;
    let slow = client.start_call("slow", json!({ "ms": 3_600_000 })).await;
    let again = Message::request(&slow, "tools/call", Some(r#"{"name":"echo","arguments":{"message":""}}"#));
    client.send(again).await;
    assert_eq!(client.answer(&slow).await["error"]["code"], -32600);
    client.close().await;
}

#[tokio::test]
async fn stray_messages_are_let_pass() {
    let mut client = Client::open(&Shared::default()).await;
    client.notify("notifications/unknown", json!({})).await;
    client.notify("notifications/cancelled", json!({ "requestId": null })).await;
    client.notify("tools/call", json!({ "name": "count", "arguments": {} })).await;
    client.send(Message::result(&Id::from(99), "{}")).await;
    client.send(Message::error(None, -32700, "what?")).await;
    client.request("ping", json!({})).await;
    client.close().await;
}
