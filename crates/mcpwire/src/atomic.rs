//! Files that others never see half-written.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What the names of files begin with that are not yet in their place.
pub(crate) const UNFINISHED: &str = ".mcpwire-";

/// What is to hold when the machine loses its power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// The file is as it was, or as it is to be.
    Yes,
    /// It may be gone, or damaged; that is quicker.
    No,
}

/// Replaces a file, or makes it, for the user's eyes only; new folders, too. One that is there keeps its mode, and a link stays a
/// link.
pub(crate) fn write(path: &Path, bytes: &[u8], lasting: Lasting) -> io::Result<()> {
    let path = match path.canonicalize() {
        Ok(path) => path,
        // A link to nowhere would be replaced by the file.
        Err(_) if path.is_symlink() => return Err(io::Error::other("it is a link to nowhere")),
        Err(_) => path.to_owned(),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = Beside(folder.join(format!("{UNFINISHED}{:016x}", fastrand::u64(..))));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside.0)?;
    if let Ok(metadata) = path.metadata() {
        file.set_permissions(metadata.permissions())?;
    }
    file.write_all(bytes)?;
    if lasting == Lasting::Yes {
        file.sync_all()?;
    }
    fs::rename(&beside.0, &path)
}

/// Gone again unless it was renamed.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
