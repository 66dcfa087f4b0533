//! `mcpwire servers`: which servers are configured, where, and why others are left alone.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::ask::terminal::Terminal;
use super::configured::{ConfigArgs, environment};
use crate::config::{self, Environment, Found, Ignored, Scope, Server, Source, Transport, Why};

/// Show which servers are configured, where, and why others are left alone
///
/// Values of variables and headers are never shown, and nothing is started.
///
/// Exit codes: 0 when all that was found can be used, 1 when a file or an entry cannot, 2 when the command line is not
/// understood.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let environment = environment()?;
    let found = config::load(&environment, &args.config.options());
    let text =
        if args.json { serde_json::to_string_pretty(&to_json(&found))? + "\n" } else { table(&found, &environment) };
    io::stdout().write_all(text.as_bytes()).context("cannot write to stdout")?;
    let useless = |why: &Why| matches!(why, Why::Unreadable(_) | Why::Stale(_) | Why::Invalid(_));
    let all_well = !found.ignored.iter().any(|ignored| useless(&ignored.why));
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn table(found: &Found, environment: &Environment) -> String {
    let from = |source: &Source| {
        let scope = Some(source.scope).filter(|scope| *scope == Scope::Project && scope.name() != source.client);
        let scope = scope.map_or_else(String::new, |scope| format!(", {}", scope.name()));
        format!("{} ({}{scope})", environment.shown(&source.path), source.client)
    };
    let mut text = String::new();
    if found.servers.is_empty() {
        text.push_str("No servers.\n");
    } else {
        let head = ["NAME", "TRANSPORT", "SERVER", "FROM"];
        let row = |server: &Server| {
            [server.name.clone(), server.transport.name().to_owned(), reached(server), from(&server.source)]
        };
        text.push_str(&aligned(head, found.servers.iter().map(row)));
    }
    let row = |ignored: &&Ignored| {
        let why = match &ignored.why {
            Why::Shadowed(by) => format!("shadowed by the one in {}", environment.shown(&by.path)),
            why => why.to_string(),
        };
        [ignored.entry.clone().unwrap_or_else(|| "(file)".to_owned()), from(&ignored.source), why]
    };
    let (settings, ignored): (Vec<_>, Vec<_>) =
        found.ignored.iter().partition(|ignored| matches!(ignored.why, Why::Setting(_)));
    for (head, rows) in [(["IGNORED", "FROM", "WHY"], ignored), (["WARNING", "FROM", "WHY"], settings)] {
        if !rows.is_empty() {
            text.push('\n');
            text.push_str(&aligned(head, rows.iter().map(row)));
        }
    }
    text
}

/// The program or the URL.
fn reached(server: &Server) -> String {
    match &server.transport {
        Transport::Stdio(program) => program.outline.clone(),
        Transport::Http(remote) | Transport::Sse(remote) => remote.outline.clone(),
    }
}

/// Nothing is cut: where a file is and why it is left alone are what one came for.
fn aligned<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<Vec<String>> = rows.map(Vec::from).collect();
    Terminal { width: None, ..Terminal::stdout() }.table(&head, &rows)
}

fn to_json(found: &Found) -> Value {
    let servers: Vec<Value> = found.servers.iter().map(server_json).collect();
    let ignored = found.ignored.iter().map(|ignored| {
        let mut told = source_json(&ignored.source);
        told["name"] = json!(ignored.entry);
        told["kind"] = json!(ignored.why.kind());
        told["reason"] = json!(ignored.why.to_string());
        told
    });
    json!({ "servers": servers, "ignored": ignored.collect::<Vec<_>>() })
}

fn server_json(server: &Server) -> Value {
    let names = |values: &[(String, config::Value)]| values.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let mut told = source_json(&server.source);
    told["name"] = json!(server.name);
    told["transport"] = json!(server.transport.name());
    told["hash"] = json!(server.hash);
    match &server.transport {
        Transport::Stdio(program) => {
            told["command"] = json!(program.outline);
            told["env"] = json!(names(&program.env));
            told["cwd"] = json!(program.cwd.to_string_lossy());
        }
        Transport::Http(remote) | Transport::Sse(remote) => {
            told["url"] = json!(remote.outline);
            told["headers"] = json!(names(&remote.headers));
        }
    }
    told["timeout"] = json!(server.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)));
    told["protocol"] = json!(server.protocol);
    told["include"] = json!(server.include);
    told["exclude"] = json!(server.exclude);
    told
}

fn source_json(source: &Source) -> Value {
    json!({ "file": source.path.to_string_lossy(), "client": source.client, "scope": source.scope.name() })
}
