//! A folder as a target: which paths mean one, and what the environment says about it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::folder::{Folder, Settings};

/// Names the sample inside this program.
const SAMPLE: &str = "sample:";
/// Says that what follows is a folder, whatever it looks like.
const PREFIX: &str = "folder:";

/// A folder as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Disk(PathBuf),
    Sample,
}

/// Reads a target that is a folder; `None` if it is none.
pub(super) fn place(text: &str) -> Option<Place> {
    if text == SAMPLE {
        return Some(Place::Sample);
    }
    if let Some(path) = text.strip_prefix(PREFIX).filter(|path| !path.is_empty()) {
        return Some(Place::Disk(at_home(path)));
    }
    let path_like =
        matches!(text, "." | ".." | "~") || ["./", "../", "/", "~/"].iter().any(|start| text.starts_with(start));
    (path_like || (!text.contains("://") && Path::new(text).is_dir())).then(|| Place::Disk(at_home(text)))
}

/// Shells leave a `~` alone that is not at the start of a word, as in `folder:~/x`.
fn at_home(path: &str) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

/// Opens a folder with what the environment says: `PROMPTS_PATH`, `RESOURCES_PATH`, `DATA_PATH`, `CACHE_SIZE`.
pub(super) fn open(place: &Place) -> Result<Folder> {
    let Place::Disk(folder) = place else { return Ok(Folder::sample()) };
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache_size = match std::env::var("CACHE_SIZE").ok().filter(|text| !text.is_empty()) {
        Some(text) => {
            Some(text.parse().with_context(|| format!("CACHE_SIZE: expected a whole number, came {text:?}"))?)
        }
        None => None,
    };
    let settings = Settings {
        folder: folder.clone(),
        prompts: path("PROMPTS_PATH"),
        resources: path("RESOURCES_PATH"),
        data: path("DATA_PATH"),
        cache_size,
    };
    Ok(Folder::open(&settings)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_folders_and_urls_are_not() {
        for text in [".", "..", "./x", "../x", "/x", "~/x", "folder:x", "src"] {
            assert!(matches!(place(text), Some(Place::Disk(_))), "{text}");
        }
        assert_eq!(place("sample:"), Some(Place::Sample));
        for text in ["http://x", "unix:x", "no-such-thing", "folder:", "quic://x:1", ""] {
            assert_eq!(place(text), None, "{text}");
        }
    }
}
