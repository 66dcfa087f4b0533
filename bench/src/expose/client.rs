//! One HTTP client: a session and a connection of its own, one request at a time, every answer checked.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::http::{self, Response};
use crate::ledger::{INITIALIZE, INITIALIZED, Ledger};

/// A gateway that says nothing for this long while it owes answers has lost them.
pub const SILENCE: Timespec = Timespec { tv_sec: 15, tv_nsec: 0 };
const CHUNK: usize = 16 * 1024;

pub struct Client {
    stream: TcpStream,
    ledger: Ledger,
    /// All of a request but its length and body.
    head: String,
    input: Vec<u8>,
    filled: usize,
    sent: Instant,
}

impl Client {
    /// Opens a session; `number` tells this client from the others.
    pub fn open(address: SocketAddr, number: usize) -> Result<Self> {
        let stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n"
        );
        let ledger = Ledger::of_client(number);
        let mut client = Self { stream, ledger, head, input: vec![0; CHUNK], filled: 0, sent: Instant::now() };
        client.initialize().context("initialize")?;
        Ok(client)
    }

    pub fn answered(&self) -> u64 {
        self.ledger.answered()
    }

    /// Sends a request for the `echo` tool.
    pub fn call(&mut self) -> Result<()> {
        let mut body = Vec::with_capacity(160);
        self.ledger.echo(&mut body);
        self.post(&body)
    }

    /// Reads what is there. The time since the call, once its response has come to its end and was the right one.
    pub fn answer(&mut self) -> Result<Option<Duration>> {
        self.fill()?;
        let Some(response) = http::parse(&self.input[..self.filled])? else {
            return Ok(None);
        };
        let took = self.sent.elapsed();
        let mut settled = 0;
        for message in expect(&response, 200)?.messages() {
            settled += usize::from(self.ledger.settle(message)?.is_some());
        }
        ensure!(settled == 1, "{settled} answers in one response");
        let length = response.length;
        self.consume(length)?;
        Ok(Some(took))
    }

    /// One call, waiting for its answer.
    pub fn call_and_wait(&mut self) -> Result<Duration> {
        self.call()?;
        loop {
            self.wait()?;
            if let Some(took) = self.answer()? {
                return Ok(took);
            }
        }
    }

    fn initialize(&mut self) -> Result<()> {
        let (_, line) = self.ledger.request("initialize", INITIALIZE);
        self.post(&line)?;
        let session = self.whole(200, |response, ledger| {
            let mut settled = 0;
            for message in response.messages() {
                settled += usize::from(ledger.settle_any(message)?.is_some());
            }
            ensure!(settled == 1, "{settled} answers in one response");
            response.session.map(ToString::to_string).context("no session in the answer")
        })?;
        self.head += &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n");
        self.post(INITIALIZED)?;
        self.whole(202, |_, _| Ok(()))
    }

    /// Waits for the response and takes it with `read`.
    fn whole<T>(&mut self, status: u16, read: impl FnOnce(&Response, &mut Ledger) -> Result<T>) -> Result<T> {
        loop {
            self.wait()?;
            self.fill()?;
            let Some(response) = http::parse(&self.input[..self.filled])? else {
                continue;
            };
            let taken = read(expect(&response, status)?, &mut self.ledger)?;
            let length = response.length;
            self.consume(length)?;
            return Ok(taken);
        }
    }

    /// Never blocks: a small request fits into the socket.
    fn post(&mut self, line: &[u8]) -> Result<()> {
        let body = line.trim_ascii_end();
        let mut request = Vec::with_capacity(self.head.len() + 32 + body.len());
        request.extend_from_slice(self.head.as_bytes());
        write!(request, "content-length: {}\r\n\r\n", body.len())?;
        request.extend_from_slice(body);
        self.sent = Instant::now();
        self.stream.write_all(&request).context("cannot write to the gateway")
    }

    fn wait(&self) -> Result<()> {
        if poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&SILENCE))? == 0 {
            bail!("no answer for {} s", SILENCE.tv_sec);
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        if self.input.len() - self.filled < CHUNK / 2 {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => bail!("the gateway closed the connection"),
            Ok(length) => self.filled += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("cannot read from the gateway"),
        }
        Ok(())
    }

    fn consume(&mut self, length: usize) -> Result<()> {
        ensure!(length == self.filled, "{} bytes that answer nothing", self.filled - length);
        self.filled = 0;
        Ok(())
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn expect<'a, 'b>(response: &'a Response<'b>, status: u16) -> Result<&'a Response<'b>> {
    let start = &response.body[..response.body.len().min(120)];
    ensure!(response.status == status, "status {}: {}", response.status, String::from_utf8_lossy(start));
    Ok(response)
}
