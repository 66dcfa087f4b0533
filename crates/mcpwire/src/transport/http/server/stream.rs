//! One stream of events on one HTTP response: a bounded queue that ends rather than grows; what to send is left to
//! the session.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::buf::Chain;
use bytes::{Buf, Bytes, BytesMut};
use mcpwire_proto::frame::sse;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::log::{EventId, Record};
use super::options::Options;

/// What goes on the wire at once: head, payload and tail, so that the payload is never copied.
pub(super) type Chunk = Chain<Chain<Bytes, Bytes>, Bytes>;

pub(super) fn chunk(head: Bytes, payload: Bytes, tail: Bytes) -> Chunk {
    head.chain(payload).chain(tail)
}

/// The session's end of a stream. Dropping it ends the stream once the client has read what is queued.
#[derive(Debug)]
pub(super) struct Outlet {
    tx: mpsc::Sender<Chunk>,
    shared: Arc<Shared>,
    max_bytes: usize,
}

/// What both ends know.
#[derive(Debug, Default)]
struct Shared {
    /// How many bytes wait for the client.
    queued: AtomicUsize,
    /// When the connection ended.
    ended: OnceLock<Instant>,
}

/// The connection's end of a stream.
#[derive(Debug)]
pub(super) struct EventStream {
    rx: mpsc::Receiver<Chunk>,
    shared: Arc<Shared>,
    keep_alive: Duration,
    quiet_since: Instant,
    alarm: Pin<Box<Sleep>>,
    /// Whom it concerns that nobody reads any more.
    concerned: Option<Waker>,
}

pub(super) fn open(options: &Options) -> (Outlet, EventStream) {
    let (tx, rx) = mpsc::channel(options.stream_events.max(1));
    let shared = Arc::new(Shared::default());
    let keep_alive = options.keep_alive;
    let stream = EventStream {
        rx,
        shared: shared.clone(),
        keep_alive,
        quiet_since: Instant::now(),
        alarm: Box::pin(tokio::time::sleep(keep_alive)),
        concerned: None,
    };
    (Outlet { tx, shared, max_bytes: options.stream_bytes }, stream)
}

impl Outlet {
    /// Queues an event; `false` if the client has gone or has too much to read already.
    pub(super) fn offer(&self, record: &Record) -> bool {
        let head = format!("id: {}\ndata: ", record.id);
        self.queue(chunk(head.into(), record.data.clone(), Bytes::from_static(b"\n\n")))
    }

    /// Queues an event that cannot be resumed from.
    pub(super) fn offer_plain(&self, data: Bytes) -> bool {
        self.queue(chunk(Bytes::from_static(b"data: "), data, Bytes::from_static(b"\n\n")))
    }

    /// Queues an event without data that tells the client how to resume (2025-11-25, Transports, Sending Messages).
    pub(super) fn prime(&self, id: EventId, retry: Duration) -> bool {
        let mut event = BytesMut::new();
        sse::encode(&mut event, None, Some(&id.to_string()), Some(retry), b"");
        self.queue(chunk(event.freeze(), Bytes::new(), Bytes::new()))
    }

    /// Queues the event that tells where to POST (2024-11-05, Transports, HTTP with SSE).
    pub(super) fn announce(&self, endpoint: &str) -> bool {
        let mut event = BytesMut::new();
        sse::encode(&mut event, Some("endpoint"), None, None, endpoint.as_bytes());
        self.queue(chunk(event.freeze(), Bytes::new(), Bytes::new()))
    }

    pub(super) fn is_open(&self) -> bool {
        !self.tx.is_closed()
    }

    /// When the connection ended, if it has.
    pub(super) fn ended_at(&self) -> Option<Instant> {
        self.shared.ended.get().copied()
    }

    fn queue(&self, chunk: Chunk) -> bool {
        // One event may go beyond the limit, or a large one could never be delivered.
        if self.shared.queued.load(Ordering::Relaxed) >= self.max_bytes {
            return false;
        }
        self.shared.queued.fetch_add(chunk.remaining(), Ordering::Relaxed);
        self.tx.try_send(chunk).is_ok()
    }
}

impl EventStream {
    /// Wakes a task when the client has gone.
    pub(super) fn wake_at_end(&mut self, task: Option<Waker>) {
        self.concerned = task;
    }

    pub(super) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        if let Poll::Ready(next) = self.rx.poll_recv(cx) {
            self.quiet_since = Instant::now();
            if let Some(chunk) = &next {
                self.shared.queued.fetch_sub(chunk.remaining(), Ordering::Relaxed);
            }
            return Poll::Ready(next);
        }
        while self.alarm.as_mut().poll(cx).is_ready() {
            let due = self.quiet_since + self.keep_alive;
            if due <= Instant::now() {
                self.quiet_since = Instant::now();
                self.alarm.as_mut().reset(self.quiet_since + self.keep_alive);
                return Poll::Ready(Some(chunk(Bytes::from_static(b":\n\n"), Bytes::new(), Bytes::new())));
            }
            self.alarm.as_mut().reset(due);
        }
        Poll::Pending
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let _ = self.shared.ended.set(Instant::now());
        if let Some(concerned) = self.concerned.take() {
            // First, so that who is woken sees it.
            self.rx.close();
            concerned.wake();
        }
    }
}
