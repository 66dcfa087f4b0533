//! A folder of prompts, resources and business data as an MCP server: no code needed, and no restart when a file changes.
//!
//! ```text
//!   files ──► source ──► scan ──► Catalog (never changed, only replaced) ──► answer ──► serve ── Port
//!               ▲ watch ───┘                    │
//!               └── bodies, records: read when they are asked for
//! ```
//!
//! What a client names is looked up in the catalog; no text of a client's ever becomes a path. Front matter, matching,
//! filters and classification know nothing of files; `source` alone opens them.

mod answer;
mod cache;
mod catalog;
mod check;
mod config;
mod data;
mod flaw;
mod front;
mod keeper;
mod layout;
mod matching;
mod prompts;
mod reply;
mod resources;
mod sample;
mod scan;
mod serve;
mod source;
#[cfg(test)]
mod tests;
mod uri;
mod yaml;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::sync::{broadcast, watch as latest};
use tokio::task::{AbortHandle, JoinHandle};

pub use check::Report;
pub use flaw::Warning;

use crate::link::Link;
use catalog::{Catalog, Changes};
use config::Config;
use source::Source;

/// How many changes wait for a slow session; it is told of everything when it misses some.
const BACKLOG: usize = 64;

/// Where the parts of a folder are, if they are not all in one.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The folder with `prompts/`, `resources/`, `data/` and `mcpwire.toml`.
    pub folder: PathBuf,
    pub prompts: Option<PathBuf>,
    pub resources: Option<PathBuf>,
    pub data: Option<PathBuf>,
    /// How many matches are kept.
    pub cache_size: Option<usize>,
}

/// Why a folder cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("{}: no such folder", .0.display())]
    Missing(PathBuf),
    #[error("{}: cannot be read: {kind}", .path.display())]
    Unreadable { path: PathBuf, kind: std::io::ErrorKind },
    #[error("{}: nothing to serve: expected files in prompts/, resources/ or data/", .0.display())]
    Empty(PathBuf),
    #[error("{}: {warning}", .path.display())]
    Config { path: PathBuf, warning: Warning },
}

/// A folder that is served. Clones share what is known of it, and the watch over it.
#[derive(Debug, Clone)]
pub struct Folder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Arc<State>,
    keeper: OnceLock<AbortHandle>,
}

/// What the sessions and the keeper of a folder share.
#[derive(Debug)]
struct State {
    places: Places,
    /// What is known before the first scan is done.
    glance: Glance,
    catalog: latest::Sender<Option<Arc<Catalog>>>,
    changes: broadcast::Sender<Arc<Changes>>,
}

#[derive(Debug)]
struct Places {
    /// Where the configuration is.
    config: Option<Source>,
    prompts: Source,
    resources: Source,
    data: Source,
    cache_size: Option<usize>,
}

impl Places {
    /// The folders on disk that everything is in.
    fn roots(&self) -> impl Iterator<Item = &Path> {
        let parts = [&self.prompts, &self.resources, &self.data].into_iter().chain(&self.config);
        parts.filter_map(|source| match source {
            Source::Disk { root, .. } => Some(root.as_path()),
            Source::Sample { .. } => None,
        })
    }
}

/// What there is, by a first look at the names of files.
#[derive(Debug, Clone)]
struct Glance {
    config: Config,
    prompts: bool,
    resources: bool,
    data: bool,
}

impl Folder {
    /// Takes a first look at a folder, which is quick: its files are read later.
    pub fn open(settings: &Settings) -> Result<Folder, Problem> {
        let folder = &settings.folder;
        let root = open_source(folder)?;
        let place = |path: &Option<PathBuf>, name| path.as_deref().map_or_else(|| Ok(root.below(name)), open_source);
        let places = Places {
            prompts: place(&settings.prompts, "prompts")?,
            resources: place(&settings.resources, "resources")?,
            data: place(&settings.data, "data")?,
            config: Some(root),
            cache_size: settings.cache_size,
        };
        Folder::new(places).map_err(|flaw| match flaw {
            None => Problem::Empty(folder.clone()),
            Some(flaw) => Problem::Config { path: folder.clone(), warning: Warning::new(config::FILE, flaw) },
        })
    }

    /// The sample inside this program.
    pub fn sample() -> Folder {
        let root = Source::Sample { below: "" };
        let places = Places {
            prompts: root.below("prompts"),
            resources: root.below("resources"),
            data: root.below("data"),
            config: Some(root),
            cache_size: None,
        };
        match Folder::new(places) {
            Ok(folder) => folder,
            Err(flaw) => unreachable!("the sample is checked by a test: {flaw:?}"),
        }
    }

    fn new(places: Places) -> Result<Folder, Option<flaw::Flaw>> {
        let config = scan::load_config(&places).map_err(Some)?;
        let glance = Glance {
            config,
            prompts: places.prompts.has(layout::is_markdown),
            resources: places.resources.has(|_| true),
            data: places.data.has(|_| true),
        };
        if !glance.prompts && !glance.resources && !glance.data {
            return Err(None);
        }
        let state =
            State { places, glance, catalog: latest::Sender::new(None), changes: broadcast::Sender::new(BACKLOG) };
        Ok(Folder(Arc::new(Inner { state: Arc::new(state), keeper: OnceLock::new() })))
    }

    /// A link to a server of this folder; the handle completes when the link was dropped. Must be called in a runtime.
    pub fn connect(&self) -> (Link, JoinHandle<()>) {
        self.0.keeper.get_or_init(|| tokio::spawn(keeper::keep(Arc::clone(&self.0.state))).abort_handle());
        let (link, port) = Link::pair();
        (link, tokio::spawn(serve::serve(port, self.clone())))
    }

    /// Reads everything, and tells what is wrong with it.
    pub fn check(&self) -> Report {
        check::check(&scan::scan(&self.0.state.places, None).catalog)
    }

    /// The files of the sample, by their paths.
    pub fn sample_files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
        sample::files("")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.get() {
            keeper.abort();
        }
    }
}

fn open_source(path: &Path) -> Result<Source, Problem> {
    Source::disk(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Problem::Missing(path.to_owned()),
        _ if path.exists() && !path.is_dir() => Problem::Missing(path.to_owned()),
        kind => Problem::Unreadable { path: path.to_owned(), kind },
    })
}
