//! Headers of whole requests, and lists that pass by.

use serde_json::json;

use super::*;
use crate::version::ALL;

fn message(text: &str) -> Message {
    Message::parse(text.to_owned().into()).unwrap()
}

fn text(message: &Message) -> String {
    String::from_utf8(message.as_bytes().to_vec()).unwrap()
}

fn request(method: &str, params: serde_json::Value) -> Message {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "p",
    });
    Message::request(&Id::from(1), method, Some(&params.to_string()))
}

fn list(tools: serde_json::Value) -> Message {
    Message::result(&Id::from(1), &json!({"tools": tools, "ttlMs": 0}).to_string())
}

fn tool(name: &str, properties: serde_json::Value) -> serde_json::Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

/// A tool with a header for each kind of parameter, one of them nested.
fn learned() -> Tools {
    let mut tools = Tools::default();
    let properties = json!({
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "where": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
        "query": {"type": "string"},
    });
    assert!(tools.learn(&list(json!([tool("sql", properties), tool("plain", json!({}))]))).1.is_empty());
    tools
}

fn call(arguments: serde_json::Value) -> Message {
    request("tools/call", json!({"name": "sql", "arguments": arguments}))
}

fn given<'a>(headers: &'a [(Cow<'static, str>, String)], name: &str) -> Given<'a> {
    let found = headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    found.map_or(Given::Absent, |(_, value)| Given::Text(value))
}

fn checked(request: &Message, headers: &[(Cow<'static, str>, String)], tools: &Tools) -> Result<(), Fault> {
    check(request, &Said::by(request), |name| given(headers, name), tools, &ALL)
}

#[test]
fn headers_repeat_the_body() {
    let headers = derive(
        &call(json!({"region": "Zürich", "priority": 42.0, "dry": true, "where": {"zone": "a"}, "query": "q"})),
        &learned(),
    );
    let mut told: Vec<_> = headers.iter().map(|(name, value)| (name.as_ref(), value.as_str())).collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            ("mcp-method", "tools/call"),
            ("mcp-name", "sql"),
            ("mcp-param-Dry", "true"),
            ("mcp-param-Priority", "42"),
            ("mcp-param-Region", "=?base64?WsO8cmljaA==?="),
            ("mcp-param-Zone", "a"),
            ("mcp-protocol-version", "2026-07-28"),
        ]
    );
    let named = |method, params| given(&derive(&request(method, params), &Tools::default()), NAME) != Given::Absent;
    assert!(named("resources/read", json!({"uri": "file:///x", "name": 7})));
    assert!(named("prompts/get", json!({"name": "p"})));
    assert!(named("tasks/get", json!({"taskId": "t"})));
    assert!(!named("tools/list", json!({"name": "p"})));
    assert!(!named("tools/call", json!({"name": 7})));
}

#[test]
fn values_that_no_header_carries_are_left_out() {
    for arguments in [
        json!({}),
        json!({"region": null, "priority": 9_007_199_254_740_992_u64, "where": "zone"}),
        json!({"region": {"a": 1}, "where": {"zone": []}}),
        json!([]),
        json!(null),
    ] {
        let call = call(arguments.clone());
        let headers = derive(&call, &learned());
        assert_eq!(headers.len(), 3, "{arguments}: {headers:?}");
        assert_eq!(checked(&call, &headers, &learned()), Ok(()), "{arguments}");
    }
}

#[test]
fn what_we_send_we_take() {
    for arguments in [
        json!({"region": " x", "priority": -7, "dry": false}),
        json!({"region": "", "where": {"zone": "\r\n"}}),
        json!({"region": "=?base64?x?=", "priority": 3.5}),
        json!({"region": 12, "priority": "12", "dry": "false"}),
    ] {
        let call = call(arguments.clone());
        assert_eq!(checked(&call, &derive(&call, &learned()), &learned()), Ok(()), "{arguments}");
    }
}

/// Changes one header of a request that is right, and says with which code it is refused.
fn refused(request: &Message, name: &'static str, value: Option<&str>) -> Option<i32> {
    let mut headers = derive(request, &learned());
    headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    headers.extend(value.map(|value| (Cow::Borrowed(name), value.to_owned())));
    checked(request, &headers, &learned()).err().map(|fault| fault.code())
}

#[test]
fn headers_that_differ_from_the_body_are_refused() {
    let call = call(json!({"region": "eu", "priority": 42, "dry": true}));
    for (name, value) in [
        ("mcp-protocol-version", None),
        ("mcp-protocol-version", Some("2025-11-25")),
        ("mcp-method", None),
        ("mcp-method", Some("TOOLS/CALL")),
        ("mcp-name", None),
        ("mcp-name", Some("SQL")),
        ("mcp-name", Some("=?base64?c3Fs")),
        ("mcp-param-region", None),
        ("mcp-param-region", Some("us")),
        ("mcp-param-region", Some("=?base64?ZXU?=")),
        ("mcp-param-priority", Some("42.5")),
        ("mcp-param-priority", Some("+42")),
        ("mcp-param-dry", Some("True")),
        ("mcp-param-zone", Some("not in the body")),
    ] {
        assert_eq!(refused(&call, name, value), Some(-32020), "{name}: {value:?}");
    }
    for (name, value) in [
        ("mcp-name", "=?base64?c3Fs?="),
        ("mcp-param-region", "=?base64?ZXU=?="),
        ("mcp-param-priority", "42.0"),
        ("mcp-param-priority", "4.2e1"),
        ("mcp-param-unknown", "whatever"),
    ] {
        assert_eq!(refused(&call, name, Some(value)), None, "{name}: {value}");
    }
    let headers = derive(&call, &learned());
    let twice = |name: &str| if name == NAME { Given::Unreadable } else { given(&headers, name) };
    assert_eq!(check(&call, &Said::by(&call), twice, &learned(), &ALL).map_err(|fault| fault.code()), Err(-32020));
}

#[test]
fn requests_that_do_not_say_enough_are_refused_as_such() {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities""#;
    for meta in [
        String::new(),
        r#","params":{}"#.into(),
        r#","params":[1]"#.into(),
        format!(r#","params":{{"_meta":{{{version}}}}}"#),
        format!(r#","params":{{"_meta":{{{version},{capabilities}:7}}}}"#),
        format!(r#","params":{{"_meta":{{{capabilities}:{{}}}}}}"#),
    ] {
        let request = message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover"{meta}}}"#));
        let headers =
            [(PROTOCOL_VERSION.into(), "2026-07-28".to_owned()), (METHOD.into(), "server/discover".to_owned())];
        assert_eq!(checked(&request, &headers, &learned()).map_err(|fault| fault.code()), Err(-32602), "{meta}");
    }
}

#[test]
fn other_versions_are_told_what_is_served() {
    let of = |version: &str| message(&text(&call(json!({}))).replace("2026-07-28", version));
    let told = |request: &Message, headers: &[(Cow<'static, str>, String)]| {
        let fault = checked(request, headers, &learned()).unwrap_err();
        (fault.code(), text(&fault.to_message(None)))
    };
    let (code, text) = told(&of("v999"), &derive(&of("v999"), &learned()));
    assert_eq!(code, -32022);
    assert!(text.contains(r#""requested":"v999""#) && text.contains("2025-11-25"), "{text}");
    let (code, text) = told(&of("2025-11-25"), &derive(&of("2025-11-25"), &learned()));
    assert!(code == -32022 && text.contains(r#""supported":["2026-07-28"]"#), "{text}");
    // When body and header differ, nobody knows which version is meant.
    assert_eq!(told(&of("v999"), &derive(&of("2026-07-28"), &learned())).0, -32020);
}

#[test]
fn methods_that_are_gone_are_unknown() {
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let request = request(method, json!({}));
        let refused = checked(&request, &derive(&request, &learned()), &learned());
        assert_eq!(refused.map_err(|fault| fault.code()), Err(-32601), "{method}");
    }
}

#[test]
fn tools_that_break_the_rules_are_taken_out() {
    let annotated = |kind: &str, name: serde_json::Value| json!({"v": {"type": kind, "x-mcp-header": name}});
    let inside = |schema: serde_json::Value| json!({"name": "t", "inputSchema": schema});
    let property = json!({"type": "string", "x-mcp-header": "A"});
    for broken in [
        tool("t", annotated("string", json!(""))),
        tool("t", annotated("string", json!(7))),
        tool("t", annotated("string", json!("My Region"))),
        tool("t", annotated("string", json!("Region:Primary"))),
        tool("t", annotated("string", json!("Région"))),
        tool("t", annotated("string", json!("Re\tgion"))),
        tool("t", annotated("number", json!("A"))),
        tool("t", annotated("object", json!("A"))),
        tool("t", annotated("array", json!("A"))),
        tool("t", annotated("null", json!("A"))),
        tool("t", json!({"v": {"x-mcp-header": "A"}})),
        tool("t", json!({"v": {"type": ["string", "null"], "x-mcp-header": "A"}})),
        tool("t", json!({"v": property, "w": {"type": "string", "x-mcp-header": "a"}})),
        tool("t", json!({"v": {"type": "array", "items": property}})),
        tool("t", json!({"v": {"anyOf": [property]}})),
        tool("t", json!({"v": {"not": {"properties": {"w": property}}}})),
        inside(json!({"type": "string", "x-mcp-header": "A"})),
        inside(json!({"if": {"properties": {"v": property}}})),
        inside(json!({"$defs": {"d": property}, "properties": {"v": {"$ref": "#/$defs/d"}}})),
        inside(json!({"additionalProperties": property})),
    ] {
        let fine = json!({"name": "fine", "inputSchema": {}, "x": 1});
        let mut tools = Tools::default();
        let (left, invalid) = tools.learn(&list(json!([fine, broken, fine])));
        assert_eq!(invalid.len(), 1, "{broken}");
        assert_eq!(invalid[0].tool, "t");
        assert_eq!(left.as_bytes(), list(json!([fine, fine])).as_bytes(), "{broken}");
        assert!(tools.parameters_of("t").is_empty());
    }
}

#[test]
fn what_only_looks_like_an_annotation_is_none() {
    let property = json!({"type": "number", "x-mcp-header": "A"});
    for fine in [
        tool("t", json!({"x-mcp-header": {"type": "number"}})),
        tool("t", json!({"v": {"type": "object", "default": property, "enum": [property], "const": property}})),
        json!({"name": "t", "description": "x-mcp-header", "x-mcp-header": 7}),
        json!({"name": "t", "inputSchema": "x-mcp-header"}),
        json!({"x-mcp-header": 7}),
        json!("x-mcp-header"),
    ] {
        let list = list(json!([fine]));
        let (left, invalid) = Tools::default().learn(&list);
        assert!(invalid.is_empty(), "{fine}: {invalid:?}");
        assert_eq!(left.as_bytes().as_ptr(), list.as_bytes().as_ptr(), "passes as it is");
    }
}

#[test]
fn the_newest_list_counts() {
    let mut tools = learned();
    assert_eq!(tools.parameters_of("sql").len(), 4);
    tools.learn(&list(json!([tool("other", json!({}))])));
    assert_eq!(tools.parameters_of("sql").len(), 4, "a list may come in pages");
    tools.learn(&list(json!([tool("sql", json!({"n": {"type": "integer", "x-mcp-header": "N"}}))])));
    assert_eq!(tools.parameters_of("sql").len(), 1);
    tools.learn(&Message::error(Some(&Id::from(1)), -1, "no"));
    tools.learn(&Message::result(&Id::from(1), r#"{"tools":7}"#));
    tools.learn(&list(json!([tool("sql", json!({}))])));
    assert!(tools.parameters_of("sql").is_empty());
}
