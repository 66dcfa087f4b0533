//! `mcpwire install` and `mcpwire uninstall`: a server in the configuration of an MCP client, and out of it again.

mod arguments;
mod clients;
mod diff;
mod entry;
mod file;
mod jsonc;
mod print;
mod tables;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Args as ClapArgs, Command, FromArgMatches, ValueEnum};

use self::arguments::Arguments;
use self::clients::{Client, Places, Scope, check_name, shown};
use self::diff::diff;
use self::entry::Entry;
use self::file::Settings;
use super::connect;

/// Put a server into the configuration of an MCP client, which then starts mcpwire for it
///
/// Takes what `mcpwire connect` takes. Only the server's own entry is written: comments, order and layout of the rest of the
/// file stay. A copy of the file is kept beside it. A file that is not understood is left alone, and so is a symbolic link in
/// a project: it may lead out of the project.
#[derive(Debug, ClapArgs)]
#[group(skip)]
pub(super) struct Args {
    /// Which client
    #[arg(value_enum)]
    client: Client,
    #[command(flatten)]
    what: What,
    /// What the server is called [default: after the target]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// For whom the server is there
    #[arg(long, value_enum, default_value_t = Scope::User)]
    scope: Scope,
    /// Show the file and what would change in it, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print an entry for mcp.json and the part of a manifest for extensions; for vscode only
    #[arg(long, conflicts_with_all = ["dry_run", "force"])]
    print: bool,
    /// Replace another server of this name
    #[arg(long)]
    force: bool,
}

/// Take a server out of the configuration of an MCP client
///
/// If nobody has changed the file since, it is afterwards what it was before the server was installed. A copy is kept
/// beside it.
#[derive(Debug, ClapArgs)]
pub(super) struct UninstallArgs {
    /// Which client
    #[arg(value_enum)]
    client: Client,
    /// What the server is called
    name: String,
    /// For whom the server is there
    #[arg(long, value_enum, default_value_t = Scope::User)]
    scope: Scope,
    /// Show the file and what would change in it, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take it out even if it was not put there by mcpwire
    #[arg(long)]
    force: bool,
}

/// What to connect to: read by clap to be checked and explained, and written down as it was typed.
#[derive(Debug)]
struct What;

impl FromArgMatches for What {
    fn from_arg_matches(matches: &ArgMatches) -> Result<What, clap::Error> {
        connect::Args::from_arg_matches(matches).map(|_| What)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

impl ClapArgs for What {
    fn augment_args(command: Command) -> Command {
        let command = connect::Args::augment_args(command);
        let targets = command.get_positionals().map(|arg| arg.get_id().to_string());
        let targets: Vec<String> = targets.filter(|id| id.starts_with("target")).collect();
        let command = targets
            .into_iter()
            .fold(command, |command, id| command.mut_arg(id, |target| target.required_unless_present_any(["print"])));
        // An argument that was touched comes after the others, and COMMAND is to be the last.
        command.mut_arg("command", |command| command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        What::augment_args(command)
    }
}

pub(super) fn run(args: &Args, argv: &[OsString]) -> Result<ExitCode> {
    let client = args.client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let target = Arguments::read(argv, &client)?;
    let name = args.name.clone().unwrap_or_else(|| target.name.clone());
    check_name(args.client, &name)?;
    if target.args.iter().any(|arg| *arg == *name) && target.args.iter().all(|arg| arg != "--") {
        bail!("--name: the server {name} would be its own target: expected another name");
    }
    let command = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("mcpwire"));
    let Some(command) = command.to_str().map(str::to_owned) else { bail!("expected UTF-8, came {command:?}") };
    let connect = ["connect".to_owned()].into_iter().chain(target.texts()?).collect();
    let entry = Entry { typed: args.client.types_entries(), command, args: connect };
    if args.print {
        if args.client != Client::Vscode {
            bail!("--print is for vscode: expected --dry-run");
        }
        say(&print::print(&name, &entry)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let places = Places::from_env()?;
    let (path, settings) = open(args.client, args.scope, &places)?;
    let before = settings.text.as_deref().unwrap_or_default();
    let refused = || format!("{path}: left alone");
    let found = args.client.find(before, &name).with_context(refused)?;
    let taken = found.as_ref().is_some_and(|value| !Entry::is_ours(value));
    if taken && !args.force {
        bail!("{path}: {name:?} is another server: expected another --name, or --force to replace it");
    }
    if found.as_ref() == Some(&entry.value()) {
        say(&format!("{name} is in {path} already\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let after = args.client.put(before, &name, &entry).with_context(refused)?;
    if args.dry_run {
        return preview(&path, before, Some(&after));
    }
    let backup = settings.replace(Some(&after))?;
    let verb = if found.is_some() { "replaced" } else { "added" };
    let kept = backup.map(|backup| format!("; what it held before is in {}", shown(&backup, &places)));
    say(&format!("{verb} {name} in {path}{}\n", kept.unwrap_or_default()))?;
    say(&format!("start {} anew to use it; 'mcpwire uninstall' takes it out\n", args.client.name()))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run_uninstall(args: &UninstallArgs) -> Result<ExitCode> {
    let (name, places) = (&args.name, Places::from_env()?);
    let (path, settings) = open(args.client, args.scope, &places)?;
    let Some(before) = settings.text.as_deref() else { bail!("{path}: there is no such file") };
    let refused = || format!("{path}: left alone");
    let Some(found) = args.client.find(before, name).with_context(refused)? else {
        bail!("{path}: there is no server {name:?}");
    };
    if !Entry::is_ours(&found) && !args.force {
        bail!("{path}: {name:?} was not put there by mcpwire: expected --force to take it out all the same");
    }
    let after = args.client.undo(before, name, &settings.backups()).with_context(refused)?;
    if args.dry_run {
        return preview(&path, before, after.as_deref());
    }
    let backup = settings.replace(after.as_deref())?;
    let kept = backup.map(|backup| shown(&backup, &places)).unwrap_or_default();
    let verb = if after.is_some() { "took" } else { "removed the file, which held nothing else than" };
    let out = if after.is_some() { format!(" out of {path}") } else { format!(" in {path}") };
    say(&format!("{verb} {name}{out}; what it held before is in {kept}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn open(client: Client, scope: Scope, places: &Places) -> Result<(String, Settings)> {
    let path = client.file(scope, places)?;
    let mode = match scope {
        Scope::User => 0o600,
        Scope::Project => {
            file::refuse_links(&places.project, &path)?;
            0o644
        }
    };
    Ok((shown(&path, places), Settings::read(&path, mode)?))
}

fn preview(path: &str, before: &str, after: Option<&str>) -> Result<ExitCode> {
    let head = if after.is_some() { path.to_owned() } else { format!("{path} would be removed") };
    say(&format!("{head}\n{}", diff(before, after.unwrap_or_default())))?;
    Ok(ExitCode::SUCCESS)
}

fn say(text: &str) -> Result<()> {
    io::stdout().write_all(text.as_bytes()).context("cannot write to stdout")
}
