//! Commands for a person at a shell: connect to a target, ask it something, show the answer, and let it go again.

pub(super) mod call;
mod elicit;
pub(super) mod list;
pub(super) mod ping;
mod progress;
pub(super) mod prompt;
pub(super) mod read;
pub(super) mod request;
pub(super) mod terminal;
mod values;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Arg, Args as ClapArgs, Command};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use self::elicit::Person;
use super::address::address;
use super::log::{self, LogArgs};
use super::target::TargetArgs;
use crate::client::{Cancel, Client, Error, Handler, Options, Reply, RequestOptions, RpcError};
use crate::shutdown;

/// The tool answered, and said that it failed.
pub(super) const TOOL_FAILED: u8 = 3;
/// Ended by Ctrl-C, as shells count.
const INTERRUPTED: u8 = 130;
/// How long a server may take to be let go; its own limits are shorter.
const GOODBYE: Duration = Duration::from_secs(10);
/// What a server reads that asks for a language model.
const NO_MODEL: &str = "mcpwire was asked by a person at a shell and has no language model to sample from";
/// The code that the specification shows for a request that the user turned down.
const REJECTED: i32 = -1;

/// How the server is reached, and in which form its answers are shown.
#[derive(Debug, ClapArgs)]
pub(super) struct AskArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Print the answer as JSON, as the server wrote it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
}

/// A server that is connected, and the wish to stop.
pub(super) struct Session {
    pub(super) client: Client,
    /// Withdraws what is under way when the person wants to stop.
    cancel: Cancel,
}

impl Session {
    /// For a request that Ctrl-C withdraws.
    pub(super) fn options(&self) -> RequestOptions {
        RequestOptions::default().cancelled_by(&self.cancel)
    }
}

impl AskArgs {
    /// Connects, does the work, and lets the server go, also if the person has enough before.
    fn run(&self, work: impl AsyncFnOnce(&Session) -> Result<ExitCode>) -> Result<ExitCode> {
        // What goes wrong is told once, at the end.
        log::init_quiet(&self.log);
        let (target, bridge) = self.target.open()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        let outcome = runtime.block_on(async {
            let mut stop = shutdown::requested().context("cannot watch for signals")?;
            let (handler, mut closed) = Shell::new();
            let options = Options {
                name: target.label(),
                capabilities: json!({"elicitation": {"form": {}, "url": {}}}),
                timeout: bridge.relay.timeout.unwrap_or_default(),
                recover: false,
                handler: Arc::new(handler),
                bridge,
                ..Options::default()
            };
            let shown = target.to_string();
            let connected = tokio::select! {
                connected = Client::connect(target.reach(), options) => connected,
                _ = &mut stop => {
                    // The connection was dropped, and what it had started ends now.
                    let _ = tokio::time::timeout(GOODBYE, closed.wait_for(|closed| *closed)).await;
                    return Ok(ExitCode::from(INTERRUPTED));
                }
            };
            let client = connected.map_err(explained).with_context(|| shown)?;
            let session = Session { client, cancel: Cancel::new() };
            let outcome = until_stopped(work(&session), &session, stop).await;
            session.client.close().await;
            outcome
        });
        // A question at the terminal that nobody answers does not hold up the end.
        runtime.shutdown_background();
        outcome
    }
}

/// Ctrl-C withdraws what is under way; the work then ends by itself.
async fn until_stopped(
    work: impl Future<Output = Result<ExitCode>>,
    session: &Session,
    stop: oneshot::Receiver<()>,
) -> Result<ExitCode> {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        _ = stop => session.cancel.cancel_because("the user has stopped it"),
    }
    // What was asked without the wish to be stopped is dropped, which withdraws it as well.
    let _ = tokio::time::timeout(Duration::from_millis(500), work).await;
    Ok(ExitCode::from(INTERRUPTED))
}

/// The error with what lies behind it, in one line.
pub(super) fn explained(error: Error) -> anyhow::Error {
    anyhow::Error::new(error)
}

/// What a server may ask and tell while a person waits.
struct Shell {
    person: Person,
    closed: watch::Sender<bool>,
}

impl Shell {
    fn new() -> (Shell, watch::Receiver<bool>) {
        let (closed, seen) = watch::channel(false);
        (Shell { person: Person::default(), closed }, seen)
    }
}

impl Handler for Shell {
    fn on_notification(&self, method: &str, params: Option<&serde_json::value::RawValue>) {
        tracing::debug!(target: "client", "{method} {}", params.map_or("", |params| params.get()));
    }

    fn sample<'a>(&'a self, _: Value) -> Reply<'a> {
        Box::pin(async { Err(RpcError::new(REJECTED, NO_MODEL)) })
    }

    fn elicit<'a>(&'a self, params: Value) -> Reply<'a> {
        Box::pin(async move { Ok(self.person.ask(params).await) })
    }

    fn on_error(&self, error: &str) {
        tracing::info!(target: "client", "{error}");
    }

    fn on_close(&self, _: Option<&str>) {
        self.closed.send_replace(true);
    }
}

/// `call`, `read`, `prompt` and `request` take arguments behind TARGET, and COMMAND behind those. If the target is given in another way,
/// there is no argument TARGET.
pub(super) fn arranged(command: Command, argv: &[OsString]) -> Command {
    // Most of those who start us have no use for this: they connect.
    const CONCERNED: [&str; 4] = ["call", "read", "prompt", "request"];
    if argv.get(1).is_some_and(|verb| verb != "help" && !CONCERNED.iter().any(|concerned| verb == concerned)) {
        return command;
    }
    let elsewhere =
        |arg: &OsString| arg == "--" || arg == "--mcp-hub" || arg.to_string_lossy().starts_with("--orchestrator-addr");
    let elsewhere = argv.iter().any(elsewhere);
    CONCERNED.into_iter().fold(command, |command, verb| {
        command.mut_subcommand(verb, |verb| {
            let others = verb.get_positionals().map(|arg| arg.get_id().to_string());
            let others: Vec<String> = others.filter(|id| id != "target" && id != "command").collect();
            let verb = verb.mut_arg("target", |target| match elsewhere {
                // A positional argument with a name is none any more.
                true => target.long("no-target").hide(true),
                false => {
                    let help = target.get_help().cloned().unwrap_or_default();
                    Arg::new("target").value_name("TARGET").help(help).value_parser(address).required(true)
                }
            });
            // An argument that was touched comes after the others.
            let verb = others.into_iter().fold(verb, |verb, id| verb.mut_arg(id, |arg| arg));
            let rest = match verb.get_name() {
                "call" => "TOOL [NAME=VALUE]...",
                "read" => "URI",
                "request" => "METHOD [JSON]",
                _ => "NAME [KEY=VALUE]...",
            };
            let start = format!("mcpwire {} [OPTIONS]", verb.get_name());
            let verb = verb.override_usage(format!("{start} TARGET {rest}\n       {start} {rest} -- COMMAND..."));
            verb.mut_arg("command", |command| command)
        })
    })
}

/// Writes to stdout. Whoever reads there may have seen enough.
pub(super) fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}
