//! Checks messages against the published JSON schemas, in the tests of both crates; included there by its path.

use std::cell::RefCell;
use std::collections::HashMap;

use boon::{Compiler, Schemas};
use serde_json::Value;

/// Who sent a message.
#[allow(dead_code, reason = "not every test that includes this file looks at both sides")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// The schema of one version.
struct Published {
    /// Where its definitions are: this changed with 2025-11-25.
    definitions: &'static str,
    document: Value,
    schemas: Schemas,
    compiler: Compiler,
}

thread_local! {
    static PUBLISHED: RefCell<HashMap<String, Published>> = RefCell::default();
}

/// Fails unless the value is what the schema of that version calls by that name.
pub fn assert_valid(version: &str, definition: &str, value: &Value) {
    with(version, |published| published.check(version, definition, value));
}

/// Fails unless a message is one that this side may send in that version. A response is checked against the method of
/// the request that it answers.
#[allow(dead_code, reason = "not every test that includes this file looks at whole messages")]
pub fn assert_message(version: &str, sender: Side, message: &Value, answers: Option<&str>) {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let definition = match message["method"].as_str() {
        Some(method) => with(version, |published| published.definition_of(method, message.get("id").is_some())),
        None if message.get("error").is_some() => error(version, message).to_owned(),
        None => {
            let method = answers.unwrap_or_else(|| panic!("expected the method that this answers: {message}"));
            let result = &message["result"];
            assert!(message.get("id").is_some(), "a result without an id: {message}");
            assert_valid(version, result_of(method, result), result);
            if version < "2026-07-28" {
                for new in ["resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"] {
                    assert!(result.get(new).is_none(), "{new} is not known in {version}: {message}");
                }
            }
            return;
        }
    };
    if version >= "2026-07-28" && message.get("method").is_some() {
        let request = message.get("id").is_some();
        assert!(!(request && sender == Side::Server), "servers send no requests in {version}: {message}");
    }
    assert_valid(version, &definition, message);
}

fn with<T>(version: &str, run: impl FnOnce(&mut Published) -> T) -> T {
    PUBLISHED.with_borrow_mut(|all| run(all.entry(version.to_owned()).or_insert_with(|| Published::read(version))))
}

impl Published {
    fn read(version: &str) -> Published {
        let text = match version {
            "2024-11-05" => include_str!("2024-11-05.json"),
            "2025-03-26" => include_str!("2025-03-26.json"),
            "2025-06-18" => include_str!("2025-06-18.json"),
            "2025-11-25" => include_str!("2025-11-25.json"),
            "2026-07-28" => include_str!("2026-07-28.json"),
            other => panic!("no schema of {other}"),
        };
        let document: Value = serde_json::from_str(text).unwrap();
        let definitions = if document.get("$defs").is_some() { "$defs" } else { "definitions" };
        let mut compiler = Compiler::new();
        compiler.add_resource("mcp:schema", document.clone()).unwrap();
        Published { definitions, document, schemas: Schemas::new(), compiler }
    }

    fn check(&mut self, version: &str, definition: &str, value: &Value) {
        let place = format!("mcp:schema#/{}/{definition}", self.definitions);
        let index = self.compiler.compile(&place, &mut self.schemas);
        let index = index.unwrap_or_else(|e| panic!("no {definition} in {version}: {e}"));
        if let Err(e) = self.schemas.validate(value, index) {
            panic!("no {definition} of {version}: {value}\n{e:#}");
        }
    }

    /// The definition of a request or notification, found by its method.
    fn definition_of(&self, method: &str, request: bool) -> String {
        let kind = if request { "Request" } else { "Notification" };
        let all = self.document[self.definitions].as_object().unwrap();
        let found = all
            .iter()
            .find(|(name, definition)| name.ends_with(kind) && definition["properties"]["method"]["const"] == method);
        let (name, _) = found.unwrap_or_else(|| panic!("no {kind} of the method {method}"));
        name.clone()
    }
}

fn error(version: &str, message: &Value) -> &'static str {
    match message["error"]["code"].as_i64() {
        Some(-32020) => "HeaderMismatchError",
        Some(-32021) => "MissingRequiredClientCapabilityError",
        Some(-32022) => "UnsupportedProtocolVersionError",
        _ if version >= "2025-11-25" => "JSONRPCErrorResponse",
        _ => "JSONRPCError",
    }
}

fn result_of(method: &str, result: &Value) -> &'static str {
    let asks = matches!(method, "tools/call" | "prompts/get" | "resources/read");
    if asks && result["resultType"] == "input_required" {
        return "InputRequiredResult";
    }
    match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "subscriptions/listen" => "SubscriptionsListenResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "completion/complete" => "CompleteResult",
        "sampling/createMessage" => "CreateMessageResult",
        "elicitation/create" => "ElicitResult",
        "roots/list" => "ListRootsResult",
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => "EmptyResult",
        other => panic!("no result of the method {other} is known"),
    }
}

#[test]
fn what_the_schema_does_not_allow_fails() {
    let message = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let done = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#;
    let asks = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
    let bare = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}"#;
    let lacks = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"m"}}"#;
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{}}"#;
    let call = Some("tools/call");
    for (version, sender, text, answers, fits) in [
        ("2026-07-28", Side::Server, done, call, true),
        ("2026-07-28", Side::Server, asks, call, true),
        ("2026-07-28", Side::Server, asks, Some("tools/list"), false),
        ("2026-07-28", Side::Server, bare, call, false),
        ("2025-11-25", Side::Server, bare, call, true),
        ("2025-11-25", Side::Server, done, call, false),
        ("2025-11-25", Side::Server, request, None, true),
        ("2026-07-28", Side::Server, request, None, false),
        ("2026-07-28", Side::Server, lacks, call, false),
        ("2025-06-18", Side::Server, updated, None, false),
        ("2024-11-05", Side::Client, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, None, true),
    ] {
        let checked = std::panic::catch_unwind(|| assert_message(version, sender, &message(text), answers));
        assert_eq!(checked.is_ok(), fits, "{version} {text}");
    }
}
