//! Newline framing, as on stdio: one message a line, read in large chunks and handed on as slices of them.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use super::glimpse::Glimpse;
use crate::Id;

/// What the decoder found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its line break.
    Text(Bytes),
    /// A line over the limit was skipped. `id` is set if it was a request and its id could be seen, `answers` if it
    /// was the answer to one.
    TooLong { id: Option<Id>, answers: Option<Id> },
}

impl Line {
    fn too_long(glimpse: &Glimpse) -> Line {
        Line::TooLong { id: glimpse.request_id(), answers: glimpse.answered_id() }
    }
}

/// Cuts a byte stream into lines. Blank lines are passed over; `\r\n` ends a line as `\n` does.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// How many bytes of `buffer` are known to hold no line break.
    scanned: usize,
    limit: usize,
    /// Set while a line over the limit is being skipped.
    skipping: Option<Glimpse>,
}

impl LineDecoder {
    pub fn new(limit: usize) -> LineDecoder {
        LineDecoder { buffer: BytesMut::new(), scanned: 0, limit, skipping: None }
    }

    /// Where the next bytes of the stream go: append to it, then ask for lines.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next whole line, if there is one.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(found) = memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.drop_excess();
                return None;
            };
            let end = self.scanned + found;
            let line = self.buffer.split_to(end);
            self.buffer.advance(1);
            self.scanned = 0;
            if let Some(line) = self.finish_line(line.freeze()) {
                return Some(line);
            }
        }
    }

    /// The end of the stream: what is left without a line break is a line, too.
    pub fn finish(&mut self) -> Option<Line> {
        self.scanned = 0;
        let rest = self.buffer.split().freeze();
        self.finish_line(rest)
    }

    fn finish_line(&mut self, line: Bytes) -> Option<Line> {
        if let Some(mut glimpse) = self.skipping.take() {
            glimpse.push(&line);
            return Some(Line::too_long(&glimpse));
        }
        if line.len() > self.limit {
            let mut glimpse = Glimpse::default();
            glimpse.push(&line);
            return Some(Line::too_long(&glimpse));
        }
        let line = match line.strip_suffix(b"\r").map(<[u8]>::len) {
            Some(text) => line.slice(..text),
            None => line,
        };
        (!line.trim_ascii().is_empty()).then_some(Line::Text(line))
    }

    /// Keeps memory bounded: bytes of a line over the limit are looked at and dropped.
    fn drop_excess(&mut self) {
        if self.skipping.is_some() || self.buffer.len() > self.limit {
            self.skipping.get_or_insert_default().push(&self.buffer);
            self.buffer.clear();
            self.scanned = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]], limit: usize) -> Vec<Line> {
        let mut decoder = LineDecoder::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            decoder.buffer().extend_from_slice(chunk);
            while let Some(line) = decoder.next_line() {
                lines.push(line);
            }
        }
        lines.extend(decoder.finish());
        lines
    }

    fn text(line: &str) -> Line {
        Line::Text(Bytes::copy_from_slice(line.as_bytes()))
    }

    /// Decodes the input split at every byte, and byte by byte; the outcome must always be the same.
    fn check(input: &[u8], limit: usize, expected: &[Line]) {
        for at in 0..=input.len() {
            let (a, b) = input.split_at(at);
            assert_eq!(decode(&[a, b], limit), expected, "split at {at}");
        }
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(decode(&bytes, limit), expected, "byte by byte");
    }

    #[test]
    fn lines_end_with_lf_or_crlf_and_blank_ones_do_not_count() {
        check(b"one\ntwo\r\n\n  \r\nthree\n", 100, &[text("one"), text("two"), text("three")]);
    }

    #[test]
    fn the_last_line_needs_no_line_break() {
        check(b"one\ntwo", 100, &[text("one"), text("two")]);
    }

    #[test]
    fn a_carriage_return_inside_a_line_stays() {
        check(b"a\rb\n", 100, &[text("a\rb")]);
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_over_it_is_skipped_once() {
        check(
            b"12345678\n123456789\nok\n",
            8,
            &[text("12345678"), Line::TooLong { id: None, answers: None }, text("ok")],
        );
    }

    #[test]
    fn the_id_of_a_skipped_message_is_seen_wherever_it_stands() {
        let front =
            br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":1,"x":"aaaaaaaaaaaaaaaaaaaaaaaa"}}"#;
        let back = br#"{"method":"tools/call","params":{"a":["}","\"",{"id":1}],"x":"aaaaaaaaaaaaaaa"},"id":"q\"7"}"#;
        let reply = br#"{"jsonrpc":"2.0","id":7,"result":{"x":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}"#;
        check(front, 20, &[Line::TooLong { id: Some(Id::from(7)), answers: None }]);
        check(back, 20, &[Line::TooLong { id: Some(Id::from("q\"7")), answers: None }]);
        check(reply, 20, &[Line::TooLong { id: None, answers: Some(Id::from(7)) }]);
    }

    #[test]
    fn memory_stays_bounded_while_a_line_is_skipped() {
        let mut decoder = LineDecoder::new(1000);
        for _ in 0..10_000 {
            decoder.buffer().extend_from_slice(&[b'x'; 512]);
            assert_eq!(decoder.next_line(), None);
            assert!(decoder.buffer().len() <= 1000);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_in_arbitrary_chunks_decode_alike(
            input in proptest::collection::vec(prop_oneof![3 => any::<u8>(), 1 => Just(b'\n'), 1 => Just(b'"')], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..5),
            limit in 1usize..64,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(input.len())).collect();
            cuts.extend([0, input.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &input[w[0]..w[1]]).collect();
            prop_assert_eq!(decode(&chunks, limit), decode(&[&input], limit));
        }

        #[test]
        fn lines_round_trip(lines in proptest::collection::vec("[^\r\n]*[^\\s]", 0..20)) {
            let joined: String = lines.iter().map(|l| format!("{l}\n")).collect();
            let expected: Vec<Line> = lines.iter().map(|l| text(l)).collect();
            prop_assert_eq!(decode(&[joined.as_bytes()], 10_000), expected);
        }
    }
}
