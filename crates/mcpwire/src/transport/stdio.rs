//! Our own stdin and stdout as a link: one JSON-RPC message a line.
//!
//! A pipe is opened anew through `/proc`, where there is one, and read and written by the runtime itself: that saves a
//! thread's wake-up per message, and the file flags that others may share with us stay as they are. Anything else
//! (a socket, a file, a terminal) is left blocking, with a thread of its own for each direction.

use std::io::{self, Read, Write};
use std::thread;

use bytes::BufMut;
use mcpwire_proto::Packet;
use mcpwire_proto::frame::line::LineDecoder;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::lines::{self, CHUNK, event, gather};
use crate::channel::{Receiver, Sender};
use crate::link::{Event, Link, Port};

/// Takes over stdin and stdout. The link closes when stdin ends.
pub fn open(limit: usize) -> io::Result<(Link, Stdout)> {
    let (link, Port { tx, mut rx }) = Link::pair();
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
            tokio::spawn(async move { done.send(lines::write(pipe, &mut rx).await) });
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

async fn read_pipe(input: pipe::Receiver, events: Sender<Event>, limit: usize) {
    if let Err(e) = lines::read(input, events, limit).await {
        tracing::warn!(target: "stdio", "cannot read stdin: {e}");
    }
}

fn read(mut input: impl Read, events: &Sender<Event>, limit: usize) {
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

fn write(mut output: impl Write, mut packets: Receiver<Packet>) -> io::Result<()> {
    while let Some(packet) = packets.blocking_recv() {
        for piece in gather(packet, || packets.try_recv().ok()) {
            output.write_all(&piece)?;
        }
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use mcpwire_proto::Message;

    use super::super::lines::{GATHER, LARGE};
    use super::*;

    #[test]
    fn lines_become_events_and_bad_ones_say_how_to_answer() {
        let input = b"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r\nnonsense\n[1]\n{\"jsonrpc\":\"2.0\",\"id\":\"long\",\"method\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}\n";
        let (tx, mut rx) = crate::channel::channel(8);
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
        let (tx, rx) = crate::channel::channel(16);
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
