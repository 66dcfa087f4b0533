//! Dynamic matching: which fragments fit a query, how well, and the text that is made of them.
//!
//! No I/O: the bodies of fragments are asked of the caller.

mod fragment;
mod index;
mod keywords;
mod output;
mod query;
mod scenario;
mod similarity;

pub(super) use fragment::{Fragment, read as read_fragment};
pub(super) use index::{Index, Tokens};
pub(super) use output::{catalog, full};
pub(super) use query::{Mode, Query};
pub(super) use scenario::{FILES as SCENARIO_FILES, Scenarios};

/// A fragment that fits: its place in the index, and its score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) fragment: usize,
    pub(super) score: u32,
}

/// What a budget of tokens allows: the best three in any case, then whatever still fits, until four fifths are used.
pub(super) fn within_budget(hits: &[Hit], max_tokens: u64, tokens: impl Fn(usize) -> u32) -> Vec<Hit> {
    const ALWAYS: usize = 3;
    let mut chosen = Vec::new();
    let mut total = 0;
    for hit in hits {
        let cost = u64::from(tokens(hit.fragment));
        let certain = chosen.len() < ALWAYS;
        if certain || total + cost <= max_tokens {
            chosen.push(*hit);
            total += cost;
        }
        if !certain && total * 5 > max_tokens * 4 {
            break;
        }
    }
    chosen
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
