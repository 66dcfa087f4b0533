//! Three ways to read lines from stdin and write lines to stdout; each feeds the same two bounded channels.

use std::io::{self, Read, Write};
use std::thread;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

/// The pieces of one answer as they came from the network: joined by the write, not in memory.
pub type Answer = Vec<Bytes>;
/// Resolves when every answer is written.
pub type Written = oneshot::Receiver<()>;

const CHUNK: usize = 64 * 1024;
/// Answers that wait together are written together, up to this many.
const BATCH: usize = 64;

/// The lines of a byte stream, cut out of the read buffer without a copy.
#[derive(Default)]
struct Lines {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    seen: usize,
}

impl Lines {
    fn next(&mut self) -> Option<Bytes> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.seen..]) else {
            self.seen = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.seen + at + 1);
        self.seen = 0;
        line.truncate(line.len() - 1);
        Some(line.freeze())
    }
}

/// tokio's own stdin and stdout: a blocking pool thread behind each.
pub fn tokio_std(lines: mpsc::Sender<Bytes>, answers: mpsc::Receiver<Answer>) -> Written {
    tasks(tokio::io::stdin(), tokio::io::stdout(), lines, answers)
}

/// The pipes in the runtime's own poll loop. Opened anew, because non-blocking mode belongs to the
/// open file, and the one we inherited may be shared with our parent.
pub fn pipe(lines: mpsc::Sender<Bytes>, answers: mpsc::Receiver<Answer>) -> io::Result<Written> {
    let stdin = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0")?;
    let stdout = pipe::OpenOptions::new().open_sender("/proc/self/fd/1")?;
    Ok(tasks(stdin, stdout, lines, answers))
}

/// A thread for each direction, blocking in plain reads and writes.
pub fn threads(lines: mpsc::Sender<Bytes>, mut answers: mpsc::Receiver<Answer>) -> Written {
    let (done, written) = oneshot::channel();
    thread::spawn(move || read_blocking(&lines));
    thread::spawn(move || {
        let mut stdout = io::stdout().lock();
        let mut batch = Vec::with_capacity(BATCH);
        while answers.blocking_recv_many(&mut batch, BATCH) > 0 {
            for piece in join_small(&mut batch) {
                if stdout.write_all(&piece).is_err() {
                    return;
                }
            }
            if stdout.flush().is_err() {
                return;
            }
        }
        // Nobody listens any more only when the runtime is gone.
        let _ = done.send(());
    });
    written
}

fn read_blocking(lines: &mpsc::Sender<Bytes>) {
    let mut stdin = io::stdin().lock();
    let mut cut = Lines::default();
    let mut chunk = vec![0; CHUNK];
    loop {
        match stdin.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(length) => cut.buffer.extend_from_slice(&chunk[..length]),
        }
        while let Some(line) = cut.next() {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    }
}

fn tasks<R, W>(mut stdin: R, mut stdout: W, lines: mpsc::Sender<Bytes>, mut answers: mpsc::Receiver<Answer>) -> Written
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (done, written) = oneshot::channel();
    tokio::spawn(async move {
        let mut cut = Lines::default();
        loop {
            cut.buffer.reserve(CHUNK);
            if !matches!(stdin.read_buf(&mut cut.buffer).await, Ok(1..)) {
                return;
            }
            while let Some(line) = cut.next() {
                if lines.send(line).await.is_err() {
                    return;
                }
            }
        }
    });
    tokio::spawn(async move {
        let mut batch = Vec::with_capacity(BATCH);
        while answers.recv_many(&mut batch, BATCH).await > 0 {
            for piece in join_small(&mut batch) {
                if stdout.write_all(&piece).await.is_err() {
                    return;
                }
            }
            if stdout.flush().await.is_err() {
                return;
            }
        }
        // Nobody listens any more only when the runtime is gone.
        let _ = done.send(());
    });
    written
}

/// What to write for these answers: small pieces copied together, large ones left where they are.
fn join_small(batch: &mut Vec<Answer>) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut small = BytesMut::new();
    for answer in batch.drain(..) {
        for piece in answer {
            if piece.len() < CHUNK / 4 {
                small.extend_from_slice(&piece);
            } else {
                pieces.push(small.split().freeze());
                pieces.push(piece);
            }
        }
        small.extend_from_slice(b"\n");
    }
    pieces.push(small.freeze());
    pieces
}
