//! A program on stdio, started by itself: what it prints where, whether it answers, and how it ends.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::report::{Report, excerpt};
use super::{Opened, initialize};
use crate::cli::ask::ping::{millis, shown};
use crate::transport::child::Options;

/// How many lines are kept of what a program says besides messages.
const LINES: usize = 10;
/// A line is not read further.
const LONGEST: u64 = 16 << 20;
/// How long a program may take to end when its stdin is closed, and its stderr when it has ended.
const ENDING: Duration = Duration::from_secs(2);

/// How a first conversation went.
struct Run {
    answer: Option<(Value, Duration)>,
    junk: Vec<String>,
    junk_lines: usize,
    exited: Option<ExitStatus>,
    closed: bool,
}

pub(super) async fn examine(options: &Options, patience: Duration, report: &mut Report) -> Opened {
    report.fact("transport", "stdio");
    let mut child = match start(options) {
        Ok(child) => child,
        Err(error) => {
            not_started(options, &error, report);
            return Opened::Hopeless;
        }
    };
    let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let stderr = child.stderr.take().map(|stderr| tokio::spawn(last_lines(stderr)));
    let stdin = child.stdin.take();
    let (run, stdin) = converse(&mut child, stdin, patience).await;
    let answered = run.answer.is_some();
    drop(stdin);
    let ended = timeout(ENDING, child.wait()).await;
    drop(group);
    let stderr = said(stderr).await;
    tell_junk(&run, report);
    let opened = match run.answer {
        Some((answer, time)) => opened(answer, time, report),
        None => {
            tell_silence(&run, &stderr, patience, report);
            Opened::Hopeless
        }
    };
    if answered && ended.is_err() {
        let text = format!("it goes on running {} s after its stdin was closed", ENDING.as_secs());
        report.warn(
            "does-not-end",
            text,
            "a server on stdio should end when its stdin is closed; clients have to kill it",
        );
    }
    opened
}

/// Nothing of a program outlives the look at it, nor those it has started.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

fn start(options: &Options) -> std::io::Result<Child> {
    let mut command = Command::new(&options.program);
    command.args(&options.args).envs(options.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &options.cwd {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true).spawn()
}

fn not_started(options: &Options, error: &std::io::Error, report: &mut Report) {
    let program = options.program.to_string_lossy();
    let advice = match error.kind() {
        ErrorKind::NotFound if program.contains('/') => "check the path; if it is a script, check its first line, too",
        ErrorKind::NotFound => {
            "check the name and that its folder is in PATH; clients often have another PATH than your shell"
        }
        ErrorKind::PermissionDenied => "make it executable (chmod +x), or name the program that runs it",
        _ if error.raw_os_error() == Some(8) => "it is no program: name the one that runs it, as in -- node server.js",
        _ => "try to start it by hand",
    };
    report.bad("cannot-start", format!("cannot start {program}: {error}"), advice);
}

async fn converse(child: &mut Child, stdin: Option<ChildStdin>, patience: Duration) -> (Run, Option<ChildStdin>) {
    let mut run = Run { answer: None, junk: Vec::new(), junk_lines: 0, exited: None, closed: false };
    let (Some(mut stdin), Some(stdout)) = (stdin, child.stdout.take()) else { return (run, None) };
    let asked = Instant::now();
    // A program that does not read this ends, or stays silent, and both are noticed below.
    let _ = timeout(patience, stdin.write_all(format!("{}\n", initialize()).as_bytes())).await;
    let mut lines = BufReader::new(stdout);
    let talk = async {
        while let Some(line) = next_line(&mut lines).await {
            match serde_json::from_str::<Value>(&line) {
                Ok(message) if message["id"] == 1 && message.get("method").is_none() => {
                    run.answer = Some((message, asked.elapsed()));
                    return;
                }
                Ok(Value::Object(_) | Value::Array(_)) => {}
                _ if line.trim().is_empty() => {}
                _ => {
                    run.junk_lines += 1;
                    if run.junk.len() < LINES {
                        run.junk.push(excerpt(&line));
                    }
                }
            }
        }
        run.closed = true;
    };
    let _ = timeout(patience, talk).await;
    if run.closed {
        run.exited = timeout(ENDING, child.wait()).await.ok().and_then(Result::ok);
    }
    (run, Some(stdin))
}

async fn next_line(lines: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    match lines.take(LONGEST).read_until(b'\n', &mut line).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
    }
}

