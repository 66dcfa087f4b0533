//! A program on stdio as a link that outlives the program: it is started with the first message, and again with the
//! next message after it ended. Whether and when that is tried is left to the session.
//!
//! ```text
//!   Idle ── packet ──► Running ── exit, or a pipe closed ──► ended, told as Gone ──► Idle
//!                         └── link dropped ──► stdin closed ──► SIGTERM ──► SIGKILL ──► reaped
//! ```

mod group;
pub mod guard;
mod process;
mod stderr;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpwire_proto::frame::DEFAULT_LIMIT;
use mcpwire_proto::{Cause, Failure, code};
use tokio::task::{self, JoinHandle};

use self::process::{End, Process};
use super::lines::Outbox;
use crate::link::Link;

/// What to run, and how to end it.
#[derive(Clone)]
pub struct Options {
    /// What the program is called in the log.
    pub name: String,
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Set besides the variables that we have ourselves.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: Option<PathBuf>,
    /// The largest message taken from the program, in bytes.
    pub max_message: usize,
    pub closing: Closing,
    /// An executable that is this program and has the command `child-guard`: the child is started through it and dies
    /// with us, whatever happens to us. Linux only. The thread that starts the child counts as its parent: the runtime
    /// must not end its workers before the child.
    pub guard: Option<PathBuf>,
}

impl Options {
    /// In our directory, with our environment.
    pub fn new(program: &OsStr, args: impl IntoIterator<Item = impl Into<OsString>>) -> Options {
        Options {
            name: Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned(),
            program: program.to_owned(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: None,
            max_message: DEFAULT_LIMIT,
            closing: Closing::default(),
            guard: None,
        }
    }
}

/// Arguments and variables may be secret.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("name", &self.name).field("program", &self.program).finish_non_exhaustive()
    }
}

/// How long each step of the end may take.
#[derive(Debug, Clone, Copy)]
pub struct Closing {
    /// After its stdin was closed.
    pub stdin: Duration,
    /// After SIGTERM.
    pub term: Duration,
    /// After SIGKILL.
    pub kill: Duration,
}

impl Default for Closing {
    fn default() -> Closing {
        Closing { stdin: Duration::from_secs(2), term: Duration::from_secs(2), kill: Duration::from_secs(2) }
    }
}

/// Makes the link. Nothing is started before the first message.
///
/// When the link is dropped the program and all of its process group are ended; the handle completes when they are.
pub fn connect(options: Options) -> (Link, JoinHandle<()>) {
    let (link, port) = Link::pair();
    (link, task::spawn(run(options, Outbox::new(port))))
}

async fn run(options: Options, mut outbox: Outbox) {
    while let Some(first) = outbox.first().await {
        let process = match Process::start(&options) {
            Ok(process) => process,
            Err(error) => {
                outbox.failed(first.message, not_started(&options, &error)).await;
                continue;
            }
        };
        match process.converse(first, &mut outbox).await {
            End::Dropped => return,
            End::Gone(why) => outbox.gone(&why).await,
            End::NotStarted(error, messages) => {
                for message in messages {
                    outbox.failed(message, not_started(&options, &error)).await;
                }
            }
        }
    }
}

/// What becomes of a message for a program that could not be started.
fn not_started(options: &Options, error: &io::Error) -> Failure {
    use io::ErrorKind::{ExecutableFileBusy, OutOfMemory, ResourceBusy, WouldBlock};
    let why = match &options.cwd {
        Some(cwd) if error.kind() == io::ErrorKind::NotFound && !cwd.is_dir() => {
            "its working directory does not exist".to_owned()
        }
        _ => error.to_string(),
    };
    // The client may be on another machine: where our programs lie is none of its business.
    let text = format!("cannot start {}: {why}", options.name);
    let no_descriptors = matches!(error.raw_os_error(), Some(EMFILE | ENFILE));
    if no_descriptors || matches!(error.kind(), ExecutableFileBusy | OutOfMemory | ResourceBusy | WouldBlock) {
        return Failure::Unreachable(text);
    }
    tracing::error!(target: "child", "cannot start {}: {why}", options.program.display());
    let error = serde_json::json!({"code": code::INTERNAL_ERROR, "message": text});
    Failure::refused(error.to_string(), Cause::Unreachable)
}

const ENFILE: i32 = rustix::io::Errno::NFILE.raw_os_error();
const EMFILE: i32 = rustix::io::Errno::MFILE.raw_os_error();
