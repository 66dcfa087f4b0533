//! The files of a certificate folder: where they lie, how they are written whole, and the lock around all of it.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::{Error, guard};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// How long others may hold the lock; they need it for milliseconds.
const LOCKED_FOR: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn certificate(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.crt"))
}

pub(super) fn key(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.key"))
}

/// The names of all certificates there.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| failed(folder, error))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| failed(folder, error))?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(".crt")).map(str::to_owned));
    }
    Ok(names)
}

/// The text of a certificate; `None` if there is none. One that others can change is refused.
pub(super) fn read(path: &Path) -> Result<Option<String>, Error> {
    read_if(path, guard::check_certificate)
}

/// The text of a key; `None` if there is none. One that others can read is refused.
pub(super) fn read_key(path: &Path) -> Result<Option<String>, Error> {
    read_if(path, guard::check_key)
}

fn read_if(path: &Path, check: fn(&Path, &Metadata) -> Result<(), Error>) -> Result<Option<String>, Error> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| failed(path, error))?,
    };
    check(path, &file.metadata().map_err(|error| failed(path, error))?)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| failed(path, error))?;
    Ok(Some(text))
}

/// Writes a file that is never seen in part.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{:08x}.new", fastrand::u32(..)));
    let beside = PathBuf::from(beside);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        failed(path, error)
    })
}

/// The right to change the folder, which is made if it is not there.
pub(super) struct Lock {
    /// Closing it gives the lock up.
    _file: File,
}

impl Lock {
    pub(super) fn take(folder: &Path) -> Result<Lock, Error> {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(|error| failed(folder, error))?;
        guard::check_folder(folder)?;
        let path = folder.join(".lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(FILE_MODE).open(&path);
        let file = file.map_err(|error| failed(&path, error))?;
        let until = Instant::now() + LOCKED_FOR;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(error) if error != rustix::io::Errno::WOULDBLOCK || Instant::now() >= until => {
                    return Err(failed(&path, error.into()));
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }
}

pub(super) fn failed(path: &Path, error: io::Error) -> Error {
    Error::Io { path: path.to_owned(), error }
}
