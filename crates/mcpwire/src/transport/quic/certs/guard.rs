//! Who else could change or read the files of a certificate folder: whoever can is as trusted as the authority itself.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

use super::Error;
use super::files::failed;

const OTHERS_WRITE: u32 = 0o022;
const OTHERS_READ_OR_WRITE: u32 = 0o066;
/// The same where the group may read, and everybody else may not.
const ALL_READ_OR_GROUP_WRITES: u32 = 0o026;

/// Refuses a folder in which others can replace files. One that is not there is made later.
pub(super) fn check_folder(folder: &Path) -> Result<(), Error> {
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(folder, error)),
        Ok(about) => check(folder, &about, OTHERS_WRITE, "a folder that nobody else can write to", "700"),
    }
}

pub(super) fn check_certificate(path: &Path, about: &Metadata) -> Result<(), Error> {
    check(path, about, OTHERS_WRITE, "a certificate that nobody else can change", "600")
}

/// Keys that containers get from their host belong to root, and to a group that may read them.
pub(super) fn check_key(path: &Path, about: &Metadata) -> Result<(), Error> {
    let forbidden =
        if about.uid() == 0 && !geteuid().is_root() { ALL_READ_OR_GROUP_WRITES } else { OTHERS_READ_OR_WRITE };
    check(path, about, forbidden, "a key that nobody else can read", "600")
}

fn check(path: &Path, about: &Metadata, forbidden: u32, what: &'static str, chmod: &'static str) -> Result<(), Error> {
    let (path, mode, owner) = (path.to_owned(), about.mode() & 0o7777, about.uid());
    if mode & forbidden != 0 {
        return Err(Error::Exposed { path, what, mode, chmod });
    }
    // Root serves with the files of others, as in a container with a folder of its host.
    if owner != 0 && owner != geteuid().as_raw() && !geteuid().is_root() {
        return Err(Error::Foreign { path, owner });
    }
    Ok(())
}
