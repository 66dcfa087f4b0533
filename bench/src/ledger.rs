//! Who is still owed an answer: every request gets a number and a text of its own, and both must come back once.
//! Clients number their requests alike, so the text names the client, too.

use std::borrow::Cow;
use std::collections::HashSet;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Parameters of the request that opens a session.
pub const INITIALIZE: &str =
    r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;
pub const INITIALIZED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

#[derive(Default)]
pub struct Ledger {
    client: usize,
    last: u64,
    owed: HashSet<u64>,
    answered: u64,
}

#[derive(Deserialize)]
struct Incoming<'a> {
    id: Option<u64>,
    method: Option<&'a str>,
    #[serde(borrow)]
    result: Option<ToolResult<'a>>,
}

#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow, default)]
    content: Vec<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

impl Ledger {
    pub fn of_client(client: usize) -> Self {
        Self { client, ..Self::default() }
    }

    pub fn owed(&self) -> usize {
        self.owed.len()
    }

    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// A new request for the `echo` tool, as a line.
    pub fn echo(&mut self, line: &mut Vec<u8>) -> u64 {
        self.call("echo", "", line)
    }

    /// A new request for an `echo` tool of this name, with these further members of its parameters.
    pub fn call(&mut self, tool: &str, more: &str, line: &mut Vec<u8>) -> u64 {
        let id = self.open();
        let client = self.client;
        line.extend_from_slice(
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"call {client}.{id}"}}{more}}}}}"#
            )
            .as_bytes(),
        );
        line.push(b'\n');
        id
    }

    /// A new request of any kind, as a line; `settle_any` takes its answer.
    pub fn request(&mut self, method: &str, params: &str) -> (u64, Vec<u8>) {
        let id = self.open();
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#) + "\n";
        (id, line.into_bytes())
    }

    /// Takes one message. `Some` is the request it answers; `None` is a message that answers nothing, which a bridge may send.
    pub fn settle(&mut self, message: &[u8]) -> Result<Option<u64>> {
        let Some((id, message)) = self.close(message)? else {
            return Ok(None);
        };
        let text = message.result.as_ref().and_then(|result| result.content.first()).map(|content| &content.text);
        let text = text.with_context(|| format!("the answer to {id} holds no text"))?;
        let numbers = text.strip_prefix("call ").and_then(|numbers| numbers.split_once('.'));
        if numbers.map(|(client, call)| (client.parse().ok(), call.parse().ok())) != Some((Some(self.client), Some(id)))
        {
            bail!("the answer to {id} holds the text of another: {:.40}", text);
        }
        Ok(Some(id))
    }

    /// Like `settle`, for an answer whose content is not an echo.
    pub fn settle_any(&mut self, message: &[u8]) -> Result<Option<u64>> {
        let Some((id, message)) = self.close(message)? else {
            return Ok(None);
        };
        if message.result.is_none() {
            bail!("the answer to {id} is an error");
        }
        Ok(Some(id))
    }

    fn open(&mut self) -> u64 {
        self.last += 1;
        self.owed.insert(self.last);
        self.last
    }

    fn close<'a>(&mut self, message: &'a [u8]) -> Result<Option<(u64, Incoming<'a>)>> {
        let start = &message[..message.len().min(80)];
        let incoming: Incoming = serde_json::from_slice(message)
            .with_context(|| format!("not a message: {}", String::from_utf8_lossy(start)))?;
        let (Some(id), None) = (incoming.id, incoming.method) else {
            return Ok(None);
        };
        if !self.owed.remove(&id) {
            bail!("an answer to {id}, which is owed none");
        }
        self.answered += 1;
        Ok(Some((id, incoming)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(id: u64, text: &str) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
            .into_bytes()
    }

    fn owing_two() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.echo(&mut Vec::new());
        ledger.echo(&mut Vec::new());
        ledger
    }

    #[test]
    fn the_right_answers_settle_in_any_order() {
        let mut ledger = owing_two();
        assert_eq!(ledger.settle(&answer(2, "call 0.2")).ok(), Some(Some(2)));
        assert_eq!(ledger.settle(&answer(1, "call 0.1")).ok(), Some(Some(1)));
        assert_eq!((ledger.owed(), ledger.answered()), (0, 2));
    }

    #[test]
    fn a_second_answer_and_an_answer_to_nobody_are_faults() {
        let mut ledger = owing_two();
        assert!(ledger.settle(&answer(1, "call 0.1")).is_ok());
        assert!(ledger.settle(&answer(1, "call 0.1")).is_err());
        assert!(ledger.settle(&answer(7, "call 0.7")).is_err());
    }

    #[test]
    fn a_wrong_text_an_error_and_noise_are_faults() {
        assert!(owing_two().settle(&answer(1, "call 0.2")).is_err());
        assert!(owing_two().settle(&answer(1, "call 1.1")).is_err());
        assert!(owing_two().settle(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#).is_err());
        assert!(owing_two().settle(b"starting up").is_err());
    }

    #[test]
    fn what_answers_nothing_is_passed_over() {
        let mut ledger = owing_two();
        assert_eq!(
            ledger.settle(br#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#).ok(),
            Some(None)
        );
        assert_eq!(ledger.settle(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).ok(), Some(None));
        assert_eq!(ledger.owed(), 2);
    }
}
