//! Log lines on their way to stderr, which never hold us up: many clients give us a pipe there and do not read it.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// How many lines wait for a slow reader; the next ones are dropped, and counted.
const BACKLOG: usize = 1024;
/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_millis(200);

static LINES: OnceLock<SyncSender<Job>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

enum Job {
    Line(Vec<u8>),
    /// Everything before this is written.
    Flush(SyncSender<()>),
}

/// Takes log lines, one a write.
pub(super) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lines = LINES.get_or_init(start);
        if lines.try_send(Job::Line(line.to_vec())).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits a little for the lines that are on their way.
pub(super) fn flush() {
    let Some(lines) = LINES.get() else { return };
    let (done, written) = sync_channel(1);
    if lines.try_send(Job::Flush(done)).is_ok() {
        let _ = written.recv_timeout(LAST_LINES);
    }
}

fn start() -> SyncSender<Job> {
    let (lines, jobs) = sync_channel(BACKLOG);
    // Without the thread the channel fills up and lines are dropped, which is all that can be done.
    let _ = thread::Builder::new().name("log".into()).spawn(move || write_all(&jobs));
    lines
}

fn write_all(jobs: &Receiver<Job>) {
    let mut stderr = io::stderr();
    while let Ok(job) = jobs.recv() {
        match job {
            // A line that cannot be written is lost; there is nowhere to say so.
            Job::Line(line) => drop(stderr.write_all(&line)),
            Job::Flush(done) => drop(done.try_send(())),
        }
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let _ = writeln!(stderr, "mcpwire: {dropped} log lines were dropped, because nobody read them in time");
        }
    }
}
