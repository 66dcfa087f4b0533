//! The slip that a client brings back with its retry: readable by nobody but us, good for one request and for a while.

use std::fmt;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::{Message, Object};

const NUMBER: usize = 8;
const UNTIL: usize = 8;
const REQUEST: usize = 32;
const TAG: usize = 32;
const LENGTH: usize = NUMBER + UNTIL + REQUEST + TAG;

/// What a slip says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slip {
    /// Which parked call it is for.
    pub number: u64,
    pub until: Instant,
    /// What was asked for, as [`digest`] has it.
    pub request: [u8; REQUEST],
}

/// Makes slips and checks them. The key is new in every process and for every client that we can tell from others, so
/// that nobody can use the slip of somebody else.
pub(super) struct Seal {
    key: Hmac<Sha256>,
    /// Times in slips count from here.
    epoch: Instant,
    numbers: u64,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    pub(super) fn new(key: &[u8; 32], epoch: Instant) -> Seal {
        // RFC 2104: a key shorter than a block is padded with zeros.
        let mut block = [0; 64];
        block[..key.len()].copy_from_slice(key);
        Seal { key: Hmac::new(&block.into()), epoch, numbers: 0 }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn close(&self, slip: &Slip) -> String {
        let until = u64::try_from(slip.until.duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX);
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend_from_slice(&slip.number.to_be_bytes());
        bytes.extend_from_slice(&until.to_be_bytes());
        bytes.extend_from_slice(&slip.request);
        let tag = self.key.clone().chain_update(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&tag);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads a slip; `None` unless we made it and its time is not over.
    pub(super) fn open(&self, text: &str, now: Instant) -> Option<Slip> {
        let bytes = from_hex(text)?;
        let (told, tag) = bytes.split_at_checked(LENGTH - TAG)?;
        self.key.clone().chain_update(told).verify_slice(tag).ok()?;
        let (number, rest) = told.split_first_chunk::<NUMBER>()?;
        let (until, rest) = rest.split_first_chunk::<UNTIL>()?;
        let until = self.epoch.checked_add(Duration::from_millis(u64::from_be_bytes(*until)))?;
        (now < until).then_some(Slip { number: u64::from_be_bytes(*number), until, request: rest.try_into().ok()? })
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != LENGTH * 2 || !text.is_ascii() {
        return None;
    }
    (0..LENGTH).map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()).collect()
}

/// What a request asks for, however its text is laid out: a retry asks for the same.
pub(super) fn digest(request: &Message) -> [u8; REQUEST] {
    let mut asked = Object::new();
    let params = request.members().unwrap_or_default();
    for (name, value) in params.iter().filter(|(name, _)| !["_meta", "inputResponses", "requestState"].contains(name)) {
        asked.set(name, value);
    }
    // Sorted by name: `serde_json::Value` is.
    let sorted = serde_json::from_str::<serde_json::Value>(&asked.to_string()).map(|value| value.to_string());
    let method = request.method().map_or("", |method| &**method);
    Sha256::new().chain_update(method).chain_update([0]).chain_update(sorted.unwrap_or_default()).finalize().into()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    fn call(params: &str) -> Message {
        Message::request(&crate::Id::from(1), "tools/call", Some(params))
    }

    #[test]
    fn a_slip_is_good_for_a_while_and_only_as_it_was_made() {
        let now = Instant::now();
        let seal = Seal::new(&[7; 32], now);
        let slip = Slip { number: 3, until: now + Duration::from_secs(60), request: digest(&call("{}")) };
        let text = seal.close(&slip);
        assert_eq!(seal.open(&text, now).as_ref(), Some(&slip));
        assert_eq!(seal.open(&text, now + Duration::from_secs(60)), None, "it is too old");
        assert_eq!(Seal::new(&[8; 32], now).open(&text, now), None, "it is somebody else's");
        for at in 0..text.len() {
            let other = if &text[at..=at] == "0" { "1" } else { "0" };
            let forged = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            assert_eq!(seal.open(&forged, now), None, "changed at {at}");
        }
        for garbage in ["", "zz", "é", &text[2..], &"0".repeat(LENGTH * 2)] {
            assert_eq!(seal.open(garbage, now), None);
        }
    }

    #[test]
    fn a_retry_asks_for_the_same_and_nothing_else_does() {
        let first = digest(&call(r#"{"name":"a","arguments":{"x":1,"y":[2]},"_meta":{"progressToken":1}}"#));
        let retry = r#"{"requestState":"s","inputResponses":{},"arguments":{"y": [2],"x":1},"name":"a"}"#;
        assert_eq!(digest(&call(retry)), first);
        assert_ne!(digest(&call(r#"{"name":"a","arguments":{"x":1,"y":[3]}}"#)), first);
        assert_ne!(digest(&call(r#"{"name":"b","arguments":{"x":1,"y":[2]}}"#)), first);
    }
}
