//! Tells when something may have changed below some folders; what it was is found out by looking.

use std::path::PathBuf;
use std::time::Duration;

/// How long it must be quiet after a change, so that a burst of them is one.
const QUIET: Duration = Duration::from_millis(40);
/// A burst that does not end is cut here.
const LONGEST_BURST: Duration = Duration::from_millis(500);
/// How often to look where nobody tells.
const POLL: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Watcher {
    #[cfg(target_os = "linux")]
    inotify: Option<linux::Inotify>,
}

impl Watcher {
    pub(crate) fn new() -> Watcher {
        Watcher {
            #[cfg(target_os = "linux")]
            inotify: linux::Inotify::new(),
        }
    }

    /// Watches these folders, besides those that are watched already.
    pub(crate) fn watch(&mut self, folders: &[PathBuf]) {
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &self.inotify
            && !folders.iter().all(|folder| inotify.add(folder))
        {
            tracing::info!(target: "watch", "not everything can be watched: looking every {POLL:?} instead");
            self.inotify = None;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = folders;
    }

    /// Waits as long as one does where nobody tells.
    pub(crate) async fn pause(&self) {
        tokio::time::sleep(POLL).await;
    }

    /// Waits until something may have changed, and until it is quiet again.
    pub(crate) async fn changed(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &mut self.inotify {
            if inotify.next().await {
                let burst = async { while tokio::time::timeout(QUIET, inotify.next()).await == Ok(true) {} };
                let _ = tokio::time::timeout(LONGEST_BURST, burst).await;
                return;
            }
            self.inotify = None;
        }
        self.pause().await;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{PipeReader, PipeWriter};
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::Arc;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use rustix::io::Errno;
    use tokio::sync::mpsc;

    /// The kernel's events, read by a thread of their own: tokio takes such a descriptor in unsafe code only.
    #[derive(Debug)]
    pub(super) struct Inotify {
        fd: Arc<OwnedFd>,
        events: mpsc::Receiver<()>,
        /// The thread ends when this is dropped.
        _alive: PipeWriter,
    }

    impl Inotify {
        pub(super) fn new() -> Option<Inotify> {
            let fd = Arc::new(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?);
            let (end, alive) = std::io::pipe().ok()?;
            // One is enough: it says that something has happened since the last was taken.
            let (tell, events) = mpsc::channel(1);
            let shared = Arc::clone(&fd);
            std::thread::Builder::new().name("watch".into()).spawn(move || read(&shared, &end, &tell)).ok()?;
            Some(Inotify { fd, events, _alive: alive })
        }

        /// False if the folder cannot be watched; one that is gone needs no watch.
        pub(super) fn add(&self, folder: &Path) -> bool {
            let flags = WatchFlags::CREATE
                | WatchFlags::MODIFY
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::ATTRIB
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            match inotify::add_watch(&*self.fd, folder, flags) {
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => true,
                Err(_) => false,
            }
        }

        /// Waits for events. False if nothing can come any more.
        pub(super) async fn next(&mut self) -> bool {
            self.events.recv().await.is_some()
        }
    }

    fn read(fd: &OwnedFd, end: &PipeReader, tell: &mpsc::Sender<()>) {
        loop {
            let mut fds = [PollFd::new(fd, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) if fds[1].revents().is_empty() => {}
                Err(Errno::INTR) => continue,
                _ => return,
            }
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut events = Reader::new(fd, &mut buffer);
            loop {
                match events.next() {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break,
                    Err(_) => return,
                }
            }
            // Full is as good: the last one is not taken yet.
            if let Err(mpsc::error::TrySendError::Closed(())) = tell.try_send(()) {
                return;
            }
        }
    }
}
