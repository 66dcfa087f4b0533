//! Resources: fixed ones, a watched one, one that asks, a template, and those added at run time.

use mcpwire_proto::Fault;
use serde_json::{Value, json};

use super::args::Args;
use super::call::Call;
use super::page::page;
use super::question::Question;
use super::reply::{Refusal, Reply};
use super::shared::{Item, Shared};
use super::tools::content::PNG;

pub(super) const STATIC_TEXT: &str = "test://static-text";
pub(super) const STATIC_BINARY: &str = "test://static-binary";
pub(super) const WATCHED: &str = "test://watched-resource";
pub(super) const TEMPLATE: &str = "test://template/{id}/data";
const ASKING: &str = "test://asking-resource";
const EXTRA: &str = "test://extra/";

pub(super) fn list(args: &Args, shared: &Shared) -> Reply {
    let mut resources = vec![
        json!({
            "uri": STATIC_TEXT,
            "name": "static-text",
            "description": "A text that never changes",
            "mimeType": "text/plain",
            "annotations": { "audience": ["user", "assistant"], "priority": 0.5 },
        }),
        json!({
            "uri": STATIC_BINARY,
            "name": "static-binary",
            "description": "An image of one pixel",
            "mimeType": "image/png",
        }),
        json!({
            "uri": WATCHED,
            "name": "watched-resource",
            "description": "A text that the touch tool changes; subscribe to it to be told",
            "mimeType": "text/plain",
        }),
        json!({
            "uri": ASKING,
            "name": "asking-resource",
            "description": "A text that asks the user who reads it",
            "mimeType": "text/plain",
        }),
    ];
    resources.extend(shared.extras(Item::Resource).into_iter().map(|name| {
        json!({
            "uri": format!("{EXTRA}{name}"),
            "name": name,
            "description": "A resource added at run time",
            "mimeType": "text/plain",
        })
    }));
    page("resources", resources, args, shared.settings().page_size)
}

pub(super) fn list_templates(args: &Args, shared: &Shared) -> Reply {
    let template = json!({
        "uriTemplate": TEMPLATE,
        "name": "template",
        "description": "Data for any id",
        "mimeType": "application/json",
    });
    page("resourceTemplates", vec![template], args, shared.settings().page_size)
}

pub(super) async fn read(call: &mut Call, args: &Args) -> Reply {
    let uri = args.text("uri")?;
    let mut contents = contents(uri, &call.shared)?;
    if uri == ASKING {
        let answer = call.ask(Question::field("reader", "Who reads this?", "name", "string")).await?;
        let name = answer.pointer("/content/name").and_then(Value::as_str).unwrap_or("nobody");
        contents["text"] = json!(format!("Read by {name}."));
    }
    Ok(json!({ "contents": [contents] }))
}

/// Refuses if there is no such resource.
pub(super) fn check(uri: &str, shared: &Shared) -> Result<(), Refusal> {
    contents(uri, shared).map(drop)
}

/// What a resource holds; refused if there is no such resource.
fn contents(uri: &str, shared: &Shared) -> Result<Value, Refusal> {
    let text = |mime: &str, text: String| Ok(json!({ "uri": uri, "mimeType": mime, "text": text }));
    match uri {
        STATIC_TEXT => text("text/plain", "This is the content of the static text resource.".into()),
        STATIC_BINARY => Ok(json!({ "uri": uri, "mimeType": "image/png", "blob": PNG })),
        WATCHED => text("text/plain", format!("Watched resource, revision {}", shared.revision(uri))),
        // What it holds depends on who reads it.
        ASKING => text("text/plain", String::new()),
        _ => match (template_id(uri), uri.strip_prefix(EXTRA)) {
            (Some(id), _) => text("application/json", template_text(id)),
            (_, Some(name)) if shared.has_extra(Item::Resource, name) => {
                text("text/plain", format!("Extra resource {name}, revision {}", shared.revision(uri)))
            }
            _ => Err(Refusal::NoResource(uri.to_owned())),
        },
    }
}

/// The id in a URI that fits the template: one path segment.
fn template_id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    Some(id).filter(|id| !id.is_empty() && !id.contains('/'))
}

/// Written by hand because the suite's text has its keys in this order.
fn template_text(id: &str) -> String {
    let data = json!(format!("Data for ID: {id}"));
    format!(r#"{{"id":{},"templateTest":true,"data":{data}}}"#, json!(id))
}

/// Names of resources added at run time become the end of a URI.
pub(super) fn check_extra_name(name: &str) -> Result<(), Fault> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if (1..=128).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    let came = super::args::excerpt(name);
    Err(Fault::Params(format!("expected 1 to 128 of A-Z a-z 0-9 _ . - as name, came {came:?}")))
}
