//! A bounded channel with what waits to be sent on it: the loop goes on while its receiver is slow.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc::error::SendError;

use crate::channel::{OwnedPermit, Sender};
use crate::link::hand_over;

type Room<T> = Pin<Box<dyn Future<Output = Result<OwnedPermit<T>, SendError<()>>> + Send>>;

pub(super) struct Outlet<T> {
    tx: Sender<T>,
    waiting: VecDeque<T>,
    /// Waits for room in the channel. Kept, so that the wait keeps its place.
    room: Option<Room<T>>,
}

impl<T: Send + 'static> Outlet<T> {
    pub(super) fn new(tx: Sender<T>) -> Outlet<T> {
        Outlet { tx, waiting: VecDeque::new(), room: None }
    }

    pub(super) fn push(&mut self, item: T) {
        self.waiting.push_back(item);
    }

    /// How much waits.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether something waits, and nobody has asked for room.
    pub(super) fn wants_to_be_polled(&self) -> bool {
        self.room.is_none() && !self.waiting.is_empty()
    }

    /// Hands over what waits, as far as it is taken at once; gives whether the receiver is still there.
    pub(super) fn flush(&mut self) -> bool {
        hand_over(&mut self.waiting, &self.tx, |item| item)
    }

    /// Ready when something was handed over, or never will be.
    pub(super) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiting.is_empty() {
            return Poll::Pending;
        }
        let room = self.room.get_or_insert_with(|| Box::pin(self.tx.clone().reserve_owned()));
        let Poll::Ready(room) = room.as_mut().poll(cx) else { return Poll::Pending };
        self.room = None;
        match (room, self.waiting.pop_front()) {
            (Ok(permit), Some(item)) => permit.send(item),
            // Whoever reads from the other end learns of it.
            _ => self.waiting.clear(),
        }
        Poll::Ready(())
    }
}
