//! A child of one session: one exchange at a time, so the next line is the answer and nothing needs to be rewritten.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use crate::{ID, line_of};

const CHUNK: usize = 8 * 1024;

pub struct Own(Mutex<Pipes>);

struct Pipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// Killed when dropped.
    _child: Child,
}

/// A child with a pipe each way.
pub fn spawn(command: &[String]) -> Result<(Child, ChildStdin, ChildStdout)> {
    let (program, arguments) = command.split_first().context("no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let stdin = child.stdin.take().context("the child has no stdin")?;
    let stdout = child.stdout.take().context("the child has no stdout")?;
    Ok((child, stdin, stdout))
}

impl Own {
    pub fn spawn(command: &[String]) -> Result<Self> {
        let (child, stdin, stdout) = spawn(command)?;
        Ok(Self(Mutex::new(Pipes { stdin, stdout, _child: child })))
    }

    /// `None` for a message that wants no answer.
    pub async fn exchange(&self, body: &[u8]) -> Result<Option<Bytes>> {
        let line = line_of(body);
        let mut pipes = self.0.lock().await;
        pipes.stdin.write_all(&line).await?;
        if memchr::memmem::find(body, ID).is_none() {
            return Ok(None);
        }
        let mut answer = BytesMut::new();
        while answer.last() != Some(&b'\n') {
            answer.reserve(CHUNK);
            if pipes.stdout.read_buf(&mut answer).await? == 0 {
                bail!("the child has ended");
            }
        }
        answer.truncate(answer.len() - 1);
        Ok(Some(answer.freeze()))
    }
}
