//! An HTTP response in a buffer: whole or not yet, and the messages in its body. By hand, because the driver's own work
//! is in every number.

use std::borrow::Cow;

use anyhow::{Context, Result, bail, ensure};
use httparse::Status;

const MOST_HEADERS: usize = 48;

pub struct Response<'a> {
    pub status: u16,
    pub session: Option<&'a str>,
    pub body: Cow<'a, [u8]>,
    is_event_stream: bool,
    /// How many bytes of the buffer it takes.
    pub length: usize,
}

enum Framing {
    Length(usize),
    Chunked,
}

/// `None` if the response is not complete yet.
pub fn parse(buffer: &[u8]) -> Result<Option<Response<'_>>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let Status::Complete(start) = head.parse(buffer)? else {
        return Ok(None);
    };
    let mut framing = Framing::Length(0);
    let mut session = None;
    let mut is_event_stream = false;
    for header in head.headers.iter() {
        let name = header.name;
        if name.eq_ignore_ascii_case("content-length") {
            framing = Framing::Length(text(header.value)?.parse()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("mcp-session-id") {
            session = Some(text(header.value)?);
        } else if name.eq_ignore_ascii_case("content-type") {
            is_event_stream = header.value.starts_with(b"text/event-stream");
        } else if name.eq_ignore_ascii_case("connection") {
            ensure!(!header.value.eq_ignore_ascii_case(b"close"), "the gateway does not keep the connection");
        }
    }
    let rest = &buffer[start..];
    let whole = match framing {
        Framing::Length(length) => rest.get(..length).map(|body| (Cow::Borrowed(body), length)),
        Framing::Chunked => dechunk(rest)?.map(|(body, length)| (Cow::Owned(body), length)),
    };
    let status = head.code.context("a response without a status")?;
    Ok(whole.map(|(body, length)| Response { status, session, body, is_event_stream, length: start + length }))
}

impl Response<'_> {
    /// The JSON-RPC messages in the body, which is one of them or a stream of events.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let (whole, events): (&[u8], &[u8]) = if self.is_event_stream { (b"", &self.body) } else { (&self.body, b"") };
        // No peer splits a message over several data lines.
        let data = events.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
        std::iter::once(whole).chain(data).map(<[u8]>::trim_ascii).filter(|message| !message.is_empty())
    }
}

/// The body in its chunks, and how many bytes those take; `None` if the last is not there yet.
fn dechunk(buffer: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let (head, size) = match httparse::parse_chunk_size(&buffer[at..]) {
            Ok(Status::Complete((head, size))) => (head, usize::try_from(size)?),
            Ok(Status::Partial) => return Ok(None),
            Err(_) => bail!("not a chunk"),
        };
        let start = at + head;
        let Some(chunk) = buffer.get(start..start + size + 2) else {
            return Ok(None);
        };
        body.extend_from_slice(&chunk[..size]);
        at = start + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

fn text(value: &[u8]) -> Result<&str> {
    Ok(std::str::from_utf8(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s\r\ncontent-length: 2\r\n\r\n{}";
    const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
        7\r\nid: 1\nd\r\n10\r\nata: \n\ndata: {}\n\r\n1\r\n\n\r\n0\r\n\r\n";

    #[test]
    fn a_response_is_whole_at_its_last_byte_and_not_before() {
        for response in [PLAIN, EVENTS] {
            for cut in 0..response.len() {
                assert!(parse(&response[..cut]).is_ok_and(|parsed| parsed.is_none()), "cut at {cut}");
            }
            let parsed = parse(response).ok().flatten();
            assert_eq!(parsed.as_ref().map(|parsed| parsed.length), Some(response.len()));
            let messages: Option<Vec<Vec<u8>>> = parsed.map(|parsed| parsed.messages().map(<[u8]>::to_vec).collect());
            assert_eq!(messages, Some(vec![b"{}".to_vec()]));
        }
    }

    #[test]
    fn the_session_is_read() {
        assert_eq!(parse(PLAIN).ok().flatten().and_then(|parsed| parsed.session), Some("s"));
    }
}
