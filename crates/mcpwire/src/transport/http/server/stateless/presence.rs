//! Who has gone: closing the response is how a client without a session cancels (2026-07-28, Streamable HTTP,
//! Cancellation).

use std::mem::take;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Names one exchange of the front's.
pub(super) type Key = u64;

/// The keys of those who have gone since the last look. There are never more than open exchanges.
#[derive(Debug, Default)]
pub(super) struct Exits {
    keys: Mutex<Vec<Key>>,
    some: Notify,
    next: AtomicU64,
}

impl Exits {
    /// Waits until somebody has gone.
    pub(super) async fn some(&self) {
        self.some.notified().await;
    }

    pub(super) fn take(&self) -> Vec<Key> {
        take(&mut *self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Held by whatever waits for the response: first the request's handler, then the body of the stream.
#[derive(Debug)]
pub(in super::super) struct Presence {
    pub(super) key: Key,
    exits: Option<Arc<Exits>>,
}

impl Presence {
    pub(super) fn new(exits: &Arc<Exits>) -> Presence {
        Presence { key: exits.next.fetch_add(1, Ordering::Relaxed), exits: Some(exits.clone()) }
    }

    /// Nothing is owed any more: going means nothing.
    pub(super) fn dismiss(mut self) {
        self.exits = None;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Some(exits) = self.exits.take() {
            exits.keys.lock().unwrap_or_else(PoisonError::into_inner).push(self.key);
            exits.some.notify_one();
        }
    }
}
