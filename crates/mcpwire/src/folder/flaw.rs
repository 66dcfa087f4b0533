//! What is wrong with a file: where, and why.

use std::fmt;

/// A reason why a text cannot be used, and the line it was found in, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) line: Option<usize>,
    pub(super) reason: String,
}

impl Flaw {
    pub(super) fn new(reason: impl Into<String>) -> Flaw {
        Flaw { line: None, reason: reason.into() }
    }

    pub(super) fn at(line: usize, reason: impl Into<String>) -> Flaw {
        Flaw { line: Some(line), reason: reason.into() }
    }

    /// What is wrong with JSON text.
    pub(super) fn json(error: &serde_json::Error) -> Flaw {
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or_default().to_owned();
        Flaw { line: Some(error.line()).filter(|line| *line > 0), reason }
    }
}

/// A [`Flaw`] and the file it is in, by its path from the folder: never an absolute one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub file: String,
    pub line: Option<usize>,
    pub reason: String,
}

impl Warning {
    pub(super) fn new(file: impl Into<String>, flaw: Flaw) -> Warning {
        Warning { file: file.into(), line: flaw.line, reason: flaw.reason }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names come from the disk and may hold anything; control characters would garble a terminal.
        let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        f.write_str(&self.file.chars().map(clean).collect::<String>())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.reason.chars().map(clean).collect::<String>())
    }
}
