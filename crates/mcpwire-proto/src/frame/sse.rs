//! Server-sent events to the WHATWG rules (HTML Living Standard, section 9.2): decoder and encoder.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Room for a field's name beside a value at the limit.
const FIELD_NAME: usize = 16;

/// What the decoder found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseEvent {
    /// An event; `data` lines are joined with line feeds. The name is empty for the default, `message`.
    Event { name: Bytes, data: Bytes },
    /// An event with more data than the limit was skipped.
    TooLarge,
}

/// Decodes an event stream. The last event counts only if a blank line ended it.
#[derive(Debug)]
pub struct SseDecoder {
    buffer: BytesMut,
    /// How many bytes of `buffer` are known to hold no line break.
    scanned: usize,
    limit: usize,
    /// The byte before `buffer` was a carriage return: a line feed right behind it belongs to it.
    after_cr: bool,
    at_start: bool,
    name: Bytes,
    data: Option<Data>,
    /// The line being read is over the limit.
    overlong: bool,
    /// The event being read is over the limit.
    oversized: bool,
    /// The id that the next dispatch commits.
    id_buffer: Option<Bytes>,
    last_event_id: Option<Bytes>,
    retry: Option<Duration>,
}

/// The data of the event being read: a slice of the input as long as it is one line.
#[derive(Debug)]
enum Data {
    One(Bytes),
    Many(BytesMut),
}

impl SseDecoder {
    pub fn new(limit: usize) -> SseDecoder {
        SseDecoder {
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            after_cr: false,
            at_start: true,
            name: Bytes::new(),
            data: None,
            overlong: false,
            oversized: false,
            id_buffer: None,
            last_event_id: None,
            retry: None,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The id to resume after: that of the last event that a blank line ended, with data or without. The id of an event
    /// that is still being read does not count: resuming after it would skip the event (section 9.2.6).
    pub fn last_event_id(&self) -> Option<&Bytes> {
        self.last_event_id.as_ref()
    }

    /// How long the server asks us to wait before we reconnect.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The next whole event, if there is one.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        loop {
            let line = self.next_line()?;
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Some(event);
                }
            } else {
                self.field(line);
            }
        }
    }

    fn next_line(&mut self) -> Option<Bytes> {
        if self.at_start {
            let have = self.buffer.len().min(BYTE_ORDER_MARK.len());
            if self.buffer[..have] == BYTE_ORDER_MARK[..have] {
                if have < BYTE_ORDER_MARK.len() {
                    return None;
                }
                let _ = self.buffer.split_to(have);
            }
            self.at_start = false;
        }
        loop {
            if self.after_cr && !self.buffer.is_empty() {
                self.after_cr = false;
                if self.buffer[0] == b'\n' {
                    let _ = self.buffer.split_to(1);
                }
            }
            let Some(found) = memchr2(b'\r', b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.drop_excess();
                return None;
            };
            let line = self.buffer.split_to(self.scanned + found).freeze();
            self.after_cr = self.buffer.split_to(1)[0] == b'\r';
            self.scanned = 0;
            if std::mem::take(&mut self.overlong) || line.len() > self.longest_line() {
                self.oversized |= line.starts_with(b"data:");
                continue;
            }
            return Some(line);
        }
    }

    fn longest_line(&self) -> usize {
        self.limit.saturating_add(FIELD_NAME)
    }

    /// Keeps memory bounded: of a line over the limit only its field name is kept, to tell whether it was data.
    fn drop_excess(&mut self) {
        if self.buffer.len() > self.longest_line() {
            self.overlong = true;
        }
        if self.overlong {
            self.buffer.truncate(FIELD_NAME);
            self.scanned = self.buffer.len();
        }
    }

    fn field(&mut self, line: Bytes) {
        let colon = memchr::memchr(b':', &line).unwrap_or(line.len());
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.first() == Some(&b' ') {
            value = value.slice(1..);
        }
        match &line[..colon] {
            b"data" => self.append(value),
            b"event" => self.name = value,
            b"id" if !value.contains(&0) => self.id_buffer = Some(value),
            b"retry" => self.retry = parse_retry(&value).or(self.retry),
            _ => {} // a comment, or a field we do not know
        }
    }

    fn append(&mut self, value: Bytes) {
        if self.oversized || self.data_len() + value.len() > self.limit {
            self.oversized = true;
            self.data = None;
            return;
        }
        self.data = Some(match self.data.take() {
            None => Data::One(value),
            Some(Data::One(first)) => {
                let mut joined = BytesMut::with_capacity(first.len() + 1 + value.len());
                joined.extend_from_slice(&first);
                Data::Many(join(joined, &value))
            }
            Some(Data::Many(joined)) => Data::Many(join(joined, &value)),
        });
    }

    /// The length so far, with the line break that the next line adds.
    fn data_len(&self) -> usize {
        match &self.data {
            None => 0,
            Some(Data::One(line)) => line.len() + 1,
            Some(Data::Many(lines)) => lines.len() + 1,
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        // The buffer is not reset: an event without an id repeats the one before.
        self.last_event_id.clone_from(&self.id_buffer);
        let name = std::mem::take(&mut self.name);
        if std::mem::take(&mut self.oversized) {
            return Some(SseEvent::TooLarge);
        }
        let data = match self.data.take()? {
            Data::One(line) => line,
            Data::Many(lines) => lines.freeze(),
        };
        Some(SseEvent::Event { name, data })
    }
}

fn join(mut lines: BytesMut, next: &[u8]) -> BytesMut {
    lines.extend_from_slice(b"\n");
    lines.extend_from_slice(next);
    lines
}

fn parse_retry(value: &[u8]) -> Option<Duration> {
    let digits = std::str::from_utf8(value).ok().filter(|v| v.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok().map(Duration::from_millis)
}

/// Writes one event. Line breaks in `data` become several `data` lines; those in `id` would end the field, so an id
/// that has any is left out.
pub fn encode(out: &mut BytesMut, name: Option<&str>, id: Option<&str>, retry: Option<Duration>, data: &[u8]) {
    let mut field = |name: &[u8], value: &[u8]| {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\n");
    };
    if let Some(name) = name {
        field(b"event", name.as_bytes());
    }
    if let Some(id) = id.filter(|id| !id.contains(['\r', '\n', '\0'])) {
        field(b"id", id.as_bytes());
    }
    if let Some(retry) = retry {
        field(b"retry", retry.as_millis().to_string().as_bytes());
    }
    let mut rest = data;
    while let Some(at) = memchr2(b'\r', b'\n', rest) {
        field(b"data", &rest[..at]);
        let width = if rest[at..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[at + width..];
    }
    field(b"data", rest);
    out.extend_from_slice(b"\n");
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
