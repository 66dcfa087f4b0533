//! The socket file of a front: made so that nobody else can connect, not even for a moment, and removed in the end.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// How long a process may take to show that it serves a socket.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// A socket that listens; its file is removed when it is dropped.
#[derive(Debug)]
pub struct Listener {
    pub(super) socket: UnixListener,
    path: PathBuf,
    /// Device and number of the file, to know it again.
    file: (u64, u64),
}

impl Listener {
    /// Listens at a path, with mode 0600. A file that a dead process left there is replaced; a socket that somebody
    /// serves, or a file of another kind, is an error.
    pub async fn bind(path: &Path) -> io::Result<Listener> {
        make_way(path).await?;
        // The mode can be set only when the file is there, so at first it is where nobody else can come.
        let room = Room::make(path)?;
        let socket = UnixListener::bind(room.socket())?;
        fs::set_permissions(room.socket(), Permissions::from_mode(0o600))?;
        let file = identity(&room.socket())?;
        fs::rename(room.socket(), path)?;
        Ok(Listener { socket, path: path.to_owned(), file })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another process may have put its own in our place.
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Sees to it that nothing of worth is at the path.
async fn make_way(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(file) if file.file_type().is_socket() => {}
        Ok(_) => return Err(io::Error::new(ErrorKind::AlreadyExists, "there is a file that is no socket")),
    }
    match timeout(SIGN_OF_LIFE, UnixStream::connect(path)).await {
        Ok(Err(error)) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(()),
        Ok(Err(error)) if error.kind() == ErrorKind::PermissionDenied => Err(error),
        _ => Err(io::Error::new(ErrorKind::AddrInUse, "another process serves this socket")),
    }
}

/// A directory beside the path that only we can enter.
struct Room(PathBuf);

impl Room {
    fn make(path: &Path) -> io::Result<Room> {
        let beside = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let room = beside.join(format!(".{:08x}", fastrand::u32(..)));
        DirBuilder::new().mode(0o700).create(&room)?;
        Ok(Room(room))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("s")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.socket());
        let _ = fs::remove_dir(&self.0);
    }
}
