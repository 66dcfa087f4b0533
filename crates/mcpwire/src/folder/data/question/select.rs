//! What the words of a question most likely mean: which of the values they were found in, and along which relationship.

use std::collections::HashSet;

use serde_json::Value;

use super::condition::{Condition, Part, Test};
use super::fields::{Purpose, spoken_of, text};
use super::mentions::Mention;
use super::paths::{Path, pull, relation_stems};
use super::scan::{Fit, Hit, Scan, Span};
use super::words::{Word, akin, name_stems};
use super::{Known, negations};

/// What the neighbours of a span speak of.
struct Neighbours {
    before: Vec<usize>,
    after: Vec<usize>,
    /// Whether `of` stands before the span, or `'s` behind it.
    is_of: bool,
}

impl Neighbours {
    fn tellers(self, tells: impl Fn(usize) -> bool) -> impl Iterator<Item = usize> {
        self.before.into_iter().chain(self.after).filter(move |at| tells(*at))
    }
}

/// How much a word next to a value says about where the value is meant to be.
const FIELD_NAMED: i32 = 45;
const CATEGORY_NAMED: i32 = 45;
const RELATION_NAMED: i32 = 70;
const FAR_FIELD_NAMED: i32 = 20;
/// Several words are hardly there by chance, and count more than one of them alone.
const EACH_WORD: i32 = 75;

/// A reading of some words.
struct Candidate<'a> {
    span: Span,
    score: i32,
    path: &'a Path<'a>,
    hit: &'a Hit,
}

pub(super) struct Selector<'a> {
    pub(super) known: &'a Known<'a>,
    pub(super) start: usize,
    pub(super) paths: &'a [Path<'a>],
    pub(super) mentions: &'a [Mention],
    /// For each word whether it speaks of a field, a category or a relationship.
    pub(super) vocabulary: Vec<bool>,
}

