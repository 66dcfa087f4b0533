//! Where a bridge is kept, so that more than its own task can reach it: a client that takes messages on the spot, as HTTP
//! sessions do, is served in the turn of whoever brings a message. The task sees to what has to wait, and to time.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use mcpwire_proto::conversation::Upstream;

use super::{BACKLOG, Bridge, End, News, Outcome, Side, Upstreams};
use crate::alarm::Alarm;
use crate::channel::Shortcut;
use crate::link::{Event, Link};
use crate::outgoing::Outgoing;
use crate::rarely::Rarely;

/// `None` when the bridge is over. Boxed: there may be thousands, and what each is made of lies in memory once.
pub(super) struct Place(Mutex<Option<Box<Bridge>>>);

impl Place {
    pub(super) fn new(side: Side, downstream: Link, drain: Duration) -> Arc<Place> {
        let place = Arc::new(Place(Mutex::default()));
        let direct = downstream.tx.has_shortcut().then(|| Arc::downgrade(&place));
        if let Some(place) = direct.clone() {
            downstream.rx.open_shortcut(Box::new(move |event| match place.upgrade() {
                Some(place) => {
                    place.take(event, Bridge::takes_from_client, |side, event, now| side.on_client(event, now))
                }
                None => Some(event),
            }));
        }
        let bridge = Bridge {
            side,
            said: downstream.rx,
            to_client: Outgoing::new(downstream.tx),
            alarm: Alarm::default(),
            alarm_at: None,
            drain,
            draining: None,
            full_since: None,
            is_stalled: false,
            unread_since: None,
            task: None,
            direct,
        };
        *place.lock() = Some(Box::new(bridge));
        place
    }

    /// Carries messages until the client's side closes or `stop` completes, and then what is still under way.
    pub(super) async fn run(self: Arc<Place>, stop: impl Future) -> (End, Upstreams) {
        let outcome = self.outcome(stop).await;
        let bridge = self.lock().take().expect("a bridge is ended by its own task alone");
        match outcome {
            Outcome::ClientGone => (End::ClientGone, bridge.side.into_upstreams()),
            Outcome::Finish(end, why) => bridge.finish(end, why).await,
        }
    }

