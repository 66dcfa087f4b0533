//! JSON as people write it in editors: comments, trailing commas and a byte order mark are turned into blanks.

/// JSON of the same length, byte for byte at the same place, so that what is found in it can be changed in the original.
/// What is no JSON otherwise stays none.
pub(super) fn plain(text: &str) -> String {
    let mut out = uncommented(text).into_bytes();
    let mut at = 0;
    // A comma that only blanks have followed so far.
    let mut comma = None;
    while at < out.len() {
        match out[at] {
            b'"' => {
                comma = None;
                at = string_end(&out, at);
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take().filter(|comma| follows_value(&out, *comma)) {
                    out[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    text_of(out)
}

/// The same with blanks for comments and the mark alone.
pub(super) fn uncommented(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    if text.starts_with('\u{feff}') {
        out[..3].fill(b' ');
    }
    let mut at = 0;
    while at < out.len() {
        at = match out[at] {
            b'"' => string_end(&out, at),
            b'/' => match comment_end(&out, at) {
                Some(end) => {
                    blank(&mut out[at..end]);
                    end
                }
                None => at + 1,
            },
            _ => at + 1,
        };
    }
    text_of(out)
}

/// Only whole comments, commas and the mark were replaced, by ASCII: it is text still.
fn text_of(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap_or_default()
}

/// `[,]` is no list with a comma too many.
fn follows_value(out: &[u8], comma: usize) -> bool {
    let before = out[..comma].iter().rev().find(|byte| !byte.is_ascii_whitespace());
    before.is_some_and(|byte| !matches!(byte, b'{' | b'[' | b',' | b':'))
}

/// Line breaks stay, so that faults are told with the line that they are on.
fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
}

fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// A comment that is never closed is none.
fn comment_end(text: &[u8], start: usize) -> Option<usize> {
    let rest = &text[start..];
    if rest.starts_with(b"//") {
        return Some(start + memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return memchr::memmem::find(&rest[2..], b"*/").map(|end| start + 2 + end + 2);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let plain = plain(text);
        assert_eq!(plain.len(), text.len());
        assert_eq!(plain.split_whitespace().collect::<String>(), expected);
    }

    #[test]
    fn comments_and_trailing_commas_go() {
        check("// one\n{ /* two */ \"a\": [1, 2,], // three\n}", r#"{"a":[1,2]}"#);
        check("{\"a\": 1, /* } */ \n }", r#"{"a":1}"#);
        check("\u{feff}{}", "{}");
        check("{} // at the end", "{}");
    }

    #[test]
    fn strings_are_left_alone() {
        check(r#"{"a":"//x","b":"/*,]*/","c":"\",}","d":"ü,"}"#, r#"{"a":"//x","b":"/*,]*/","c":"\",}","d":"ü,"}"#);
    }

    #[test]
    fn what_is_no_json_does_not_become_some() {
        for text in ["[,]", "{,}", "[1,,]", "{\"a\":,}", "[1] /* open", "/", "\"\\", "[1,", "{\"a\": 1 / 2}"] {
            assert!(serde_json::from_str::<Value>(&plain(text)).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_keeps_its_length(text in "[\\PC\n\"/*,{}\\[\\]\\\\]*") {
            prop_assert_eq!(plain(&text).len(), text.len());
        }

        #[test]
        fn json_stays_as_it_is(keys in proptest::collection::vec("\\PC*", 0..5)) {
            let text = serde_json::to_string_pretty(&keys).unwrap();
            prop_assert_eq!(plain(&text), text);
        }
    }
}
