//! The bridge under a client and the loop on top of it: started together, ended together.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::books::Books;
use super::driver::Driver;
use super::tap::Tap;
use super::{Error, Options};
use crate::bridge::{self, Reach, Upstreams};
use crate::link::{Link, Port};

/// How long what was sent already may take to go out at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long the target may take to be let go; its own limits are shorter.
const GOODBYE: Duration = Duration::from_secs(10);

/// The caller's hold on it. Dropping it is the end.
#[derive(Debug)]
pub(super) struct Connection(Arc<Books>);

impl Connection {
    pub(super) fn open(reach: &Reach, options: Options) -> Result<Connection, Error> {
        let (downstream, Port { tx, rx }) = Link::pair();
        let books = Arc::new(Books::new(tx));
        let Options { handler, recover, bridge: mut config, .. } = options;
        if config.relay.seed == 0 {
            config.relay.seed = fastrand::u64(..);
        }
        let tap = Tap { books: Arc::clone(&books), handler: Arc::clone(&handler), recover };
        let upstreams = Upstreams::opened(tap.on(reach)).map_err(|error| Error::Unreachable(format!("{error:#}")))?;
        let driver = Driver::new(Arc::clone(&books), Arc::clone(&handler), recover);
        let running = Running(Arc::clone(&books));
        tokio::spawn(async move {
            let stop = running.0.stop.notified();
            let bridge = bridge::carry(downstream, upstreams, config, stop, LAST_WORDS, None);
            let ((_, upstreams), ()) = tokio::join!(bridge, driver.run(rx));
            running.0.close(Some("the connection to the server ended"));
            let _ = timeout(GOODBYE, upstreams.gone()).await;
            handler.on_close(running.0.why().as_deref());
        });
        Ok(Connection(books))
    }

    pub(super) fn books(&self) -> &Books {
        &self.0
    }

    /// Ends it, and waits until everything is put away.
    pub(super) async fn end(&self) {
        self.0.close(None);
        self.ended().await;
    }

    pub(super) async fn ended(&self) {
        let _ = self.0.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.close(None);
    }
}

/// Sees to it that nobody waits for a loop that has ended, even by a fault in a handler.
struct Running(Arc<Books>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.close(Some("a handler failed"));
        self.0.ended.send_replace(true);
    }
}
