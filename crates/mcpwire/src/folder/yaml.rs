//! YAML as JSON values: one document of bounded size and depth, without anchors, so that no text can swell.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};

use super::flaw::Flaw;

/// How deep lists and maps may be nested.
const DEEPEST: usize = 32;

/// Reads one document; an empty one is null.
pub(super) fn read(text: &str) -> Result<Value, Flaw> {
    let mut reader = Reader { events: Parser::new_from_str(text), line: 1 };
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Null),
            first => {
                let value = reader.value(first, 0)?;
                reader.end()?;
                return Ok(value);
            }
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, Flaw> {
        match self.events.next() {
            Some(Ok((event, Span { start, .. }))) => {
                self.line = start.line();
                Ok(event)
            }
            Some(Err(e)) => Err(Flaw::at(e.marker().line(), e.info())),
            None => Ok(Event::StreamEnd),
        }
    }

    /// Nothing may follow the document.
    fn end(&mut self) -> Result<(), Flaw> {
        loop {
            match self.next()? {
                Event::StreamEnd => return Ok(()),
                Event::DocumentEnd | Event::Nothing => {}
                _ => return Err(self.flaw("expected one YAML document, came a second")),
            }
        }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, Flaw> {
        if depth > DEEPEST {
            return Err(self.flaw(format!("nested deeper than {DEEPEST}")));
        }
        match event {
            Event::Scalar(text, ScalarStyle::Plain, _, None) => Ok(plain(&text)),
            Event::Scalar(text, ..) => Ok(Value::String(text.into_owned())),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Ok(Value::Array(items)),
                        event => items.push(self.value(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut map = Map::new();
                loop {
                    let key = match self.next()? {
                        Event::MappingEnd => return Ok(Value::Object(map)),
                        Event::Scalar(key, ..) => key.into_owned(),
                        _ => return Err(self.flaw("expected a text as key")),
                    };
                    let line = self.line;
                    let event = self.next()?;
                    let value = self.value(event, depth + 1)?;
                    if map.contains_key(&key) {
                        return Err(Flaw::at(line, format!("the key {key:?} is there twice")));
                    }
                    map.insert(key, value);
                }
            }
            Event::Alias(_) => Err(self.flaw("anchors and aliases are not supported")),
            _ => Err(self.flaw("expected a value")),
        }
    }

    fn flaw(&self, reason: impl Into<String>) -> Flaw {
        Flaw::at(self.line, reason)
    }
}

/// A scalar without quotes, by the core schema (YAML 1.2.2, section 10.3).
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let numeric = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
        && text.bytes().any(|b| b.is_ascii_digit())
        // Version numbers such as 1.2.3 and dates are texts; so is what only Rust takes for a number.
        && text.bytes().filter(|b| *b == b'.').count() <= 1;
    if !numeric {
        return Value::String(text.to_owned());
    }
    if let Ok(whole) = text.strip_prefix('+').unwrap_or(text).parse::<i64>() {
        return Value::from(whole);
    }
    match text.parse().ok().and_then(Number::from_f64) {
        Some(number) => Value::Number(number),
        None => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_front_matter_is_made_of() {
        let text = "name: deploy it\nversion: 1.0.0\ndate: 2025-01-15\ntags: [a, 'b c', \"d\"]\narguments:\n  - name: x\n    required: true\n  - name: y\nn: 12\nf: 1.5\nnothing:\ntext: |\n  two\n  lines\n";
        let value = read(text).unwrap();
        let expected = json!({
            "name": "deploy it", "version": "1.0.0", "date": "2025-01-15", "tags": ["a", "b c", "d"],
            "arguments": [{"name": "x", "required": true}, {"name": "y"}],
            "n": 12, "f": 1.5, "nothing": null, "text": "two\nlines\n",
        });
        assert_eq!(value, expected);
        assert_eq!(read("").unwrap(), Value::Null);
    }

    #[test]
    fn faults_name_their_line() {
        let cases = [("a: 1\na: 2\n", 2), ("a: 1\nb: [1\n", 3), ("a: &x 1\nb: *x\n", 2), ("a: 1\n---\nb: 2\n", 3)];
        for (text, line) in cases {
            let flaw = read(text).unwrap_err();
            assert!(flaw.line.is_some_and(|l| l.abs_diff(line) <= 1), "{text:?}: {flaw:?}");
        }
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert!(read(&deep).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,200}") {
            let _ = read(&text);
        }

        #[test]
        fn no_text_made_of_yaml_panics(text in "[-:\\[\\]{}\"'|>&*!#?, \n\ta-c0-2]{0,120}") {
            let _ = read(&text);
        }
    }
}
