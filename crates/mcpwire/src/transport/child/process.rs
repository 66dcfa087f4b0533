//! One run of the program: its pipes, and how it comes to its end.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcpwire_proto::frame::line::Line;
use mcpwire_proto::{Message, Packet};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::task::{self, JoinHandle};
use tokio::time::{Instant, timeout, timeout_at};

use super::group::Group;
use super::{Closing, Options, guard, stderr};
use crate::rarely::Rarely;
use crate::transport::lines::{Lines, Outbox, Sieve};

/// How long a pipe may be silent, and how long it is read at all, once the program has ended: only a process that has
/// left the group can hold it open by then.
const SILENT: Duration = Duration::from_millis(500);
const LAST_READ: Duration = Duration::from_secs(5);
/// A pipe holds no more bytes than this, by far. When more was written, somebody has read.
const PIPE: usize = 1 << 20;

/// How a run ended.
pub(super) enum End {
    /// The link was dropped.
    Dropped,
    Gone(String),
    /// The guard could not run the program; the requests were not executed.
    NotStarted(io::Error, Vec<Message>),
}

/// Why a run has to end.
enum Cause {
    Dropped,
    Exited,
    ClosedStdin,
    ClosedStdout,
}

pub(super) struct Process {
    child: Child,
    group: Group,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: JoinHandle<Option<io::Error>>,
    closing: Closing,
    name: String,
    max_message: usize,
}

impl Process {
    pub(super) fn start(options: &Options) -> io::Result<Process> {
        let mut command = Command::from(match &options.guard {
            Some(guard) => guard::command(guard, &options.program, &options.args),
            None => guard::bare(&options.program, &options.args),
        });
        command.envs(options.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &options.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
        let group = Group::of(&child);
        let (Some(stdin), Some(stdout), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("it has no pipes"));
        };
        let name = options.name.clone();
        tracing::info!(target: "child", "{name}: started as process {}", child.id().unwrap_or_default());
        let stderr = task::spawn(stderr::drain(errors, name.clone(), options.guard.is_some()));
        let (closing, max_message) = (options.closing, options.max_message);
        Ok(Process { child, group, stdin, stdout, stderr, closing, name, max_message })
    }

    /// Carries messages until the program ends or the link is dropped. Nothing of it is left then.
    pub(super) async fn converse(self, first: Packet, outbox: &mut Outbox) -> End {
        let Process { mut child, mut group, mut stdin, stdout, stderr, closing, name, max_message } = self;
        let events = outbox.events();
        let (running, ended) = oneshot::channel();
        let heard = Arc::new(AtomicBool::new(false));
        let lines = Lines::new(stdout, max_message);
        let output = Output { lines, heard: Arc::clone(&heard), running: Some(Rarely::new(ended)), until: None };
        let mut reading = task::spawn(output.read(Sieve::new(&name, max_message, events.clone())));
        let mut unheard = Unheard { heard, ..Unheard::default() };

        let cause = {
            let mut writing = pin!(outbox.write(&mut stdin, first, |message| unheard.note(message)));
            let (dropped, exited) = (pin!(events.closed()), pin!(child.wait()));
            tokio::select! {
                biased;
                written = &mut writing => if written.is_ok() { Cause::Dropped } else { Cause::ClosedStdin },
                () = Rarely::new(dropped) => {
                    // What was given to the link before it was dropped is still to be written.
                    let _ = timeout(closing.stdin, writing).await;
                    Cause::Dropped
                }
                _ = Rarely::new(exited) => Cause::Exited,
                _ = Rarely::new(&mut reading) => Cause::ClosedStdout,
            }
        };
        drop(stdin);
        let forced = match cause {
            Cause::Exited => {
                group.kill();
                false
            }
            Cause::Dropped | Cause::ClosedStdin | Cause::ClosedStdout => group.end(&mut child, closing).await,
        };
        drop(running);
        if !matches!(cause, Cause::ClosedStdout) {
            let _ = reading.await;
        }
        let not_run = finish(stderr).await;
        let status = child.try_wait().ok().flatten();
        let how = status.map_or("it does not end".to_owned(), describe);
        tracing::info!(target: "child", "{name}: {how}");
        match (cause, not_run) {
            (Cause::Dropped, _) => End::Dropped,
            (_, Some(error)) if status.is_some_and(|status| status.code() == Some(guard::NOT_RUN.into())) => {
                End::NotStarted(error, unheard.messages)
            }
            (Cause::ClosedStdin, _) if forced => End::Gone("it closed its stdin".to_owned()),
            (Cause::ClosedStdout, _) if forced => End::Gone("it closed its stdout".to_owned()),
            _ => End::Gone(how),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => format!("it ended: {status}"),
    }
}

/// Lets the log of stderr come to its end.
async fn finish(mut stderr: JoinHandle<Option<io::Error>>) -> Option<io::Error> {
    match timeout(SILENT, &mut stderr).await {
        Ok(reported) => reported.ok().flatten(),
        Err(_) => {
            stderr.abort();
            None
        }
    }
}

/// The program's stdout.
struct Output {
    lines: Lines<ChildStdout>,
    /// Set when the program has said something.
    heard: Arc<AtomicBool>,
    /// Closed when the program has ended.
    running: Option<Rarely<oneshot::Receiver<()>>>,
    /// When to stop reading, once it has.
    until: Option<Instant>,
}

impl Output {
    async fn read(mut self, mut sieve: Sieve) {
        while let Some(line) = self.next().await {
            self.heard.store(true, Ordering::Relaxed);
            sieve.pass(line).await;
        }
    }

    async fn next(&mut self) -> Option<Line> {
        if let Some(running) = &mut self.running {
            tokio::select! {
                biased;
                line = self.lines.next() => return line.ok().flatten(),
                _ = running => self.running = None,
            }
        }
        let until = *self.until.get_or_insert_with(|| Instant::now() + LAST_READ);
        timeout_at(until.min(Instant::now() + SILENT), self.lines.next()).await.ok()?.ok().flatten()
    }
}

/// The first requests that were written: if the program turns out not to have been run, nobody has heard them.
#[derive(Default)]
struct Unheard {
    messages: Vec<Message>,
    bytes: usize,
    /// The program runs: it has said something.
    heard: Arc<AtomicBool>,
}

impl Unheard {
    fn note(&mut self, message: &Message) {
        if self.bytes > PIPE || self.heard.load(Ordering::Relaxed) {
            self.messages = Vec::new();
        } else if message.is_request() {
            self.bytes += message.as_bytes().len();
            self.messages.push(message.clone());
        }
    }
}
