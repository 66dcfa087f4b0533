//! Targets that take time to find out, as when a command has to print a token first: they are links at once.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use anyhow::Result;
use mcpwire_proto::Failure;
use tokio::task::{self, JoinHandle};

use super::Target;
use crate::link::{Event, Link, Port};

type Making = Pin<Box<dyn Future<Output = Result<Target>> + Send>>;

/// A target that is found out when the first message is sent to it, and again after that has failed.
pub struct Later {
    pub(super) name: String,
    /// Whether its transport tells to which request a message belongs.
    pub(super) sorted: bool,
    make: Arc<dyn Fn() -> Making + Send + Sync>,
}

impl Later {
    /// A target that `make` finds out within a runtime.
    pub fn new<F>(name: &str, sorted: bool, make: impl Fn() -> F + Send + Sync + 'static) -> Later
    where
        F: Future<Output = Result<Target>> + Send + 'static,
    {
        Later { name: name.to_owned(), sorted, make: Arc::new(move || Box::pin(make())) }
    }

    /// The target itself if it takes no time.
    pub fn at_once(self) -> Result<Target> {
        match (self.make)().as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(target) => target,
            Poll::Pending => Ok(Target::Later(self)),
        }
    }

    /// The target itself.
    pub async fn target(&self) -> Result<Target> {
        (self.make)().await
    }

    pub(super) fn open(&self) -> (Link, JoinHandle<()>) {
        let (link, port) = Link::pair();
        (link, task::spawn(run(Arc::clone(&self.make), port)))
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Later({})", self.name)
    }
}

async fn run(make: Arc<dyn Fn() -> Making + Send + Sync>, mut port: Port) {
    while let Some(first) = port.rx.recv().await {
        let made = tokio::select! {
            made = make() => made.and_then(|target| target.open()),
            () = port.tx.closed() => return,
        };
        match made {
            Ok((link, goodbye)) => {
                let sent = link.tx.send(first).await;
                if sent.is_ok() {
                    join(link, port).await;
                }
                let _ = goodbye.await;
                return;
            }
            Err(error) => {
                let failure = Failure::Unreachable(format!("{error:#}"));
                if port.tx.send(Event::Failed { message: first.message, failure }).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Passes on what is said, until either side ends.
async fn join(link: Link, port: Port) {
    let (Link { tx: to_server, rx: mut from_server }, Port { tx: to_user, rx: mut from_user }) = (link, port);
    let there = async {
        while let Some(packet) = from_user.recv().await {
            if to_server.send(packet).await.is_err() {
                break;
            }
        }
    };
    let back = async {
        while let Some(event) = from_server.recv().await {
            if to_user.send(event).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mcpwire_proto::{Id, Message};
    use tokio::task::yield_now;

    use super::*;
    use crate::folder::Folder;

    fn ping() -> Message {
        Message::request(&Id::from(1), "ping", None)
    }

    #[tokio::test]
    async fn a_target_is_found_out_with_the_first_message_and_again_after_a_failure() {
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let make = move || {
            let count = Arc::clone(&counted);
            async move {
                yield_now().await;
                match count.fetch_add(1, Ordering::Relaxed) {
                    0 => anyhow::bail!("not yet"),
                    _ => Ok(Target::Folder(Folder::sample())),
                }
            }
        };
        let target = Later::new("slow", false, make).at_once().unwrap();
        let (mut link, goodbye) = target.open().unwrap();
        link.tx.send(ping().into()).await.unwrap();
        let Some(Event::Failed { failure: Failure::Unreachable(why), .. }) = link.rx.recv().await else {
            panic!("no failure")
        };
        assert_eq!(why, "not yet");
        link.tx.send(ping().into()).await.unwrap();
        assert!(
            matches!(link.rx.recv().await, Some(Event::Packet(answer)) if answer.message.id() == Some(&Id::from(1)))
        );
        assert_eq!(tries.load(Ordering::Relaxed), 2);
        drop(link);
        goodbye.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_there_at_once_is_not_put_off() {
        let now = Later::new("now", false, || async { Ok(Target::Folder(Folder::sample())) });
        assert!(matches!(now.at_once().unwrap(), Target::Folder(_)));
    }
}
