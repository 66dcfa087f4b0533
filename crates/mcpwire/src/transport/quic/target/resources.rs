//! Features, notes and documents of the orchestrator's storage as resources `orchestra://KIND/ID`.

use mcpwire_proto::{Id, Message, code};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Orchestrator;
use super::methods::params;
use super::reply::{Refusal, Stop, no_answer, unexpected};
use crate::transport::quic::proto::{Request, Response, StorageListRequest, StorageReadRequest};
use crate::transport::quic::{RESOURCE_KINDS, RESOURCE_SCHEME};

const MARKDOWN: &str = "text/markdown";

pub(super) async fn list(orchestrator: &Orchestrator, id: &Id) -> Result<Value, Stop> {
    let mut resources = Vec::new();
    for (kind, _) in RESOURCE_KINDS {
        let prefix = format!("{kind}/");
        let request = Request::StorageList(StorageListRequest { prefix: prefix.clone(), ..Default::default() });
        let request_id = Id::from(format!("{}-{kind}", id.as_json().trim_matches('"')).as_str());
        // An orchestrator without storage says so with an error; it has no resources.
        let Response::StorageList(list) =
            orchestrator.call("rl", &request_id, request).await.map_err(no_answer("storage_list"))?
        else {
            continue;
        };
        for entry in list.entries {
            let name = entry.path.strip_prefix(&prefix).unwrap_or(&entry.path);
            let name = name.strip_suffix(".md").unwrap_or(name);
            let uri = format!("{RESOURCE_SCHEME}{kind}/{name}");
            resources.push(json!({ "uri": uri, "name": name, "mimeType": MARKDOWN }));
        }
    }
    Ok(json!({ "resources": resources }))
}

pub(super) fn templates() -> Value {
    let templates = RESOURCE_KINDS.map(|(kind, what)| {
        json!({
            "uriTemplate": format!("{RESOURCE_SCHEME}{kind}/{{id}}"),
            "name": what,
            "description": format!("{what}, by their id"),
            "mimeType": MARKDOWN,
        })
    });
    json!({ "resourceTemplates": templates })
}

pub(super) async fn read(orchestrator: &Orchestrator, id: &Id, message: &Message) -> Result<Value, Stop> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        uri: String,
    }
    let Params { uri } = params(message)?;
    let request = Request::StorageRead(StorageReadRequest { path: path(&uri)?, ..Default::default() });
    let found = match orchestrator.call("rr", id, request).await.map_err(no_answer("storage_read"))? {
        Response::StorageRead(found) => found,
        other => return Err(unexpected("storage_read", other).into()),
    };
    if found.content.is_empty() && found.metadata.is_none() && found.version == 0 {
        // This is how orchestrators tell that there is no such file.
        let refusal = Refusal::new(code::RESOURCE_NOT_FOUND, "resource not found");
        return Err(refusal.with_data(json!({ "uri": uri })).into());
    }
    let Ok(text) = String::from_utf8(found.content) else {
        return Err(Refusal::internal("orchestrator storage_read failed: expected text, came other bytes").into());
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": MARKDOWN, "text": text }] }))
}

/// Where a resource lies in the storage.
fn path(uri: &str) -> Result<String, Refusal> {
    if uri.is_empty() {
        return Err(Refusal::missing("uri"));
    }
    let Some(rest) = uri.strip_prefix(RESOURCE_SCHEME) else {
        return Err(Refusal::params(format!("unsupported URI scheme: {uri:?} (expected {RESOURCE_SCHEME})")));
    };
    let Some((kind, name)) = rest.split_once('/').filter(|(_, name)| !name.is_empty()) else {
        return Err(Refusal::params(format!("invalid resource URI: {uri:?}")));
    };
    if !RESOURCE_KINDS.iter().any(|(known, _)| *known == kind) {
        return Err(Refusal::params(format!("unknown resource type: {kind:?}")));
    }
    if name.split('/').any(|part| part == ".." || part == ".") {
        return Err(Refusal::params(format!("invalid resource URI: {uri:?}")));
    }
    Ok(format!("{kind}/{name}.md"))
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn resources_lie_in_their_folder_and_nowhere_else() {
        assert_eq!(path("orchestra://notes/a/b").unwrap(), "notes/a/b.md");
        for uri in
            ["", "file:///etc", "orchestra://notes", "orchestra://notes/", "orchestra://x/a", "orchestra://docs/../a"]
        {
            assert!(path(uri).is_err(), "{uri}");
        }
    }
}
