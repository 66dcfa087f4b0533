//! Lists, cut into pages.

use mcpwire_proto::Fault;
use serde_json::{Value, json};

use super::args::Args;
use super::reply::Reply;

/// The page of a list that the request's cursor points to; `size` 0 gives all on one page.
pub(super) fn page(key: &str, items: Vec<Value>, args: &Args, size: usize) -> Reply {
    let start = match args.optional_text("cursor")? {
        None => 0,
        Some(cursor) => position(cursor).filter(|at| (1..items.len()).contains(at)).ok_or_else(|| unknown(args))?,
    };
    let size = if size == 0 { items.len() } else { size };
    let next = start.saturating_add(size);
    let mut result = json!({});
    if next < items.len() {
        result["nextCursor"] = json!(format!("from-{next}"));
    }
    result[key] = items.into_iter().skip(start).take(size).collect();
    Ok(result)
}

fn position(cursor: &str) -> Option<usize> {
    cursor.strip_prefix("from-")?.parse().ok()
}

fn unknown(args: &Args) -> Fault {
    args.wrong("a nextCursor of this list", "cursor")
}
