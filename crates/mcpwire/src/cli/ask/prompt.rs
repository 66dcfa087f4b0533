//! `mcpwire prompt`: a prompt of a server, filled in.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::{Map, Value};

use super::terminal::{Style, Terminal};
use super::{AskArgs, explained, print};
use crate::client::content;

/// Print a prompt of a server, filled in
///
/// If the server is a program (-- COMMAND), there is no TARGET: mcpwire prompt NAME KEY=VALUE -- COMMAND. Exit codes as of
/// `mcpwire tools`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    ask: AskArgs,
    /// Which prompt
    #[arg(value_name = "NAME")]
    name: String,
    /// What is filled in
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    arguments: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("expected KEY=VALUE, came {text:?}")),
    }
}

pub(in crate::cli) fn run(args: &Args) -> Result<ExitCode> {
    args.ask.run(async |session| {
        let arguments: Map<String, Value> =
            args.arguments.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        let prompt = session.client.get_prompt(&args.name, arguments).await.map_err(explained)?;
        if args.ask.json {
            print(&format!("{}\n", prompt.raw()))?;
            return Ok(ExitCode::SUCCESS);
        }
        let terminal = Terminal::stdout();
        let message = |role: &str, text: &str| {
            let role = terminal.styled(Style::Heading, &terminal.safe(&format!("{role}:")));
            format!("{role}\n{}\n", terminal.safe(text.trim_end()))
        };
        let messages = prompt.messages.iter().map(|said| {
            let text = content::part_text(said.content.get()).unwrap_or_else(|| said.content.get().to_owned());
            message(&said.role, &text)
        });
        print(&messages.collect::<Vec<_>>().join("\n"))?;
        Ok(ExitCode::SUCCESS)
    })
}
