//! Resources of the target that are called as an orchestrator calls its files, `orchestra://KIND/ID`: read, never written.

use mcpwire_proto::method;
use serde::Deserialize;
use serde_json::json;

use super::answers;
use super::orchestra::Client;
use crate::transport::quic::RESOURCE_SCHEME;
use crate::transport::quic::proto::{
    Response, StorageDeleteResponse, StorageEntry, StorageListRequest, StorageListResponse, StorageReadRequest,
    StorageReadResponse, StorageWriteResponse,
};

/// What exists has a version; 0 would mean that it does not.
const VERSION: i64 = 1;

#[derive(Deserialize)]
struct Resource {
    uri: String,
    #[serde(default)]
    size: i64,
}

/// A failure is told as orchestrators do: there is nothing.
pub(super) async fn list(client: &Client, request: &StorageListRequest) -> Response {
    let found = async {
        let session = client.session().await?;
        answers::list::<Resource>(&session, method::RESOURCES_LIST, "resources").await
    };
    let entries = found.await.unwrap_or_default().into_iter().filter_map(|resource| {
        let path = format!("{}.md", resource.uri.strip_prefix(RESOURCE_SCHEME)?);
        path.starts_with(&request.prefix).then_some(StorageEntry { path, size: resource.size, version: VERSION })
    });
    Response::StorageList(StorageListResponse { entries: entries.collect() })
}

pub(super) async fn read(client: &Client, request: &StorageReadRequest) -> Response {
    let path = request.path.strip_suffix(".md").unwrap_or(&request.path);
    let params = json!({ "uri": format!("{RESOURCE_SCHEME}{path}") });
    let answered = async { client.session().await?.request(method::RESOURCES_READ, params).await };
    let text = answered.await.ok().and_then(|result| Some(result["contents"].get(0)?["text"].as_str()?.to_owned()));
    Response::StorageRead(match text {
        Some(text) => StorageReadResponse { content: text.into_bytes(), version: VERSION, ..Default::default() },
        None => StorageReadResponse::default(),
    })
}

pub(super) fn refuse_write() -> Response {
    let error = "resources cannot be written".to_owned();
    Response::StorageWrite(StorageWriteResponse { error, ..Default::default() })
}

pub(super) fn refuse_delete() -> Response {
    Response::StorageDelete(StorageDeleteResponse { success: false })
}