impl<'a> Selector<'a> {
    pub(super) fn new(
        known: &'a Known<'a>,
        start: usize,
        paths: &'a [Path<'a>],
        mentions: &'a [Mention],
    ) -> Selector<'a> {
        let mut all: HashSet<String> = HashSet::new();
        for category in &known.catalog.data {
            all.extend(category.names().flat_map(name_stems));
        }
        for path in paths.iter().filter(|path| path.steps.len() <= 1) {
            all.extend(path.steps.iter().flat_map(|step| relation_stems(step.of, known.target(step.of))));
        }
        let speaks = |word: &Word| {
            let fields =
                |at: usize| known.scan(at).is_some_and(|scan| spoken_of(&scan.fields, &word.stem).contains(&true));
            word.quote.is_none()
                && (all.iter().any(|stem| akin(stem, &word.stem))
                    || paths.iter().filter(|path| path.steps.len() <= 1).any(|path| fields(path.end())))
        };
        let vocabulary = known.words.iter().map(speaks).collect();
        Selector { known, start, paths, mentions, vocabulary }
    }

    /// Whether a word is in the name of a field, a category or a relationship, in this form.
    pub(super) fn names_exactly(&self, at: usize) -> bool {
        let word = &self.known.words[at];
        let in_field = |at: usize| {
            self.known.scan(at).is_some_and(|scan| scan.fields.iter().any(|field| field.stems.contains(&word.stem)))
        };
        let in_relation = |path: &Path<'_>| {
            path.steps.iter().any(|step| relation_stems(step.of, self.known.target(step.of)).contains(&word.stem))
        };
        let in_category = || {
            self.known
                .catalog
                .data
                .iter()
                .any(|category| category.names().flat_map(name_stems).any(|stem| stem == word.stem))
        };
        let near = || self.paths.iter().filter(|path| path.steps.len() <= 1);
        in_category() || near().any(|path| in_field(path.end()) || in_relation(path)) || self.is_synonym(word)
    }

    fn is_synonym(&self, word: &Word) -> bool {
        let scan = self.known.scan(self.start);
        scan.is_some_and(|scan| {
            spoken_of(&scan.fields, &word.stem).contains(&true)
                && !scan.fields.iter().any(|field| field.is_named(&word.stem))
        })
    }

    /// The conditions that the words make, without those that are taken already.
    pub(super) fn select(&self, taken: &mut Vec<Span>) -> Vec<Condition> {
        let mut candidates: Vec<Candidate<'_>> = Vec::new();
        for path in self.paths {
            let Some(scan) = self.known.scan(path.end()) else { continue };
            let read =
                |hit: &'a Hit| Some(Candidate { span: hit.span, score: self.score(path, scan, hit)?, path, hit });
            candidates.extend(scan.hits.iter().filter_map(read));
        }
        candidates.sort_by_key(|candidate| {
            (std::cmp::Reverse(candidate.score), std::cmp::Reverse(candidate.span.len()), candidate.path.steps.len())
        });
        let mut found = Vec::new();
        for (at, best) in candidates.iter().enumerate() {
            // Other forms of a word are a last resort: who develops something need not be a developer.
            let is_last_resort = best.hit.fit == Fit::Akin;
            if taken.iter().any(|span| span.overlaps(best.span)) || (is_last_resort && !found.is_empty()) {
                continue;
            }
            taken.push(best.span);
            // The words that told where the value is have no other meaning.
            let tellers = self.neighbours(best.span).tellers(|at| self.tells(best, at));
            taken.extend(tellers.map(|at| Span { from: at, to: at + 1 }));
            let same = candidates[at + 1..].iter().filter(|other| {
                other.span == best.span
                    && other.score == best.score
                    && other.path.steps.len() < 2
                    && best.path.steps.len() < 2
            });
            let mut condition = self.condition(best);
            same.for_each(|other| condition.or(self.condition(other)));
            found.push(condition);
        }
        found
    }

    fn condition(&self, candidate: &Candidate<'_>) -> Condition {
        let Candidate { span, score, path, hit } = candidate;
        let said = || self.known.raw(*span);
        let scan = self.known.scan(path.end());
        let field = scan.map(|scan| &scan.fields[hit.field]);
        let name = field.map(|field| field.path.clone()).unwrap_or_default();
        let own = |test| Part { field: name.clone(), test, via: None };
        let (part, records, is_list) = match (path.steps.first(), hit.fit) {
            (None, Fit::Whole | Fit::Akin) => {
                (own(Test::Is(hit.values.clone())), hit.records.clone(), field.is_some_and(|field| field.is_list))
            }
            (None, _) => (own(Test::Contains(said())), hit.records.clone(), field.is_some_and(|field| field.is_list)),
            (Some(step), fit) => {
                let (records, links) = pull(path, |at| self.known.scan(at).map(|scan| &*scan.records), &hit.records);
                let category = &self.known.catalog.data[path.end()].id;
                let via = match fit {
                    Fit::Whole => {
                        let values: Vec<String> = hit.values.iter().filter_map(text).collect();
                        format!("{category}.{name} = {}", values.join(" or "))
                    }
                    _ => format!("{category}.{name} contains \"{}\"", said()),
                };
                let near = self
                    .known
                    .scan(self.start)
                    .and_then(|scan| scan.fields.iter().find(|field| field.path == step.near()));
                let is_list = near.is_some_and(|field| field.is_list) || path.steps.iter().any(|step| step.is_back);
                let are_numbers = near.is_some_and(|field| field.plain_numbers == field.values);
                let typed = |link: String| match serde_json::from_str::<Value>(&link) {
                    Ok(number) if are_numbers && number.is_number() => number,
                    _ => Value::from(link),
                };
                let test = Test::Is(links.into_iter().map(typed).collect());
                (Part { field: step.near().to_owned(), test, via: Some(via) }, records, is_list)
            }
        };
        Condition {
            span: *span,
            parts: vec![part],
            records,
            negated: false,
            is_list,
            is_whole: hit.fit == Fit::Whole,
            score: *score,
        }
    }

    /// How likely the words of a hit mean it; none if they hardly do.
    fn score(&self, path: &Path<'_>, scan: &Scan, hit: &Hit) -> Option<i32> {
        let words = &self.known.words[hit.span.from..hit.span.to];
        let is_quoted = words[0].quote.is_some();
        let near = self.neighbours(hit.span);
        let field_named = self.field_named(scan, hit.field, &near);
        let purpose = scan.fields[hit.field].purpose;
        let is_number = words.iter().all(|word| word.number().is_some());
        let is_year = is_number && words.len() == 1 && words[0].raw.len() == 4;
        let is_name_of_category =
            self.mentions.iter().any(|mention| mention.span.from <= hit.span.from && hit.span.to <= mention.span.to);
        // Words that may well be something else count only next to the name of what they are the value of.
        let is_doubtful =
            !is_quoted && (words.iter().all(Word::is_stop) || (is_number && !is_year) || is_name_of_category);
        let counts =
            |at: &usize| hit.fit == Fit::Whole || (!self.vocabulary[*at] && !self.known.words[*at].is_filler());
        let length = EACH_WORD * ((hit.span.from..hit.span.to).filter(counts).count() as i32 - 1).max(0);
        if path.steps.is_empty() {
            let is_referred_to =
                purpose == Purpose::Key && is_number && near.before.iter().any(|at| self.names(*at, self.start));
            if is_doubtful && !field_named && !is_referred_to {
                return None;
            }
            let base = match hit.fit {
                Fit::Whole => 100,
                Fit::Part if purpose == Purpose::Title => 52,
                Fit::Part => 50,
                Fit::Mention => 30,
                Fit::Akin if self.vocabulary[hit.span.from] && !field_named => return None,
                Fit::Akin => 10,
            };
            return Some(base + length + if field_named { FIELD_NAMED } else { 0 });
        }
        let is_self = path.categories.len() == 2 && path.end() == self.start;
        let relation_named = self.relation_named(path, &near, is_self);
        let category_named = !is_self && near.before.iter().chain(&near.after).any(|at| self.names(*at, path.end()));
        if is_self && !relation_named {
            return None;
        }
        let is_named = category_named || relation_named || field_named;
        let is_telling = purpose != Purpose::Other && !words.iter().all(Word::is_filler);
        let base = match (path.steps.len(), hit.fit) {
            (1, Fit::Whole) if is_telling && !is_doubtful => 80,
            (1, Fit::Whole) if is_named => 60,
            (1, Fit::Whole) if !is_doubtful && !words.iter().all(Word::is_filler) => 35,
            (1, Fit::Part) if purpose == Purpose::Title && !is_doubtful => 40,
            (1, Fit::Part) if category_named && !is_doubtful => 25,
            (2, Fit::Whole) if is_telling && !is_doubtful => 38,
            (2, Fit::Whole) if category_named && !is_doubtful => 30,
            (2, Fit::Part) if category_named && purpose == Purpose::Title && !is_doubtful => 20,
            _ => return None,
        };
        let back = if path.steps.iter().any(|step| step.is_back) { -5 } else { 0 };
        let named =
            [(category_named, CATEGORY_NAMED), (relation_named, RELATION_NAMED), (field_named, FAR_FIELD_NAMED)];
        let named: i32 = named.iter().filter(|(is, _)| *is).map(|(_, points)| points).sum();
        Some(base + length + back + named)
    }

    /// Whether a word speaks of the field or the relationship of a reading.
    fn tells(&self, candidate: &Candidate<'_>, at: usize) -> bool {
        let stem = &self.known.words[at].stem;
        let of_field = || {
            self.known.scan(candidate.path.end()).is_some_and(|scan| spoken_of(&scan.fields, stem)[candidate.hit.field])
        };
        let of_relation = || {
            let mut steps = candidate.path.steps.iter();
            steps.any(|step| relation_stems(step.of, self.known.target(step.of)).iter().any(|own| akin(own, stem)))
        };
        of_field() || of_relation()
    }

    fn field_named(&self, scan: &Scan, field: usize, near: &Neighbours) -> bool {
        let mut words = near.before.iter().chain(&near.after).map(|at| &self.known.words[*at]);
        words.any(|word| spoken_of(&scan.fields, &word.stem)[field])
    }

    /// Whether a word is, or is part of, a name of a category.
    fn names(&self, at: usize, category: usize) -> bool {
        let word = &self.known.words[at];
        let named = self
            .mentions
            .iter()
            .any(|mention| mention.category == category && (mention.span.from..mention.span.to).contains(&at));
        named
            || (!word.is_filler()
                && self.known.catalog.data[category].names().flat_map(name_stems).any(|stem| stem == word.stem))
    }

    /// Whether a neighbour speaks of a relationship on the way. Within one category the grammar tells its direction:
    /// "reports to Ana" are those whose manager she is, "the manager of Ben" is the one he refers to.
    fn relation_named(&self, path: &Path<'_>, near: &Neighbours, is_self: bool) -> bool {
        path.steps.iter().any(|step| {
            let stems = relation_stems(step.of, self.known.target(step.of));
            let speaks = |at: &usize| stems.iter().any(|stem| akin(stem, &self.known.words[*at].stem));
            let (before, after) = (near.before.iter().any(speaks), near.after.iter().any(speaks));
            match (is_self, step.is_back) {
                (false, _) => before || after,
                (true, false) => before && !near.is_of,
                (true, true) => (before && near.is_of) || after,
            }
        })
    }

    fn neighbours(&self, span: Span) -> Neighbours {
        const REACH: usize = 5;
        let words = &self.known.words;
        let mut before = Vec::new();
        for at in (span.from.saturating_sub(REACH)..span.from).rev() {
            if words[at].is(&["and", "or", "but"]) || words[at + 1].after_comma || words[at].quote.is_some() {
                break;
            }
            if self.vocabulary[at] {
                before.push(at);
            } else if !words[at].is_stop() && words[at].raw != "=" {
                break;
            }
        }
        let after =
            (span.to..words.len().min(span.to + 2)).take_while(|at| self.vocabulary[*at] && !words[*at].after_comma);
        let preposition = words[..span.from].iter().rev().find(|word| !word.is(&["the", "a", "an"]));
        let is_of = preposition.is_some_and(|word| word.is(&["of"])) || words[span.to - 1].is_possessive;
        Neighbours { before, after: after.collect(), is_of }
    }
}

