//! `mcpwire init`: a folder to start from, with the files of the sample.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;

use super::say;
use crate::folder::Folder;

/// Write the sample folder to a new folder, to start from
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Where to; it must not exist yet
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let root = &args.folder;
    if root.exists() {
        bail!("{}: is there already", root.display());
    }
    for (name, bytes) in Folder::sample_files() {
        let path = root.join(name);
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    say(&format!("mcpwire: written; serve it with: mcpwire connect {}", root.display()));
    Ok(ExitCode::SUCCESS)
}
