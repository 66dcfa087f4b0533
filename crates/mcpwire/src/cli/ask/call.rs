//! `mcpwire call`: a tool called from the shell.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use mcpwire_proto::Object;
use serde_json::Value;
use serde_json::value::RawValue;

use super::progress::Bar;
use super::terminal::{Style, Terminal};
use super::values::{Argument, argument, fill, need_schema};
use super::{AskArgs, Session, TOOL_FAILED, explained, print};
use crate::cli::say;
use crate::client::{CallResult, content};

/// Call a tool of a server
///
/// Values get the type that the tool's schema asks for; NAME:=JSON takes JSON as it is; a name that comes more than once makes
/// a list. Progress and questions of the tool are shown on stderr; Ctrl-C cancels the call. If the server is a program
/// (-- COMMAND), there is no TARGET: mcpwire call TOOL NAME=VALUE -- COMMAND.
///
/// Exit codes: 0 when the tool succeeded, 1 when the server could not be reached or answered with an error, 2 when the command
/// line is not understood, 3 when the tool said that it failed, 130 after Ctrl-C.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    ask: AskArgs,
    /// Which tool
    #[arg(value_name = "TOOL")]
    tool: String,
    /// What the tool is given
    #[arg(value_name = "NAME=VALUE", value_parser = argument)]
    arguments: Vec<Argument>,
    /// What the tool is given, as a JSON object; NAME=VALUE come on top. --json '{...}' is the same
    #[arg(long, value_name = "JSON", value_parser = object)]
    args: Option<String>,
}

pub(super) fn object(text: &str) -> Result<String, String> {
    serde_json::from_str::<&RawValue>(text).map_err(|e| format!("expected JSON: {e}"))?;
    Object::parse(text).map(|object| object.to_string()).ok_or_else(|| "expected a JSON object".to_owned())
}

/// `--json` is the form of the output, and `--json '{...}'` the arguments: told apart by the brace.
pub(in crate::cli) fn take_json(argv: &mut [OsString]) {
    if argv.get(1).is_none_or(|verb| verb != "call") {
        return;
    }
    let end = argv.iter().position(|arg| arg == "--").unwrap_or(argv.len());
    for at in 2..end {
        let value = argv.get(at + 1).filter(|_| at + 1 < end).and_then(|value| value.to_str());
        if argv[at] == "--json" && value.is_some_and(|value| value.trim_start().starts_with('{')) {
            argv[at] = "--args".into();
        } else if let Some(value) = argv[at].to_str().and_then(|arg| arg.strip_prefix("--json=")) {
            argv[at] = format!("--args={value}").into();
        }
    }
}

pub(in crate::cli) fn run(args: &Args) -> Result<ExitCode> {
    args.ask.run(async |session| {
        let mut arguments = args.args.as_deref().and_then(Object::parse).unwrap_or_default();
        let schema = if need_schema(&args.arguments) { schema(session, &args.tool).await? } else { Value::Null };
        if let Err(fault) = fill(&mut arguments, &args.arguments, &schema) {
            say(&format!("mcpwire: {}: {fault}", args.tool));
            return Ok(ExitCode::from(crate::cli::USAGE));
        }
        let arguments = RawValue::from_string(arguments.to_string()).context("cannot write the arguments")?;
        let bar = Bar::new();
        let told = bar.clone();
        let options = session.options().on_progress(move |progress| told.show(&progress));
        let result = session.client.call_tool(&args.tool, arguments, options).await;
        bar.clear();
        let result = result.map_err(explained)?;
        show(&result, args.ask.json.then(|| result.raw()))?;
        Ok(if result.is_error { ExitCode::from(TOOL_FAILED) } else { ExitCode::SUCCESS })
    })
}

/// What the tool takes.
async fn schema(session: &Session, name: &str) -> Result<Value> {
    let tools = session.client.list_tools().await.map_err(explained)?;
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).take(50).collect();
        bail!(
            "there is no tool {name:?}; there are {}",
            if names.is_empty() { "none".into() } else { names.join(", ") }
        );
    };
    Ok(tool.input_schema.as_ref().and_then(|schema| serde_json::from_str(schema.get()).ok()).unwrap_or_default())
}

fn show(result: &CallResult, raw: Option<&str>) -> Result<()> {
    if let Some(raw) = raw {
        return print(&format!("{raw}\n"));
    }
    let parts: Vec<String> = result.content.iter().filter_map(|part| content::part_text(part.get())).collect();
    let mut text = parts.join("\n\n");
    if text.is_empty()
        && let Some(structured) = &result.structured_content
    {
        text = structured.get().to_owned();
    }
    if result.is_error {
        let terminal = Terminal::stderr();
        say(&format!("{} {}", terminal.styled(Style::Bad, "the tool failed:"), terminal.safe(&text)));
        return Ok(());
    }
    let end = if text.ends_with('\n') && !std::io::stdout().is_terminal() { "" } else { "\n" };
    print(&format!("{}{end}", Terminal::stdout().safe(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_with_a_brace_behind_it_is_the_arguments() {
        for (typed, read) in [
            ("mcpwire call x t --json {}", "mcpwire call x t --args {}"),
            ("mcpwire call --json x t", "mcpwire call --json x t"),
            ("mcpwire call x t --json={} --json", "mcpwire call x t --args={} --json"),
            ("mcpwire call t -- p --json {}", "mcpwire call t -- p --json {}"),
            ("mcpwire tools --json {}", "mcpwire tools --json {}"),
        ] {
            let mut argv: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            take_json(&mut argv);
            assert_eq!(argv.join(std::ffi::OsStr::new(" ")), *read);
        }
    }
}
