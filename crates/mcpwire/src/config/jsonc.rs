//! JSON as people write it in editors: with comments, trailing commas and a byte order mark, and otherwise strict.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, ParseResult, parse_to_ast};

pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// What is allowed beyond JSON.
pub(crate) const DIALECT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const TOKENS: CollectOptions = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: true };

/// Why a text is not understood, and on which line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// The value of a text; `None` if there is nothing but blanks and comments.
pub(crate) fn parse(text: &str) -> Result<Option<Value<'_>>, Fault> {
    let parsed: ParseResult<'_> = parse_to_ast(text, &TOKENS, &DIALECT).map_err(|error| {
        let mut what = error.kind().to_string();
        what[..1].make_ascii_lowercase();
        Fault { line: error.line_display(), what }
    })?;
    // The parser accepts them in strings; RFC 8259, section 7, does not.
    let control = parsed.tokens.iter().flatten().find_map(|token| {
        let inside = &text[token.start()..token.end()];
        Some(token.start() + inside.find(|c: char| c < ' ')?)
    });
    match control {
        Some(at) => Err(Fault { line: line_of(text, at), what: "unexpected control character in a string".to_owned() }),
        None => Ok(parsed.value),
    }
}

/// The line of a place in a text, counted from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// The same value as plain JSON: members keep their order, and numbers and strings their spelling.
pub(super) fn plain(text: &str) -> Result<String, Fault> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    if let Some(value) = parse(text)? {
        write(&value, text, &mut out);
    }
    Ok(out)
}

fn write(value: &Value<'_>, text: &str, out: &mut String) {
    let spelling = |item: &dyn Ranged| &text[item.start()..item.end()];
    match value {
        Value::Object(object) => {
            out.push('{');
            for (at, member) in object.properties.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                out.push_str(spelling(&member.name));
                out.push(':');
                write(&member.value, text, out);
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (at, item) in list.elements.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                write(item, text, out);
            }
            out.push(']');
        }
        leaf => out.push_str(spelling(leaf)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(plain(text).as_deref(), Ok(expected));
    }

    #[test]
    fn comments_and_trailing_commas_go() {
        check("// one\n{ /* two */ \"a\": [1, 2,], // three\n}", r#"{"a":[1,2]}"#);
        check("{\"a\": 1, /* } */ \n }", r#"{"a":1}"#);
        check("\u{feff}{}", "{}");
        check("{} // at the end", "{}");
        check("// nothing else\n", "");
    }

    #[test]
    fn order_spelling_and_repetitions_stay() {
        check(r#"{"b":1.50,"a":"\u00fc","a":1e2}"#, r#"{"b":1.50,"a":"\u00fc","a":1e2}"#);
    }

    #[test]
    fn strings_stay_as_they_are() {
        check(r#"{"a":"//x","b":"/*,]*/","c":"\",}","d":"ü,"}"#, r#"{"a":"//x","b":"/*,]*/","c":"\",}","d":"ü,"}"#);
    }

    #[test]
    fn what_is_no_json_does_not_become_some() {
        let texts = ["[,]", "{,}", "[1,,]", "{\"a\":,}", "[1] /* open", "/", "\"\\", "[1,", "{\"a\": 1 / 2}", "{a: 1}"];
        for text in texts.into_iter().chain(["['a']", "[0x1]", "[+1]", "[.5]", "[NaN]", "[1 2]", "{}{}"]) {
            let read = plain(text);
            assert!(read.is_err() || serde_json::from_str::<Value>(&read.unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_fault_names_its_line() {
        assert_eq!(plain("{\n\"a\": 1,,\n}").unwrap_err().line, 2);
    }

    proptest! {
        #[test]
        fn any_text_is_json_or_refused(text in "[\\PC\n\"/*,{}\\[\\]\\\\]*") {
            if let Ok(plain) = plain(&text) {
                prop_assert!(plain.is_empty() || serde_json::from_str::<Value>(&plain).is_ok(), "{}", plain);
            }
        }

        #[test]
        fn json_stays_as_it_is(keys in proptest::collection::vec("\\PC*", 0..5)) {
            let text = serde_json::to_string(&keys).unwrap();
            prop_assert_eq!(plain(&text), Ok(text));
        }
    }
}
