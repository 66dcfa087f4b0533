//! Bounds in a question: "more than 10 seats", "between 1966 and 1970", "without a parent", "available".

use serde_json::Value;

use super::Known;
use super::condition::{Condition, Part, Test};
use super::fields::{self, Field, spoken_of};
use super::paths::{Path, pull};
use super::scan::{Scan, Span};
use super::words::Word;

/// A bound for a number: whether it is a lower one, and whether it is itself allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bound {
    pub(super) is_lower: bool,
    pub(super) is_inclusive: bool,
    pub(super) number: f64,
}

impl Bound {
    fn admits(self, number: f64) -> bool {
        match (self.is_lower, self.is_inclusive) {
            (true, true) => number >= self.number,
            (true, false) => number > self.number,
            (false, true) => number <= self.number,
            (false, false) => number < self.number,
        }
    }

    pub(super) fn json(self) -> Value {
        let is_whole = self.number.fract() == 0.0 && self.number.abs() < 1e15;
        if is_whole { (self.number as i64).into() } else { self.number.into() }
    }

    pub(super) fn sign(self) -> &'static str {
        match (self.is_lower, self.is_inclusive) {
            (true, true) => ">=",
            (true, false) => ">",
            (false, true) => "<=",
            (false, false) => "<",
        }
    }
}

/// How bounds begin; the longer first.
const OPENINGS: [(&[&str], bool, bool); 31] = [
    (&["more", "than"], true, false),
    (&["greater", "than"], true, false),
    (&["higher", "than"], true, false),
    (&["larger", "than"], true, false),
    (&["bigger", "than"], true, false),
    (&["longer", "than"], true, false),
    (&["later", "than"], true, false),
    (&["newer", "than"], true, false),
    (&["older", "than"], true, false),
    (&["at", "least"], true, true),
    (&["less", "than"], false, false),
    (&["fewer", "than"], false, false),
    (&["lower", "than"], false, false),
    (&["smaller", "than"], false, false),
    (&["cheaper", "than"], false, false),
    (&["shorter", "than"], false, false),
    (&["earlier", "than"], false, false),
    (&["younger", "than"], false, false),
    (&["at", "most"], false, true),
    (&["up", "to"], false, true),
    (&["over"], true, false),
    (&["above"], true, false),
    (&["exceeding"], true, false),
    (&["after"], true, false),
    (&["since"], true, true),
    (&["under"], false, false),
    (&["below"], false, false),
    (&["before"], false, false),
    (&["until"], false, true),
    (&[">="], true, true),
    (&["<="], false, true),
];

/// The bounds of a question, each with the words it is made of.
pub(super) fn bounds(words: &[Word]) -> Vec<(Span, Vec<Bound>)> {
    let number = |at: usize| words.get(at).filter(|word| word.quote.is_none()).and_then(Word::number);
    let starts = |at: usize, opening: &[&str]| {
        opening.iter().enumerate().all(|(n, part)| words.get(at + n).is_some_and(|word| word.is(&[part])))
    };
    let mut found = Vec::new();
    for at in 0..words.len() {
        if let (true, Some(low), true, Some(high)) =
            (starts(at, &["between"]), number(at + 1), starts(at + 2, &["and"]), number(at + 3))
        {
            let bound = |is_lower, number| Bound { is_lower, is_inclusive: true, number };
            found.push((Span { from: at, to: at + 4 }, vec![bound(true, low.min(high)), bound(false, low.max(high))]));
            continue;
        }
        let signs: [(&[&str], bool, bool); 2] = [(&[">"], true, false), (&["<"], false, false)];
        let opening = OPENINGS.iter().chain(&signs).find(|(opening, ..)| starts(at, opening));
        let Some((opening, is_lower, is_inclusive)) = opening else { continue };
        if let Some(number) = number(at + opening.len()) {
            let bound = Bound { is_lower: *is_lower, is_inclusive: *is_inclusive, number };
            found.push((Span { from: at, to: at + opening.len() + 1 }, vec![bound]));
        }
    }
    found
}

