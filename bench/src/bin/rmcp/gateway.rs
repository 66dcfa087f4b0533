//! The smallest gateway on the official Rust SDK: its Streamable HTTP server in front, its child process client behind,
//! one child per session.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientConfig, InitializeRequestParams, InitializeResult, ListToolsResult,
    PaginatedRequestParams,
};
use rmcp::service::{RequestContext, RunningService, ServiceError};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService, TokioChildProcess};
use rmcp::{ErrorData, Peer, RoleClient, RoleServer, ServerHandler, ServiceExt};
use tokio::net::TcpListener;
use tokio::process::Command;

#[derive(Clone, Parser)]
struct Args {
    #[arg(long)]
    http: SocketAddr,
    /// End a session after this many milliseconds without a message; otherwise the SDK's default
    #[arg(long, value_name = "MS")]
    session_idle: Option<u64>,
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let mut sessions = LocalSessionManager::default();
    if let Some(limit) = args.session_idle {
        sessions.session_config.keep_alive = Some(Duration::from_millis(limit));
    }
    let listener = TcpListener::bind(args.http).await?;
    let open = move || Ok(Session { command: args.command.clone(), upstream: OnceLock::new() });
    let service = StreamableHttpService::new(open, Arc::new(sessions), StreamableHttpServerConfig::default());
    let service = TowerToHyperService::new(service);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A connection that breaks is the client's business: it is measured there.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone()));
    }
}

/// What one client talks to; its child is started by its `initialize`.
struct Session {
    command: Vec<String>,
    upstream: OnceLock<RunningService<RoleClient, ClientConfig>>,
}

impl Session {
    fn server(&self) -> Result<&Peer<RoleClient>, ErrorData> {
        self.upstream.get().map(|session| session.peer()).ok_or_else(|| internal("not initialized"))
    }
}

impl ServerHandler for Session {
    async fn initialize(
        &self,
        client: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(client.clone());
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stderr(Stdio::inherit());
        let child = TokioChildProcess::new(command).map_err(internal)?;
        let session = client.serve(child).await.map_err(internal)?;
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

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.server()?.list_tools(page).await.map_err(as_answer)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.server()?.call_tool(call).await.map(Into::into).map_err(as_answer)
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
