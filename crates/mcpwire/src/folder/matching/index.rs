//! The scores of all fragments for a query, from an index of the words they use.
//!
//! A keyword has no space in it, so whatever contains it lies within one word. Each word is kept once, all of them in one
//! text: finding a keyword is one search in that text, and only fragments that use a word found are looked at.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::memmem;

use super::fragment::Fragment;
use super::keywords::keywords;
use super::similarity::{letters, may_be_alike, points};
use super::{Hit, Mode, Query};

/// The most keywords of a query that are looked for by similarity, too.
const MOST_FUZZY: usize = 5;
/// Smaller fragments are preferred.
const SMALL: u32 = 1000;

const NONE: u16 = u16::MAX;

/// Which of the fields of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Tag,
    Capability,
    UseWhen,
}

/// A place where a word is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    fragment: u32,
    field: Field,
    /// Which entry of the field.
    entry: u16,
}

/// Whose estimate of a fragment's size is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::folder) enum Tokens {
    Counted,
    Declared,
}

impl Tokens {
    pub(in crate::folder) fn of(self, fragment: &Fragment) -> u32 {
        match self {
            Tokens::Counted => fragment.tokens,
            Tokens::Declared => fragment.declared_tokens.unwrap_or(fragment.tokens),
        }
    }
}

#[derive(Debug, Default)]
pub(in crate::folder) struct Index {
    fragments: Vec<Arc<Fragment>>,
    /// The fields in lower case, by fragment and field.
    fields: Vec<[Vec<Box<str>>; 3]>,
    /// All words, each followed by a line break.
    words: String,
    /// Where each word begins in `words`.
    starts: Vec<u32>,
    letters: Vec<u32>,
    /// Where each word is used: `places[at[word]..at[word + 1]]`, sorted.
    places: Vec<Place>,
    at: Vec<u32>,
}

impl Index {
    pub(in crate::folder) fn new(fragments: Vec<Arc<Fragment>>) -> Index {
        let lower = |texts: &[String]| texts.iter().map(|text| text.to_lowercase().into()).collect();
        let fields: Vec<[Vec<Box<str>>; 3]> = fragments
            .iter()
            .map(|fragment| [lower(&fragment.tags), lower(&fragment.capabilities), lower(&fragment.use_when)])
            .collect();
        let mut found: HashMap<&str, Vec<Place>> = HashMap::new();
        for (fragment, fields) in fields.iter().enumerate() {
            for (field, texts) in [Field::Tag, Field::Capability, Field::UseWhen].into_iter().zip(fields) {
                for (entry, text) in texts.iter().enumerate().take(usize::from(NONE)) {
                    for word in text.split_whitespace() {
                        found.entry(word).or_default().push(Place {
                            fragment: fragment as u32,
                            field,
                            entry: entry as u16,
                        });
                    }
                }
            }
        }
        let mut sorted: Vec<(&str, Vec<Place>)> = found.into_iter().collect();
        // Words of one length lie together, so that those too long or too short are passed over at once.
        sorted.sort_unstable_by_key(|(word, _)| (word.len(), *word));
        let mut index = Index { fragments, at: vec![0], ..Index::default() };
        for (word, mut places) in sorted {
            places.dedup();
            index.starts.push(index.words.len() as u32);
            index.words.push_str(word);
            index.words.push('\n');
            index.letters.push(letters(word.as_bytes()));
            index.places.append(&mut places);
            index.at.push(index.places.len() as u32);
        }
        index.fields = fields;
        index
    }

    pub(in crate::folder) fn fragment(&self, at: usize) -> &Fragment {
        &self.fragments[at]
    }

    pub(in crate::folder) fn fragments(&self) -> &[Arc<Fragment>] {
        &self.fragments
    }

    /// The fragments that reach the least score, the best first; equals in their order.
    pub(in crate::folder) fn search(&self, query: &Query, tokens: Tokens) -> Vec<Hit> {
        let keywords = keywords(&query.text);
        let mut scores: Vec<u32> = self.fragments.iter().map(|fragment| base(fragment, query, tokens)).collect();
        let mut firsts = vec![[NONE; 3]; self.fragments.len()];
        let mut phrases: Vec<Place> = Vec::new();
        let fuzzy = keywords.len() <= MOST_FUZZY;
        for (at, keyword) in keywords.iter().enumerate() {
            firsts.fill([NONE; 3]);
            let next = keywords.get(at + 1).map(|next| format!("{keyword} {next}"));
            for word in self.words_with(keyword) {
                for place in self.places_of(word) {
                    let first = &mut firsts[place.fragment as usize][place.field as usize];
                    *first = (*first).min(place.entry);
                    if next.as_ref().is_some_and(|phrase| self.text(place).contains(phrase.as_str())) {
                        phrases.push(*place);
                    }
                }
            }
            for (fragment, firsts) in firsts.iter().enumerate().filter(|(_, firsts)| **firsts != [NONE; 3]) {
                scores[fragment] += self.exact(fragment, firsts, keyword);
            }
            if fuzzy && keyword.len() > 2 {
                self.add_similar(keyword, &firsts, &mut scores);
            }
        }
        phrases.sort_unstable();
        phrases.dedup();
        for place in phrases {
            scores[place.fragment as usize] += 20;
        }
        self.rank(query, &scores)
    }

