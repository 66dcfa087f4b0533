//! Which categories a question names, and which of them it is about.

use super::scan::Span;
use super::words::{Word, name_stems};
use crate::folder::catalog::Catalog;

/// A category that is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) span: Span,
    pub(super) category: usize,
}

/// The categories that a question names outside of the masked words, in the order in which it does.
pub(super) fn mentions(catalog: &Catalog, words: &[Word], masked: &[Span]) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    for (category, declared) in catalog.data.iter().enumerate() {
        for name in declared.names().map(name_stems).filter(|name| !name.is_empty()) {
            found.extend(places(words, &name).map(|span| Mention { span, category }));
        }
    }
    // `machines` for machine-tools, unless another category has the word, too.
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.quote.is_none() && !word.is_filler()) {
        let has = |category: &usize| {
            let names = [catalog.data[*category].id.as_str(), catalog.data[*category].name()];
            names.iter().any(|name| name_stems(name).contains(&word.stem))
        };
        let owners: Vec<usize> = (0..catalog.data.len()).filter(has).collect();
        if let [category] = owners[..] {
            found.push(Mention { span: Span { from: at, to: at + 1 }, category });
        }
    }
    found.retain(|mention| !masked.iter().any(|span| span.overlaps(mention.span)));
    // Of names that share words the longest counts.
    found.sort_by_key(|mention| (std::cmp::Reverse(mention.span.len()), mention.span.from));
    let mut kept: Vec<Mention> = Vec::new();
    for mention in found {
        if !kept.iter().any(|other| other.span.overlaps(mention.span)) {
            kept.push(mention);
        }
    }
    kept.sort_by_key(|mention| mention.span.from);
    kept
}

fn places<'a>(words: &'a [Word], name: &'a [String]) -> impl Iterator<Item = Span> + 'a {
    let fits =
        move |window: &[Word]| window.iter().zip(name).all(|(word, stem)| word.quote.is_none() && word.stem == *stem);
    let windows = words.windows(name.len()).enumerate().filter(move |(_, window)| fits(window));
    windows.map(|(from, _)| Span { from, to: from + name.len() })
}

/// The category that a question is about: the first that does not merely narrow another down, as in
/// "in the Engineering department".
pub(super) fn subject(words: &[Word], mentions: &[Mention]) -> Option<usize> {
    let head = mentions.iter().find(|mention| !narrows(words, mention.span.from));
    head.or(mentions.first()).map(|mention| mention.category)
}

fn narrows(words: &[Word], at: usize) -> bool {
    const REQUESTS: [&str; 18] = [
        "which", "what", "who", "whose", "list", "find", "show", "get", "give", "fetch", "all", "every", "many", "any",
        "display", "count", "search", "select",
    ];
    const PREPOSITIONS: [&str; 13] =
        ["in", "of", "from", "by", "for", "at", "to", "with", "on", "within", "under", "inside", "about"];
    if words[at].after_comma {
        return false;
    }
    for word in words[..at].iter().rev().take(5) {
        if word.is(&REQUESTS) {
            return false;
        }
        if word.is(&PREPOSITIONS) {
            return true;
        }
        if word.after_comma {
            return false;
        }
    }
    false
}
