//! `mode=index`: prepared scenarios ("use this when …") by keyword, from two files below `resources/.index`.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use serde::Deserialize;

use super::Query;
use super::fragment::kind;
use super::keywords::keywords;
use super::output::label;
use crate::folder::flaw::Flaw;

/// With fewer candidates the index has nothing to say.
const LEAST: usize = 2;

/// Where the index is kept, below the resources.
pub(in crate::folder) const FILES: [&str; 2] = [".index/usewhen-index.json", ".index/keyword-index.json"];

#[derive(Debug, Default)]
pub(in crate::folder) struct Scenarios {
    entries: Vec<Scenario>,
    by_keyword: HashMap<String, Vec<usize>>,
}

#[derive(Debug, Deserialize)]
struct Scenario {
    #[serde(default)]
    keywords: Vec<String>,
    uri: String,
    #[serde(default)]
    category: String,
    #[serde(default, rename = "estimatedTokens")]
    tokens: u64,
}

#[derive(Deserialize)]
struct UseWhen {
    index: HashMap<String, Scenario>,
}

#[derive(Deserialize)]
struct Keywords {
    keywords: HashMap<String, Vec<String>>,
}

impl Scenarios {
    /// Reads the two files of the index.
    pub(in crate::folder) fn read(use_when: &str, by_keyword: &str) -> Result<Scenarios, Flaw> {
        let UseWhen { index } = serde_json::from_str(use_when).map_err(|e| Flaw::json(&e))?;
        let Keywords { keywords } = serde_json::from_str(by_keyword).map_err(|e| Flaw::json(&e))?;
        let mut named: Vec<(String, Scenario)> = index.into_iter().collect();
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        let numbers: HashMap<String, usize> =
            named.iter().enumerate().map(|(at, (hash, _))| (hash.clone(), at)).collect();
        let number = |hashes: Vec<String>| hashes.iter().filter_map(|hash| numbers.get(hash).copied()).collect();
        let by_keyword = keywords.into_iter().map(|(keyword, hashes)| (keyword, number(hashes))).collect();
        Ok(Scenarios { entries: named.into_iter().map(|(_, scenario)| scenario).collect(), by_keyword })
    }

    /// The short list for a query; `None` if the index knows too little. It knows nothing of tags.
    pub(in crate::folder) fn answer(&self, query: &Query, scheme: &str) -> Option<String> {
        if !query.tags.is_empty() {
            return None;
        }
        let words = keywords(&query.text);
        let candidates: BTreeSet<usize> =
            words.iter().filter_map(|word| self.by_keyword.get(word)).flatten().copied().collect();
        let narrowed = query.folder.as_ref().map(|folder| format!("{scheme}://{folder}/"));
        let mut scored: Vec<(u32, &Scenario)> = candidates
            .into_iter()
            .map(|at| &self.entries[at])
            .filter(|entry| query.admits(entry.folder(), &entry.kind()))
            .filter(|entry| narrowed.as_ref().is_none_or(|start| entry.uri.starts_with(start.as_str())))
            .map(|entry| (score(entry, &words), entry))
            .filter(|(score, _)| *score > 0)
            .collect();
        if scored.len() < LEAST {
            return None;
        }
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        scored.truncate(query.max_results);
        let total: u64 = scored.iter().map(|(_, entry)| entry.tokens).sum();
        let mut text = format!(
            "# Resource Matches: {}\n\n**Found {} relevant resources ({total} tokens total)**\n\n## Top Matches\n\n",
            query.text,
            scored.len()
        );
        for (at, (_, entry)) in scored.iter().enumerate() {
            let name = entry.uri.rsplit('/').next().unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "{}. **{}: {name}** (~{} tokens)\n   @{}\n\n",
                at + 1,
                label(&entry.kind()),
                entry.tokens,
                entry.uri
            );
        }
        text.push_str("Read a URI to load it; more words in the query narrow the list.\n");
        Some(text)
    }
}

impl Scenario {
    /// The folder its resource is in.
    fn folder(&self) -> &str {
        let path = self.uri.split_once("://").map_or(self.uri.as_str(), |(_, path)| path);
        path.split('/').next().unwrap_or_default()
    }

    /// What its resource is called: by its declared category, in the singular or plural, or else by its folder.
    fn kind(&self) -> String {
        match self.category.trim() {
            "" => kind(self.folder()).to_owned(),
            category => kind(&category.to_lowercase()).to_owned(),
        }
    }
}

fn score(entry: &Scenario, words: &[String]) -> u32 {
    let equal = words.iter().filter(|word| entry.keywords.contains(word)).count();
    let alike = |word: &&String| entry.keywords.iter().any(|k| k.contains(word.as_str()) || word.contains(k.as_str()));
    20 * equal as u32 + 10 * words.iter().filter(alike).count() as u32
}
