//! `mcpwire request`: any method of a server, with or without a handshake.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use mcpwire_proto::{Object, method};
use serde_json::value::RawValue;
use tracing::level_filters::LevelFilter;

use super::call::object;
use super::terminal::Terminal;
use super::{AskArgs, GOODBYE, INTERRUPTED, TOOL_FAILED, explained, print};
use crate::cli::log;
use crate::client::{Cancel, RequestOptions, direct};
use crate::shutdown;

/// Send one request to a server, and print its result
///
/// METHOD is any method, known to mcpwire or not; JSON is its params. With --no-handshake the request is all that is sent:
/// nothing opens a session before it. Add --protocol 2026-07-28 to send it as a request of that version, which needs no
/// handshake. If the server is a program (-- COMMAND), there is no TARGET: mcpwire request METHOD JSON -- COMMAND.
///
/// Exit codes: 0 when there is a result, 1 when the server could not be reached or answered with an error, 2 when the command
/// line is not understood, 3 when it is the result of a tool that said that it failed, 130 after Ctrl-C.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    ask: AskArgs,
    /// Which method, as in tools/list
    #[arg(value_name = "METHOD")]
    method: String,
    /// The params: a JSON object
    #[arg(value_name = "JSON", value_parser = object, default_value = "{}", hide_default_value = true)]
    params: String,
    /// Send nothing but this request: neither a handshake nor a session
    #[arg(long, visible_alias = "direct")]
    no_handshake: bool,
}

pub(in crate::cli) fn run(args: &Args) -> Result<ExitCode> {
    let params = RawValue::from_string(args.params.clone()).context("cannot write the params")?;
    if args.no_handshake {
        return run_direct(args, params);
    }
    args.ask.run(async |session| {
        let answer = session.client.request(&args.method, params, session.options()).await.map_err(explained)?;
        show(args, answer.raw())
    })
}

fn run_direct(args: &Args, params: Box<RawValue>) -> Result<ExitCode> {
    log::init_at(&args.ask.log, LevelFilter::OFF);
    let (target, config) = args.ask.target.open()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let outcome = runtime.block_on(async {
        let stop = shutdown::requested().context("cannot watch for signals")?;
        let (shown, cancel) = (target.to_string(), Cancel::new());
        let timeout = Some(config.relay.timeout.unwrap_or_default());
        let options = RequestOptions { timeout, ..RequestOptions::default() }.cancelled_by(&cancel);
        let mut asking = std::pin::pin!(direct::request(target, &args.method, params, config.protocol, options));
        let answer = tokio::select! {
            answer = &mut asking => answer,
            _ = stop => {
                cancel.cancel_because("the user has stopped it");
                let _ = tokio::time::timeout(GOODBYE, asking).await;
                return Ok(ExitCode::from(INTERRUPTED));
            }
        };
        let answer = answer.map_err(explained).with_context(|| shown)?;
        show(args, answer.result().map_err(explained)?)
    });
    runtime.shutdown_background();
    outcome
}

fn show(args: &Args, result: &str) -> Result<ExitCode> {
    match args.ask.json {
        true => print(&format!("{result}\n"))?,
        false => print(&format!("{}\n", Terminal::stdout().safe(&indented(result))))?,
    }
    let failed = args.method == method::TOOLS_CALL
        && Object::parse(result).is_some_and(|result| result.get("isError") == Some("true"));
    Ok(if failed { ExitCode::from(TOOL_FAILED) } else { ExitCode::SUCCESS })
}

/// JSON over several lines. Only white space is changed: numbers and the order of members stay as they are.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    let mut chars = json.chars().filter(|c| !c.is_control()).peekable();
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' => {}
            '{' | '[' => {
                out.push(c);
                while chars.next_if_eq(&' ').is_some() {}
                if chars.peek().is_some_and(|next| !matches!(next, '}' | ']')) {
                    depth += 1;
                    line(&mut out, depth);
                } else {
                    out.extend(chars.next());
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indented_json_is_the_same_json() {
        let json = r#"{"b":1.10,"a":[1, {"x:,{":"\"}]\\"}, [], { }],"n":123456789012345678901}"#;
        let shown = indented(json);
        let lines = [
            "{",
            r#"  "b": 1.10,"#,
            r#"  "a": ["#,
            "    1,",
            "    {",
            r#"      "x:,{": "\"}]\\""#,
            "    },",
            "    [],",
            "    {}",
            "  ],",
            r#"  "n": 123456789012345678901"#,
            "}",
        ];
        assert_eq!(shown.lines().collect::<Vec<_>>(), lines);
        assert_eq!(indented("null"), "null");
        assert_eq!(indented("{}"), "{}");
    }
}
