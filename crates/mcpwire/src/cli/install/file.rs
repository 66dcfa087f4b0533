//! A client's file: read whole, kept aside before it is changed, and replaced in one step.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::atomic::{self, Lasting};

/// No client's settings are larger; what is larger is something else.
const LIMIT: u64 = 64 << 20;
/// Stands between a file's name and the number of a copy.
const MARK: &str = ".mcpwire-backup-";

/// Refuses a path to a file of a project that leads through a symbolic link: whoever made the project chose where it leads,
/// which may be any file that its user can write.
pub(super) fn refuse_links(project: &Path, path: &Path) -> Result<()> {
    let below = path.strip_prefix(project).unwrap_or(path).components();
    let mut reached = project.to_owned();
    for part in below {
        reached.push(part);
        if reached.is_symlink() {
            let leads = fs::read_link(&reached).map(|leads| format!(" to {}", leads.display())).unwrap_or_default();
            bail!(
                "{} is a symbolic link{leads}: left alone, as it may have come with the project; \
                 expected a file and folders of the project itself",
                reached.display()
            );
        }
    }
    Ok(())
}

#[derive(Debug)]
pub(super) struct Settings {
    /// Where the bytes are, behind all links.
    path: PathBuf,
    /// What it holds; `None` if there is no such file.
    pub(super) text: Option<String>,
    mode: u32,
}

impl Settings {
    /// `mode` is for a file that is not there yet.
    pub(super) fn read(path: &Path, mode: u32) -> Result<Settings> {
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(e) if e.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_ok() => {
                bail!("{} is a link to nothing", path.display())
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Ok(Settings { path: path.to_owned(), text: None, mode });
            }
            Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
        };
        let about = fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if !about.is_file() || about.len() > LIMIT {
            bail!("{} is no file of settings", path.display());
        }
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let Ok(text) = String::from_utf8(bytes) else { bail!("{}: expected UTF-8", path.display()) };
        Ok(Settings { path, text: Some(text), mode: about.permissions().mode() & 0o7777 })
    }

    /// What the file held before each change, newest first.
    pub(super) fn backups(&self) -> Vec<String> {
        let numbers = self.numbers();
        let paths = numbers.iter().rev().map(|number| self.backup_path(*number));
        // What is no file may block, or lead elsewhere.
        let files = paths.filter(|path| fs::symlink_metadata(path).is_ok_and(|about| about.is_file()));
        files.filter_map(|path| fs::read_to_string(path).ok()).collect()
    }

    /// Replaces the file, or removes it; what it held is kept beside it, at the path that is returned.
    pub(super) fn replace(&self, text: Option<&str>) -> Result<Option<PathBuf>> {
        if fs::read_to_string(&self.path).ok() != self.text {
            bail!("{} was changed by somebody else just now: nothing was written", self.path.display());
        }
        let backup = self.text.as_deref().map(|before| self.keep(before)).transpose()?;
        match text {
            Some(text) => self.write(text).with_context(|| format!("cannot write {}", self.path.display()))?,
            None => fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))?,
        }
        Ok(backup)
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        // Others may read what is new in a project, and nobody what is new at home.
        let folder_mode = if self.mode & 0o004 == 0 { 0o700 } else { 0o755 };
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new().recursive(true).mode(folder_mode).create(folder)?;
        atomic::write(&self.path, text.as_bytes(), Lasting::Yes)?;
        fs::set_permissions(&self.path, Permissions::from_mode(self.mode))
    }

    fn keep(&self, text: &str) -> Result<PathBuf> {
        let next = self.numbers().last().map_or(1, |last| last + 1);
        for number in next..next + 100 {
            let path = self.backup_path(number);
            match create(&path, text, self.mode) {
                Ok(()) => return Ok(path),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e).with_context(|| format!("cannot keep a copy at {}", path.display())),
            }
        }
        bail!("cannot keep a copy of {}", self.path.display())
    }

    /// The numbers of the copies, in order.
    fn numbers(&self) -> Vec<u64> {
        let start = format!("{}{MARK}", self.path.file_name().unwrap_or_default().to_string_lossy());
        let folder = self.path.parent().and_then(|folder| fs::read_dir(folder).ok());
        let names = folder.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut numbers: Vec<u64> = names.filter_map(|name| name.strip_prefix(&start)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    fn backup_path(&self, number: u64) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!("{MARK}{number}"));
        self.path.with_file_name(name)
    }
}

fn create(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}
