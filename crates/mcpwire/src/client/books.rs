//! Who waits for which answer, and whether the connection still stands. One lock, never held across a wait.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpwire_proto::object::quoted;
use mcpwire_proto::{Id, Message, method};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::Error;
use super::request::OnProgress;
use crate::channel::Sender;
use crate::link::Event;

/// What the clones of a client, their requests and the loop share.
pub(super) struct Books {
    state: Mutex<State>,
    /// Told when the connection is to end.
    pub(super) stop: Notify,
    /// Whether everything is put away.
    pub(super) ended: watch::Sender<bool>,
}

struct State {
    /// Towards the bridge; dropping it says that we are done.
    tx: Option<Sender<Event>>,
    pending: HashMap<Id, Pending>,
    next_id: u64,
    /// Why the connection ended.
    why: Option<String>,
}

/// A request without an answer.
pub(super) struct Pending {
    pub(super) reply: oneshot::Sender<Result<Message, Error>>,
    pub(super) on_progress: Option<OnProgress>,
    /// Told of every sign of progress.
    pub(super) beat: Arc<Notify>,
}

impl Books {
    pub(super) fn new(tx: Sender<Event>) -> Books {
        let state = State { tx: Some(tx), pending: HashMap::new(), next_id: 0, why: None };
        Books { state: Mutex::new(state), stop: Notify::new(), ended: watch::Sender::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where to send to, as long as the connection stands.
    pub(super) fn sender(&self) -> Option<Sender<Event>> {
        self.state().tx.clone()
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().tx.is_some()
    }

    pub(super) fn why(&self) -> Option<String> {
        self.state().why.clone()
    }

    /// Enters a request under a new id.
    pub(super) fn enter(&self, pending: Pending) -> Result<(Id, Sender<Event>), Error> {
        let mut state = self.state();
        let tx = state.tx.clone().ok_or(Error::NotConnected)?;
        state.next_id += 1;
        let id = Id::from(state.next_id);
        state.pending.insert(id.clone(), pending);
        Ok((id, tx))
    }

    /// Takes a request out, which is what gives the right to answer it.
    pub(super) fn settle(&self, id: &Id) -> Option<Pending> {
        self.state().pending.remove(id)
    }

    /// There is a sign of progress of the request that has this token.
    pub(super) fn progressed(&self, token: &Id) -> Option<OnProgress> {
        let state = self.state();
        let pending = state.pending.get(token)?;
        pending.beat.notify_one();
        pending.on_progress.clone()
    }

    /// Nobody waits for the answer any more. A server that has the request may stop working on it, if it is told.
    pub(super) fn withdraw(&self, id: &Id, tell: bool, reason: &str) {
        let (Some(_), true, Some(tx)) = (self.settle(id), tell, self.sender()) else { return };
        let params = format!(r#"{{"requestId":{id},"reason":{}}}"#, quoted(reason));
        let cancelled = Message::notification(method::CANCELLED, Some(&params));
        if let Err(mpsc::error::TrySendError::Full(event)) = tx.try_send(Event::Packet(cancelled.into()))
            && let Ok(runtime) = Handle::try_current()
        {
            // No more of these than there were requests; the end of the connection ends them.
            runtime.spawn(async move { drop(tx.send(event).await) });
        }
    }

    /// Ends the connection, once: all that is pending is rejected.
    pub(super) fn close(&self, why: Option<&str>) {
        let pending = {
            let mut state = self.state();
            if state.tx.take().is_none() {
                return;
            }
            state.why = why.map(str::to_owned);
            std::mem::take(&mut state.pending)
        };
        // A bridge that waits for a server which does not read would not notice that we are done.
        self.stop.notify_one();
        for (_, pending) in pending {
            let _ = pending.reply.send(Err(Error::closed(why)));
        }
    }
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let mut shown = f.debug_struct("Client");
        shown.field("connected", &state.tx.is_some()).field("pending", &state.pending.len()).finish_non_exhaustive()
    }
}
