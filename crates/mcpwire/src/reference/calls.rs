//! The calls under way: who of them is owed an answer.

use std::collections::HashMap;

use mcpwire_proto::{Fault, Id, Message};
use tokio::task::{AbortHandle, JoinSet};

/// How many calls of one client run at a time.
const MOST_CALLS: usize = 1024;

/// Calls on tasks of their own, so that nothing waits for them. They end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Calls {
    tasks: JoinSet<Message>,
    /// The calls that are owed an answer. A call that is not here (any more) gets none.
    running: HashMap<Id, AbortHandle>,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn contains(&self, id: &Id) -> bool {
        self.running.contains_key(id)
    }

    /// Whether a call may be started under this id.
    pub(super) fn admit(&self, id: &Id) -> Result<(), Fault> {
        if self.contains(id) {
            return Err(Fault::Shape(format!("expected an id that is not in use, came {id}")));
        }
        if self.running.len() >= MOST_CALLS {
            return Err(Fault::Upstream(format!("a client may have {MOST_CALLS} calls running")));
        }
        Ok(())
    }

    /// Starts a call whose outcome is its answer.
    pub(super) fn start(&mut self, id: Id, work: impl Future<Output = Message> + Send + 'static) {
        let handle = self.tasks.spawn(work);
        self.running.insert(id, handle);
    }

    /// Ends a call without an answer; `false` if there is none.
    pub(super) fn cancel(&mut self, id: &Id) -> bool {
        match self.running.remove(id) {
            Some(handle) => {
                handle.abort();
                true
            }
            None => false,
        }
    }

    /// Waits for a call to end; gives its id and its answer. Never ready if none is under way.
    pub(super) async fn ended(&mut self) -> (Id, Message) {
        loop {
            let (task, answer) = match self.tasks.join_next_with_id().await {
                Some(Ok((task, answer))) => (task, Some(answer)),
                Some(Err(e)) => (e.id(), None),
                None => std::future::pending().await,
            };
            // One that was cancelled is no longer here.
            let found = self.running.iter().find(|(_, handle)| handle.id() == task).map(|(id, _)| id.clone());
            if let Some(id) = found {
                self.running.remove(&id);
                let broken = || Fault::Upstream("the call failed".into()).to_message(Some(&id));
                let answer = answer.unwrap_or_else(broken);
                return (id, answer);
            }
        }
    }
}
