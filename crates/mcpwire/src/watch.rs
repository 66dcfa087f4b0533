//! Reports that something may have changed below some folders; the caller looks what it was.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// How long it must be quiet after a change, so that a burst counts once.
const QUIET: Duration = Duration::from_millis(40);
/// A burst that does not end is cut here.
const MAX_BURST: Duration = Duration::from_millis(500);
/// How often to look where the system reports nothing.
const POLL: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Watcher {
    system: Option<System>,
}

#[derive(Debug)]
struct System {
    watcher: RecommendedWatcher,
    /// One is enough: it stands for everything since the last was received.
    changes: mpsc::Receiver<()>,
}

impl Watcher {
    pub(crate) fn new() -> Watcher {
        let (report, changes) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| !is_read(event.kind)) {
                // A full channel is as good: the last report has not been received yet.
                let _ = report.try_send(());
            }
        });
        if let Err(error) = &watcher {
            tracing::info!(target: "watch", "files cannot be watched ({error}): looking every {POLL:?} instead");
        }
        Watcher { system: watcher.ok().map(|watcher| System { watcher, changes }) }
    }

    /// Watches these folders, besides those that are watched already.
    pub(crate) fn watch(&mut self, folders: &[PathBuf]) {
        let Some(system) = &mut self.system else { return };
        let mut paths = system.watcher.paths_mut();
        let failure = folders.iter().filter_map(|folder| paths.add(folder, RecursiveMode::NonRecursive).err());
        // A folder that is gone needs no watch.
        let failure = failure.filter(|error| !is_missing(error)).last();
        let failure = failure.or(paths.commit().err().filter(|error| !is_missing(error)));
        if let Some(error) = failure {
            tracing::info!(target: "watch", "not everything can be watched ({error}): looking every {POLL:?} instead");
            self.system = None;
        }
    }

    /// Waits for the time between two looks where the system reports nothing.
    pub(crate) async fn pause(&self) {
        tokio::time::sleep(POLL).await;
    }

    /// Waits until something may have changed, and until it is quiet again.
    pub(crate) async fn changed(&mut self) {
        let Some(System { changes, .. }) = &mut self.system else { return self.pause().await };
        if changes.recv().await.is_none() {
            self.system = None;
            return self.pause().await;
        }
        let burst = async { while tokio::time::timeout(QUIET, changes.recv()).await == Ok(Some(())) {} };
        let _ = tokio::time::timeout(MAX_BURST, burst).await;
    }
}

/// Our own looks at files are reported, too.
fn is_read(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write))
}

fn is_missing(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        _ => false,
    }
}
