//! Where the words of a question occur among the values of a category's records.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::super::category::Category;
use super::super::records::Records;
use super::fields::{self, Field, Purpose};
use super::words::{Word, akin, stems};

/// A value of more words is a text in which words may occur by chance.
const LONGEST_SHORT: usize = 6;
/// How many of the values that were found are told.
const MOST_VALUES: usize = 20;

/// How many values are remembered with what they fit.
const MOST_SEEN: usize = 10_000;

/// Words of a question, from the first up to, but without, the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Span {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Span {
    pub(super) fn len(self) -> usize {
        self.to - self.from
    }

    pub(super) fn overlaps(self, other: Span) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// How words fit a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Fit {
    /// They are the value.
    Whole,
    /// They are a part of a short value.
    Part,
    /// They occur in a text.
    Mention,
    /// Another form of a word is in it: `travelling` for "Travel".
    Akin,
}

/// Words that were found in a field, and the records that have them.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) span: Span,
    pub(super) fit: Fit,
    pub(super) field: usize,
    pub(super) records: Vec<u32>,
    /// The values, as the records have them.
    pub(super) values: Vec<Value>,
}

/// All that a category knows of a question.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) records: Arc<Records>,
    pub(super) fields: Vec<Field>,
    pub(super) hits: Vec<Hit>,
}

pub(super) fn scan(category: &Category, records: Arc<Records>, words: &[Word], keys: &[String]) -> Scan {
    let asked: HashSet<&str> = words.iter().map(|word| word.stem.as_str()).collect();
    let starts: HashSet<&str> =
        words.iter().filter(|word| has_forms(word)).filter_map(|word| beginning(&word.stem)).collect();
    let mut fields: Vec<Field> = Vec::new();
    let mut by_path: HashMap<String, usize> = HashMap::new();
    let mut found = Found::new();
    // Most fields have few values.
    let mut seen: HashMap<(usize, String), Vec<(Span, Fit)>> = HashMap::new();
    for at in 0..records.len() {
        fields::values(&records.record(at), &mut |path, value, in_list| {
            let field = *by_path.entry(path.to_owned()).or_insert_with(|| {
                fields.push(Field::new(category, path, keys));
                fields.len() - 1
            });
            fields[field].observe(value, in_list);
            let Some(text) = fields::text(value) else { return };
            if let Some(known) = seen.get(&(field, text.clone())) {
                known.iter().for_each(|(span, fit)| note(&mut found, (*span, *fit, field), at as u32, value));
                return;
            }
            let stems = stems(&text);
            let may_fit = |stem: &String| {
                asked.contains(stem.as_str()) || beginning(stem).is_some_and(|start| starts.contains(start))
            };
            // A part of a key, or of an address, is no word that somebody means.
            let whole_only = fields[field].purpose == Purpose::Key || text.contains('@') || text.contains("://");
            let fits = if stems.iter().any(may_fit) { fits(words, &stems, whole_only) } else { Vec::new() };
            fits.iter().for_each(|(span, fit)| note(&mut found, (*span, *fit, field), at as u32, value));
            if seen.len() < MOST_SEEN {
                seen.insert((field, text), fits);
            }
        });
    }
    ensure_title(&mut fields);
    let hit = |((span, fit, field), (records, values))| Hit { span, fit, field, records, values };
    Scan { records, fields, hits: found.into_iter().map(hit).collect() }
}

/// The records and values that each reading was found in.
type Found = BTreeMap<(Span, Fit, usize), (Vec<u32>, Vec<Value>)>;

fn note(found: &mut Found, key: (Span, Fit, usize), record: u32, value: &Value) {
    let (numbers, values) = found.entry(key).or_default();
    if numbers.last() != Some(&record) {
        numbers.push(record);
    }
    if values.len() < MOST_VALUES && !values.contains(value) {
        values.push(value.clone());
    }
}

/// Records whose fields have no usual name for it are called by their first text.
fn ensure_title(fields: &mut [Field]) {
    if fields.iter().any(|field| field.purpose == Purpose::Title) {
        return;
    }
    let is_text = |field: &&mut Field| {
        field.purpose == Purpose::Other && field.numbers == 0 && field.truths == 0 && !field.is_list
    };
    if let Some(first) = fields.iter_mut().find(is_text) {
        first.purpose = Purpose::Title;
    }
}

/// What all forms of a word begin with.
fn beginning(stem: &str) -> Option<&str> {
    stem.get(..4)
}

/// Whether other forms of a word are looked for, too.
fn has_forms(word: &Word) -> bool {
    word.quote.is_none() && !word.is_filler() && word.stem.len() > 4 && word.number().is_none()
}

/// The parts of a question that a value fits.
fn fits(words: &[Word], value: &[String], whole_only: bool) -> Vec<(Span, Fit)> {
    let mut found = Vec::new();
    let same = |at: usize, stem: &String| words.get(at).is_some_and(|word| word.stem == *stem);
    let part = if value.len() > LONGEST_SHORT { Fit::Mention } else { Fit::Part };
    let mut from = 0;
    while from < words.len() {
        // A quotation fits as a whole or not at all.
        if let Some(quote) = words[from].quote {
            let to = from + words[from..].iter().take_while(|word| word.quote == Some(quote)).count();
            let quoted: Vec<&String> = words[from..to].iter().map(|word| &word.stem).collect();
            if quoted.iter().copied().eq(value) {
                found.push((Span { from, to }, Fit::Whole));
            } else if !whole_only && value.windows(quoted.len()).any(|window| window.iter().eq(quoted.iter().copied()))
            {
                found.push((Span { from, to }, part));
            }
            from = to;
            continue;
        }
        let plain = words[from..].iter().take_while(|word| word.quote.is_none()).count();
        let matching = |start: usize| {
            value[start..].iter().take(plain).enumerate().take_while(|(n, stem)| same(from + n, stem)).count()
        };
        if !value.is_empty() && matching(0) == value.len() {
            found.push((Span { from, to: from + value.len() }, Fit::Whole));
            from += 1;
            continue;
        }
        let longest = (0..value.len()).map(matching).max().unwrap_or_default();
        if !whole_only && let Some(span) = trimmed(words, Span { from, to: from + longest }) {
            found.push((span, part));
            from = span.to.max(from + 1);
        } else {
            let is_akin =
                |stem: &String| beginning(stem) == beginning(&words[from].stem) && akin(stem, &words[from].stem);
            if !whole_only && has_forms(&words[from]) && value.iter().any(is_akin) {
                found.push((Span { from, to: from + 1 }, Fit::Akin));
            }
            from += 1;
        }
    }
    found
}

/// A span without the words at its ends that say nothing; none if nothing is left.
fn trimmed(words: &[Word], span: Span) -> Option<Span> {
    let says = |at: &usize| !words[*at].is_filler();
    let from = (span.from..span.to).find(says)?;
    let to = (from..span.to).rev().find(says)? + 1;
    // A single letter is a part of too many values.
    let tells = |word: &Word| word.raw.chars().count() > 1 || word.number().is_some();
    words[from..to].iter().any(tells).then_some(Span { from, to })
}
