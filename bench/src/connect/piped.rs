//! A bridge as its client sees it: a child process with a pipe each way, read with a deadline.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A bridge that says nothing for this long while it owes answers has lost them.
const SILENCE: Timespec = Timespec { tv_sec: 15, tv_nsec: 0 };
/// How long a child may take to leave by itself once its stdin is closed.
const GRACE: Duration = Duration::from_secs(2);
const CHUNK: usize = 64 * 1024;

pub struct Piped {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Read so far: `start..filled`, of which `start..seen` holds no newline.
    buffer: Vec<u8>,
    start: usize,
    seen: usize,
    filled: usize,
}

impl Piped {
    pub fn spawn(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("the child has no stdout")?;
        Ok(Self { child, stdin, stdout, buffer: Vec::new(), start: 0, seen: 0, filled: 0 })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Never blocks for long: what the driver has under way at once fits into a pipe.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let stdin = self.stdin.as_mut().context("stdin is closed")?;
        stdin.write_all(bytes).context("cannot write to the bridge")
    }

    /// The next line, waiting for it if need be.
    pub fn line(&mut self) -> Result<&[u8]> {
        loop {
            if let Some((start, end)) = self.cut() {
                return Ok(&self.buffer[start..end]);
            }
            self.fill()?;
        }
    }

    /// The next line if it has already been read.
    pub fn buffered_line(&mut self) -> Option<&[u8]> {
        self.cut().map(|(start, end)| &self.buffer[start..end])
    }

    fn cut(&mut self) -> Option<(usize, usize)> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.seen..self.filled]) else {
            self.seen = self.filled;
            return None;
        };
        let (start, end) = (self.start, self.seen + at);
        self.start = end + 1;
        self.seen = self.start;
        Some((start, end))
    }

    fn fill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.seen -= self.start;
        self.start = 0;
        // Grown by doubling and zeroed once: clearing memory before each read would show in the latencies.
        if self.buffer.len() - self.filled < CHUNK {
            self.buffer.resize(self.buffer.len() * 2 + CHUNK, 0);
        }
        let mut fds = [PollFd::new(&self.stdout, PollFlags::IN)];
        if poll(&mut fds, Some(&SILENCE)).context("cannot wait for the bridge")? == 0 {
            bail!("no answer for {} s", SILENCE.tv_sec);
        }
        let read = self.stdout.read(&mut self.buffer[self.filled..]).context("cannot read from the bridge")?;
        if read == 0 {
            bail!("the bridge closed its stdout");
        }
        self.filled += read;
        Ok(())
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // The child may have left in this moment; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
