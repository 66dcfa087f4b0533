//! A future that is seldom ready, kept from costing its neighbours in a `select!` a look at every turn.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Polls a future only after the future itself has asked for it; until then a poll costs one load.
#[derive(Debug)]
pub(crate) struct Rarely<F> {
    future: F,
    bell: Arc<Bell>,
    /// The bell as a waker, and the task that it was last told to wake.
    wakers: Option<(Waker, Waker)>,
}

#[derive(Debug, Default)]
struct Bell {
    rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl<F: Future + Unpin> Rarely<F> {
    pub(crate) fn new(future: F) -> Rarely<F> {
        Rarely { future, bell: Arc::default(), wakers: None }
    }

    pub(crate) fn get(&self) -> &F {
        &self.future
    }

    /// Changes the future, which is then polled at the next turn.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut F)) {
        change(&mut self.future);
        self.bell.rung.store(true, Ordering::SeqCst);
    }
}

impl<F: Future + Unpin> Future for Rarely<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Rarely { future, bell, wakers } = &mut *self;
        let (ring, task) = wakers.get_or_insert_with(|| {
            bell.rung.store(true, Ordering::Relaxed);
            *bell.task() = Some(cx.waker().clone());
            (Waker::from(Arc::clone(bell)), cx.waker().clone())
        });
        if !task.will_wake(cx.waker()) {
            task.clone_from(cx.waker());
            *bell.task() = Some(cx.waker().clone());
        }
        if !bell.rung.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        bell.rung.store(false, Ordering::SeqCst);
        Pin::new(future).poll(&mut Context::from_waker(ring))
    }
}

impl Bell {
    fn task(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        if let Some(task) = &*self.task() {
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tokio::sync::{mpsc, oneshot};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn it_is_polled_when_it_asked_for_it_and_not_otherwise() {
        let polls = AtomicUsize::new(0);
        let (tx, rx) = oneshot::channel();
        let mut rx = pin!(rx);
        let counted = poll_fn(|cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            rx.as_mut().poll(cx)
        });
        let mut rare = Rarely::new(counted);
        let (busy_tx, mut busy) = mpsc::channel(1);
        for turn in 0..10 {
            busy_tx.send(turn).await.unwrap();
            tokio::select! {
                biased;
                _ = &mut rare => panic!("nothing was sent"),
                _ = busy.recv() => {}
            }
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        tx.send(7).unwrap();
        assert_eq!(rare.await, Ok(7));
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn it_wakes_the_task_that_waits_for_it_now() {
        let (tx, rx) = oneshot::channel();
        let mut rare = Rarely::new(rx);
        assert!(timeout(Duration::ZERO, &mut rare).await.is_err());
        let elsewhere = tokio::spawn(rare);
        tokio::task::yield_now().await;
        tx.send(7).unwrap();
        assert_eq!(timeout(Duration::from_secs(5), elsewhere).await.unwrap().unwrap(), Ok(7));
    }

    #[tokio::test]
    async fn one_that_was_changed_is_polled_again() {
        let mut rare = Rarely::new(Box::pin(tokio::time::sleep(Duration::from_secs(60))));
        assert!(timeout(Duration::ZERO, &mut rare).await.is_err());
        for _ in 0..2 {
            let at = tokio::time::Instant::now() + Duration::from_millis(5);
            rare.change(|sleep| sleep.as_mut().reset(at));
            assert_eq!(rare.get().deadline(), at);
            assert!(timeout(Duration::from_secs(5), &mut rare).await.is_ok(), "it waits for the time before");
        }
    }
}
