//! A Markdown resource as the matcher sees it: what it is about, what it can do, when to use it, and its size.

use crate::folder::front::{self, Document};

/// Words that make a tag where they occur in a text that declares none.
const TECHNIQUES: [&str; 15] = [
    "typescript",
    "javascript",
    "node",
    "react",
    "api",
    "rest",
    "graphql",
    "database",
    "sql",
    "testing",
    "async",
    "error",
    "security",
    "auth",
    "validation",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::folder) struct Fragment {
    /// The path without its extension.
    pub(in crate::folder) id: String,
    pub(in crate::folder) uri: String,
    /// The top folder: `agents`.
    pub(in crate::folder) folder: String,
    /// Lower-case.
    pub(in crate::folder) tags: Vec<String>,
    pub(in crate::folder) capabilities: Vec<String>,
    pub(in crate::folder) use_when: Vec<String>,
    /// What the body is estimated to cost.
    pub(in crate::folder) tokens: u32,
    /// What the front matter says it costs, and is called; the matcher behind `mode=index` goes by that.
    pub(in crate::folder) declared_tokens: Option<u32>,
    pub(in crate::folder) declared_id: Option<String>,
}

impl Fragment {
    /// What one of its kind is called: `agent`.
    pub(in crate::folder) fn kind(&self) -> &str {
        kind(&self.folder)
    }
}

/// What one of a folder's resources is called. Guides count as patterns.
pub(super) fn kind(folder: &str) -> &str {
    match folder {
        "guides" => "pattern",
        other => other.strip_suffix('s').unwrap_or(other),
    }
}

/// Reads a fragment from the parts of its file. `id` is the path without `.md`.
pub(in crate::folder) fn read(id: &str, uri: &str, document: &Document<'_>) -> Fragment {
    let Document { fields, body } = document;
    let tags = front::texts(fields, "tags").map(lower).unwrap_or_else(|| guess_tags(body));
    let capabilities = front::texts(fields, "capabilities")
        .unwrap_or_else(|| bullets(body, |title| matches!(title, "Capabilities" | "Core Capabilities")));
    let use_when = front::texts(fields, "useWhen").unwrap_or_else(|| bullets(body, is_usage));
    let declared = fields.get("estimatedTokens").and_then(serde_json::Value::as_u64);
    Fragment {
        id: id.to_owned(),
        uri: uri.to_owned(),
        folder: id.split('/').next().unwrap_or_default().to_owned(),
        tags,
        capabilities,
        use_when,
        tokens: estimate(body),
        declared_tokens: declared.and_then(|tokens| u32::try_from(tokens).ok()),
        declared_id: front::text(fields, "id"),
    }
}

/// A token is about four characters, counted as JavaScript does.
fn estimate(body: &str) -> u32 {
    u32::try_from(body.encode_utf16().count().div_ceil(4)).unwrap_or(u32::MAX)
}

fn lower(texts: Vec<String>) -> Vec<String> {
    texts.into_iter().map(|text| text.to_lowercase()).collect()
}

fn guess_tags(body: &str) -> Vec<String> {
    let heading = body.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default().to_lowercase();
    let words = heading.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 2);
    let mut tags: Vec<String> = Vec::new();
    let text = body.to_lowercase();
    let techniques = TECHNIQUES.into_iter().filter(|technique| text.contains(technique));
    for tag in words.chain(techniques) {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    tags
}

fn is_usage(title: &str) -> bool {
    matches!(
        title,
        "When to Use"
            | "When This Agent Applies"
            | "When This Agent Is Used"
            | "When This Skill Applies"
            | "When This Skill Is Used"
    )
}

/// The items of the lists below a heading of the second level.
fn bullets(body: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in body.lines() {
        if line.starts_with('#') {
            inside = line.strip_prefix("## ").is_some_and(|title| wanted(title.trim()));
        } else if let Some(item) = line.trim_start().strip_prefix("- ").or_else(|| line.trim_start().strip_prefix("* "))
            && inside
        {
            found.push(item.replace("**", "").trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(text: &str) -> Fragment {
        read("agents/x", "orchestr8://agents/x", &front::split(text).unwrap())
    }

    #[test]
    fn what_is_declared_counts() {
        let text = "---\nid: other\ntags: [TypeScript, API]\ncapabilities: [One]\nuseWhen: []\nestimatedTokens: 1234\n---\n12345";
        let fragment = fragment(text);
        assert_eq!(fragment.tags, ["typescript", "api"]);
        assert_eq!((fragment.capabilities.len(), fragment.use_when.len()), (1, 0));
        assert_eq!((fragment.tokens, fragment.declared_tokens), (2, Some(1234)));
        assert_eq!((fragment.id.as_str(), fragment.declared_id.as_deref()), ("agents/x", Some("other")));
        assert_eq!(fragment.kind(), "agent");
    }

    #[test]
    fn what_is_not_declared_is_looked_for_in_the_text() {
        let text = "# SQL & Query Tuning\n\n## Core Capabilities\n- **Plans**: read them\n* Indexes\n\n## When This Agent Applies\n- Slow pages\n\n## Other\n- not this\n\nTalks about testing.\n";
        let fragment = fragment(text);
        assert_eq!(fragment.tags, ["sql", "query", "tuning", "testing"]);
        assert_eq!(fragment.capabilities, ["Plans: read them", "Indexes"]);
        assert_eq!(fragment.use_when, ["Slow pages"]);
    }

    #[test]
    fn kinds_of_folders() {
        let kinds = ["agents", "guides", "patterns", "skills", "best-practices", "misc"].map(kind);
        assert_eq!(kinds, ["agent", "pattern", "pattern", "skill", "best-practice", "misc"]);
    }
}
