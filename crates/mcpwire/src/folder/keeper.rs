//! Keeps the catalog of a folder up to date: scans, watches, scans again, and tells what has changed.

use std::path::PathBuf;
use std::sync::Arc;

use super::State;
use super::catalog::{Catalog, Changes};
use super::flaw::Warning;
use super::scan::{Scan, scan};
use crate::watch::Watcher;

/// Runs until it is aborted.
pub(super) async fn keep(state: Arc<State>) {
    let mut watcher = Watcher::new();
    let mut watched: Vec<PathBuf> = Vec::new();
    loop {
        let last = state.catalog.borrow().clone();
        let (shared, before) = (Arc::clone(&state), last.clone());
        let scanned = tokio::task::spawn_blocking(move || {
            let scan = scan(&shared.places, before.as_deref());
            scan.catalog.data.iter().for_each(|category| category.preload());
            scan
        });
        let scanned = scanned.await;
        // The scan runs to its end unless the runtime is shut down.
        let Ok(Scan { catalog, mut folders }) = scanned else { return };
        install(&state, last.as_deref(), catalog);
        if state.places.config.as_ref().and_then(|source| source.folder()).is_none() {
            // The sample never changes.
            return std::future::pending().await;
        }
        folders.sort();
        let grown = folders != watched;
        watcher.watch(&folders);
        watched = folders;
        if state.places.roots().any(|root| !root.is_dir()) {
            // Nobody tells when a folder comes back that was taken away whole.
            watcher.pause().await;
        } else if !grown {
            // What happened in a folder before it was watched is seen by one more scan.
            watcher.changed().await;
        }
    }
}

fn install(state: &State, last: Option<&Catalog>, catalog: Catalog) {
    let known: &[Warning] = last.map_or(&[], |last| &last.warnings);
    for warning in catalog.warnings.iter().filter(|warning| !known.contains(warning)) {
        tracing::warn!(target: "folder", "skipped {warning}");
    }
    let changes = match last {
        None => {
            tracing::info!(target: "folder", "Loaded {} prompts", catalog.prompts.len());
            tracing::info!(target: "folder", "Loaded {} resources", catalog.resources.len());
            tracing::info!(target: "folder", "Resource index pre-loaded for dynamic matching");
            Changes::default()
        }
        Some(last) => Changes::between(last, &catalog),
    };
    if last.is_some() && changes.is_empty() && last.is_some_and(|last| same_data(last, &catalog)) {
        // Matches that are kept still hold.
        return;
    }
    state.catalog.send_replace(Some(Arc::new(catalog)));
    if !changes.is_empty() {
        tracing::info!(target: "folder", "the folder has changed");
        // Nobody may be listening.
        let _ = state.changes.send(Arc::new(changes));
    }
}

fn same_data(last: &Catalog, new: &Catalog) -> bool {
    last.config == new.config
        && last.warnings == new.warnings
        && last.data.len() == new.data.len()
        && last.data.iter().zip(&new.data).all(|(a, b)| Arc::ptr_eq(a, b))
        && last.scenarios.is_some() == new.scenarios.is_some()
}
