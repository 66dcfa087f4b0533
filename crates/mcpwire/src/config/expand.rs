//! `${VAR}` and `${VAR:-default}` in the strings of a configuration.

use super::environment::Environment;

/// A string with its variables put in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) text: String,
    /// Whether anything was put in.
    pub(super) touched: bool,
    /// What is not set and stays as it was written.
    pub(super) unset: Vec<String>,
}

/// Puts variables in the place of their names. What is put in is not looked at again.
pub(super) fn expand(text: &str, environment: &Environment) -> Expanded {
    let mut out = Expanded { text: String::with_capacity(text.len()), touched: false, unset: Vec::new() };
    // Nothing is a reference behind the last brace, and before it every search for one ends.
    let (mut rest, tail) = text.split_at(text.rfind('}').map_or(0, |last| last + 1));
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start + 2);
        out.text.push_str(&before[..start]);
        match Reference::parse(from).map(|reference| (reference.value(environment), reference)) {
            Some((Some(value), reference)) => {
                out.text.push_str(&value);
                out.touched = true;
                rest = &from[reference.length..];
            }
            unknown => {
                out.text.push_str("${");
                out.unset.extend(unknown.map(|(_, reference)| reference.name.to_owned()));
                rest = from;
            }
        }
    }
    out.text.push_str(rest);
    out.text.push_str(tail);
    out
}

/// A text with the names of its variables: whatever stands for their values in the file is left out.
pub(super) fn names_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start + 2);
        out.push_str(before);
        rest = from;
        if let Some(reference) = Reference::parse(from) {
            out.push_str(reference.name);
            out.push('}');
            rest = &from[reference.length..];
        }
    }
    out.push_str(rest);
    out
}

/// What stands behind `${`.
struct Reference<'a> {
    name: &'a str,
    default: Option<&'a str>,
    /// With the brace at the end.
    length: usize,
}

impl<'a> Reference<'a> {
    /// Takes time in proportion to the name, or to the whole of a reference: texts are no longer than they look.
    fn parse(text: &'a str) -> Option<Reference<'a>> {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'.' | b'-');
        let part = text.bytes().position(|b| !is_part(b)).unwrap_or(text.len());
        let name = text[..part].split_once(":-").map_or(&text[..part], |(name, _)| name);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        match text[name.len()..].strip_prefix(":-") {
            Some(default) => {
                let default = &default[..default.find('}')?];
                Some(Reference { name, default: Some(default), length: name.len() + 2 + default.len() + 1 })
            }
            None if text[name.len()..].starts_with('}') => {
                Some(Reference { name, default: None, length: name.len() + 1 })
            }
            None => None,
        }
    }

    fn value(&self, environment: &Environment) -> Option<String> {
        lookup(self.name, environment).or_else(|| self.default.map(str::to_owned))
    }
}

/// Besides plain names those that VS Code and Cursor write.
fn lookup(name: &str, environment: &Environment) -> Option<String> {
    match name {
        "workspaceFolder" => Some(environment.cwd.to_str()?.to_owned()),
        "userHome" => Some(environment.home.as_ref()?.to_str()?.to_owned()),
        _ => environment.variable(name.strip_prefix("env:").unwrap_or(name)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn environment() -> Environment {
        Environment::new(Some("/home/me".into()), "/work/project".into(), |name| match name {
            "TOKEN" => Some("t0p".into()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${TOKEN}".into()),
            _ => None,
        })
    }

    #[track_caller]
    fn check(text: &str, expected: &str, unset: &[&str]) {
        let expanded = expand(text, &environment());
        assert_eq!((expanded.text.as_str(), expanded.unset), (expected, unset.iter().map(|&u| u.to_owned()).collect()));
    }

    #[test]
    fn variables_and_defaults_are_put_in() {
        check("Bearer ${TOKEN}!", "Bearer t0p!", &[]);
        check("${TOKEN:-other}${TOKEN}", "t0pt0p", &[]);
        check("${NONE:-other}", "other", &[]);
        check("${NONE:-}", "", &[]);
        check("${NONE:-a:-b}", "a:-b", &[]);
        // Set, though empty: the default is for what is not set.
        check("[${EMPTY:-other}]", "[]", &[]);
        check("${env:TOKEN} ${userHome} ${workspaceFolder}", "t0p /home/me /work/project", &[]);
    }

    #[test]
    fn what_is_not_set_stays_as_it_is_written() {
        check("a ${NONE} b", "a ${NONE} b", &["NONE"]);
        check("${input:key}", "${input:key}", &["input:key"]);
        check("${", "${", &[]);
        check("${TOKEN", "${TOKEN", &[]);
        check("$TOKEN {TOKEN} ${} ${1X:-a} $${TOKEN}", "$TOKEN {TOKEN} ${} ${1X:-a} $t0p", &[]);
        check("${ ${TOKEN}", "${ t0p", &[]);
    }

    #[test]
    fn only_names_are_shown_of_variables() {
        for (text, shown) in [
            ("https://${HOST:-a.example}/${TOKEN}/mcp", "https://${HOST}/${TOKEN}/mcp"),
            ("${A${B}}", "${A${B}}"),
            ("plain ${", "plain ${"),
        ] {
            assert_eq!(names_only(text), shown);
        }
    }

    #[test]
    fn long_texts_take_no_longer_than_they_look() {
        for text in
            ["${".repeat(1 << 20) + "}", "${A:-".repeat(1 << 18), "${A:-".repeat(1 << 18) + "}", "${A".repeat(1 << 18)]
        {
            let before = std::time::Instant::now();
            expand(&text, &environment());
            assert!(before.elapsed() < std::time::Duration::from_secs(5));
        }
    }

    #[test]
    fn what_is_put_in_is_not_expanded_again() {
        check("${NESTED}", "${TOKEN}", &[]);
    }

    proptest! {
        #[test]
        fn text_without_references_is_left_alone(text in "[^$]*") {
            let expanded = expand(&text, &environment());
            prop_assert_eq!(expanded.text, text);
            prop_assert!(!expanded.touched);
        }

        #[test]
        fn any_text_is_taken(text in "[\\PC${}:\\-TOKEN]*") {
            let expanded = expand(&text, &environment());
            if !expanded.touched {
                prop_assert_eq!(expanded.text, text);
            }
        }
    }
}
