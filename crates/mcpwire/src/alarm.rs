//! A deadline that is seldom reached and often moved: the timer behind it is left alone as long as it does.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

/// Waits for a deadline that may be another at every look.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// Never later than the deadline it was last asked for.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Ready at that time, or before it, if an earlier one was waited for: who is woken looks at the clock.
    pub(crate) fn poll(&mut self, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = at.map(tokio::time::Instant::from_std) else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if sleep.is_elapsed() || sleep.deadline() > at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn it_never_waits_longer_than_it_is_asked_to() {
        let mut alarm = Alarm::default();
        let begin = Instant::now();
        let (soon, late) = (begin + Duration::from_millis(20), begin + Duration::from_secs(60));
        assert!(timeout(Duration::ZERO, poll_fn(|cx| alarm.poll(None, cx))).await.is_err());
        assert!(timeout(Duration::ZERO, poll_fn(|cx| alarm.poll(Some(late), cx))).await.is_err());
        timeout(Duration::from_secs(5), poll_fn(|cx| alarm.poll(Some(soon), cx))).await.expect("it was moved forward");
        assert!(begin.elapsed() >= Duration::from_millis(20));
        assert!(timeout(Duration::from_millis(5), poll_fn(|cx| alarm.poll(Some(late), cx))).await.is_err());
        timeout(Duration::from_secs(5), poll_fn(|cx| alarm.poll(Some(soon), cx))).await.expect("what is over is over");
    }
}
