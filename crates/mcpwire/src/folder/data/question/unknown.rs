//! What is left of a question: values that nothing has, and words without a meaning here.

use super::fields::spoken_of;
use super::scan::{Scan, Span};
use super::select::Selector;
use super::words::Word;

/// How many values of a field are offered instead.
const MOST_OFFERED: usize = 10;

/// A value that a question asks for and no record has.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::folder::data) struct Unmatched {
    pub(in crate::folder::data) value: String,
    pub(super) is_quoted: bool,
    /// The field it was looked for in, if the question names one, and some values that this field does have.
    pub(in crate::folder::data) field: Option<String>,
    pub(in crate::folder::data) known: Vec<String>,
}

/// The values that match nothing, and the words that were not understood.
pub(super) fn unknown(
    selector: &Selector<'_>,
    scan: &Scan,
    taken: &[Span],
    is_free: bool,
) -> (Vec<Unmatched>, Vec<String>) {
    let words = &selector.known.words;
    let is_taken = |at: usize| taken.iter().any(|span| (span.from..span.to).contains(&at));
    let is_open = |at: usize| {
        let word = &words[at];
        !is_taken(at) && (word.quote.is_some() || (!word.is_filler() && !selector.vocabulary[at] && !is_courtesy(word)))
    };
    // `critical` is like the name of a field, but neither the name nor a value.
    let is_half_open = |at: &usize| {
        let word = &words[*at];
        !is_taken(*at) && selector.vocabulary[*at] && !selector.names_exactly(*at) && !word.is_filler()
    };
    let (mut unmatched, mut others) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < words.len() {
        if !is_open(at) {
            at += 1;
            continue;
        }
        let quote = words[at].quote;
        let run = (at..words.len()).take_while(|at| is_open(*at) && words[*at].quote == quote).count();
        let span = Span { from: at, to: at + run };
        at = span.to;
        let field = named_field(selector, scan, span);
        let is_value = quote.is_some()
            || words[span.from..span.to].iter().any(|word| word.is_name)
            || field.is_some_and(|(_, is_assigned)| is_assigned)
            || (is_free && (stands_for_value(words, span) || narrows_category(selector, span)));
        if is_value {
            let path = field.map(|(at, _)| scan.fields[at].path.clone());
            let known = path.as_deref().map(|path| offered(scan, path)).unwrap_or_default();
            let value = selector.known.raw(span);
            unmatched.push(Unmatched { value, is_quoted: quote.is_some(), field: path, known });
        } else {
            others.extend(words[span.from..span.to].iter().map(|word| word.raw.clone()));
        }
    }
    others.extend((0..words.len()).filter(is_half_open).map(|at| words[at].raw.clone()));
    (unmatched, others)
}

fn is_courtesy(word: &Word) -> bool {
    word.is(&["thanks", "thank", "hello", "hi", "hey", "dear", "ok", "okay", "sorry", "exactly", "again", "also"])
}

/// The field that is named before a value, and whether the question says that the field has it: "with the title …",
/// "the title is …".
fn named_field(selector: &Selector<'_>, scan: &Scan, span: Span) -> Option<(usize, bool)> {
    const LINKS: [&str; 11] = ["is", "are", "was", "were", "equals", "equal", "of", "named", "called", "as", "like"];
    const OWNERS: [&str; 8] = ["with", "whose", "having", "has", "have", "where", "by", "and"];
    let words = &selector.known.words;
    let mut is_linked = false;
    for at in (span.from.saturating_sub(4)..span.from).rev() {
        let word = &words[at];
        let is_category = selector.mentions.iter().any(|mention| (mention.span.from..mention.span.to).contains(&at));
        if word.quote.is_some() || is_category {
            return None;
        }
        if let Some(field) = spoken_of(&scan.fields, &word.stem).iter().position(|named| *named) {
            let before = words[..at].iter().rev().find(|word| !word.is(&["the", "a", "an", "their"]));
            return Some((field, is_linked || before.is_some_and(|word| word.is(&OWNERS))));
        }
        if !word.is_stop() {
            return None;
        }
        is_linked |= word.is(&LINKS);
    }
    None
}

/// Whether the words follow one that a value follows.
fn stands_for_value(words: &[Word], span: Span) -> bool {
    const BEFORE: [&str; 16] = [
        "in", "at", "from", "near", "of", "by", "for", "about", "within", "under", "named", "called", "titled", "to",
        "like", "with",
    ];
    let before = words[..span.from].iter().rev().find(|word| !word.is(&["the", "a", "an", "our", "their"]));
    let is_last = span.to == words.len();
    before.is_some_and(|word| word.is(&BEFORE) || (is_last && word.is(&["is", "are", "was", "were"])))
}

/// "the legal department"
fn narrows_category(selector: &Selector<'_>, span: Span) -> bool {
    selector.mentions.iter().any(|mention| mention.span.from == span.to && mention.category != selector.start)
}

fn offered(scan: &Scan, path: &str) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for at in 0..scan.records.len() {
        super::fields::values(&scan.records.record(at), &mut |of, value, _| {
            if let Some(text) = super::fields::text(value).filter(|_| of == path)
                && known.len() < MOST_OFFERED
                && !known.contains(&text)
            {
                known.push(text);
            }
        });
        if known.len() == MOST_OFFERED {
            break;
        }
    }
    known
}
