//! Confinement: whatever is put below a folder, nothing outside it is read, and nothing in it makes us wait.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let path = std::env::temp_dir().join(format!("mcpwire-source-{:016x}", fastrand::u64(..)));
        fs::create_dir_all(path.join("in/resources/agents")).unwrap();
        fs::write(path.join("secret.md"), "secret").unwrap();
        fs::write(path.join("in/resources/agents/a.md"), "text").unwrap();
        Scratch(fs::canonicalize(path).unwrap())
    }

    fn source(&self) -> Source {
        Source::disk(&self.0.join("in")).unwrap().below("resources")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn paths(walk: &Walk) -> Vec<&str> {
    walk.files.iter().map(|entry| entry.path.as_str()).collect()
}

#[test]
fn links_that_lead_outside_are_neither_listed_nor_read() {
    let scratch = Scratch::new();
    let agents = scratch.0.join("in/resources/agents");
    symlink(scratch.0.join("secret.md"), agents.join("absolute.md")).unwrap();
    symlink("../../../secret.md", agents.join("relative.md")).unwrap();
    symlink("a.md", agents.join("inside.md")).unwrap();
    symlink("nowhere.md", agents.join("dangling.md")).unwrap();
    symlink("../..", agents.join("loop")).unwrap();
    symlink("/proc/self/root", agents.join("magic")).unwrap();
    let (source, mut warnings) = (scratch.source(), Vec::new());
    assert_eq!(paths(&source.walk(&mut warnings)), ["agents/a.md", "agents/inside.md"]);
    assert_eq!(warnings.len(), 5, "{warnings:?}");
    let root = scratch.0.to_str().unwrap();
    assert!(warnings.iter().all(|warning| !warning.to_string().contains(root)), "{warnings:?}");
    assert_eq!(source.read("agents/inside.md", 100).unwrap(), b"text");
    for outside in
        ["agents/absolute.md", "agents/relative.md", "agents/magic/etc/hostname", "agents/loop/../../secret.md"]
    {
        assert!(source.read(outside, 100).is_err(), "{outside}");
    }
}

#[test]
fn a_place_that_is_itself_a_link_to_the_outside_is_not_served() {
    let scratch = Scratch::new();
    symlink(&scratch.0, scratch.0.join("in/prompts")).unwrap();
    let prompts = Source::disk(&scratch.0.join("in")).unwrap().below("prompts");
    let mut warnings = Vec::new();
    assert!(prompts.walk(&mut warnings).files.is_empty());
    assert_eq!(warnings.len(), 1);
    assert!(!prompts.has(|_| true));
    assert!(prompts.read("secret.md", 100).is_err());
}

#[test]
fn pipes_and_devices_are_passed_over_without_waiting() {
    let scratch = Scratch::new();
    let pipe = scratch.0.join("in/resources/agents/pipe.md");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let (source, mut warnings) = (scratch.source(), Vec::new());
    assert_eq!(paths(&source.walk(&mut warnings)), ["agents/a.md"]);
    assert_eq!(warnings[0].reason, "not a regular file");
    assert_eq!(source.read("agents/pipe.md", 100).unwrap_err().reason, "not a regular file");
}

#[test]
fn large_files_and_odd_names_are_told() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new();
    let agents = scratch.0.join("in/resources/agents");
    fs::write(agents.join(std::ffi::OsStr::from_bytes(b"bad\xff.md")), "x").unwrap();
    fs::write(agents.join("new\nline.md"), "x").unwrap();
    fs::write(agents.join(".hidden.md"), "x").unwrap();
    let (source, mut warnings) = (scratch.source(), Vec::new());
    assert_eq!(paths(&source.walk(&mut warnings)), ["agents/a.md", "agents/new\nline.md"]);
    assert_eq!(warnings.len(), 1);
    assert!(source.read("agents/a.md", 3).unwrap_err().reason.contains("limit of 3"));
    fs::write(agents.join("a.md"), b"one\ntwo\xff").unwrap();
    assert_eq!(source.read_text("agents/a.md", 100).unwrap_err().line, Some(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_path_leads_outside(path in "(\\.\\./|/|\\./|agents/|in/|resources/|secret\\.md|proc/self/root/){1,8}(secret\\.md|a\\.md)") {
        let scratch = Scratch::new();
        if let Ok(bytes) = scratch.source().read(&path, 100) {
            prop_assert_ne!(bytes, b"secret".to_vec(), "{}", path);
        }
    }
}
