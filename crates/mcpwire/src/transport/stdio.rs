//! Our own stdin and stdout as a link: one JSON-RPC message a line.
//!
//! A pipe is opened anew through `/proc`, where there is one, and read and written by the runtime itself: that saves a
//! thread's wake-up per message, and the file flags that others may share with us stay as they are. Anything else
//! (a socket, a file, a terminal) is left blocking, with a thread of its own for each direction.

use std::io::{self, Read, Write};
use std::thread;

use bytes::{BufMut, Bytes, BytesMut};
use mcpwire_proto::frame::line::{Line, LineDecoder};
use mcpwire_proto::{Fault, Message, Packet, Rejected};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

use crate::link::{Event, Link, Port};

/// How much is read at once.
const CHUNK: usize = 64 * 1024;
/// Messages below this size are gathered into one piece.
const LARGE: usize = 64 * 1024;
/// How much is gathered before it is written.
const GATHER: usize = 256 * 1024;

/// Takes over stdin and stdout. The link closes when stdin ends.
pub fn open(limit: usize) -> io::Result<(Link, Stdout)> {
    let (link, Port { tx, rx }) = Link::pair();
    match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => {
            tokio::spawn(read_pipe(pipe, tx, limit));
        }
        Err(_) => {
            let read = move || read(io::stdin().lock(), &tx, limit);
            thread::Builder::new().name("stdin".into()).spawn(read)?;
        }
    }
    let (done, written) = oneshot::channel();
    match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => {
            tokio::spawn(async { done.send(write_pipe(pipe, rx).await) });
        }
        Err(_) => {
            let write = || done.send(write(io::stdout().lock(), rx));
            thread::Builder::new().name("stdout".into()).spawn(write)?;
        }
    }
    Ok((link, Stdout(written)))
}

/// Tells when all that was given to the link is written.
#[derive(Debug)]
pub struct Stdout(oneshot::Receiver<io::Result<()>>);

impl Stdout {
    /// To be awaited after the link is dropped.
    pub async fn written(self) -> io::Result<()> {
        self.0.await.unwrap_or(Ok(()))
    }
}

async fn read_pipe(mut input: pipe::Receiver, events: mpsc::Sender<Event>, limit: usize) {
    let mut decoder = LineDecoder::new(limit);
    loop {
        let buffer = decoder.buffer();
        if buffer.capacity() - buffer.len() < CHUNK / 8 {
            buffer.reserve(CHUNK);
        }
        match input.read_buf(decoder.buffer()).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) => {
                tracing::warn!(target: "stdio", "cannot read stdin: {e}");
                break;
            }
        }
        while let Some(line) = decoder.next_line() {
            if events.send(event(line, limit)).await.is_err() {
                return;
            }
        }
    }
    if let Some(line) = decoder.finish() {
        let _ = events.send(event(line, limit)).await;
    }
}

fn read(mut input: impl Read, events: &mpsc::Sender<Event>, limit: usize) {
    let mut decoder = LineDecoder::new(limit);
    let mut chunk = vec![0; CHUNK];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => decoder.buffer().put_slice(&chunk[..count]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => {
                tracing::warn!(target: "stdio", "cannot read stdin: {e}");
                break;
            }
        }
        while let Some(line) = decoder.next_line() {
            if events.blocking_send(event(line, limit)).is_err() {
                return;
            }
        }
    }
    if let Some(line) = decoder.finish() {
        let _ = events.blocking_send(event(line, limit));
    }
}

fn event(line: Line, limit: usize) -> Event {
    match line {
        Line::Text(text) if text.trim_ascii_start().first() == Some(&b'[') => Event::Batch(text),
        Line::Text(text) => match Message::parse(text) {
            Ok(message) => Event::Packet(message.into()),
            Err(rejected) => Event::Garbage(rejected),
        },
        Line::TooLong { id } => Event::Garbage(Rejected { id, fault: Fault::TooLarge { limit } }),
    }
}

async fn write_pipe(mut output: pipe::Sender, mut packets: mpsc::Receiver<Packet>) -> io::Result<()> {
    while let Some(packet) = packets.recv().await {
        for piece in gather(packet, &mut packets) {
            output.write_all(&piece).await?;
        }
    }
    Ok(())
}

fn write(mut output: impl Write, mut packets: mpsc::Receiver<Packet>) -> io::Result<()> {
    while let Some(packet) = packets.blocking_recv() {
        for piece in gather(packet, &mut packets) {
            output.write_all(&piece)?;
        }
        output.flush()?;
    }
    Ok(())
}

/// What is to be written next: a message and those that wait behind it. Small ones become one piece, large ones are
/// not copied.
fn gather(first: Packet, packets: &mut mpsc::Receiver<Packet>) -> Vec<Bytes> {
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
        next = if total < GATHER { packets.try_recv().ok() } else { None };
    }
    pieces.push(small.freeze());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_events_and_bad_ones_say_how_to_answer() {
        let input = b"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r\nnonsense\n[1]\n{\"jsonrpc\":\"2.0\",\"id\":\"long\",\"method\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}\n";
        let (tx, mut rx) = mpsc::channel(8);
        read(&input[..], &tx, 60);
        drop(tx);
        let mut seen = Vec::new();
        while let Ok(event) = rx.try_recv() {
            seen.push(match event {
                Event::Packet(packet) => packet.message.to_string(),
                Event::Batch(text) => format!("batch of {} bytes", text.len()),
                Event::Garbage(rejected) => format!("{} {:?}", rejected.fault.code(), rejected.id),
                other => format!("{other:?}"),
            });
        }
        let expected = ["notification a (30 bytes)", "-32700 None", "batch of 3 bytes", "-32600 Some(\"long\")"];
        assert_eq!(seen, expected);
    }

    #[test]
    fn every_message_is_written_on_its_line_whatever_its_size() {
        let (tx, rx) = mpsc::channel(16);
        let mut expected = String::new();
        for size in [1, LARGE - 50, LARGE, GATHER, 2, 3] {
            let message = Message::notification("n", Some(&format!("\"{}\"", "x".repeat(size))));
            expected.push_str(std::str::from_utf8(message.as_bytes()).unwrap());
            expected.push('\n');
            tx.try_send(message.into()).unwrap();
        }
        drop(tx);
        let mut output = Vec::new();
        write(&mut output, rx).unwrap();
        assert!(output == expected.as_bytes());
    }
}
