//! The clock that hyper limits the heads of requests by. A limit is set and lifted with every request, and hardly ever reached:
//! so one timer of the runtime's stands behind all those of a connection, and is left alone until it rings.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

use crate::alarm::Alarm;

/// For one connection, which waits for one thing at a time.
#[derive(Debug, Default)]
pub(super) struct HeadTimer(Arc<Mutex<Alarm>>);

#[derive(Debug)]
struct Wait {
    until: Instant,
    alarm: Arc<Mutex<Alarm>>,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, until: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Wait { until, alarm: self.0.clone() })
    }
}

impl Sleep for Wait {}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        // It may ring for a limit that was lifted long ago.
        while alarm.poll(Some(self.until), cx).is_ready() {
            if self.until <= Instant::now() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_limit_holds_whatever_was_waited_for_before() {
        let timer = HeadTimer::default();
        let begin = Instant::now();
        let mut lifted = timer.sleep(Duration::from_millis(10));
        assert!(std::future::poll_fn(|cx| Poll::Ready(lifted.as_mut().poll(cx).is_pending())).await);
        drop(lifted);
        timer.sleep(Duration::from_millis(60)).await;
        assert!(begin.elapsed() >= Duration::from_millis(60));
        timer.sleep(Duration::from_millis(10)).await;
        let took = begin.elapsed();
        assert!(took >= Duration::from_millis(70) && took < Duration::from_secs(5), "{took:?}");
    }
}