    fn rank(&self, query: &Query, scores: &[u32]) -> Vec<Hit> {
        let allowed = |fragment: &Fragment| {
            query.folder.as_ref().is_none_or(|folder| *folder == fragment.folder)
                && (query.mode != Mode::Index || query.admits(&fragment.folder, fragment.kind()))
                && query.tags.iter().all(|tag| fragment.tags.contains(tag))
        };
        let mut hits: Vec<Hit> = (0..scores.len())
            .filter(|at| scores[*at] >= query.min_score && allowed(&self.fragments[*at]))
            .map(|at| Hit { fragment: at, score: scores[at] })
            .collect();
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.score));
        hits
    }

    /// The points of a keyword: what counts in each field is the first entry that contains it.
    fn exact(&self, fragment: usize, firsts: &[u16; 3], keyword: &str) -> u32 {
        let is_all = |field: Field| {
            let entry = firsts[field as usize];
            &*self.fields[fragment][field as usize][usize::from(entry)] == keyword
        };
        let mut sum = 0;
        if firsts[Field::Tag as usize] != NONE {
            sum += if is_all(Field::Tag) { 15 } else { 10 };
        }
        if firsts[Field::Capability as usize] != NONE {
            sum += if is_all(Field::Capability) { 12 } else { 8 };
        }
        if firsts[Field::UseWhen as usize] != NONE {
            sum += 5;
        }
        sum
    }

    /// Adds what similar words in tags and capabilities are worth to fragments that do not have the keyword.
    fn add_similar(&self, keyword: &str, firsts: &[[u16; 3]], scores: &mut [u32]) {
        let bits = letters(keyword.as_bytes());
        // Similarity above 0.7 leaves only words of about the same length.
        let (shortest, longest) = ((keyword.len() * 7 / 10).max(3), keyword.len() * 10 / 7 + 1);
        let from = self.starts.partition_point(|start| self.word_at(*start).len() < shortest);
        let mut best: HashMap<u32, u8> = HashMap::new();
        for word in from..self.starts.len() {
            let text = self.word_at(self.starts[word]);
            if text.len() > longest {
                break;
            }
            if !may_be_alike(bits, self.letters[word], text.len().max(keyword.len())) {
                continue;
            }
            let points = points(keyword.as_bytes(), text.as_bytes());
            if points == 0 {
                continue;
            }
            for place in self.places_of(word).iter().filter(|place| place.field != Field::UseWhen) {
                if firsts[place.fragment as usize] == [NONE; 3] {
                    let best = best.entry(place.fragment).or_default();
                    *best = points.max(*best);
                }
            }
        }
        for (fragment, points) in best {
            scores[fragment as usize] += u32::from(points);
        }
    }

    /// The words that contain a keyword.
    fn words_with<'a>(&'a self, keyword: &'a str) -> impl Iterator<Item = usize> + 'a {
        let finder = memmem::Finder::new(keyword);
        let mut from = 0;
        std::iter::from_fn(move || {
            let at = from + finder.find(&self.words.as_bytes()[from..])?;
            let word = self.starts.partition_point(|start| *start as usize <= at) - 1;
            from = self.starts.get(word + 1).map_or(self.words.len(), |next| *next as usize);
            Some(word)
        })
    }

    fn word_at(&self, start: u32) -> &str {
        let text = &self.words[start as usize..];
        &text[..memchr::memchr(b'\n', text.as_bytes()).unwrap_or(text.len())]
    }

    fn places_of(&self, word: usize) -> &[Place] {
        &self.places[self.at[word] as usize..self.at[word + 1] as usize]
    }

    fn text(&self, place: &Place) -> &str {
        &self.fields[place.fragment as usize][place.field as usize][usize::from(place.entry)]
    }
}

/// What a fragment has without any keyword.
fn base(fragment: &Fragment, query: &Query, tokens: Tokens) -> u32 {
    let preferred = query.prefers(fragment.kind());
    let small = tokens.of(fragment) < SMALL;
    15 * u32::from(preferred) + 5 * u32::from(small)
}
