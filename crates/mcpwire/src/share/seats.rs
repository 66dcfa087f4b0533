//! The links of many clients, read by one task: only those on which something may have come are looked at.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use mcpwire_proto::Packet;
use mcpwire_proto::session::share::Member;

use crate::bells::{Bell, Bells};
use crate::channel::Sender;
use crate::link::{Event, Port};

/// The ports of all clients.
#[derive(Debug)]
pub(super) struct Seats {
    seats: BTreeMap<Member, Seat>,
    bells: Bells<Member>,
}

#[derive(Debug)]
struct Seat {
    port: Port,
    bell: Bell<Member>,
}

impl Seats {
    pub(super) fn new() -> Seats {
        Seats { seats: BTreeMap::new(), bells: Bells::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    pub(super) fn join(&mut self, member: Member, port: Port) {
        let bell = self.bells.add(member);
        self.seats.insert(member, Seat { port, bell });
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
            self.bells.wakes(cx.waker());
            self.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// The same, if it has come already.
    pub(super) fn take(&mut self) -> Option<(Member, Option<Packet>)> {
        self.look().or_else(|| {
            // Once: who rings from now on has woken the task, be it only to go on after a pause that the runtime wants.
            self.bells.gather();
            self.look()
        })
    }

    fn look(&mut self) -> Option<(Member, Option<Packet>)> {
        while let Some(member) = self.bells.next() {
            let Some(Seat { port, bell }) = self.seats.get_mut(&member) else { continue };
            if let Poll::Ready(packet) = bell.poll(|cx| port.rx.poll_recv(cx)) {
                if packet.is_some() {
                    self.bells.put_back(bell);
                }
                return Some((member, packet));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
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
        let mut seats = Seats::new();
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
        let mut seats = Seats::new();
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
