//! Where files come from: a folder on disk that is never left, or the sample inside the binary.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::flaw::{Flaw, Warning};
use super::sample;

/// How deep folders may be nested.
const DEEPEST: usize = 24;
/// The most files of one place.
const MOST_FILES: usize = 200_000;

/// A place with files in it, which are named by their path from there, with `/` between the parts.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// `below` the root, which is an absolute path without links in it. Nothing outside the root is ever read.
    Disk { root: PathBuf, below: String },
    /// A part of the embedded sample.
    Sample { below: &'static str },
}

/// A file and what tells whether it has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) stamp: Stamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    pub(super) size: u64,
    modified: u128,
    inode: u64,
}

impl Source {
    /// A folder on disk.
    pub(super) fn disk(root: &Path) -> io::Result<Source> {
        let root = fs::canonicalize(root)?;
        if !root.is_dir() {
            return Err(io::Error::other("not a folder"));
        }
        Ok(Source::Disk { root, below: String::new() })
    }

    /// A folder below this one, confined to this one.
    pub(super) fn below(&self, name: &'static str) -> Source {
        match self {
            Source::Disk { root, .. } => Source::Disk { root: root.clone(), below: name.to_owned() },
            Source::Sample { .. } => Source::Sample { below: name },
        }
    }

    /// What messages call it: the path from the folder, never an absolute one.
    pub(super) fn label(&self, path: &str) -> String {
        let below = match self {
            Source::Disk { below, .. } => below.as_str(),
            Source::Sample { below } => below,
        };
        if below.is_empty() { path.to_owned() } else { format!("{below}/{path}") }
    }

    /// The folder on disk, if it is one.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        match self {
            Source::Disk { root, below } => Some(root.join(below)),
            Source::Sample { .. } => None,
        }
    }

    /// All files, sorted by path, and the folders they are in. What cannot be served is told in the warnings.
    pub(super) fn walk(&self, warnings: &mut Vec<Warning>) -> Walk {
        match self {
            Source::Disk { root, below } => {
                let mut walk = Walk::default();
                let inside = fs::canonicalize(root.join(below)).is_ok_and(|path| path.starts_with(root));
                if inside {
                    self.walk_folder(root, "", 0, &mut walk, warnings);
                } else if fs::symlink_metadata(root.join(below)).is_ok() {
                    warnings.push(Warning::new(below.clone(), Flaw::new("leads outside the folder")));
                }
                walk.files.sort_by(|a, b| a.path.cmp(&b.path));
                walk
            }
            Source::Sample { below } => {
                let files = sample::files(below).map(|(path, text)| {
                    let stamp = Stamp { size: text.len() as u64, ..Stamp::default() };
                    Entry { path: path.to_owned(), stamp }
                });
                Walk { files: files.collect(), folders: Vec::new() }
            }
        }
    }

    fn walk_folder(&self, root: &Path, inner: &str, depth: usize, walk: &mut Walk, warnings: &mut Vec<Warning>) {
        let warn = |path: &str, reason: &str| Warning::new(self.label(path), Flaw::new(reason));
        let folder = root.join(self.label(inner));
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) => return warnings.push(warn(inner, &format!("cannot be read: {}", e.kind()))),
        };
        walk.folders.push(folder);
        for entry in entries.flatten() {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                let name = entry.file_name().to_string_lossy().into_owned();
                warnings.push(warn(&join(inner, &name), "the name is not UTF-8"));
                continue;
            };
            let path = join(inner, &name);
            if name.starts_with('.') && path != ".index" {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < DEEPEST {
                self.walk_folder(root, &path, depth + 1, walk, warnings);
            } else if kind.is_dir() {
                warnings.push(warn(&path, &format!("folders are nested deeper than {DEEPEST}")));
            } else if walk.files.len() >= MOST_FILES {
                return warnings.push(warn(inner, &format!("more than {MOST_FILES} files: the rest is not served")));
            } else {
                match self.stamp(root, &entry.path(), kind.is_symlink()) {
                    Ok(stamp) => walk.files.push(Entry { path, stamp }),
                    Err(reason) => warnings.push(warn(&path, reason)),
                }
            }
        }
    }

    fn stamp(&self, root: &Path, path: &Path, link: bool) -> Result<Stamp, &'static str> {
        if link {
            let target = fs::canonicalize(path).map_err(|_| "the link leads nowhere")?;
            if !target.starts_with(root) {
                return Err("the link leads outside the folder");
            }
        }
        let metadata = fs::metadata(path).map_err(|_| "cannot be read")?;
        if metadata.is_dir() {
            return Err("links to folders are not followed");
        }
        if !metadata.is_file() {
            return Err("not a regular file");
        }
        Ok(Stamp::of(&metadata))
    }

    /// Whether there is any file that `fits`; stops at the first.
    pub(super) fn has(&self, fits: fn(&str) -> bool) -> bool {
        match self {
            Source::Disk { root, below } => {
                let inside = fs::canonicalize(root.join(below)).is_ok_and(|path| path.starts_with(root));
                inside && holds(&root.join(below), fits, 0)
            }
            Source::Sample { below } => sample::files(below).any(|(path, _)| fits(path)),
        }
    }

    /// Reads a file that [`Source::walk`] has found, or one whose name is fixed.
    pub(super) fn read(&self, path: &str, limit: usize) -> Result<Vec<u8>, Flaw> {
        match self {
            Source::Disk { root, .. } => read_confined(root, Path::new(&self.label(path)), limit),
            Source::Sample { below } => match sample::files(below).find(|(name, _)| *name == path) {
                Some((_, text)) => Ok(text.to_vec()),
                None => Err(Flaw::new("is not there")),
            },
        }
    }

    /// Reads a file that must be text.
    pub(super) fn read_text(&self, path: &str, limit: usize) -> Result<String, Flaw> {
        into_text(self.read(path, limit)?)
    }
}

