//! What a message costs on its way through a conversation, for every pair of eras; parsing included, I/O not, nor making
//! the texts: to get memory for a large one costs more than to read it.
//!
//! `cargo run --release -p mcpwire-proto --example seam`

#![allow(clippy::disallowed_methods, reason = "measuring needs a clock")]
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it is a tool for people")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpwire_proto::conversation::{Config, Conversation, Effect, Known, Upstream};
use mcpwire_proto::{Lane, Message, Packet};

const ROUNDS: u32 = 20_000;
const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}"#;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Era {
    Session,
    Stateless,
}

fn main() {
    println!("microseconds per message   small  8 kB of text  64 kB of text");
    for (client, server, name) in [
        (Era::Session, Era::Session, "session   -> session  "),
        (Era::Stateless, Era::Stateless, "stateless -> stateless"),
        (Era::Session, Era::Stateless, "session   -> stateless"),
        (Era::Stateless, Era::Session, "stateless -> session  "),
    ] {
        let cost = |size| measure(client, server, size);
        println!("{name}     {:>6.2}        {:>6.2}         {:>6.2}", cost(20), cost(8 << 10), cost(64 << 10));
    }
}

/// Calls and answers, one after another, with that much text in both.
fn measure(client: Era, server: Era, size: usize) -> f64 {
    let now = Instant::now();
    let known =
        Known { session: Some(server == Era::Session), stateless: Some(server == Era::Stateless), ..Known::default() };
    let mut conversation = Conversation::new(Config { known, sorted: true, ..Config::default() }).opened_first();
    let text = "x".repeat(size);
    let meta = if client == Era::Stateless { META } else { r#""progressToken":1"# };
    if client == Era::Session {
        let open = r#"{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
        conversation.handle_client(parse(open), now);
        turn(&mut conversation, server, &text, now);
    }
    // An id may be used again when it has been answered.
    let call = Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","arguments":{{"text":"{text}"}},"_meta":{{{meta}}}}}}}"#
    ));
    let mut best = f64::MAX;
    for _ in 0..5 {
        let rounds = if size > 10_000 { ROUNDS / 20 } else { ROUNDS };
        let start = Instant::now();
        let mut spent = Duration::ZERO;
        for _ in 0..rounds {
            conversation.handle_client(Message::parse(call.clone()).unwrap(), now);
            let (told, making) = turn(&mut conversation, server, &text, now);
            assert!(told, "the call was answered");
            spent += making;
        }
        best = best.min((start.elapsed() - spent).as_secs_f64() * 1e6 / f64::from(rounds) / 2.0);
    }
    best
}

/// Answers for the server until it is asked nothing more; whether the client was told something, and how long it took to
/// make the answers.
fn turn(conversation: &mut Conversation, era: Era, text: &str, now: Instant) -> (bool, Duration) {
    let (mut told, mut making) = (false, Duration::ZERO);
    while let Some(effect) = conversation.poll_effect() {
        let Effect::ToServer(Upstream(upstream), packet) = effect else {
            told |= matches!(effect, Effect::ToClient(_));
            continue;
        };
        let (Some(id), Some(method)) = (packet.message.id(), packet.message.method()) else { continue };
        let start = Instant::now();
        let result = match (&**method, era) {
            ("initialize", _) => {
                r#""protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}"#.to_owned()
            }
            ("server/discover", _) => {
                r#""resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public""#.to_owned()
            }
            (_, Era::Session) => format!(r#""content":[{{"type":"text","text":"{text}"}}]"#),
            (_, Era::Stateless) => format!(r#""resultType":"complete","content":[{{"type":"text","text":"{text}"}}]"#),
        };
        let answer = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{result}}}}}"#));
        making += start.elapsed();
        let message = Message::parse(answer).unwrap();
        let lane = Lane::Request(id.clone());
        conversation.handle_server(Upstream(upstream), Packet::new(lane, message), now);
    }
    (told, making)
}

fn parse(text: &str) -> Message {
    Message::parse(text.to_owned().into()).unwrap()
}
