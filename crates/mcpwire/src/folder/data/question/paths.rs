//! Ways from a category to others along relationships, in either direction, and back from records found there.

use std::collections::HashSet;

use super::super::category::{Category, Relationship};
use super::super::records::Records;
use super::super::relations::references;
use super::words::{Word, name_stems, stems};
use crate::folder::catalog::Catalog;

/// How many relationships lie between a question's category and one whose values it names.
const LONGEST: usize = 2;

/// One relationship, followed or followed back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) of: &'a Relationship,
    pub(super) is_back: bool,
}

impl Step<'_> {
    /// The field on the side of the question.
    pub(super) fn near(&self) -> &str {
        if self.is_back { &self.of.target_field } else { &self.of.source_field }
    }

    fn far(&self) -> &str {
        if self.is_back { &self.of.source_field } else { &self.of.target_field }
    }
}

/// A way from the question's category to another, by their places in the catalog.
#[derive(Debug, Clone)]
pub(super) struct Path<'a> {
    pub(super) steps: Vec<Step<'a>>,
    /// The categories on the way, the question's own first.
    pub(super) categories: Vec<usize>,
}

impl Path<'_> {
    pub(super) fn end(&self) -> usize {
        self.categories.last().copied().unwrap_or_default()
    }
}

/// All ways from a category, the shortest first; the first is the category itself.
pub(super) fn paths(catalog: &Catalog, start: usize) -> Vec<Path<'_>> {
    let mut all = vec![Path { steps: Vec::new(), categories: vec![start] }];
    let mut from = 0;
    for _ in 0..LONGEST {
        let until = all.len();
        for at in from..until {
            let path = all[at].clone();
            for (step, to) in steps(catalog, path.end()) {
                // Back to where the way began is of no use, save for a relationship of a category with itself.
                if path.steps.is_empty() || !path.categories.contains(&to) {
                    let mut longer = path.clone();
                    longer.steps.push(step);
                    longer.categories.push(to);
                    all.push(longer);
                }
            }
        }
        from = until;
    }
    all
}

fn steps(catalog: &Catalog, from: usize) -> Vec<(Step<'_>, usize)> {
    let target = |link: &Relationship| {
        let target = catalog.category(&link.target_category)?;
        catalog.data.iter().position(|category| category.id == target.id)
    };
    let forth =
        catalog.data[from].relationships.iter().filter_map(|of| Some((Step { of, is_back: false }, target(of)?)));
    let back = catalog.data.iter().enumerate().flat_map(|(at, category)| {
        let links = category.relationships.iter().filter(|link| target(link) == Some(from));
        links.map(move |of| (Step { of, is_back: true }, at))
    });
    forth.chain(back).collect()
}

/// The records of the question's category from which a way leads to these of the last one, and the values that link the
/// first step.
pub(super) fn pull<'a>(
    path: &Path<'_>,
    records: impl Fn(usize) -> Option<&'a Records>,
    found: &[u32],
) -> (Vec<u32>, Vec<String>) {
    let (mut numbers, mut links) = (found.to_vec(), Vec::new());
    for (at, step) in path.steps.iter().enumerate().rev() {
        let (Some(near), Some(far)) = (records(path.categories[at]), records(path.categories[at + 1])) else {
            return (Vec::new(), Vec::new());
        };
        let mut seen = HashSet::new();
        let values = numbers.iter().flat_map(|at| references(far.field(*at as usize, step.far()).as_ref()));
        links = values.filter(|value| seen.insert(value.clone())).collect();
        let is_linked = |at: &u32| {
            references(near.field(*at as usize, step.near()).as_ref()).iter().any(|value| seen.contains(value))
        };
        numbers = (0..near.len() as u32).filter(is_linked).collect();
    }
    (numbers, links)
}

/// The words that speak of a relationship itself, not of where it leads.
pub(super) fn relation_stems(link: &Relationship, target: &Category) -> Vec<String> {
    let names: HashSet<String> = target.names().flat_map(name_stems).collect();
    let described = super::words::read(&link.description);
    let mut all: Vec<String> =
        described.iter().filter(|word| !word.is_filler()).map(|word: &Word| word.stem.clone()).collect();
    all.extend(name_stems(&link.key));
    all.extend(stems(&link.name));
    all.extend(name_stems(&link.source_field).into_iter().filter(|stem| stem != "id" && stem != "ids"));
    all.retain(|stem| !names.contains(stem));
    all
}
