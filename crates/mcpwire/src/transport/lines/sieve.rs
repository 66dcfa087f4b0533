//! What a server says with its lines. Servers print other things on stdout, too: those are skipped, and told a few times.

use mcpwire_proto::frame::line::Line;
use mcpwire_proto::message::split_batch;
use mcpwire_proto::{Fault, Lane, Message, Packet};

use super::{TO_CLIENT, log};
use crate::channel::Sender;
use crate::link::Event;

/// How many skipped lines of one server are told.
const TOLD: u64 = 10;
/// How much of a skipped line is shown, in characters.
const SHOWN: usize = 120;

/// Parts a server's messages from the rest.
#[derive(Debug)]
pub(in crate::transport) struct Sieve {
    name: String,
    limit: usize,
    events: Sender<Event>,
    skipped: u64,
}

impl Sieve {
    pub(in crate::transport) fn new(name: &str, limit: usize, events: Sender<Event>) -> Sieve {
        Sieve { name: name.to_owned(), limit, events, skipped: 0 }
    }

    /// Hands on what the line holds. When nobody takes it any more it is dropped.
    pub(in crate::transport) async fn pass(&mut self, line: Line) {
        match line {
            Line::Text(text) => match split_batch(&text) {
                Some(parts) => {
                    for part in parts {
                        self.pass_message(part).await;
                    }
                }
                None => self.pass_message(text).await,
            },
            Line::TooLong { answers, .. } => {
                let limit = self.limit;
                tracing::warn!(target: "wire", "{}: skipped a line over {limit} bytes", self.name);
                // Whoever waits for this answer must not wait for ever.
                if let Some(id) = answers {
                    let text = format!("the server's answer is over {limit} bytes (--max-message sets the limit)");
                    self.send(Fault::Upstream(text).to_message(Some(&id))).await;
                }
            }
        }
    }

    async fn pass_message(&mut self, text: bytes::Bytes) {
        match Message::parse(text.clone()) {
            Ok(message) => {
                log(TO_CLIENT, &message);
                self.send(message).await;
            }
            Err(rejected) => self.skip(&text, &rejected.fault),
        }
    }

    async fn send(&self, message: Message) {
        let _ = self.events.send(Event::Packet(Packet::new(Lane::Unsorted, message))).await;
    }

    fn skip(&mut self, text: &[u8], fault: &Fault) {
        self.skipped += 1;
        if self.skipped <= TOLD {
            let shown = excerpt(text);
            tracing::warn!(target: "wire", "{}: skipped a line that is no message ({fault}): {shown}", self.name);
        }
        if self.skipped == TOLD {
            tracing::warn!(target: "wire", "{}: further lines of that kind are skipped without a word", self.name);
        }
    }
}

/// The beginning of a text, without what could upset a terminal.
fn excerpt(text: &[u8]) -> String {
    let bytes = &text[..text.len().min(SHOWN * 4)];
    let text: String = String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
