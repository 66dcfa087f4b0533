//! The levels of log messages; who sends them is left to the calls.

use mcpwire_proto::Fault;

use super::args::Args;

/// The levels of RFC 5424, least urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

const NAMES: [(Level, &str); 8] = [
    (Level::Debug, "debug"),
    (Level::Info, "info"),
    (Level::Notice, "notice"),
    (Level::Warning, "warning"),
    (Level::Error, "error"),
    (Level::Critical, "critical"),
    (Level::Alert, "alert"),
    (Level::Emergency, "emergency"),
];

impl Level {
    /// Reads a level from the argument of that name.
    pub(super) fn read(args: &Args, name: &str) -> Result<Level, Fault> {
        let text = args.text(name)?;
        let known = NAMES.iter().find(|(_, known)| *known == text);
        known.map(|(level, _)| *level).ok_or_else(|| args.wrong("a log level, debug to emergency,", name))
    }

    pub(super) fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    pub(super) fn names() -> [&'static str; 8] {
        NAMES.map(|(_, name)| name)
    }
}