/// What was found in a place.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) files: Vec<Entry>,
    /// The folders to watch.
    pub(super) folders: Vec<PathBuf>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Stamp { size: metadata.len(), modified: modified.unwrap_or_default().as_nanos(), inode }
    }
}

pub(super) fn into_text(bytes: Vec<u8>) -> Result<String, Flaw> {
    String::from_utf8(bytes).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        Flaw::at(valid.iter().filter(|b| **b == b'\n').count() + 1, "not UTF-8 text")
    })
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn holds(folder: &Path, fits: fn(&str) -> bool, depth: usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let mut folders = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => folders.push(entry.path()),
            Ok(_) if fits(name) => return true,
            _ => {}
        }
    }
    depth < DEEPEST && folders.iter().any(|folder| holds(folder, fits, depth + 1))
}

fn read_confined(root: &Path, path: &Path, limit: usize) -> Result<Vec<u8>, Flaw> {
    let flaw = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => Flaw::new("is not there"),
        kind => Flaw::new(format!("cannot be read: {kind}")),
    };
    let file = open_confined(root, path).map_err(flaw)?;
    let metadata = file.metadata().map_err(flaw)?;
    if !metadata.is_file() {
        return Err(Flaw::new("not a regular file"));
    }
    if metadata.len() > limit as u64 {
        return Err(Flaw::new(format!("larger than the limit of {limit} bytes")));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    // It may have grown since.
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(flaw)?;
    if bytes.len() > limit {
        return Err(Flaw::new(format!("larger than the limit of {limit} bytes")));
    }
    Ok(bytes)
}

/// Opens a file below the root. The kernel itself sees to it that no link, however late it is put there, leads outside.
#[cfg(target_os = "linux")]
fn open_confined(root: &Path, path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
    use rustix::io::Errno;
    let folder = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // A pipe or a device would make us wait.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let confined = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(&folder, path, flags, Mode::empty(), confined) {
        Ok(file) => Ok(File::from(file)),
        // Kernels before 5.6, and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_checked(root, path),
        Err(e) => Err(e.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_confined(root: &Path, path: &Path) -> io::Result<File> {
    open_checked(root, path)
}

/// Opens a file below the root after a look at where its path leads.
fn open_checked(root: &Path, path: &Path) -> io::Result<File> {
    let target = fs::canonicalize(root.join(path))?;
    if !target.starts_with(root) || !fs::metadata(&target)?.is_file() {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    File::open(target)
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
