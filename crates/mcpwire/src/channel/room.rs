//! The places of a channel: who has one, and who waits for one, in order.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::mpsc::error::SendError;

use super::Sender;

/// Free places, and those who wait for one.
#[derive(Debug)]
pub(super) struct Queue {
    free: usize,
    /// The number of the next one that waits.
    next: u64,
    waiting: VecDeque<(u64, Waker)>,
    /// Those whose turn has come, and who have not looked yet. Each has a place.
    called: Vec<u64>,
}

impl Queue {
    pub(super) fn new(free: usize) -> Queue {
        Queue { free, next: 0, waiting: VecDeque::new(), called: Vec::new() }
    }

    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// Takes a place, if there is one. While anybody waits there is none.
    pub(super) fn take(&mut self) -> bool {
        let some = self.free > 0;
        self.free -= usize::from(some);
        some
    }

    /// A place is free again: it goes to whoever has waited longest.
    pub(super) fn give_back(&mut self) {
        match self.waiting.pop_front() {
            None => self.free += 1,
            Some((number, waker)) => {
                self.called.push(number);
                waker.wake();
            }
        }
    }

    pub(super) fn wake_all(&mut self) {
        self.waiting.drain(..).for_each(|(_, waker)| waker.wake());
    }

    /// Gives whether the one of this number has a place now; it gets a number, and waits, if not.
    fn poll(&mut self, number: &mut Option<u64>, cx: &mut Context<'_>) -> bool {
        let Some(mine) = *number else {
            if self.take() {
                return true;
            }
            *number = Some(self.next);
            self.waiting.push_back((self.next, cx.waker().clone()));
            self.next += 1;
            return false;
        };
        if let Some(at) = self.called.iter().position(|called| *called == mine) {
            self.called.swap_remove(at);
            *number = None;
            return true;
        }
        if let Some((_, waker)) = self.waiting.iter_mut().find(|(waiting, _)| *waiting == mine) {
            waker.clone_from(cx.waker());
        }
        false
    }

    /// Somebody waits no longer.
    fn leave(&mut self, number: u64) {
        self.waiting.retain(|(waiting, _)| *waiting != number);
        if let Some(at) = self.called.iter().position(|called| *called == number) {
            self.called.swap_remove(at);
            self.give_back();
        }
    }
}

/// Waits for a place.
pub struct Reserve<'a, T> {
    sender: &'a Sender<T>,
    number: Option<u64>,
}

impl<'a, T> Reserve<'a, T> {
    pub(super) fn new(sender: &'a Sender<T>) -> Reserve<'a, T> {
        Reserve { sender, number: None }
    }
}

impl<'a, T> Future for Reserve<'a, T> {
    type Output = Result<Permit<'a, T>, SendError<()>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Reserve { sender, number } = &mut *self;
        let mut state = sender.0.lock();
        if state.closed {
            return Poll::Ready(Err(SendError(())));
        }
        if state.room.poll(number, cx) { Poll::Ready(Ok(Permit::new(sender))) } else { Poll::Pending }
    }
}

impl<T> Drop for Reserve<'_, T> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.sender.0.lock().room.leave(number);
        }
    }
}

/// A place for one item.
pub struct Permit<'a, T> {
    sender: &'a Sender<T>,
}

impl<'a, T> Permit<'a, T> {
    pub(super) fn new(sender: &'a Sender<T>) -> Permit<'a, T> {
        Permit { sender }
    }

    pub fn send(self, item: T) {
        self.sender.0.put(item);
        std::mem::forget(self);
    }

    pub(super) fn into_owned(self) -> OwnedPermit<T> {
        let sender = self.sender.clone();
        std::mem::forget(self);
        OwnedPermit { sender, used: false }
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.sender.0.lock().room.give_back();
    }
}

/// A place for one item, kept without borrowing the sender.
pub struct OwnedPermit<T> {
    sender: Sender<T>,
    used: bool,
}

impl<T> OwnedPermit<T> {
    pub fn send(mut self, item: T) {
        self.used = true;
        self.sender.0.put(item);
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        if !self.used {
            self.sender.0.lock().room.give_back();
        }
    }
}

impl<T> fmt::Debug for Reserve<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reserve")
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnedPermit")
    }
}
