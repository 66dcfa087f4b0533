//! A question in plain words, turned into conditions on the records of a category.
//!
//! ```text
//!   question ─► words ─┐
//!   records  ─► scan ──┴─► hits ─► select (fields, relationships, neighbours) ─► conditions ─► records
//!                                    └► what was not understood, what matches nothing
//! ```
//!
//! Nothing here knows any category: what words mean is found in the data, its schema and its relationships.

mod compare;
mod condition;
mod fields;
mod mentions;
mod paths;
mod scan;
mod select;
mod unknown;
mod words;

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::category::{Category, Relationship};
use crate::folder::catalog::Catalog;
use condition::Condition;
use mentions::{Mention, mentions, subject};
use scan::{Fit, Scan, Span};
use select::Selector;
pub(super) use unknown::Unmatched;
use words::Word;

/// How much more likely a question for somebody means a category of people.
const PEOPLE_MEANT: i32 = 30;

/// A question, and what the categories know of its words.
pub(super) struct Known<'a> {
    catalog: &'a Catalog,
    words: Vec<Word>,
    scans: Vec<OnceCell<Option<Scan>>>,
}

/// What a question asks of the records of a category.
#[derive(Debug, Default)]
pub(super) struct Understood {
    conditions: Vec<Condition>,
    /// Values that the question names and nothing has: no record can be meant.
    pub(super) unmatched: Vec<Unmatched>,
    /// Words without a meaning here.
    pub(super) unknown: Vec<String>,
}

impl<'a> Known<'a> {
    pub(super) fn new(catalog: &'a Catalog, question: &str) -> Known<'a> {
        let scans = catalog.data.iter().map(|_| OnceCell::new()).collect();
        Known { catalog, words: words::read(question), scans }
    }

    /// Whether the question has one of these words outside of quotations.
    pub(super) fn says(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| word.is(words))
    }

    /// Whether the question itself names a category.
    pub(super) fn names_a_category(&self) -> bool {
        !self.mentions().is_empty()
    }

    /// Whether the question has one of these words, and not as the name of a category or a field.
    pub(super) fn says_apart_from_names(&self, words: &[&str], category: &Category) -> bool {
        let at = self.catalog.data.iter().position(|known| known.id == category.id);
        let scan = at.and_then(|at| self.scan(at));
        let is_field =
            |word: &Word| scan.is_some_and(|scan| scan.fields.iter().any(|field| field.stems.contains(&word.stem)));
        let is_category = |word: &Word| {
            self.catalog
                .data
                .iter()
                .any(|known| known.names().any(|name| words::name_stems(name) == [word.stem.clone()]))
        };
        self.words.iter().any(|word| word.is(words) && !is_field(word) && !is_category(word))
    }