/// Negates conditions behind "not", and joins those that are alternatives.
pub(super) fn combine(words: &[Word], mut conditions: Vec<Condition>, vocabulary: &[bool]) -> Vec<Condition> {
    conditions.sort_by_key(|condition| condition.span.from);
    let mut combined: Vec<Condition> = Vec::new();
    let mut last: Option<Span> = None;
    for mut condition in conditions {
        let between = last.map(|last| last.to..condition.span.from.max(last.to));
        let linked =
            between.clone().filter(|between| between.clone().all(|at| words[at].is_filler() || vocabulary[at]));
        let says = |link: &[&str]| linked.clone().is_some_and(|mut range| range.any(|at| words[at].is(link)));
        let is_listed = linked.is_some() && (says(&["or", "and"]) || words[condition.span.from].after_comma);
        let is_either = says(&["or"]);
        let missing = condition.parts.iter().any(|part| part.test == Test::Missing);
        condition.negated = !missing && negations(words, condition.span, vocabulary);
        last = Some(condition.span);
        let Some(known) = combined.iter_mut().rev().find(|known| known.is_like(&condition) && !missing) else {
            combined.push(condition);
            continue;
        };
        if known.negated && is_listed && !condition.negated && !says(&["but"]) {
            // "not in Berlin or Paris"
            condition.negated = true;
        }
        let is_alternative = match condition.is_list {
            true => is_either,
            // Nothing is in two places at once: Berlin and Paris are alternatives.
            false => is_listed || (condition.is_whole && known.is_whole),
        };
        if is_alternative && !condition.negated && !known.negated {
            known.or(condition);
        } else {
            combined.push(condition);
        }
    }
    combined
}
