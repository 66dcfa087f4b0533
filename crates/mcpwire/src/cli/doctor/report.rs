//! What was found out about a target, for people and as JSON.

use serde_json::{Map, Value, json};

use crate::cli::ask::terminal::{Style, Terminal};

/// How a finding is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Good,
    Note,
    Warning,
    Bad,
}

#[derive(Debug)]
struct Finding {
    level: Level,
    /// For programs; stays the same when texts change.
    code: &'static str,
    text: String,
    advice: Option<String>,
}

/// Everything that was found out, in order.
#[derive(Debug)]
pub(super) struct Report {
    target: String,
    facts: Map<String, Value>,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(target: String) -> Report {
        Report { target, facts: Map::new(), findings: Vec::new() }
    }

    pub(super) fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Adds to a fact that has parts, as `latencies` has.
    pub(super) fn part(&mut self, name: &str, part: &str, value: impl Into<Value>) {
        let parts = self.facts.entry(name).or_insert_with(|| json!({}));
        parts[part] = value.into();
    }

    pub(super) fn good(&mut self, code: &'static str, text: impl Into<String>) {
        self.findings.push(Finding { level: Level::Good, code, text: text.into(), advice: None });
    }

    pub(super) fn note(&mut self, code: &'static str, text: impl Into<String>) {
        self.findings.push(Finding { level: Level::Note, code, text: text.into(), advice: None });
    }

    pub(super) fn warn(&mut self, code: &'static str, text: impl Into<String>, advice: impl Into<String>) {
        self.findings.push(Finding { level: Level::Warning, code, text: text.into(), advice: Some(advice.into()) });
    }

    pub(super) fn bad(&mut self, code: &'static str, text: impl Into<String>, advice: impl Into<String>) {
        self.findings.push(Finding { level: Level::Bad, code, text: text.into(), advice: Some(advice.into()) });
    }

    pub(super) fn passed(&self) -> bool {
        self.count(Level::Bad) == 0
    }

    fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    pub(super) fn json(&self) -> Value {
        let level = |level| match level {
            Level::Good => "ok",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Bad => "problem",
        };
        let finding = |finding: &Finding| {
            let mut value = json!({"level": level(finding.level), "code": finding.code, "text": finding.text});
            if let Some(advice) = &finding.advice {
                value["advice"] = advice.as_str().into();
            }
            value
        };
        let mut report = json!({
            "target": self.target,
            "status": if self.passed() { "pass" } else { "fail" },
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        });
        for (name, value) in &self.facts {
            report[name] = value.clone();
        }
        report
    }

    pub(super) fn text(&self, terminal: Terminal) -> String {
        let mut out = format!("{}\n", terminal.styled(Style::Name, &terminal.safe(&self.target)));
        for finding in &self.findings {
            let (style, mark) = match finding.level {
                Level::Good => (Style::Good, "ok  "),
                Level::Note => (Style::Faint, "note"),
                Level::Warning => (Style::Warning, "warn"),
                Level::Bad => (Style::Bad, "FAIL"),
            };
            let text = terminal.safe(&finding.text).replace('\n', "\n        ");
            out.push_str(&format!("  {}  {text}\n", terminal.styled(style, mark)));
            if let Some(advice) = &finding.advice {
                out.push_str(&format!("        -> {}\n", terminal.safe(advice)));
            }
        }
        let (bad, warnings) = (self.count(Level::Bad), self.count(Level::Warning));
        let warned = match warnings {
            0 => String::new(),
            1 => ", 1 warning".to_owned(),
            many => format!(", {many} warnings"),
        };
        let (style, sum) = match bad {
            0 => (Style::Good, "it works".to_owned()),
            1 => (Style::Bad, "1 problem".to_owned()),
            many => (Style::Bad, format!("{many} problems")),
        };
        out.push_str(&format!("{}{warned}\n", terminal.styled(style, &sum)));
        out
    }
}

/// The beginning of a text, on one line.
pub(super) fn excerpt(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let text = words.collect::<Vec<_>>().join(" ");
    match text.chars().count() > 160 {
        true => text.chars().take(160).chain(['…']).collect(),
        false => text,
    }
}
