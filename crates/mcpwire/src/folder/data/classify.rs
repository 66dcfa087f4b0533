//! What a question is about: the shape of the data, its records, or what they mean together.

use std::collections::HashSet;

use super::category::{Agent, Category};

/// Who answers. In this order: of equals the first wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Metadata,
    Records,
    Insight,
    Clarification,
}

const KNOWN: [Intent; 3] = [Intent::Metadata, Intent::Records, Intent::Insight];

const STOP_WORDS: [&str; 29] = [
    "the", "and", "that", "this", "with", "into", "from", "will", "they", "their", "them", "what", "when", "have",
    "such", "like", "your", "more", "also", "than", "should", "before", "after", "each", "within", "without", "about",
    "using", "based",
];

impl Intent {
    pub(super) fn name(self) -> &'static str {
        match self {
            Intent::Metadata => "metadata",
            Intent::Records => "records",
            Intent::Insight => "insight",
            Intent::Clarification => "clarification",
        }
    }

    pub(super) fn agent(self) -> &'static str {
        match self {
            Intent::Metadata => "relevant-data-manager",
            Intent::Records => "database-agent",
            Intent::Insight => "data-agent",
            Intent::Clarification => "clarification-agent",
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Intent::Metadata => &["schema", "schemas", "relationship", "relationships", "metadata", "types", "folder"],
            Intent::Records => &["list", "find", "show", "fetch", "query", "records", "where", "filter"],
            Intent::Insight => &["plan", "overview", "summary", "explain", "connections", "insight", "narrative"],
            Intent::Clarification => &[],
        }
    }

    fn of(self, category: &Category) -> &Agent {
        let agents = &category.about.config.orchestration.agents;
        match self {
            Intent::Metadata | Intent::Clarification => &agents.relevant_data_manager,
            Intent::Records => &agents.database_agent,
            Intent::Insight => &agents.data_agent,
        }
    }
}

/// What a question was found to be, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) intent: Intent,
    pub(super) score: u32,
    /// The category's texts that share words with the question.
    pub(super) matched: Vec<String>,
    /// For each agent, what a question for it would speak of; given when no agent was found.
    pub(super) missing: Vec<String>,
}

/// The words of a text that count.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| word.len() >= 3 && !STOP_WORDS.contains(word)).map(str::to_owned).collect()
}

pub(super) fn classify(question: &str, category: Option<&Category>) -> Verdict {
    let asked: HashSet<String> = words(question).into_iter().collect();
    let mut best = Verdict { intent: Intent::Clarification, score: 0, matched: Vec::new(), missing: Vec::new() };
    for intent in KNOWN {
        let mut score = intent.words().iter().filter(|word| asked.contains(**word)).count() as u32;
        let mut matched = Vec::new();
        for text in category.into_iter().flat_map(|category| texts(intent.of(category))) {
            let hits = words(text).iter().filter(|word| asked.contains(*word)).count() as u32;
            score += 2 * hits;
            if hits > 0 {
                matched.push(text.to_owned());
            }
        }
        if score > best.score {
            best = Verdict { intent, score, matched, missing: Vec::new() };
        }
    }
    if best.intent == Intent::Clarification {
        best.missing = KNOWN.into_iter().map(|intent| example(intent, category)).collect();
    }
    best
}

fn texts(agent: &Agent) -> impl Iterator<Item = &str> {
    [agent.focus.as_str()].into_iter().chain(agent.signals.iter().chain(&agent.prompt_starters).map(String::as_str))
}

/// What a question for this agent would speak of.
fn example(intent: Intent, category: Option<&Category>) -> String {
    let declared = category.and_then(|category| {
        let agent = intent.of(category);
        agent.signals.first().or(agent.prompt_starters.first()).cloned()
    });
    declared.unwrap_or_else(|| format!("{}: {}", intent.name(), intent.words().join(", ")))
}
