//! What is on its way into a channel: whoever sends it goes on with other things while the receiver is slow.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc::error::SendError;

use crate::channel::{OwnedPermit, Sender};
use crate::link::hand_over;

type Room<T> = Pin<Box<dyn Future<Output = Result<OwnedPermit<T>, SendError<()>>> + Send>>;

pub(crate) struct Outgoing<T> {
    tx: Sender<T>,
    waiting: VecDeque<T>,
    /// Waits for room in the channel. Kept, so that the wait keeps its place.
    room: Option<Room<T>>,
}

impl<T: Send + 'static> Outgoing<T> {
    pub(crate) fn new(tx: Sender<T>) -> Outgoing<T> {
        Outgoing { tx, waiting: VecDeque::new(), room: None }
    }

    pub(crate) fn push(&mut self, item: T) {
        self.waiting.push_back(item);
    }

    /// Takes back the first item that fits, if it still waits.
    pub(crate) fn take_back(&mut self, fits: impl Fn(&T) -> bool) -> Option<T> {
        let at = self.waiting.iter().position(fits)?;
        self.waiting.remove(at)
    }

    /// How much waits.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether something waits, and nobody has asked for room.
    pub(crate) fn wants_to_be_polled(&self) -> bool {
        self.room.is_none() && !self.waiting.is_empty()
    }

    /// Hands over what waits, as far as it is taken at once; gives whether the receiver is still there.
    pub(crate) fn flush(&mut self) -> bool {
        hand_over(&mut self.waiting, &self.tx, |item| item)
    }

    /// Ready when something was handed over; with `false` if the receiver is gone, and what waited with it.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.waiting.is_empty() {
            return Poll::Pending;
        }
        let room = self.room.get_or_insert_with(|| Box::pin(self.tx.clone().reserve_owned()));
        let Poll::Ready(room) = room.as_mut().poll(cx) else { return Poll::Pending };
        self.room = None;
        match (room, self.waiting.pop_front()) {
            (Ok(permit), Some(item)) => {
                permit.send(item);
                Poll::Ready(true)
            }
            _ => {
                self.waiting.clear();
                Poll::Ready(false)
            }
        }
    }

    pub(crate) fn sender(&self) -> &Sender<T> {
        &self.tx
    }

    /// The channel, and what is still to be sent on it.
    pub(crate) fn into_parts(self) -> (Sender<T>, VecDeque<T>) {
        (self.tx, self.waiting)
    }
}
