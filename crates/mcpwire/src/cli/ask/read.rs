//! `mcpwire read`: a resource on stdout.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args as ClapArgs;

use super::terminal::Terminal;
use super::{AskArgs, explained, print, print_bytes};

/// Print a resource of a server
///
/// Text is printed as it is. Bytes are written as they are, but not to a terminal. If the server is a program (-- COMMAND),
/// there is no TARGET: mcpwire read URI -- COMMAND. Exit codes as of `mcpwire tools`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    ask: AskArgs,
    /// Which resource
    #[arg(value_name = "URI")]
    uri: String,
}

pub(in crate::cli) fn run(args: &Args) -> Result<ExitCode> {
    args.ask.run(async |session| {
        let read = session.client.read_resource(&args.uri).await.map_err(explained)?;
        if args.ask.json {
            print(&format!("{}\n", read.raw()))?;
            return Ok(ExitCode::SUCCESS);
        }
        let terminal = std::io::stdout().is_terminal();
        for part in &read.contents {
            if let Some(text) = &part.text {
                print(&Terminal::stdout().safe(text))?;
                if terminal && !text.ends_with('\n') {
                    print("\n")?;
                }
            } else if let Some(blob) = &part.blob {
                let bytes = STANDARD.decode(blob).context("expected base64")?;
                if terminal {
                    let kind = part.mime_type.as_deref().unwrap_or("unknown type");
                    let kind = Terminal::stdout().safe(kind);
                    print(&format!("{} bytes of {kind}: send them to a file with > FILE\n", bytes.len()))?;
                } else {
                    print_bytes(&bytes)?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}
