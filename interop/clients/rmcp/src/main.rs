//! Drives a server of one era with a client of the other, on the official Rust SDK, one connection per check.
//!
//!   mcpwire-interop-rmcp CLIENT SERVER URL FILTER [COMMAND ARG…]
//!
//! The arguments are those of `eras.mjs`; CLIENT is `old` (the session era) or `new` (the stateless era).

// Sampling and roots are deprecated, and still there.
#![allow(deprecated)]

mod checks;
mod handler;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::Value;

use crate::checks::{CHECKS, Check};
use crate::handler::{Handler, Heard};

const CHECK: Duration = Duration::from_secs(20);

pub struct Args {
    old: bool,
    server: String,
    url: String,
    bridge: Vec<String>,
}

/// A client, and what the server told and asked it.
pub struct Connection {
    client: RunningService<RoleClient, Handler>,
    heard: Heard,
    old: bool,
    kind: String,
}

impl Connection {
    async fn open(args: &Args, roots: bool) -> Result<Connection> {
        let kind = args.server.split('-').next().unwrap_or_default().to_owned();
        let heard = Heard::default();
        let handler = Handler::new(&kind, roots, heard.clone());
        let versions = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match args.old {
            true => ClientLifecycleMode::Initialize,
            false => ClientLifecycleMode::Discover { preferred_versions: versions },
        };
        let client = match args.bridge.split_first() {
            Some((program, rest)) => {
                let mut command = tokio::process::Command::new(program);
                command.args(rest);
                handler.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
            }
            None => {
                let transport = StreamableHttpClientTransport::from_uri(args.url.as_str());
                handler.serve_with_lifecycle(transport, lifecycle).await?
            }
        };
        Ok(Connection { client, heard, old: args.old, kind })
    }

    /// The text that a tool answers.
    async fn call(&self, tool: &str, arguments: Value) -> Result<String> {
        let params = CallToolRequestParams::new(tool.to_owned());
        let params = match arguments {
            Value::Object(arguments) => params.with_arguments(arguments),
            _ => params,
        };
        text_of(tool, &self.client.call_tool(params).await?)
    }

    async fn echo(&self, text: &str) -> Result<()> {
        let answer = self.call("echo", serde_json::json!({ "message": text })).await?;
        if !answer.ends_with(text) {
            bail!("{answer} for {text}");
        }
        Ok(())
    }
}

fn text_of(tool: &str, result: &CallToolResult) -> Result<String> {
    let text: Vec<&str> = result.content.iter().filter_map(|part| Some(part.as_text()?.text.as_str())).collect();
    match result.is_error {
        Some(true) => Err(anyhow!("{tool}: {text:?}")),
        _ => Ok(text.join("\n")),
    }
}

async fn run(args: &Args, check: &Check) -> Result<()> {
    let connection = tokio::time::timeout(CHECK, Connection::open(args, check.offers_roots)).await;
    let mut connection = connection.context("no connection within the time limit")??;
    let outcome = tokio::time::timeout(CHECK, (check.run)(&mut connection)).await;
    outcome.context("the check did not finish within the time limit")??;
    let closed = tokio::time::timeout(CHECK, connection.client.cancel()).await;
    closed.context("the connection did not end within the time limit")??;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let mut given = std::env::args().skip(1);
    let mut next = || given.next().context("expected CLIENT SERVER URL FILTER [COMMAND ARG…]");
    let (client, server, url, filter) = (next()?, next()?, next()?, next()?);
    let args = Args { old: client == "old", server, url, bridge: given.collect() };
    let over = if args.bridge.is_empty() { "http" } else { "stdio" };
    let mut failed = false;
    for check in CHECKS {
        let line = format!("rust-sdk-3.8 {client} over {over} x {}: {}", args.server, check.name);
        if !line.contains(&filter) || !(check.applies)(&args) {
            continue;
        }
        match run(&args, check).await {
            Ok(()) => println!("ok   {line}"),
            Err(error) => {
                failed = true;
                println!("FAIL {line}  {}", format!("{error:#}").replace('\n', " "));
            }
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}
