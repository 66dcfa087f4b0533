//! Tools that answer at once from their arguments alone.

use mcpwire_proto::Fault;
use serde_json::{Value, json};

use super::{content, tool};
use crate::reference::args::Args;
use crate::reference::reply::Reply;
use crate::reference::resources::STATIC_TEXT;

/// The longest answer of `big`.
const BIGGEST: u64 = 256 * 1024 * 1024;

pub(super) fn tools() -> Vec<Value> {
    let mut add = tool(
        "add",
        "Adds two numbers; the sum comes as structured content too",
        json!({ "a": { "type": "number" }, "b": { "type": "number" } }),
        &["a", "b"],
    );
    add["title"] = json!("Add two numbers");
    add["annotations"] = json!({ "readOnlyHint": true, "openWorldHint": false });
    add["outputSchema"] =
        json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] });
    vec![
        tool("echo", "Says what it was told", json!({ "message": { "type": "string" } }), &["message"]),
        add,
        tool(
            "big",
            "Answers a text of that many bytes",
            json!({ "bytes": { "type": "integer", "minimum": 0, "maximum": BIGGEST } }),
            &["bytes"],
        ),
        tool("resource_link", "Answers a link to a resource", json!({}), &[]),
        tool(
            "route",
            "Tells the region it was called for, which HTTP clients of 2026-07-28 repeat in a header",
            json!({
                "region": { "type": "string", "x-mcp-header": "Region" },
                "priority": { "type": "integer", "x-mcp-header": "Priority" },
                "urgent": { "type": "boolean", "x-mcp-header": "Urgent" },
            }),
            &["region"],
        ),
    ]
}

pub(super) fn echo(args: &Args) -> Reply {
    Ok(content::said(args.text("message")?))
}

pub(super) fn add(args: &Args) -> Reply {
    let (a, b) = (args.number("a")?, args.number("b")?);
    let whole = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b));
    let sum = match whole {
        Some(sum) => json!(sum),
        None => json!(a.as_f64().zip(b.as_f64()).map(|(a, b)| a + b).filter(|sum| sum.is_finite())),
    };
    if sum.is_null() {
        return Ok(content::failed("the sum is too large for a number"));
    }
    Ok(content::structured(json!({ "sum": sum })))
}

/// The text counts through the digits, so that a piece that got lost shows.
pub(super) fn big(args: &Args) -> Reply {
    let bytes = match args.value("bytes") {
        Some(_) => args.whole("bytes", 0..=BIGGEST, 0)?,
        None => return Err(args.wrong("a whole number", "bytes").into()),
    };
    let bytes = usize::try_from(bytes).map_err(|_| Fault::Params("bytes is too large for this machine".into()))?;
    Ok(content::said("0123456789".chars().cycle().take(bytes).collect::<String>()))
}

pub(super) fn resource_link() -> Value {
    content::result(vec![json!({
        "type": "resource_link",
        "uri": STATIC_TEXT,
        "name": "static-text",
        "description": "A text that never changes",
        "mimeType": "text/plain",
    })])
}

pub(super) fn route(args: &Args) -> Reply {
    Ok(content::said(format!("Routed to {}.", args.text("region")?)))
}
