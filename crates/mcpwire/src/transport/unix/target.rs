//! A server behind a socket file as a link that outlives the connection: it is made with the first message, and again
//! with the next message after the server closed it.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use mcpwire_proto::{Failure, Packet};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::task::{self, JoinHandle};
use tokio::time::timeout;

use crate::link::Link;
use crate::transport::lines::{Lines, Outbox, Sieve};

/// How long a server may take to accept us.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(5);
/// How long the last messages may take, each way.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Makes the link; `limit` is the largest message taken from the server. No connection is made before the first
/// message. When the link is dropped the connection is closed; the handle completes when it is.
pub fn connect(path: PathBuf, limit: usize) -> (Link, JoinHandle<()>) {
    let (link, port) = Link::pair();
    (link, task::spawn(run(path, limit, Outbox::new(port))))
}

async fn run(path: PathBuf, limit: usize, mut outbox: Outbox) {
    while let Some(first) = outbox.first().await {
        match dial(&path).await {
            Err(error) => {
                tracing::debug!(target: "unix", "cannot connect to {}: {error}", path.display());
                let why = format!("cannot connect to the socket: {error}");
                outbox.failed(first.message, Failure::Unreachable(why)).await;
            }
            Ok(stream) => match converse(stream, limit, first, &mut outbox).await {
                Some(why) => outbox.gone(&why).await,
                None => return,
            },
        }
    }
}

async fn dial(path: &Path) -> io::Result<UnixStream> {
    match timeout(ACCEPTED_WITHIN, UnixStream::connect(path)).await {
        Ok(connected) => connected,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it does not accept connections")),
    }
}

/// Carries messages until the server is gone, which is told, or the link is dropped.
async fn converse(stream: UnixStream, limit: usize, first: Packet, outbox: &mut Outbox) -> Option<String> {
    let (input, mut output) = stream.into_split();
    let events = outbox.events();
    let mut reading = task::spawn(read(Lines::new(input, limit), Sieve::new("the server", limit, events.clone())));
    let gone = {
        let mut writing = pin!(outbox.write(&mut output, first, |_| {}));
        tokio::select! {
            _ = &mut reading => return Some("it closed the connection".to_owned()),
            written = &mut writing => written.err().map(|error| format!("the connection broke: {error}")),
            () = events.closed() => {
                let _ = timeout(LAST_WORDS, writing).await;
                None
            }
        }
    };
    // What the server has said before it went, or says as we go, is heard.
    let _ = output.shutdown().await;
    if timeout(LAST_WORDS, &mut reading).await.is_err() {
        reading.abort();
    }
    gone
}

async fn read(mut lines: Lines<OwnedReadHalf>, mut sieve: Sieve) {
    while let Ok(Some(line)) = lines.next().await {
        sieve.pass(line).await;
    }
}
