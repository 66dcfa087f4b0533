//! The sessions that live, by their ids.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use super::session::Handle;

/// The bytes of randomness in a session id.
const RANDOM: usize = 16;

/// A session's name and the only key to it: 128 bits from the operating system, in hexadecimal.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionId(String);

impl SessionId {
    pub(super) fn random() -> Result<SessionId, getrandom::Error> {
        let mut bytes = [0; RANDOM];
        getrandom::fill(&mut bytes)?;
        Ok(SessionId(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionId {
    /// Enough to follow a session in a log, too little to use it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", &self.0[..8])
    }
}

/// Every session has a client that is connected.
#[derive(Debug)]
pub(super) struct Full;

#[derive(Debug)]
pub(super) struct Table {
    sessions: Mutex<HashMap<SessionId, Handle, RandomState>>,
    limit: usize,
}

impl Table {
    pub(super) fn new(limit: usize) -> Table {
        Table { sessions: Mutex::default(), limit }
    }

    /// Takes a session in. If there are too many, the one that is idle for longest makes room and is returned to be ended;
    /// without an idle one there is no room.
    pub(super) fn insert(&self, id: SessionId, handle: Handle) -> Result<Option<(SessionId, Handle)>, Full> {
        let mut sessions = self.lock();
        let mut evicted = None;
        if sessions.len() >= self.limit {
            let idle = sessions.iter().filter_map(|(id, session)| Some((session.idle()?, id)));
            let longest = idle.min_by_key(|(idle, _)| *idle).map(|(_, id)| id.clone()).ok_or(Full)?;
            evicted = sessions.remove_entry(&longest);
        }
        sessions.insert(id, handle);
        Ok(evicted)
    }

    pub(super) fn find(&self, id: &str) -> Option<Handle> {
        self.lock().get(id).cloned()
    }

    pub(super) fn remove(&self, id: &str) -> Option<Handle> {
        self.lock().remove(id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Handle, RandomState>> {
        // No code that holds the lock can leave the map half changed.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
