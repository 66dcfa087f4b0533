//! Many that may have something to tell, watched by one task: only those that rang are looked at.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

/// Who rang.
#[derive(Debug)]
pub(crate) struct Bells<K> {
    desk: Arc<Desk<K>>,
    turn: VecDeque<Arc<Rope<K>>>,
}

/// What one of them is polled with, so that it rings.
#[derive(Debug)]
pub(crate) struct Bell<K> {
    rope: Arc<Rope<K>>,
    waker: Waker,
}

#[derive(Debug)]
struct Rope<K> {
    key: K,
    /// It was pulled, and nobody has been told yet.
    pulled: AtomicBool,
    desk: Weak<Desk<K>>,
}

/// What wakes the task that watches.
#[derive(Debug)]
struct Desk<K>(Mutex<Calls<K>>);

#[derive(Debug)]
struct Calls<K> {
    pulled: VecDeque<Arc<Rope<K>>>,
    task: Option<Waker>,
}

impl<K: Copy + Send + Sync + 'static> Bells<K> {
    pub(crate) fn new() -> Bells<K> {
        let calls = Calls { pulled: VecDeque::new(), task: None };
        Bells { desk: Arc::new(Desk(Mutex::new(calls))), turn: VecDeque::new() }
    }

    /// A bell, which has rung: one that was never looked at may have something to tell.
    pub(crate) fn add(&self, key: K) -> Bell<K> {
        let rope = Arc::new(Rope { key, pulled: AtomicBool::new(false), desk: Arc::downgrade(&self.desk) });
        rope.pull();
        Bell { waker: Waker::from(Arc::clone(&rope)), rope }
    }

    /// Who rang, in turn. Those that are gone may be named, too.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<K> {
        self.wakes(cx.waker());
        self.gather();
        self.next().map_or(Poll::Pending, Poll::Ready)
    }

    /// Who rings from now on wakes this task, unless somebody rang before and was not gathered yet.
    pub(crate) fn wakes(&self, task: &Waker) {
        match &mut self.desk.calls().task {
            Some(known) if known.will_wake(task) => {}
            known => *known = Some(task.clone()),
        }
    }

    /// Takes note of those that have rung, when all those before had their turn.
    pub(crate) fn gather(&mut self) {
        if self.turn.is_empty() {
            mem::swap(&mut self.turn, &mut self.desk.calls().pulled);
        }
    }

    /// The next of those that were gathered.
    pub(crate) fn next(&mut self) -> Option<K> {
        let rope = self.turn.pop_front()?;
        // Before it is looked at: what comes after that rings again.
        rope.pulled.store(false, Ordering::SeqCst);
        Some(rope.key)
    }

    /// Has a bell named once more, after the others.
    pub(crate) fn put_back(&mut self, bell: &Bell<K>) {
        if !bell.rope.pulled.swap(true, Ordering::SeqCst) {
            self.turn.push_back(Arc::clone(&bell.rope));
        }
    }
}

impl<K> Bell<K> {
    /// Polls. The bell rings when there is reason to do it again.
    pub(crate) fn poll<T>(&self, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        poll(&mut Context::from_waker(&self.waker))
    }

    pub(crate) fn ring(&self) {
        self.rope.pull();
    }
}

impl<K> Rope<K> {
    fn pull(self: &Arc<Self>) {
        if self.pulled.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(desk) = self.desk.upgrade() else { return };
        let mut calls = desk.calls();
        calls.pulled.push_back(Arc::clone(self));
        let task = calls.task.as_ref().filter(|_| calls.pulled.len() == 1).cloned();
        drop(calls);
        task.into_iter().for_each(Waker::wake);
    }
}

impl<K> Desk<K> {
    fn calls(&self) -> MutexGuard<'_, Calls<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Send + Sync + 'static> Wake for Rope<K> {
    fn wake(self: Arc<Self>) {
        self.pull();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.pull();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::thread;
    use std::time::Duration;

    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;

    const COUNT: usize = 20;
    const MESSAGES: u32 = 1000;

    /// More than the runtime lets a task take at once, and than a channel holds, from threads of their own.
    #[tokio::test]
    async fn everything_is_heard_in_order_and_then_the_end() {
        let mut bells = Bells::new();
        let mut lines: Vec<_> = (0..COUNT)
            .map(|key| {
                let (tx, rx) = mpsc::channel(8);
                thread::spawn(move || {
                    for number in 1..=MESSAGES {
                        tx.blocking_send(number).unwrap();
                        if (number as usize).is_multiple_of(7 + key) {
                            thread::yield_now();
                        }
                    }
                });
                (bells.add(key), Some(rx), 0)
            })
            .collect();
        let mut open = COUNT;
        let hearing = async {
            while open > 0 {
                let key = poll_fn(|cx| bells.poll_next(cx)).await;
                let (bell, line, last) = &mut lines[key];
                while let Some(rx) = line
                    && let Poll::Ready(heard) = bell.poll(|cx| rx.poll_recv(cx))
                {
                    match heard {
                        Some(number) => *last = number.min(*last + 1),
                        None => {
                            open -= 1;
                            *line = None;
                        }
                    }
                }
                tokio::task::coop::consume_budget().await;
            }
        };
        timeout(Duration::from_secs(20), hearing).await.expect("nobody is forgotten");
        assert!(lines.iter().all(|(_, _, last)| *last == MESSAGES));
    }

    #[tokio::test]
    async fn a_bell_is_named_once_however_often_it_rings() {
        let mut bells = Bells::new();
        let (a, b) = (bells.add('a'), bells.add('b'));
        a.ring();
        let mut named = String::new();
        for _ in 0..2 {
            named.push(poll_fn(|cx| bells.poll_next(cx)).await);
        }
        assert_eq!(named, "ab");
        assert!(timeout(Duration::ZERO, poll_fn(|cx| bells.poll_next(cx))).await.is_err());
        b.ring();
        assert_eq!(poll_fn(|cx| bells.poll_next(cx)).await, 'b');
    }
}