    async fn outcome(&self, stop: impl Future) -> Outcome {
        let Some(client) = self.lock().as_ref().map(|bridge| bridge.to_client.sender().clone()) else {
            return Outcome::ClientGone;
        };
        let (client_gone, stop) = (pin!(client.closed()), pin!(stop));
        let (mut client_gone, mut stop) = (Rarely::new(client_gone), Rarely::new(stop));
        let mut stopped = false;
        loop {
            tokio::select! {
                biased;
                outcome = poll_fn(|cx| self.poll(cx)) => return outcome,
                () = &mut client_gone => return Outcome::ClientGone,
                _ = &mut stop, if !stopped => {
                    stopped = true;
                    self.lock().as_mut().into_iter().for_each(|bridge| bridge.stop());
                }
            }
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Outcome> {
        self.lock().as_mut().map_or(Poll::Ready(Outcome::ClientGone), |bridge| bridge.poll(cx))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Bridge>>> {
        // What a panic may leave behind concerns this one bridge, which still has to come to its end.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles an event in its sender's turn. It is given back if others are to be handled before, if it is none of those
    /// that come all the time, or if somebody is at work here.
    fn take(
        &self,
        event: Event,
        takes: impl FnOnce(&Bridge) -> bool,
        handle: impl FnOnce(&mut Side, Event, Instant),
    ) -> Option<Event> {
        let mut bridge = match self.0.try_lock() {
            Ok(bridge) => bridge,
            Err(TryLockError::Poisoned(bridge)) => bridge.into_inner(),
            Err(TryLockError::WouldBlock) => return Some(event),
        };
        match bridge.as_mut() {
            Some(bridge) if matches!(event, Event::Packet(_)) && takes(bridge) => {
                let now = Instant::now();
                handle(&mut bridge.side, event, now);
                bridge.pump(now);
                bridge.nudge();
                None
            }
            _ => Some(event),
        }
    }
}

impl Bridge {
    fn takes_from_client(&self) -> bool {
        !self.is_stalled && self.hears_client() && self.said.is_empty()
    }

    fn takes_from(&self, upstream: Upstream) -> bool {
        self.to_client.len() < BACKLOG && self.side.is_heard(upstream)
    }

    /// Lets what the server tells be handled on the spot, too.
    pub(super) fn open_shortcuts(&mut self) {
        let Some(place) = &self.direct else { return };
        self.side.open_shortcuts(|upstream| shortcut_from(upstream, place.clone()));
    }

    /// Wakes the bridge's task, if what was done elsewhere left something to do for it.
    fn nudge(&self) {
        let sooner = match (self.side.alarm(), self.alarm_at) {
            (Some(at), Some(known)) => at < known,
            (at, None) => at.is_some(),
            (None, _) => false,
        };
        let waits = !self.to_client.is_empty() || self.side.wants_to_be_polled();
        if (sooner || waits || self.draining.is_some() || self.side.is_over())
            && let Some(task) = &self.task
        {
            task.wake_by_ref();
        }
    }
}

fn shortcut_from(upstream: Upstream, place: Weak<Place>) -> Shortcut<Event> {
    Box::new(move |event| match place.upgrade() {
        Some(place) => place.take(
            event,
            |bridge| bridge.takes_from(upstream),
            |side, event, now| side.on_news(News::Came(upstream, Some(event)), now),
        ),
        None => Some(event),
    })
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use mcpwire_proto::conversation::Config;
    use mcpwire_proto::{Id, Lane, Message, Packet};
    use tokio::time::timeout;

    use super::*;

    const CALLS: u64 = 5000;

    /// Client, server and bridge are each on a thread of their own, so locks are found taken and messages wait now and then.
    #[tokio::test]
    async fn messages_handled_on_the_spot_and_messages_that_waited_keep_their_order() {
        let (client, mut port) = Link::pair();
        let (upstream, mut server) = Link::pair();
        let (told, mut answers) = crate::channel::channel(CALLS as usize);
        let here = told.clone();
        port.rx.open_shortcut(Box::new(move |packet: Packet| {
            // Taken now and then, as by a session that is at work elsewhere in between.
            if packet.message.as_bytes().len().is_multiple_of(2) {
                return Some(packet);
            }
            here.try_send(packet.message).expect("room for all");
            None
        }));
        let upstreams = Upstreams::only(upstream);
        let bridge = super::super::carry(
            client,
            upstreams,
            Config::default(),
            std::future::pending::<()>(),
            Duration::ZERO,
            None,
        );
        let bridge = tokio::spawn(bridge);
        let serving = thread::spawn(move || {
            for number in 1..=CALLS {
                let request = server.rx.blocking_recv().expect("a request").message;
                assert_eq!(request.id(), Some(&Id::from(number)), "requests keep their order");
                let answer = Message::result(&Id::from(number), "{}");
                let packet = Packet::new(Lane::Unsorted, answer);
                server.tx.blocking_send(Event::Packet(packet)).expect("the bridge is there");
            }
            server
        });
        let events = port.tx.clone();
        thread::spawn(move || {
            for number in 1..=CALLS {
                let request = Message::request(&Id::from(number), "tools/call", None);
                events.blocking_send(Event::Packet(request.into())).expect("the bridge is there");
            }
        });
        thread::spawn(move || {
            while let Some(packet) = port.rx.blocking_recv() {
                told.try_send(packet.message).expect("room for all");
            }
        });
        let mut answered = vec![false; CALLS as usize + 1];
        let counting = async {
            for _ in 0..CALLS {
                let answer = answers.recv().await.expect("an answer");
                let number: usize = answer.id().expect("an id").as_json().parse().expect("a number");
                assert!(!std::mem::replace(&mut answered[number], true), "{number} was answered twice");
            }
        };
        timeout(Duration::from_secs(30), counting).await.expect("nothing is lost");
        drop(serving.join().expect("in order"));
        let (end, _) = timeout(Duration::from_secs(5), bridge).await.expect("it ends").expect("no panic");
        assert_eq!(end, End::CutShort);
    }
}
