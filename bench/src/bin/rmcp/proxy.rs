//! A stdio to Streamable HTTP proxy on the official Rust SDK, as small as its service traits allow.

use std::sync::OnceLock;

use anyhow::Result;
use clap::Parser;
use rmcp::model::{
    ClientConfig, ClientNotification, ClientRequest, ClientResult, GetMeta, InitializeResult, ServerConfig,
    ServerNotification, ServerRequest, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ErrorData, Peer, RoleClient, RoleServer, Service, ServiceExt};

/// The SDK's own limit is 16; the benchmark keeps 64 calls in flight.
const IN_FLIGHT: usize = 64;

#[derive(Parser)]
struct Args {
    url: String,
    /// One thread and kept-alive connections, where the SDK's defaults are many threads and a connection for each call.
    #[arg(long)]
    tuned: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut builder = match args.tuned {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build()?.block_on(async {
        let downstream = Downstream { args, upstream: OnceLock::new() };
        downstream.serve(stdio_pipes()).await?.waiting().await?;
        Ok(())
    })
}

/// What our client talks to; the session with the server is opened by its `initialize`.
struct Downstream {
    args: Args,
    upstream: OnceLock<RunningService<RoleClient, Upstream>>,
}

/// What the server talks to: everything goes on to our client.
struct Upstream {
    config: ClientConfig,
    client: Peer<RoleServer>,
}

impl Downstream {
    async fn initialize(&self, config: ClientConfig, client: Peer<RoleServer>) -> Result<InitializeResult, ErrorData> {
        let config_http =
            StreamableHttpClientTransportConfig::with_uri(self.args.url.as_str()).max_concurrent_requests(IN_FLIGHT);
        let transport = match self.args.tuned {
            true => StreamableHttpClientTransport::with_client(reqwest::Client::new(), config_http),
            false => StreamableHttpClientTransport::from_config(config_http),
        };
        let session = Upstream { config, client }.serve(transport).await.map_err(internal)?;
        let info = session.peer_info().ok_or_else(|| internal("the server did not introduce itself"))?;
        let mut result =
            InitializeResult::new(info.capabilities.clone()).with_protocol_version(info.protocol_version.clone());
        result.instructions = info.instructions.clone();
        if let Some(server) = &info.server_info {
            result = result.with_server_info(server.clone());
        }
        self.upstream.set(session).map_err(|_| internal("initialized twice"))?;
        Ok(result)
    }

    fn server(&self) -> Result<&Peer<RoleClient>, ErrorData> {
        self.upstream.get().map(|session| session.peer()).ok_or_else(|| internal("not initialized"))
    }
}

impl Service<RoleServer> for Downstream {
    async fn handle_request(
        &self,
        mut request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if let ClientRequest::InitializeRequest(request) = request {
            return self.initialize(request.params, context.peer).await.map(ServerResult::InitializeResult);
        }
        *request.get_meta_mut() = context.meta;
        self.server()?.send_request(request).await.map_err(as_answer)
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        _: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // The SDK's own handshake with the server has said this already.
        if matches!(notification, ClientNotification::InitializedNotification(_)) {
            return Ok(());
        }
        self.server()?.send_notification(notification).await.map_err(as_answer)
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::default()
    }
}

impl Service<RoleClient> for Upstream {
    async fn handle_request(
        &self,
        mut request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        *request.get_meta_mut() = context.meta;
        self.client.send_request(request).await.map_err(as_answer)
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        self.client.send_notification(notification).await.map_err(as_answer)
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}

fn as_answer(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => internal(other),
    }
}

fn internal(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
