//! Tools that show and change what all sessions share.

use mcpwire_proto::Fault;
use serde_json::{Value, json};

use super::{content, is_built_in, tool};
use crate::reference::args::Args;
use crate::reference::call::Call;
use crate::reference::reply::Reply;
use crate::reference::shared::Item;
use crate::reference::{prompts, resources};

pub(super) fn tools() -> Vec<Value> {
    let item = json!({
        "kind": { "type": "string", "enum": ["tool", "resource", "prompt"] },
        "name": { "type": "string", "pattern": "^[A-Za-z0-9_.-]{1,128}$" },
    });
    vec![
        tool(
            "count",
            "Raises a counter that all sessions share and answers its value; shows whether a call ran twice",
            json!({ "name": { "type": "string" } }),
            &[],
        ),
        tool("info", "Tells which server this is, how often it was started, and what it did and does", json!({}), &[]),
        tool(
            "touch",
            "Changes a resource; sessions that watch it are told",
            json!({ "uri": { "type": "string", "default": resources::WATCHED } }),
            &[],
        ),
        tool("register", "Adds a tool, resource or prompt; all sessions are told", item.clone(), &["kind", "name"]),
        tool("unregister", "Takes away what register added; all sessions are told", item, &["kind", "name"]),
    ]
}

pub(super) fn count(call: &Call, args: &Args) -> Reply {
    let name = args.optional_text("name")?.unwrap_or("default");
    Ok(match call.shared.count(name) {
        Some(value) => content::structured(json!({ "name": name, "value": value })),
        None => content::failed("there are too many counters"),
    })
}

pub(super) fn info(call: &Call) -> Value {
    content::structured(json!({
        "instance": call.shared.instance(),
        "starts": call.shared.settings().starts,
        "process": std::process::id(),
        "calls": call.shared.calls(),
        "running": call.shared.running(),
        "sessions": call.shared.sessions(),
        "session": call.session,
        "client": call.client.name,
        "protocolVersion": call.client.version,
    }))
}

pub(super) fn touch(call: &Call, args: &Args) -> Reply {
    let uri = args.optional_text("uri")?.unwrap_or(resources::WATCHED);
    resources::check(uri, &call.shared)?;
    Ok(match call.shared.touch(uri) {
        Some(revision) => content::said(format!("{uri} is at revision {revision}.")),
        None => content::failed("too many resources were touched"),
    })
}

pub(super) fn register(call: &Call, args: &Args) -> Reply {
    let (item, name) = item(args)?;
    let taken = match item {
        Item::Tool => is_built_in(name),
        Item::Prompt => prompts::exists(name),
        Item::Resource => false,
    };
    if taken || !call.shared.add(item, name) {
        return Ok(content::failed(format!("{name} is there already, or there are too many")));
    }
    Ok(content::said(format!("{name} was added.")))
}

pub(super) fn unregister(call: &Call, args: &Args) -> Reply {
    let (item, name) = item(args)?;
    if !call.shared.remove(item, name) {
        return Ok(content::failed(format!("{name} was not added before")));
    }
    Ok(content::said(format!("{name} was removed.")))
}

fn item(args: &Args) -> Result<(Item, &str), Fault> {
    let item = match args.text("kind")? {
        "tool" => Item::Tool,
        "resource" => Item::Resource,
        "prompt" => Item::Prompt,
        _ => return Err(args.wrong("tool, resource or prompt", "kind")),
    };
    let name = args.text("name")?;
    resources::check_extra_name(name)?;
    Ok((item, name))
}
