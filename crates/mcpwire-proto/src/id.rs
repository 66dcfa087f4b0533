//! Request ids, kept exactly as their owner wrote them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use foldhash::quality::RandomState;

/// A JSON-RPC request id: a string or a number.
///
/// The text is carried verbatim, so integers of any size and unusual spellings survive. Two ids are equal when they
/// mean the same value: a peer may write `"é"` where we wrote `"\u00e9"`, or `1` where we wrote `1.0`. A string is
/// never equal to a number.
#[derive(Clone)]
pub struct Id(Text);

/// Something by request ids. The ids are others' to choose, so the hash is seeded at random; there are only so many requests
/// at once, so it need not withstand more than that.
pub type IdMap<T> = HashMap<Id, T, RandomState>;

/// Almost every id is short: it is kept in place and costs no allocation.
#[derive(Clone)]
enum Text {
    Short {
        length: u8,
        bytes: [u8; SHORT],
    },
    Long(Arc<str>),
    /// One that is not spelt in the way that ids are compared by.
    Odd(Arc<Odd>),
}

struct Odd {
    raw: Box<str>,
    canonical: Box<str>,
}

const SHORT: usize = 22;

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        let mut bytes = [0; SHORT];
        match bytes.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text.as_bytes());
                Text::Short { length: text.len() as u8, bytes }
            }
            None => Text::Long(text.into()),
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            // It was a text when it was taken in.
            Text::Short { length, bytes } => std::str::from_utf8(&bytes[..usize::from(*length)]).unwrap_or_default(),
            Text::Long(text) => text,
            Text::Odd(odd) => &odd.raw,
        }
    }
}

impl Id {
    /// Takes the JSON text of an id; `None` if it is neither a string nor a number.
    pub fn from_json(raw: &str) -> Option<Id> {
        let canonical = match raw.as_bytes().first()? {
            b'"' if raw.contains('\\') => {
                let text: String = serde_json::from_str(raw).ok()?;
                Some(serde_json::to_string(&text).ok()?)
            }
            b'"' => None,
            b'-' | b'0'..=b'9' => canonical_number(raw),
            _ => return None,
        };
        Some(Id(match canonical.filter(|canonical| canonical != raw) {
            Some(canonical) => Text::Odd(Arc::new(Odd { raw: raw.into(), canonical: canonical.into() })),
            None => raw.into(),
        }))
    }

    /// The id as its owner wrote it.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// An id for a request of our own. Bridges may stand in a row, and each has clients that make up ids, too: the tag,
    /// which is random for each of them, keeps theirs apart from ours.
    pub(crate) fn of_our_own(kind: &str, tag: u64, number: u64) -> Id {
        Id::from(format!("mcpwire-{:x}-{kind}{number}", tag & 0xff_ffff).as_str())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Short { length, bytes } => &bytes[..usize::from(*length)],
            Text::Long(text) => text.as_bytes(),
            Text::Odd(odd) => odd.raw.as_bytes(),
        }
    }

    fn key(&self) -> &[u8] {
        match &self.0 {
            Text::Odd(odd) => odd.canonical.as_bytes(),
            _ => self.as_bytes(),
        }
    }
}

/// Decimal spellings of whole numbers (`1.0`, `1e2`, `-0`) are brought to the plain one. Integers are left alone,
/// whatever their size: going through a float would merge different ones.
fn canonical_number(raw: &str) -> Option<String> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if raw != "-0" && raw.bytes().all(|byte| matches!(byte, b'-' | b'0'..=b'9')) {
        return None;
    }
    let value: f64 = raw.parse().ok()?;
    let whole = value.fract() == 0.0 && value.abs() <= EXACT;
    Some(if whole { format!("{}", value as i64) } else { format!("{value:e}") })
}

impl From<&str> for Id {
    /// A string id.
    fn from(text: &str) -> Id {
        Id(Text::from(&*serde_json::Value::from(text).to_string()))
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Id {
        let mut bytes = [0; SHORT];
        let mut digits = SHORT;
        let mut rest = number;
        loop {
            digits -= 1;
            bytes[digits] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        bytes.copy_within(digits.., 0);
        Id(Text::Short { length: (SHORT - digits) as u8, bytes })
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Id) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(raw: &str) -> Id {
        Id::from_json(raw).unwrap()
    }

    #[test]
    fn text_is_kept_verbatim() {
        for raw in ["1", "\"1\"", "-7", "123456789012345678901234567890", "\"\\u00e9\"", "1.0", "1e2", "\"\""] {
            assert_eq!(id(raw).as_json(), raw);
        }
        for length in 0..2 * SHORT {
            let text = format!("\"{}\"", "x".repeat(length));
            assert_eq!(id(&text).as_json(), text);
            assert_eq!(id(&text), Id::from(&*"x".repeat(length)));
        }
        for number in [0, 9, 10, u64::MAX] {
            assert_eq!(Id::from(number).as_json(), number.to_string());
        }
    }

    #[test]
    fn equal_values_are_equal_in_any_spelling() {
        for (a, b) in [("1", "1.0"), ("100", "1e2"), ("0", "-0"), ("\"é\"", "\"\\u00e9\""), ("1.5", "15e-1")] {
            assert_eq!(id(a), id(b), "{a} and {b}");
        }
    }

    #[test]
    fn different_values_differ() {
        let pairs = [("1", "\"1\""), ("9007199254740992", "9007199254740993"), ("1", "2"), ("1.5", "1.6")];
        for (a, b) in pairs {
            assert_ne!(id(a), id(b), "{a} and {b}");
        }
    }

    #[test]
    fn only_strings_and_numbers_are_ids() {
        for raw in ["null", "true", "{}", "[1]", ""] {
            assert!(Id::from_json(raw).is_none(), "{raw}");
        }
    }
}