/// The condition that bounds make for the field they are about: the one that is named next to them, here or in a related
/// category, or the only one whose numbers they could be about.
pub(super) fn bounded(known: &Known<'_>, paths: &[Path<'_>], span: Span, bounds: &[Bound]) -> Option<Condition> {
    let fits =
        |value: &Value| fields::number(value).is_some_and(|number| bounds.iter().all(|bound| bound.admits(number)));
    let test = || Test::Bounds(bounds.to_vec());
    for path in paths.iter().filter(|path| path.steps.len() <= 1) {
        let Some(scan) = known.scan(path.end()) else { continue };
        let Some(field) = named_number(scan, &known.words, span) else { continue };
        let name = &scan.fields[field].path;
        let found = having(scan, name, fits);
        let Some(step) = path.steps.first() else { return Some(Condition::own(span, name, test(), found)) };
        let (records, links) = pull(path, |at| known.scan(at).map(|scan| &*scan.records), &found);
        let told =
            Part { field: format!("{}.{name}", known.catalog.data[path.end()].id), test: test(), via: None }.told();
        let part = Part {
            field: step.near().to_owned(),
            test: Test::Is(links.into_iter().map(Value::from).collect()),
            via: Some(told),
        };
        return Some(Condition { parts: vec![part], ..Condition::own(span, "", test(), records) });
    }
    let scan = known.scan(paths.first()?.end())?;
    let only = |fits: &dyn Fn(&Field) -> bool| {
        let mut all = scan.fields.iter().filter(|field| field.is_numeric() && fits(field));
        all.next().filter(|_| all.next().is_none())
    };
    let within = |field: &Field| {
        field.range.is_some_and(|(low, high)| bounds.iter().any(|bound| (low..=high).contains(&bound.number)))
    };
    let field = only(&|_| true).or_else(|| only(&within))?;
    Some(Condition::own(span, &field.path, test(), having(scan, &field.path, fits)))
}

/// The field of numbers that is named next to some words.
fn named_number(scan: &Scan, words: &[Word], span: Span) -> Option<usize> {
    let near = words[span.from.saturating_sub(4)..span.from].iter().rev().chain(words[span.to..].iter().take(2));
    let mut spoken = near.map(|word| spoken_of(&scan.fields, &word.stem));
    spoken.find_map(|fields| (0..fields.len()).find(|at| fields[*at] && scan.fields[*at].is_numeric()))
}

/// "without a parent": records that lack a field.
pub(super) fn lacking(scan: &Scan, words: &[Word], near_field: impl Fn(&Word) -> Option<String>) -> Vec<Condition> {
    let mut found = Vec::new();
    for at in (0..words.len()).filter(|at| words[*at].is(&["without", "no", "lacking", "lacks"])) {
        let article = usize::from(words.get(at + 1).is_some_and(|word| word.is(&["a", "an", "any", "the"])));
        let Some(word) = words.get(at + 1 + article).filter(|word| word.quote.is_none()) else { continue };
        let by_name = || {
            let fields = spoken_of(&scan.fields, &word.stem);
            (0..fields.len()).find(|at| fields[*at]).map(|at| scan.fields[at].path.clone())
        };
        if let Some(path) = near_field(word).or_else(by_name) {
            let all = 0..scan.records.len() as u32;
            let has = having(scan, &path, |_| true);
            let numbers = all.filter(|at| has.binary_search(at).is_err()).collect();
            found.push(Condition::own(Span { from: at, to: at + 2 + article }, &path, Test::Missing, numbers));
        }
    }
    found
}

/// "available", "not available", "inactive", "out of stock": records by a truth value of this name.
pub(super) fn truths(scan: &Scan, words: &[Word]) -> Vec<Condition> {
    let mut found = Vec::new();
    for field in scan.fields.iter().filter(|field| field.is_truth()) {
        let name: Vec<&str> = field.stems.iter().map(String::as_str).collect();
        let name = match name.split_first() {
            Some((first, rest)) if !rest.is_empty() && ["is", "ha", "has", "can", "was", "are"].contains(first) => {
                rest.to_vec()
            }
            _ => name,
        };
        let Some((span, opposite)) = named(words, &name) else { continue };
        // "available = false" is as good as "not available".
        let said = words[span.to..].iter().take(3).find(|word| word.is(&["true", "yes", "false", "no"]));
        let wanted = said.is_none_or(|word| word.is(&["true", "yes"])) != opposite;
        let numbers = having(scan, &field.path, |value| fields::truth(value) == Some(wanted));
        found.push(Condition::own(span, &field.path, Test::Truth(wanted), numbers));
    }
    found
}

/// Where words speak of a truth value, and whether by its opposite.
fn named(words: &[Word], name: &[&str]) -> Option<(Span, bool)> {
    let place = |name: &[&str]| {
        let fits =
            |window: &[Word]| window.iter().zip(name).all(|(word, stem)| word.quote.is_none() && word.stem == *stem);
        let from = words.windows(name.len().max(1)).position(|window| !name.is_empty() && fits(window))?;
        Some(Span { from, to: from + name.len() })
    };
    if let Some(span) = place(name) {
        return Some((span, false));
    }
    let opposite = match name {
        ["in", rest @ ..] => place(&[&["out", "of"], rest].concat()),
        [only] => ["in", "un", "non", "dis"].iter().find_map(|prefix| place(&[&format!("{prefix}{only}")])),
        _ => None,
    };
    opposite.map(|span| (span, true))
}

/// The records of which a value at this path passes a test.
fn having(scan: &Scan, path: &str, fits: impl Fn(&Value) -> bool) -> Vec<u32> {
    let has = |at: &u32| {
        let mut found = false;
        fields::values(&scan.records.record(*at as usize), &mut |of, value, _| found |= of == path && fits(value));
        found
    };
    (0..scan.records.len() as u32).filter(has).collect()
}
