//! Where programs are looked for, what is there and what is not, and how much a contender is asked to do.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::Serialize;

pub struct Places {
    /// Our own binaries.
    pub here: PathBuf,
    pub mcpwire: PathBuf,
    /// What `interop/setup` installs.
    pub peers: PathBuf,
    /// Preloaded into Node programs that would listen on all interfaces.
    pub loopback: PathBuf,
}

/// Interpreted peers are given less to do, so that the whole run stays short.
#[derive(Clone, Copy)]
pub enum Pace {
    Fast,
    Slow,
}

/// A contender whose program is not installed.
#[derive(Serialize)]
pub struct Skipped {
    pub name: String,
    pub why: String,
}

pub trait Named {
    fn name(&self) -> &str;
}

impl Named for Skipped {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Keeps the contenders that were asked for; none asked for means all.
pub fn only<C: Named>(contenders: &mut Vec<C>, skipped: &mut Vec<Skipped>, names: &[String]) {
    if !names.is_empty() {
        contenders.retain(|contender| names.iter().any(|name| name == contender.name()));
        skipped.retain(|skipped| names.contains(&skipped.name));
    }
}

/// Fails on a name that no benchmark knows.
pub fn check_names(names: &[String], known: &[String]) -> Result<()> {
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        bail!("there is no contender {name}");
    }
    Ok(())
}

/// The files that must exist: a program, and for a script its interpreter too.
pub fn missing(words: &[String]) -> Option<&Path> {
    words.iter().filter(|word| word.starts_with('/')).map(Path::new).find(|path| !path.exists())
}

pub fn program(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
