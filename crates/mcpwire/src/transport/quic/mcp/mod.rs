//! MCP itself over QUIC, so that every feature of it passes: JSON-RPC lines, and a stream for each request.
//!
//! A client opens every stream, and says with its first line what it is for:
//!
//! - `main` comes once and first. It carries what belongs to no request, both ways.
//! - `request N` carries one request, then what belongs to it both ways (progress, questions and their answers,
//!   cancellation), and last its response, with which the server ends it. The server takes the request up once it has
//!   read the N messages that the client had sent on `main` before: streams overtake one another, meaning does not.
//!
//! A connection is a session: when it is lost, so is everything that was under way. It may move to another address.

mod front;
mod target;

pub(super) use self::front::serve;
pub use self::target::connect;

use std::io;
use std::time::Duration;

use mcpwire_proto::Message;
use mcpwire_proto::frame::line::Line;
use quinn::{RecvStream, SendStream};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::transport::lines::{LARGE, Lines};

/// How long the first line of a stream may take.
const HEADER_WITHIN: Duration = Duration::from_secs(10);

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Main,
    /// A request, and how many messages on `main` came before it.
    Request(u64),
}

impl Purpose {
    fn line(self) -> String {
        match self {
            Purpose::Main => "main\n".to_owned(),
            Purpose::Request(after) => format!("request {after}\n"),
        }
    }

    /// Reads the first line of a stream; `None` if it is something else, or takes too long.
    async fn read(lines: &mut Lines<RecvStream>) -> Option<Purpose> {
        let line = timeout(HEADER_WITHIN, lines.next()).await.ok()?.ok()??;
        let Line::Text(text) = line else { return None };
        match std::str::from_utf8(&text).ok()?.split_once(' ') {
            None if &*text == b"main" => Some(Purpose::Main),
            Some(("request", after)) => after.parse().ok().map(Purpose::Request),
            _ => None,
        }
    }
}

/// Writes a message as a line; a small one in one piece.
async fn write(output: &mut SendStream, message: &Message) -> io::Result<()> {
    let text = message.as_bytes();
    if text.len() < LARGE {
        let mut line = Vec::with_capacity(text.len() + 1);
        line.extend_from_slice(text);
        line.push(b'\n');
        return AsyncWriteExt::write_all(output, &line).await;
    }
    AsyncWriteExt::write_all(output, text).await?;
    AsyncWriteExt::write_all(output, b"\n").await
}
