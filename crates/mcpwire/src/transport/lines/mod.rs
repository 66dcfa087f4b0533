//! One JSON-RPC message a line, over anything that is read and written as a stream: what stdio, child processes and
//! Unix sockets have in common. How a connection is made, and when it ends, is left to each of them.

mod outbox;
mod sieve;

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use mcpwire_proto::frame::line::{Line, LineDecoder};
use mcpwire_proto::{Fault, Message, Packet, Rejected};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub(super) use self::outbox::Outbox;
pub(super) use self::sieve::Sieve;
use crate::channel::{Receiver, Sender};
use crate::link::Event;

/// How much is read at once.
pub(super) const CHUNK: usize = 64 * 1024;
/// How much is read at once in the beginning: there may be thousands of streams that never have more.
const LITTLE: usize = 1024;
/// Messages below this size are gathered into one piece.
pub(super) const LARGE: usize = 64 * 1024;
/// How much is gathered before it is written.
pub(super) const GATHER: usize = 256 * 1024;

const TO_SERVER: &str = "client -> server";
const TO_CLIENT: &str = "server -> client";

/// Reads a stream line by line.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    decoder: LineDecoder,
    /// How much room the next read gets.
    room: usize,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(input: R, limit: usize) -> Lines<R> {
        Lines { input, decoder: LineDecoder::new(limit), room: LITTLE, ended: false }
    }

    /// The next line; `None` at the end of the stream. Nothing is lost when this is dropped before it is done.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.decoder.next_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(self.decoder.finish());
            }
            let buffer = self.decoder.buffer();
            if buffer.capacity() - buffer.len() < self.room / 8 {
                buffer.reserve(self.room);
            }
            self.ended = self.input.read_buf(buffer).await? == 0;
            if buffer.capacity() == buffer.len() {
                self.room = CHUNK.min(2 * self.room);
            }
        }
    }
}

/// Reads a client's lines until they end, or nobody wants them any more.
pub(super) async fn read(input: impl AsyncRead + Unpin, events: Sender<Event>, limit: usize) -> io::Result<()> {
    let mut lines = Lines::new(input, limit);
    while let Some(line) = lines.next().await? {
        if events.send(event(line, limit)).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// What a client says with a line.
pub(super) fn event(line: Line, limit: usize) -> Event {
    match line {
        Line::Text(text) if text.trim_ascii_start().first() == Some(&b'[') => Event::Batch(text),
        Line::Text(text) => match Message::parse(text) {
            Ok(message) => Event::Packet(message.into()),
            Err(rejected) => Event::Garbage(Box::new(rejected)),
        },
        // Whoever asked must not wait for ever.
        Line::TooLong { answers: Some(id), .. } => {
            Event::Packet(Fault::TooLarge { limit }.to_message(Some(&id)).into())
        }
        Line::TooLong { id, .. } => Event::Garbage(Box::new(Rejected { id, fault: Fault::TooLarge { limit } })),
    }
}

/// Writes all that is given to the link, until it is dropped.
pub(super) async fn write(mut output: impl AsyncWrite + Unpin, packets: &mut Receiver<Packet>) -> io::Result<()> {
    while let Some(packet) = packets.recv().await {
        for piece in gather(packet, || packets.try_recv().ok()) {
            output.write_all(&piece).await?;
        }
    }
    Ok(())
}

/// What is to be written next: a message and those that wait behind it. Small ones become one piece, large ones are
/// not copied.
pub(super) fn gather(first: Packet, mut waiting: impl FnMut() -> Option<Packet>) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut small = BytesMut::new();
    let mut total = 0;
    let mut next = Some(first);
    while let Some(packet) = next {
        let line = packet.message.as_bytes();
        total += line.len();
        if line.len() < LARGE {
            small.reserve(line.len() + 1);
            small.put_slice(line);
        } else {
            pieces.push(small.split().freeze());
            pieces.push(line.clone());
        }
        small.put_u8(b'\n');
        next = if total < GATHER { waiting() } else { None };
    }
    pieces.push(small.freeze());
    pieces
}

/// What each message is, for those who look for a fault.
fn log(direction: &str, message: &Message) {
    if tracing::enabled!(target: "wire", tracing::Level::DEBUG) {
        tracing::debug!(target: "wire", "{direction} {message}");
        tracing::trace!(target: "wire", "{}", String::from_utf8_lossy(message.as_bytes()));
    }
}