async fn last_lines(stderr: impl AsyncRead + Unpin) -> VecDeque<String> {
    let (mut lines, mut last) = (BufReader::new(stderr), VecDeque::new());
    while let Some(line) = next_line(&mut lines).await {
        if last.len() == LINES {
            last.pop_front();
        }
        if !line.is_empty() {
            last.push_back(excerpt(&line));
        }
    }
    last
}

async fn said(stderr: Option<JoinHandle<VecDeque<String>>>) -> Vec<String> {
    match stderr {
        Some(stderr) => timeout(ENDING, stderr).await.ok().and_then(Result::ok).unwrap_or_default().into(),
        None => Vec::new(),
    }
}

fn opened(answer: Value, time: Duration, report: &mut Report) -> Opened {
    report.part("latencies", "start", millis(time));
    match answer.get("result") {
        Some(result) => {
            report.good("answers", format!("started, and answered initialize after {}", shown(time)));
            Opened::Session(result.clone())
        }
        None => {
            let error = excerpt(&answer["error"]["message"].as_str().map_or_else(|| answer.to_string(), str::to_owned));
            report.note("no-session", format!("started, and refused initialize: {error}"));
            Opened::Refused
        }
    }
}

fn tell_junk(run: &Run, report: &mut Report) {
    let Some(first) = run.junk.first() else { return };
    let text = match run.junk_lines {
        1 => format!("it prints a line to stdout that is no message: {first:?}"),
        many => format!("it prints {many} lines to stdout that are no messages, as in {first:?}"),
    };
    let advice = match first.to_ascii_lowercase().starts_with("content-length:") {
        true => "it frames messages as language servers do; MCP wants one JSON message a line",
        false => {
            "stdout belongs to the protocol: let the program log to stderr. mcpwire skips such lines, other clients give up"
        }
    };
    report.fact("junkLines", run.junk_lines);
    report.warn("junk-on-stdout", text, advice);
}

fn tell_silence(run: &Run, stderr: &[String], patience: Duration, report: &mut Report) {
    report.fact("stderr", stderr.to_vec());
    let words = match stderr {
        [] => "\nit said nothing on stderr".to_owned(),
        lines => format!("\nthe last it said on stderr:\n  {}", lines.join("\n  ")),
    };
    let everything = format!("{} {}", run.junk.join(" "), stderr.join(" ")).to_ascii_lowercase();
    let serves_http =
        everything.contains("http://") || everything.contains("listening on") || everything.contains("port ");
    let http =
        "it seems to serve HTTP: start it by itself and try `mcpwire doctor URL`, or look for a flag like --stdio";
    match run.exited {
        Some(status) => {
            let how = match (status.code(), std::os::unix::process::ExitStatusExt::signal(&status)) {
                (Some(code), _) => format!("it exited with code {code}"),
                (None, Some(signal)) => format!("it was ended by signal {signal}"),
                (None, None) => "it ended".to_owned(),
            };
            report.fact("exitCode", status.code());
            let advice = match status.code() {
                Some(0) => {
                    "a server must go on until its stdin is closed: look for a flag that makes it serve on stdio"
                }
                Some(127) => "127 is what shells say of a command that they do not find",
                _ => "what it says on stderr tells why; try to start it by hand, with the same arguments and variables",
            };
            report.bad("exited", format!("{how} before it answered initialize{words}"), advice);
        }
        None if run.closed => {
            let text = format!("it closed its stdout before it answered initialize{words}");
            report.bad("closed-stdout", text, "a server must keep stdout open for its messages");
        }
        None => {
            let text = format!("it did not answer initialize within {}{words}", humantime::format_duration(patience));
            let otherwise = "it may wait for something else, or speak no MCP on stdio; give it longer with --patience";
            report.bad("silent", text, if serves_http { http } else { otherwise });
        }
    }
}
