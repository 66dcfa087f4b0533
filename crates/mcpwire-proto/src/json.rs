//! JSON text as text: brought to one line without touching a value.

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

/// Brings JSON text to one line. Text that is on one line already is returned as it is, without a copy.
///
/// Only white space between tokens goes: line breaks cannot occur inside a JSON string. Text that is not JSON comes
/// back in some form that is not JSON either.
pub fn one_line(text: Bytes) -> Bytes {
    let trimmed = text.trim_ascii();
    if memchr2(b'\n', b'\r', trimmed).is_none() {
        return text;
    }
    let mut out = BytesMut::with_capacity(trimmed.len());
    let mut in_string = false;
    let mut escaped = false;
    let mut gap = false;
    for &byte in trimmed {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            gap = true;
            continue;
        } else {
            // `1 2` is no JSON and must not turn into `12`, which is.
            if gap && is_word(byte) && out.last().is_some_and(|&last| is_word(last)) {
                out.extend_from_slice(b" ");
            }
            in_string = byte == b'"';
        }
        gap = false;
        out.extend_from_slice(&[byte]);
    }
    out.freeze()
}

fn is_word(byte: u8) -> bool {
    !matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',' | b'"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(one_line(Bytes::copy_from_slice(text.as_bytes())), expected);
    }

    #[test]
    fn pretty_printed_text_is_compacted() {
        check("{\n  \"a\": [1,\r\n 2],\n\t\"b\": 1.10\n}\n", r#"{"a":[1,2],"b":1.10}"#);
    }

    #[test]
    fn strings_are_left_alone() {
        check("{\n\"a b\": \"x \\\" y \\\\\"\n, \"c\" : \"\\n  \"}", r#"{"a b":"x \" y \\","c":"\n  "}"#);
    }

    #[test]
    fn one_line_is_not_copied() {
        let text = Bytes::from_static(b"{\"a\": 1}");
        assert_eq!(one_line(text.clone()).as_ptr(), text.as_ptr());
    }

    #[test]
    fn tokens_do_not_merge_into_other_json() {
        let joined = one_line(Bytes::from_static(b"{\"a\":1\n2}"));
        assert!(serde_json::from_slice::<serde_json::Value>(&joined).is_err(), "{joined:?}");
    }
}
