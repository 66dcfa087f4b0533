//! The texts that are made of matched fragments.

use std::fmt::Write;

use super::{Hit, Index, Tokens};
use crate::folder::matching::Fragment;

/// Kinds in the order in which they are shown; others come last.
const ORDER: [&str; 5] = ["agent", "skill", "pattern", "example", "workflow"];

/// A list of what was found, to choose from.
pub(in crate::folder) fn catalog(index: &Index, hits: &[Hit], tokens: Tokens, scheme: &str) -> String {
    let ordered = ordered(index, hits);
    let total: u64 = ordered.iter().map(|hit| u64::from(tokens.of(index.fragment(hit.fragment)))).sum();
    let mut text = format!(
        "# Resource catalog\n\n**Query Results:** {} matched resources\n**Total Tokens Available:** {total}\n\n\
         Read the entries first and load only what the task needs: every entry names its URI and about what it costs. \
         To look again with other words, read `{scheme}://match?query=…`; `categories`, `tags`, `minScore` and `maxResults` \
         narrow the search, and `mode=full` gives the texts themselves.\n\n---\n\n## Matched Resources\n",
        ordered.len()
    );
    for (at, hit) in ordered.iter().enumerate() {
        if at > 0 {
            text.push_str("\n---\n");
        }
        entry(&mut text, at + 1, hit.score, index.fragment(hit.fragment), tokens);
    }
    text
}

fn entry(text: &mut String, number: usize, score: u32, fragment: &Fragment, tokens: Tokens) {
    let id = match tokens {
        Tokens::Counted => &fragment.id,
        Tokens::Declared => fragment.declared_id.as_ref().unwrap_or(&fragment.id),
    };
    let mut tags = fragment.tags.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
    if fragment.tags.len() > 8 {
        tags.push_str("...");
    }
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\n### {number}. {}: {id}\n\n**Relevance Score:** {score}/100\n**Tags:** {tags}\n**Capabilities:**\n",
        label(fragment.kind())
    );
    list(text, &fragment.capabilities);
    if !fragment.use_when.is_empty() {
        text.push_str("**Use When:**\n");
        list(text, &fragment.use_when);
    }
    let _ =
        write!(text, "**Estimated Tokens:** ~{}\n\n**Load this resource:** {}\n", tokens.of(fragment), fragment.uri);
}

/// The first four, and a sign that there are more.
fn list(text: &mut String, items: &[String]) {
    for item in items.iter().take(4) {
        let _ = writeln!(text, "  - {item}");
    }
    if items.len() > 4 {
        text.push_str("  - ...\n");
    }
}

/// The fragments themselves, one below the other; `body` gives their texts.
pub(in crate::folder) fn full(index: &Index, hits: &[Hit], mut body: impl FnMut(&Fragment) -> String) -> String {
    let blocks = ordered(index, hits).into_iter().map(|hit| {
        let fragment = index.fragment(hit.fragment);
        format!(
            "\n## {}: {}\n**Relevance Score:** {}\n**Tags:** {}\n**Capabilities:** {}\n\n{}\n",
            label(fragment.kind()),
            fragment.id,
            hit.score,
            fragment.tags.join(", "),
            fragment.capabilities.join(", "),
            body(fragment)
        )
    });
    blocks.collect::<Vec<_>>().join("\n---\n")
}

/// By kind; within a kind the best first.
fn ordered(index: &Index, hits: &[Hit]) -> Vec<Hit> {
    let mut ordered = hits.to_vec();
    let rank = |hit: &Hit| {
        let kind = index.fragment(hit.fragment).kind();
        ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len())
    };
    ordered.sort_by_key(rank);
    ordered
}

/// `agent` as a heading has it: `Agent`.
pub(super) fn label(kind: &str) -> String {
    let mut chars = kind.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}
