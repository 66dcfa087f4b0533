//! What the documentation shows is tried here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README and everything in `docs`.
fn pages() -> Vec<(PathBuf, String)> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|e| e == "md")).chain([root().join("README.md")]);
    pages.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The fenced blocks of a page: language and text.
pub fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

fn mcpwire(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mcpwire")).args(args).output().expect("the binary runs")
}

#[test]
fn the_demo_works() {
    let output = mcpwire(&["demo"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(told.lines().count(), 15, "{told}");
}

#[test]
fn the_commands_shown_are_understood() {
    let mut seen = 0;
    for (path, page) in pages() {
        for (language, text) in blocks(&page) {
            for line in text.lines().filter(|_| language == "console") {
                let Some((_, command)) = line.split_once("mcpwire ") else { continue };
                let mut args: Vec<String> = words(command);
                let options_end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
                args.insert(options_end, "--help".to_owned());
                let output = mcpwire(&args.iter().map(String::as_str).collect::<Vec<_>>());
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{}: {line}: {said}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 4, "only {seen} commands were found");
}

/// Splits a command line; quotes hold words together.
pub fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (' ', None) => words.push(String::new()),
            (c, _) => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `UPDATE_DOCS=1 cargo test` brings the pages up to date.
#[test]
fn the_help_shown_is_the_help_given() {
    let mut seen = 0;
    for (path, page) in pages() {
        for (_, text) in blocks(&page) {
            let Some((first, shown)) = text.split_once('\n') else { continue };
            let Some(args) = first.strip_prefix("$ mcpwire ").filter(|args| args.ends_with("-h")) else { continue };
            let given = mcpwire(&args.split(' ').collect::<Vec<_>>());
            let given: Vec<String> =
                String::from_utf8_lossy(&given.stdout).lines().map(|line| line.trim_end().to_owned()).collect();
            seen += 1;
            if std::env::var_os("UPDATE_DOCS").is_some() {
                let page = fs::read_to_string(&path).unwrap();
                fs::write(&path, page.replace(shown, &format!("{}\n", given.join("\n")))).unwrap();
                continue;
            }
            let shown: Vec<&str> = shown.lines().collect();
            assert_eq!(shown, given, "{}: the help of `mcpwire {args}` has changed", path.display());
        }
    }
    assert!(seen >= 1, "no help was found in the pages");
}

/// What a command prints, as far as it is the same each time.
fn lasting(text: &str) -> String {
    let words = text.split(' ').collect::<Vec<_>>();
    let is_time =
        |at: usize| words.get(at + 1).is_some_and(|unit| unit.trim_end_matches([',', '\n']).starts_with("ms"));
    let word = |(at, word): (usize, &&str)| if is_time(at) { "_".to_owned() } else { (*word).to_owned() };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

#[test]
fn the_answers_shown_are_the_answers_given() {
    let page = fs::read_to_string(root().join("docs/commands.md")).unwrap();
    let mut seen = 0;
    for (_, text) in blocks(&page) {
        let Some((first, shown)) = text.split_once('\n') else { continue };
        let Some(line) = first.strip_prefix("$ mcpwire ").filter(|line| !line.ends_with("-h")) else { continue };
        if shown.is_empty() || shown.starts_with("$ ") {
            continue;
        }
        let given = mcpwire(&words(line).iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(lasting(&String::from_utf8_lossy(&given.stdout)), lasting(shown), "{first}");
        seen += 1;
    }
    assert!(seen >= 4, "only {seen} answers were found");
}

#[test]
fn configurations_shown_are_json() {
    for (path, page) in pages() {
        for (_, text) in blocks(&page).into_iter().filter(|(language, _)| language == "json") {
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&text);
            parsed.unwrap_or_else(|e| panic!("{}: {e}:\n{text}", path.display()));
        }
    }
}
