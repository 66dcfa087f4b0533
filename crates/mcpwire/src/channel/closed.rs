//! Those who wait until the receiver of a channel is gone.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::Sender;

#[derive(Debug, Default)]
pub(super) struct Watchers {
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Watchers {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.wakers.len()
    }

    pub(super) fn wake(self) {
        self.wakers.into_values().for_each(Waker::wake);
    }
}

/// Waits until the receiver is gone.
pub struct Closed<'a, T> {
    sender: &'a Sender<T>,
    number: Option<u64>,
}

impl<'a, T> Closed<'a, T> {
    pub(super) fn new(sender: &'a Sender<T>) -> Closed<'a, T> {
        Closed { sender, number: None }
    }
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.sender.0.lock();
        if state.closed {
            return Poll::Ready(());
        }
        let watchers = &mut state.watchers;
        let number = *self.number.get_or_insert_with(|| {
            watchers.next += 1;
            watchers.next
        });
        match watchers.wakers.get_mut(&number) {
            Some(waker) => waker.clone_from(cx.waker()),
            None => drop(watchers.wakers.insert(number, cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.sender.0.lock().watchers.wakers.remove(&number);
        }
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed")
    }
}
