//! `mcpwire completions` and `mcpwire man`: what shells and `man` want to know of us, made from the arguments themselves.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args as ClapArgs, Command};
use clap_complete::Shell;
use clap_mangen::Man;

/// Print a script that lets a shell complete what is typed behind mcpwire
#[derive(Debug, ClapArgs)]
pub(super) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual, or write a page for each command into a folder
#[derive(Debug, ClapArgs)]
pub(super) struct ManArgs {
    /// Where the pages go
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(&[]), "mcpwire", &mut script);
    print(&script)
}

pub(super) fn man(args: &ManArgs) -> Result<ExitCode> {
    let mut command = super::command(&[]);
    command.build();
    match &args.folder {
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            write(&command, "mcpwire", folder)?;
            Ok(ExitCode::SUCCESS)
        }
        None => print(&page(&command)?),
    }
}

fn write(command: &Command, name: &str, folder: &Path) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    let command = command.clone().display_name(name.to_owned());
    fs::write(&path, page(&command)?).with_context(|| format!("cannot write {}", path.display()))?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        write(below, &format!("{name}-{}", below.get_name()), folder)?;
    }
    Ok(())
}

fn page(command: &Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page).context("cannot write the page")?;
    Ok(page)
}

fn print(bytes: &[u8]) -> Result<ExitCode> {
    match io::stdout().write_all(bytes) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        written => written.context("cannot write to stdout").map(|()| ExitCode::SUCCESS),
    }
}
