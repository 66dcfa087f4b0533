//! The smallest folder server on the official Rust SDK: lists the files of a folder and reads them, and nothing else.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rmcp::model::{
    ListResourcesResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    Resource, ResourceContents, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};

const SCHEME: &str = "orchestr8://";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let root = PathBuf::from(std::env::args_os().nth(1).context("expected a folder")?).join("resources");
    let service = Folder { root }.serve(rmcp::transport::stdio()).await?;
    service.waiting().await?;
    Ok(())
}

struct Folder {
    root: PathBuf,
}

impl ServerHandler for Folder {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_resources().build())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut found = Vec::new();
        walk(&self.root, &self.root, &mut found).map_err(internal)?;
        Ok(ListResourcesResult::with_all_items(found))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let path = request.uri.strip_prefix(SCHEME).unwrap_or_default();
        let text = tokio::fs::read_to_string(self.root.join(format!("{path}.md"))).await.map_err(internal)?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<Resource>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(root, &path, found)?;
        } else if let Ok(name) = path.strip_prefix(root) {
            let uri = format!("{SCHEME}{}", name.with_extension("").display());
            found.push(Resource::new(uri.clone(), uri));
        }
    }
    Ok(())
}

fn internal(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
