//! The transport itself, as the library has it.

use std::time::Duration;

use mcpwire::link::{Event, Link};
use mcpwire::transport::child::{self, Closing, Options};
use mcpwire_proto::frame::DEFAULT_LIMIT;
use mcpwire_proto::{Failure, Id, Message};
use tokio::task::JoinHandle;

use crate::support::{runs, until, within};

const SHORT: Duration = Duration::from_millis(100);

fn program(program: &str, args: &[&str]) -> Options {
    Options {
        name: "test".into(),
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        env: Vec::new(),
        cwd: None,
        max_message: DEFAULT_LIMIT,
        closing: Closing { stdin: SHORT, term: SHORT, kill: Duration::from_secs(5) },
        guard: None,
    }
}

fn script(text: &str) -> (Link, JoinHandle<()>) {
    child::connect(program("sh", &["-c", text]))
}

async fn send(link: &Link, id: u64, method: &str) {
    link.tx.send(Message::request(&Id::from(id), method, None).into()).await.unwrap();
}

/// What the link tells next, in a few words.
async fn next(link: &mut Link) -> String {
    match within("an event", link.rx.recv()).await.expect("the link lives") {
        Event::Packet(packet) => String::from_utf8(packet.message.as_bytes().to_vec()).unwrap(),
        Event::Gone(why) => format!("gone: {why}"),
        Event::Failed { message, failure: Failure::Refused(refusal) } => {
            format!("{message} refused: {}", refusal.error)
        }
        Event::Failed { message, failure } => format!("{message} failed: {failure:?}"),
        other => format!("{other:?}"),
    }
}

/// A notification that carries the number of the script's process.
const TELL_PID: &str = r#"echo "{\"jsonrpc\":\"2.0\",\"method\":\"$$\"}";"#;

async fn told_pid(link: &mut Link) -> u32 {
    let message: serde_json::Value = serde_json::from_str(&next(link).await).unwrap();
    message["method"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn it_says_how_the_program_ended_and_starts_it_again() {
    for (end, how) in [
        ("exit 0", "gone: it exited with code 0"),
        ("exit 7", "gone: it exited with code 7"),
        ("kill -s KILL $$", "gone: it was ended by signal 9"),
    ] {
        let (mut link, done) = script(&format!("read -r line; {TELL_PID} {end}"));
        let mut pids = Vec::new();
        for id in 0..3 {
            send(&link, id, "ping").await;
            pids.push(told_pid(&mut link).await);
            assert_eq!(next(&mut link).await, how);
        }
        pids.dedup();
        assert_eq!(pids.len(), 3, "three processes");
        drop(link);
        within("the end", done).await.unwrap();
    }
}

#[tokio::test]
async fn what_was_written_before_the_end_is_told_before_it() {
    let line = r#"{"jsonrpc":"2.0","method":"n"}"#;
    let (mut link, _) = script(&format!("yes '{line}' | head -n 20000; exit 1"));
    send(&link, 1, "ping").await;
    for _ in 0..20_000 {
        assert_eq!(next(&mut link).await, line);
    }
    assert_eq!(next(&mut link).await, "gone: it exited with code 1");
}

#[tokio::test]
async fn a_program_that_closes_a_pipe_is_ended() {
    for (script_text, how) in [
        ("exec 1>&-; trap '' TERM; while :; do sleep 1; done", "gone: it closed its stdout"),
        ("exec 1>&-; exit 3", "gone: it exited with code 3"),
    ] {
        let (mut link, _) = script(script_text);
        send(&link, 1, "ping").await;
        assert_eq!(next(&mut link).await, how);
    }
    let (mut link, _) = script(&format!("read -r line; exec 0<&-; {TELL_PID} exec sleep 1000"));
    send(&link, 1, "ping").await;
    let pid = told_pid(&mut link).await;
    send(&link, 2, "ping").await;
    assert_eq!(next(&mut link).await, "gone: it closed its stdin");
    assert!(!runs(pid));
}

#[tokio::test]
async fn the_closing_ladder_has_three_steps() {
    for (obeys, ignores) in
        [("stdin", "cat >&2"), ("SIGTERM", "exec sleep 1000"), ("SIGKILL", "trap '' TERM; sleep 1000")]
    {
        let (mut link, done) = script(&format!("{TELL_PID} {ignores}"));
        send(&link, 1, "ping").await;
        let pid = told_pid(&mut link).await;
        drop(link);
        within(&format!("the end by {obeys}"), done).await.unwrap();
        assert!(!runs(pid), "{obeys}");
    }
}

#[tokio::test]
async fn nothing_of_the_group_survives_its_leader() {
    let (mut link, done) =
        script(&format!("sh -c '{} trap \"\" TERM; exec sleep 1000' & wait", TELL_PID.replace('\'', "")));
    send(&link, 1, "ping").await;
    let grandchild = told_pid(&mut link).await;
    assert!(runs(grandchild));
    drop(link);
    within("the end", done).await.unwrap();
    until("the grandchild to end", || !runs(grandchild)).await;
}

#[tokio::test]
async fn a_child_does_not_outlive_its_runtime() {
    let pid = tokio::task::spawn_blocking(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut link, _) = script(&format!("{TELL_PID} sleep 1000"));
            send(&link, 1, "ping").await;
            told_pid(&mut link).await
        })
    })
    .await
    .unwrap();
    until("the child to end", || !runs(pid)).await;
}

