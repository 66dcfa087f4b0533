//! What a folder holds at one moment: never changed, only replaced by the next scan.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::cache::Cache;
use super::config::Config;
use super::data::Category;
use super::flaw::Warning;
use super::matching::{Fragment, Index, Scenarios};
use super::prompts::Prompt;
use super::source::Stamp;

/// A resource: a file, and what is known of it without opening it again.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) uri: String,
    /// The path below `resources/`.
    pub(super) file: String,
    /// The top folder.
    pub(super) category: String,
    pub(super) mime: &'static str,
    /// Whether it is served as text.
    pub(super) is_text: bool,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) stamp: Stamp,
    pub(super) fragment: Option<Arc<Fragment>>,
}

#[derive(Debug)]
pub(super) struct Catalog {
    pub(super) config: Config,
    /// In the order of the list.
    pub(super) resources: Vec<Arc<Resource>>,
    /// Resources by the path of their URI, with and without extension.
    pub(super) by_path: HashMap<String, usize>,
    /// The categories of resources: those of the configuration, then others that were found.
    pub(super) categories: Vec<String>,
    pub(super) prompts: Vec<Arc<Prompt>>,
    pub(super) index: Index,
    pub(super) scenarios: Option<Scenarios>,
    pub(super) data: Vec<Arc<Category>>,
    pub(super) warnings: Vec<Warning>,
    /// Texts of matches, which hold as long as this catalog does.
    pub(super) matches: Option<Cache<Arc<str>>>,
}

/// What is different from one catalog to the next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) resources: bool,
    pub(super) prompts: bool,
    pub(super) tools: bool,
    /// Resources whose text has changed.
    pub(super) updated: BTreeSet<String>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        *self == Changes::default()
    }

    pub(super) fn between(old: &Catalog, new: &Catalog) -> Changes {
        let known: HashMap<&str, &Resource> = old.resources.iter().map(|r| (r.uri.as_str(), &**r)).collect();
        let updated = new.resources.iter().filter(|resource| {
            known.get(resource.uri.as_str()).is_some_and(|old| old.stamp != resource.stamp || old.file != resource.file)
        });
        // A size that changes is no news of the list: who cares for the text is told of that.
        let same = |a: &Arc<Resource>, b: &Arc<Resource>| {
            (&a.uri, &a.title, &a.description, a.mime) == (&b.uri, &b.title, &b.description, b.mime)
        };
        Changes {
            resources: old.categories != new.categories
                || old.resources.len() != new.resources.len()
                || !old.resources.iter().zip(&new.resources).all(|(a, b)| same(a, b)),
            prompts: old.prompts != new.prompts,
            tools: old.data.is_empty() != new.data.is_empty(),
            updated: updated.map(|resource| resource.uri.clone()).collect(),
        }
    }
}

impl Catalog {
    /// The resource at a decoded path.
    pub(super) fn resource(&self, path: &str) -> Option<&Resource> {
        self.by_path.get(path).map(|at| &*self.resources[*at])
    }

    /// The category of data with this id, name or alias, however it is spelt.
    pub(super) fn category(&self, topic: &str) -> Option<&Arc<Category>> {
        let topic = topic.trim();
        let exact = self.data.iter().find(|category| category.id == topic);
        exact.or_else(|| self.data.iter().find(|category| category.answers_to(topic)))
    }
}
