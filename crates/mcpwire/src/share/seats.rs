//! The links of many clients, read by one task: only those on which something may have come are looked at.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use foldhash::fast::RandomState;
use mcpwire_proto::Packet;
use mcpwire_proto::session::share::Member;

use crate::channel::Sender;
use crate::link::{Event, Port};

/// The ports of all clients.
#[derive(Debug, Default)]
pub(super) struct Seats {
    seats: HashMap<Member, Seat, RandomState>,
    desk: Arc<Desk>,
    /// Whom to look at.
    turn: VecDeque<Member>,
}

#[derive(Debug)]
struct Seat {
    port: Port,
    bell: Arc<Bell>,
    waker: Waker,
}

/// What wakes the task that reads.
#[derive(Debug, Default)]
struct Desk(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    rung: VecDeque<Member>,
    task: Option<Waker>,
}

/// Rung when something comes on one client's link.
#[derive(Debug)]
struct Bell {
    member: Member,
    /// It is in the desk's list, or about to be.
    rung: AtomicBool,
    desk: Arc<Desk>,
}

impl Seats {
    pub(super) fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    pub(super) fn join(&mut self, member: Member, port: Port) {
        let bell = Arc::new(Bell { member, rung: AtomicBool::new(true), desk: Arc::clone(&self.desk) });
        let waker = Waker::from(Arc::clone(&bell));
        self.seats.insert(member, Seat { port, bell, waker });
        self.turn.push_back(member);
    }

    pub(super) fn leave(&mut self, member: Member) {
        self.seats.remove(&member);
    }

    /// Where a client is told things.
    pub(super) fn sender(&self, member: Member) -> Option<&Sender<Event>> {
        self.seats.get(&member).map(|seat| &seat.port.tx)
    }

    /// What a client says next, or that it is gone. Nothing is lost when this is dropped before it is done.
    pub(super) async fn next(&mut self) -> (Member, Option<Packet>) {
        poll_fn(|cx| {
            self.desk.wakes(cx.waker());
            match self.take() {
                Some(said) => Poll::Ready(said),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The same, if it has come already.
    pub(super) fn take(&mut self) -> Option<(Member, Option<Packet>)> {
        self.look().or_else(|| {
            // Once: who rings from now on has woken the task, be it only to go on after a pause that the runtime wants.
            mem::swap(&mut self.turn, &mut self.desk.calls().rung);
            self.look()
        })
    }

    fn look(&mut self) -> Option<(Member, Option<Packet>)> {
        while let Some(member) = self.turn.pop_front() {
            let Some(seat) = self.seats.get_mut(&member) else { continue };
            // Before the look: what comes after it rings again.
            seat.bell.rung.store(false, Ordering::SeqCst);
            if let Poll::Ready(packet) = seat.port.rx.poll_recv(&mut Context::from_waker(&seat.waker)) {
                if packet.is_some() && !seat.bell.rung.swap(true, Ordering::SeqCst) {
                    self.turn.push_back(member);
                }
                return Some((member, packet));
            }
        }
        None
    }
}

impl Desk {
    fn wakes(&self, task: &Waker) {
        match &mut self.calls().task {
            Some(known) if known.will_wake(task) => {}
            known => *known = Some(task.clone()),
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.rung.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut calls = self.desk.calls();
        calls.rung.push_back(self.member);
        let task = calls.task.as_ref().filter(|_| calls.rung.len() == 1).cloned();
        drop(calls);
        task.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use mcpwire_proto::{Id, Message};
    use tokio::time::timeout;

    use super::*;
    use crate::link::Link;

    const CLIENTS: u64 = 20;
    const MESSAGES: u64 = 1000;

    /// More messages than the runtime lets a task take at once, and than a channel holds, from threads of their own.
    #[tokio::test]
    async fn everything_is_heard_in_order_and_then_the_end() {
        let mut seats = Seats::default();
        for member in 1..=CLIENTS {
            let (link, port) = Link::pair();
            seats.join(Member(member), port);
            thread::spawn(move || {
                for number in 1..=MESSAGES {
                    link.tx.blocking_send(Message::request(&Id::from(number), "ping", None).into()).unwrap();
                    if number % (7 + member) == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
        let mut heard = HashMap::new();
        let reading = async {
            while !seats.is_empty() {
                match seats.next().await {
                    (member, Some(packet)) => {
                        let number = heard.entry(member).or_insert(0);
                        *number += 1;
                        assert_eq!(packet.message.id(), Some(&Id::from(*number)));
                    }
                    (member, None) => seats.leave(member),
                }
            }
        };
        timeout(Duration::from_secs(20), reading).await.expect("nobody is forgotten");
        assert!(heard.len() == CLIENTS as usize && heard.values().all(|number| *number == MESSAGES), "{heard:?}");
    }

    #[tokio::test]
    async fn one_that_says_much_does_not_keep_others_from_being_heard() {
        let mut seats = Seats::default();
        let links: Vec<Link> = (1..=2)
            .map(|member| {
                let (link, port) = Link::pair();
                seats.join(Member(member), port);
                link
            })
            .collect();
        for (link, count) in links.iter().zip([100, 1]) {
            for number in 0..count {
                link.tx.send(Message::request(&Id::from(number), "ping", None).into()).await.unwrap();
            }
        }
        let first_two = [seats.next().await.0, seats.next().await.0];
        assert_eq!(first_two, [Member(1), Member(2)]);
    }
}
