//! The commands at a terminal: colours, widths, a bar, and questions that are answered.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::BINARY;
use crate::support::LIMIT;

/// mcpwire at a terminal of its own.
struct Session {
    child: Child,
    master: File,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Session {
    fn start(args: &[&str], env: &[(&str, &str)]) -> Session {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = || -> OwnedFd { open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap() };
        let first = slave();
        tcsetwinsize(&first, Winsize { ws_row: 24, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut command = Command::new(BINARY);
        command.args(args).args(["--", BINARY, "reference", "--stdio"]);
        command.env_remove("NO_COLOR").env("TERM", "xterm").envs(env.iter().copied());
        command.stdin(Stdio::from(first)).stdout(Stdio::from(slave())).stderr(Stdio::from(slave()));
        let child = command.spawn().unwrap();
        let master = File::from(master);
        let mut reading = master.try_clone().unwrap();
        let (tell, output) = sync_channel(64);
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = reading.read(&mut chunk) {
                if tell.send(chunk[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Session { child, master, output, seen: String::new() }
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let until = Instant::now() + LIMIT;
        while !self.seen.contains(text) {
            assert!(Instant::now() < until, "waited for {text:?}: {:?}", self.seen);
            if let Ok(chunk) = self.output.recv_timeout(Duration::from_millis(50)) {
                self.seen.push_str(&String::from_utf8_lossy(&chunk));
            }
        }
    }

    fn answer(&mut self, text: &str) {
        self.master.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Waits for the end; gives the exit code and all that was shown.
    fn end(mut self) -> (Option<i32>, String) {
        let until = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "it goes on: {:?}", self.seen);
            if let Ok(chunk) = self.output.recv_timeout(Duration::from_millis(20)) {
                self.seen.push_str(&String::from_utf8_lossy(&chunk));
            }
        };
        while let Ok(chunk) = self.output.recv_timeout(Duration::from_millis(100)) {
            self.seen.push_str(&String::from_utf8_lossy(&chunk));
        }
        (status.code(), self.seen)
    }
}

#[test]
fn a_table_has_colours_unless_they_are_not_wanted() {
    let (_, seen) = Session::start(&["prompts"], &[]).end();
    assert!(seen.contains("\x1b[1mtest_simple_prompt\x1b[0m"), "{seen:?}");
    let (_, seen) = Session::start(&["prompts"], &[("NO_COLOR", "1")]).end();
    assert!(seen.contains("test_simple_prompt") && !seen.contains('\x1b'), "{seen:?}");
}

#[test]
fn progress_is_a_bar_that_goes_away() {
    let (code, seen) = Session::start(&["call", "progress", "steps=3", "ms=60"], &[]).end();
    assert_eq!(code, Some(0), "{seen:?}");
    assert!(seen.contains("█") && seen.contains(" % step"), "{seen:?}");
    let bar = seen.rfind('█').unwrap();
    assert!(seen[bar..].contains("\r\x1b[K"), "{seen:?}");
}

#[test]
fn a_form_is_asked_and_the_answers_are_sent() {
    let mut session = Session::start(&["call", "test_elicitation", "message=Who are you?"], &[("NO_COLOR", "1")]);
    session.wait_for("The server asks: Who are you?");
    session.wait_for("email:");
    session.answer("a@b.example");
    session.wait_for("username:");
    session.answer("");
    session.wait_for("this one is needed");
    session.answer("me");
    session.wait_for("Send this? [Y/n]");
    session.answer("");
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains(r#"<action: accept, content: {"email":"a@b.example","username":"me"}>"#), "{seen}");
}

#[test]
fn a_page_is_shown_and_can_be_declined() {
    let mut session = Session::start(&["call", "elicit_url", "url=https://a.example/x"], &[("NO_COLOR", "1")]);
    session.wait_for("https://a.example/x");
    session.wait_for("Go on? [y/N]");
    session.answer("n");
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("The user did not open the page: \"decline\""), "{seen}");
}

#[test]
fn ctrl_d_gives_up_a_question() {
    let mut session = Session::start(&["call", "test_elicitation", "message=x"], &[("NO_COLOR", "1")]);
    session.wait_for("email:");
    session.master.write_all(b"\x04").unwrap();
    let (_, seen) = session.end();
    assert!(seen.contains("action: cancel"), "{seen}");
}
