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
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        out.text.push_str(before);
        let Some(end) = from.find('}') else {
            rest = from;
            break;
        };
        let (reference, after) = from.split_at(end + 1);
        let (name, default) = match reference[2..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&reference[2..end], None),
        };
        match lookup(name, environment).or_else(|| default.filter(|_| is_name(name)).map(str::to_owned)) {
            Some(value) => {
                out.text.push_str(&value);
                out.touched = true;
                rest = after;
            }
            None => {
                // A name begins anew inside of what was none: `${ ${VAR}`.
                out.text.push_str("${");
                rest = &from[2..];
                if is_name(name) || name.contains(':') {
                    out.unset.push(name.to_owned());
                }
            }
        }
    }
    out.text.push_str(rest);
    out
}

/// Besides plain names those that VS Code and Cursor write.
fn lookup(name: &str, environment: &Environment) -> Option<String> {
    match name {
        "workspaceFolder" => Some(environment.cwd.to_str()?.to_owned()),
        "userHome" => Some(environment.home.as_ref()?.to_str()?.to_owned()),
        _ => environment.variable(name.strip_prefix("env:").unwrap_or(name)).filter(|_| is_name(name)),
    }
}

fn is_name(name: &str) -> bool {
    let name = name.strip_prefix("env:").unwrap_or(name);
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
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
