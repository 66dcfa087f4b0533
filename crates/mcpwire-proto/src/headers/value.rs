//! Values as headers carry them: plain where a header can, in base64 where it cannot (2026-07-28, Value Encoding).

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

const BEGIN: &str = "=?base64?";
const END: &str = "?=";

/// The value as it goes into a header.
///
/// Beside what the specification names, an empty value is encoded: it would look like no header at all to many.
pub fn encode(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let outer_space = value.trim_matches([' ', '\t']).len() != value.len();
    if plain && !outer_space && !value.is_empty() && marked(value).is_none() {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{BEGIN}{}{END}", BASE64_STANDARD.encode(value)))
}

/// The value that a header carries; `None` if it is marked as base64 and is none, or is no text.
pub fn decode(header: &str) -> Option<Cow<'_, str>> {
    match marked(header) {
        None => Some(Cow::Borrowed(header)),
        Some(inner) => String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok().map(Cow::Owned),
    }
}

fn marked(text: &str) -> Option<&str> {
    text.strip_prefix(BEGIN)?.strip_suffix(END)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("us west 1", "us west 1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("=?base64?half", "=?base64?half"),
            ("", "=?base64??="),
        ] {
            assert_eq!(encode(value), header);
            assert_eq!(decode(header).as_deref(), Some(value));
        }
    }

    #[test]
    fn what_is_no_base64_is_no_value() {
        for header in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?=", "=?base64?SGVsbG9=?="] {
            assert_eq!(decode(header), None, "{header}");
        }
        for literal in ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", "=?base64?="] {
            assert_eq!(decode(literal).as_deref(), Some(literal));
        }
    }

    proptest! {
        #[test]
        fn every_value_comes_back_and_travels_safely(value in ".*") {
            let header = encode(&value);
            prop_assert!(header.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')));
            prop_assert_eq!(header.trim_ascii(), &*header);
            prop_assert_eq!(decode(&header).unwrap(), value.as_str());
        }
    }
}
