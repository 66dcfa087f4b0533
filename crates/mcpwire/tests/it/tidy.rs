//! House rules that a program can check.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust file of the workspace, with its path from the root.
fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, found),
                false => found.extend(path.extension().is_some_and(|e| e == "rs").then_some(path)),
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("crates"), &mut found);
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    found.into_iter().map(|path| (name(&path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_file_says_what_it_holds() {
    for (name, text) in sources() {
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 12, "{name} does not open with a //! sentence");
    }
}

#[test]
fn files_stay_readable() {
    for (name, text) in sources().into_iter().filter(|(name, _)| !name.contains("test")) {
        let lines = text.lines().count();
        assert!(lines <= 500, "{name} has {lines} lines: is it still one thing?");
    }
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(architecture.lines().count() <= 300);
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = ["todo!", "unimplemented!", "FIXME", "XXX", "#[ignore"];
    for (name, text) in sources().into_iter().filter(|(name, _)| !name.ends_with("tidy.rs")) {
        for mark in marks {
            assert!(!text.contains(mark), "{name} contains {mark}");
        }
    }
}

#[test]
fn transports_do_not_know_one_another() {
    let folders = ["stdio", "http", "child", "unix", "quic"];
    for (name, text) in sources() {
        let Some(own) = name.strip_prefix("crates/mcpwire/src/transport/") else { continue };
        let own = own.split(['/', '.']).next().unwrap_or_default();
        for other in folders.iter().filter(|folder| **folder != own) {
            assert!(!text.contains(&format!("transport::{other}")), "{name} imports transport::{other}");
        }
    }
}
