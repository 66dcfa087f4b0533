//! A bounded queue between two tasks, which is what every [`crate::link::Link`] is made of twice.
//!
//! It does what tokio's does and is named alike, for less: an idle one owns no memory for messages, where tokio's owns room
//! for 32, and a message costs a short lock on either side. There are thousands of these, each with a reader of its own.

mod closed;
mod room;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::sync::mpsc::error::{SendError, TryRecvError, TrySendError};
use tokio::task::coop;

pub use self::closed::Closed;
use self::closed::Watchers;
use self::room::Queue;
pub use self::room::{OwnedPermit, Permit, Reserve};

/// What was used at once, but is not in use any more, is given back when it is more than this.
const KEPT: usize = 64;

/// Takes an item on the spot, in the sender's own turn, or gives it back; then it waits in the channel like any other.
pub(crate) type Shortcut<T> = Box<dyn Fn(T) -> Option<T> + Send + Sync>;

/// Makes a channel in which at most `depth` items wait.
pub fn channel<T>(depth: usize) -> (Sender<T>, Receiver<T>) {
    let state = State {
        items: VecDeque::new(),
        room: Queue::new(depth),
        reader: None,
        asleep: false,
        senders: 1,
        closed: false,
        watchers: Watchers::default(),
    };
    let shared = Arc::new(Shared { state: Mutex::new(state), depth, shortcut: OnceLock::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// Gives items. Clones give to the same receiver.
pub struct Sender<T>(Arc<Shared<T>>);

/// Takes items. Dropping it closes the channel.
pub struct Receiver<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    depth: usize,
    shortcut: OnceLock<Shortcut<T>>,
}

struct State<T> {
    items: VecDeque<T>,
    /// Free places, and who waits for one.
    room: Queue,
    reader: Option<Waker>,
    /// The reader has seen that there is nothing, and wants to be woken.
    asleep: bool,
    senders: usize,
    /// The receiver is gone.
    closed: bool,
    /// Those who wait for that.
    watchers: Watchers,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an item that has a place.
    fn put(&self, item: T) {
        let left = match self.shortcut.get() {
            Some(take) => take(item),
            None => Some(item),
        };
        let mut state = self.lock();
        match left {
            Some(item) => state.push(item),
            None => state.room.give_back(),
        }
    }
}

impl<T> State<T> {
    fn push(&mut self, item: T) {
        self.items.push_back(item);
        self.wake_reader();
    }

    /// A waker takes no lock of ours.
    fn wake_reader(&mut self) {
        if std::mem::take(&mut self.asleep)
            && let Some(reader) = &self.reader
        {
            reader.wake_by_ref();
        }
    }

    fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.room.give_back();
        Some(item)
    }
}

impl<T> Sender<T> {
    /// Waits for room and sends. Fails when the receiver is gone.
    pub async fn send(&self, item: T) -> Result<(), SendError<T>> {
        let item = match self.try_send(item) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed(item)) => return Err(SendError(item)),
            Err(TrySendError::Full(item)) => item,
        };
        match self.reserve().await {
            Ok(permit) => {
                permit.send(item);
                Ok(())
            }
            Err(_) => Err(SendError(item)),
        }
    }

    /// Sends if there is room now.
    pub fn try_send(&self, item: T) -> Result<(), TrySendError<T>> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(TrySendError::Closed(item));
        }
        if !state.room.take() {
            return Err(TrySendError::Full(item));
        }
        if !self.has_shortcut() {
            state.push(item);
        } else {
            drop(state);
            self.0.put(item);
        }
        Ok(())
    }

    /// The same as [`Sender::send`], for a thread that may wait.
    pub fn blocking_send(&self, item: T) -> Result<(), SendError<T>> {
        block_on(self.send(item))
    }

    /// Waits for room, and keeps it.
    pub fn reserve(&self) -> Reserve<'_, T> {
        Reserve::new(self)
    }

    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(TrySendError::Closed(()));
        }
        if state.room.take() { Ok(Permit::new(self)) } else { Err(TrySendError::Full(())) }
    }

    /// The same as [`Sender::reserve`], without a lifetime.
    pub async fn reserve_owned(self) -> Result<OwnedPermit<T>, SendError<()>> {
        let permit = self.reserve().await?;
        Ok(permit.into_owned())
    }

    /// Waits until the receiver is gone.
    pub fn closed(&self) -> Closed<'_, T> {
        Closed::new(self)
    }

    pub fn is_closed(&self) -> bool {
        self.0.lock().closed
    }

    /// Whether the receiver's side takes items on the spot.
    pub(crate) fn has_shortcut(&self) -> bool {
        self.0.shortcut.get().is_some()
    }

    /// How many items may be sent at once now.
    pub fn capacity(&self) -> usize {
        self.0.lock().room.free()
    }

    pub fn max_capacity(&self) -> usize {
        self.0.depth
    }
}

impl<T> Receiver<T> {
    /// The next item; `None` when all senders are gone and everything was taken.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // A task that always finds something must let others have their turn.
        let Poll::Ready(turn) = coop::poll_proceed(cx) else { return Poll::Pending };
        let mut state = self.0.lock();
        let next = match state.pop() {
            None if state.senders > 0 => {
                state.asleep = true;
                if state.items.capacity() > KEPT {
                    state.items = VecDeque::new();
                }
                let known = state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker()));
                let before = if known { None } else { state.reader.replace(cx.waker().clone()) };
                drop(state);
                // Whatever may go with the last waker of a task must not find the lock taken.
                drop(before);
                return Poll::Pending;
            }
            next => next,
        };
        turn.made_progress();
        Poll::Ready(next)
    }

    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let mut state = self.0.lock();
        match state.pop() {
            Some(item) => Ok(item),
            None if state.senders == 0 => Err(TryRecvError::Disconnected),
            None => Err(TryRecvError::Empty),
        }
    }

    /// Opens a way past the channel, once for all. Whoever takes items there sees to their order: none may be taken while
    /// others wait.
    pub(crate) fn open_shortcut(&self, shortcut: Shortcut<T>) {
        let _ = self.0.shortcut.set(shortcut);
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.0.lock().items.is_empty()
    }

    /// The same as [`Receiver::recv`], for a thread that may wait.
    pub fn blocking_recv(&mut self) -> Option<T> {
        block_on(self.recv())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.0.lock().senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.senders -= 1;
        if state.senders == 0 {
            state.wake_reader();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        state.room.wake_all();
        let (items, reader, watchers) =
            (std::mem::take(&mut state.items), state.reader.take(), std::mem::take(&mut state.watchers));
        drop(state);
        watchers.wake();
        drop((items, reader));
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiver")
    }
}

/// Drives a future on a thread that has nothing else to do.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