#[tokio::test]
async fn a_request_on_its_way_when_the_program_ended_waits_for_a_new_session() {
    let (mut link, _) = script("read -r line; exit 1");
    send(&link, 1, "initialize").await;
    assert_eq!(next(&mut link).await, "gone: it exited with code 1");
    // Whoever sent this did not know yet. A new program must not see it before initialize.
    send(&link, 2, "tools/call").await;
    let told = next(&mut link).await;
    assert!(told.starts_with("request tools/call id=2") && told.contains("SessionLost"), "{told}");
    send(&link, 3, "initialize").await;
    assert_eq!(next(&mut link).await, "gone: it exited with code 1");
}

#[tokio::test]
async fn a_request_that_was_not_written_is_not_lost() {
    // It takes no input, so that the second message fills the pipe and the third one waits behind it.
    let (mut link, _) = script(&format!("{TELL_PID} sleep 1000"));
    send(&link, 1, "ping").await;
    let pid = told_pid(&mut link).await;
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    link.tx.send(Message::notification("n", Some(&large)).into()).await.unwrap();
    until("the large message to be taken", || link.tx.capacity() == link.tx.max_capacity()).await;
    send(&link, 2, "tools/call").await;
    super::kill(pid);
    let told = next(&mut link).await;
    assert!(told.starts_with("request tools/call id=2") && told.contains("Unreachable"), "{told}");
    assert_eq!(next(&mut link).await, "gone: it was ended by signal 9");
}

#[tokio::test]
async fn without_a_guard_a_program_that_cannot_be_started_is_refused_all_the_same() {
    let (mut link, _) = child::connect(program("no-such-program", &[]));
    send(&link, 1, "initialize").await;
    let told = next(&mut link).await;
    assert!(told.contains("refused") && told.contains("cannot start test: No such file"), "{told}");
    let (mut link, _) = child::connect(Options { cwd: Some("/no/such/directory".into()), ..program("true", &[]) });
    send(&link, 1, "initialize").await;
    assert!(next(&mut link).await.contains("cannot start test: its working directory does not exist"));
}

#[tokio::test]
async fn every_request_of_a_program_the_guard_cannot_run_is_refused() {
    let guard = Some(super::MCPWIRE.into());
    let (mut link, _) = child::connect(Options { guard, ..program("no-such-program", &[]) });
    for id in 1..=3 {
        send(&link, id, "ping").await;
    }
    for id in 1..=3 {
        let told = next(&mut link).await;
        assert!(told.starts_with(&format!("request ping id={id}")) && told.contains("cannot start"), "{told}");
    }
}
