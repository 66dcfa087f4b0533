//! Configurations as they change: the files are watched, and what they say is told anew when it differs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch as latest;
use tokio::task::{self, JoinHandle};

use super::{Environment, Found, Loader, Options};
use crate::watch::Watcher;

/// A watch over configurations, until it is dropped. A file that is caught half-written, or is broken, goes on as it was when
/// it could be read last.
#[derive(Debug)]
pub struct Watch {
    found: latest::Receiver<Arc<Found>>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Reads what there is now, and goes on in a task of its own: a runtime must be there.
    pub fn new(environment: Environment, options: &Options) -> Watch {
        let mut loader = Loader::new(environment, options);
        let (tell, found) = latest::channel(Arc::new(loader.load()));
        Watch { found, task: task::spawn(run(loader, tell)) }
    }

    /// What was found last.
    pub fn found(&self) -> Arc<Found> {
        Arc::clone(&self.found.borrow())
    }

    /// Waits until something else is found. Nothing is lost if the future is dropped.
    pub async fn changed(&mut self) -> Arc<Found> {
        if self.found.changed().await.is_err() {
            // The runtime is shut down.
            std::future::pending::<()>().await;
        }
        Arc::clone(&self.found.borrow_and_update())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(mut loader: Loader, tell: latest::Sender<Arc<Found>>) {
    let mut watcher = Watcher::new();
    loop {
        // Watched first, read afterwards: what happens in between is told, what happened before is read.
        watcher.watch(&folders(&loader));
        let load = move || {
            let found = loader.load();
            (loader, found)
        };
        let Ok((back, found)) = task::spawn_blocking(load).await else { return };
        loader = back;
        if found != **tell.borrow() {
            tell_faults(&tell.borrow(), &found);
            tell.send_replace(Arc::new(found));
        }
        watcher.changed().await;
    }
}

fn tell_faults(last: &Found, found: &Found) {
    let new = |ignored: &&super::Ignored| ignored.why.is_fault() && !last.ignored.contains(ignored);
    for ignored in found.ignored.iter().filter(new) {
        tracing::warn!(target: "config", "{ignored}");
    }
}

/// The folders of all files, and of what links point to. In the place of one that is not there, where it would appear.
fn folders(loader: &Loader) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for place in &loader.places {
        let path = &place.source.path;
        folders.extend(path.ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_owned));
        if path.is_symlink() {
            folders.extend(path.canonicalize().ok().and_then(|path| Some(path.parent()?.to_owned())));
        }
    }
    folders.sort();
    folders.dedup();
    folders
}