    /// The category that the question names, or whose values it names.
    pub(super) fn category(&self) -> Option<&'a Arc<Category>> {
        let mentions = self.mentions();
        let data = &self.catalog.data;
        let named = subject(&self.words, &mentions);
        named.or_else(|| if data.len() == 1 { Some(0) } else { self.by_values() }).map(|at| &data[at])
    }

    fn by_values(&self) -> Option<usize> {
        let asks_who = self.says(&["who", "whom", "everybody", "everyone", "somebody", "someone", "anybody", "anyone"]);
        let score = |at: usize| {
            let score = self.read(at).conditions.iter().map(|condition| condition.score).sum::<i32>();
            // "Who works in Finance?" asks for people, "Who owns the portal?" for the portal, which tells.
            let is_meant = asks_who && self.says(&["in", "at", "for", "from", "with"]) && self.is_about_people(at);
            score + if is_meant && score > 0 { PEOPLE_MEANT } else { 0 }
        };
        let scored = (0..self.catalog.data.len()).map(|at| (score(at), at)).filter(|(score, _)| *score > 0);
        scored.min_by_key(|(score, at)| (std::cmp::Reverse(*score), *at)).map(|(_, at)| at)
    }

    fn is_about_people(&self, at: usize) -> bool {
        const TELLING: [&str; 12] = [
            "email", "mail", "phone", "firstnam", "lastnam", "surnam", "birthdai", "gender", "salari", "manager",
            "hir", "job",
        ];
        let names =
            self.catalog.data[at].names().flat_map(words::name_stems).any(|stem| stem == "person" || stem == "staff");
        let has = |scan: &Scan| {
            scan.fields.iter().any(|field| TELLING.iter().any(|stem| field.stems.iter().any(|own| own == stem)))
        };
        names || self.scan(at).is_some_and(has)
    }

    pub(super) fn understand(&self, category: &Category) -> Understood {
        let at = self.catalog.data.iter().position(|known| known.id == category.id);
        at.map(|at| self.read(at)).unwrap_or_default()
    }

    fn read(&self, at: usize) -> Understood {
        let Some(scan) = self.scan(at) else { return Understood::default() };
        let mentions = self.mentions();
        let paths = paths::paths(self.catalog, at);
        let selector = Selector::new(self, at, &paths, &mentions);
        let words = &self.words;
        let near_field = |word: &Word| {
            let speaks = |link: &&Relationship| {
                let stems = paths::relation_stems(link, self.target(link));
                let target = self.target(link).names().flat_map(words::name_stems).collect::<Vec<_>>();
                stems.iter().any(|stem| words::akin(stem, &word.stem)) || target.contains(&word.stem)
            };
            self.catalog.data[at].relationships.iter().find(speaks).map(|link| link.source_field.clone())
        };
        let mut conditions = compare::lacking(scan, words, near_field);
        let bounds = compare::bounds(words);
        conditions.extend(bounds.iter().filter_map(|(span, bounds)| compare::bounded(self, &paths, *span, bounds)));
        let mut taken: Vec<Span> = conditions.iter().map(|condition| condition.span).collect();
        let mut truths = compare::truths(scan, words);
        conditions.extend(selector.select(&mut taken));
        truths.retain(|truth| !taken.iter().any(|span| span.overlaps(truth.span)));
        taken.extend(truths.iter().map(|truth| truth.span));
        conditions.extend(truths);
        let conditions = select::combine(words, conditions, &selector.vocabulary);
        let (unmatched, unknown) = unknown::unknown(&selector, scan, &taken, conditions.is_empty());
        Understood { conditions, unmatched, unknown }
    }

    /// The categories that are named, save by words that are the name of a record: `People & Culture`.
    fn mentions(&self) -> Vec<Mention> {
        let scans = (0..self.catalog.data.len()).filter_map(|at| self.scan(at));
        let names = scans.flat_map(|scan| scan.hits.iter().filter(|hit| hit.fit == Fit::Whole && hit.span.len() > 1));
        let masked: Vec<Span> = names.map(|hit| hit.span).collect();
        let found = mentions(self.catalog, &self.words, &masked);
        if found.is_empty() { mentions(self.catalog, &self.words, &[]) } else { found }
    }

    fn scan(&self, at: usize) -> Option<&Scan> {
        let scan = || {
            let category = &self.catalog.data[at];
            let records = category.records().ok()?;
            Some(scan::scan(category, records, &self.words, &self.keys(category)))
        };
        self.scans[at].get_or_init(scan).as_ref()
    }

    /// The fields by which a category refers to others, and by which others refer to it.
    fn keys(&self, category: &Category) -> Vec<String> {
        let own = category.relationships.iter().map(|link| link.source_field.clone());
        let links = self.catalog.data.iter().flat_map(|other| &other.relationships);
        let theirs =
            links.filter(|link| category.answers_to(&link.target_category)).map(|link| link.target_field.clone());
        own.chain(theirs).collect()
    }

    fn target(&self, link: &Relationship) -> &'a Category {
        // Paths are made of relationships whose target was found.
        self.catalog.category(&link.target_category).unwrap_or(&self.catalog.data[0])
    }

    /// Words as they are written.
    fn raw(&self, span: Span) -> String {
        let words: Vec<&str> = self.words[span.from..span.to].iter().map(|word| word.raw.as_str()).collect();
        words.join(" ")
    }
}

impl Understood {
    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty() && self.unmatched.is_empty()
    }

    /// Whether a record fulfils every condition.
    pub(super) fn admits(&self, record: u32) -> bool {
        self.unmatched.is_empty() && self.conditions.iter().all(|condition| condition.admits(record))
    }

    /// The conditions for programs, by field.
    pub(super) fn criteria(&self) -> Map<String, Value> {
        let mut criteria = Map::new();
        self.conditions.iter().for_each(|condition| condition.write(&mut criteria));
        criteria
    }

    /// The conditions for people.
    pub(super) fn told(&self) -> Vec<String> {
        self.conditions.iter().map(Condition::told).collect()
    }

    /// Words without a meaning here, and words that look like a value that nothing has.
    pub(super) fn not_understood(&self) -> impl Iterator<Item = &str> {
        let values =
            self.unmatched.iter().filter(|unmatched| !unmatched.is_quoted).map(|unmatched| unmatched.value.as_str());
        values.chain(self.unknown.iter().map(String::as_str))
    }

    /// Takes words for values only where they are quoted: for questions whose criteria are given beside them.
    pub(super) fn relax(&mut self) {
        let (quoted, others) = self.unmatched.drain(..).partition(|unmatched| unmatched.is_quoted);
        let others: Vec<Unmatched> = others;
        self.unmatched = quoted;
        self.unknown.extend(others.into_iter().map(|unmatched| unmatched.value));
    }
}

/// Whether a negation stands before some words.
fn negations(words: &[Word], span: Span, vocabulary: &[bool]) -> bool {
    const NEGATIONS: [&str; 16] = [
        "not",
        "no",
        "without",
        "except",
        "excluding",
        "outside",
        "non",
        "never",
        "isn",
        "aren",
        "doesn",
        "don",
        "didn",
        "wasn",
        "weren",
        "besides",
    ];
    for at in (span.from.saturating_sub(5)..span.from).rev() {
        if words[at].is(&NEGATIONS) {
            return true;
        }
        let passes = words[at].is_stop() || vocabulary[at];
        if !passes || words[at].is(&["and", "or", "but"]) || words[at].quote.is_some() {
            return false;
        }
    }
    false
}
