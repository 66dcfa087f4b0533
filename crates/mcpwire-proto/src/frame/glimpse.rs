//! A look at the envelope of a message too large to keep: whether it is a request or an answer, and under which id.

use crate::Id;

/// The longest id and key kept, in bytes.
const LONGEST: usize = 256;

/// Follows JSON text byte by byte, in constant memory, and keeps the top-level `id`.
///
/// It does not check the text: it only serves to answer a request that is refused for its size.
#[derive(Debug, Default)]
pub struct Glimpse {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// At the top level: are we behind a colon, that is, in a value?
    in_value: bool,
    /// The key or value being read at the top level.
    token: Vec<u8>,
    key_is_id: bool,
    id: Option<Vec<u8>>,
    has_method: bool,
}

impl Glimpse {
    pub fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// The id of the request, if the text is a request and its id was seen.
    pub fn request_id(&self) -> Option<Id> {
        self.id().filter(|_| self.has_method)
    }

    /// The id of the request that is answered, if the text is an answer and its id was seen.
    pub fn answered_id(&self) -> Option<Id> {
        self.id().filter(|_| !self.has_method)
    }

    fn id(&self) -> Option<Id> {
        Id::from_json(std::str::from_utf8(self.id.as_deref()?).ok()?.trim())
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            self.in_string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.key_is_id = self.token == br#""id""#;
                self.has_method |= self.token == br#""method""#;
                self.in_value = true;
                self.token.clear();
            }
            b',' if self.depth == 1 => self.end_value(),
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        let wanted = self.depth == 1 && (!self.in_value || self.key_is_id);
        let blank = byte.is_ascii_whitespace() && !self.in_string;
        if wanted && !blank && self.token.len() < LONGEST {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.in_value && self.key_is_id {
            self.id = Some(std::mem::take(&mut self.token));
        }
        self.in_value = false;
        self.key_is_id = false;
        self.token.clear();
    }
}
