//! The clients we know: where each keeps its servers, and how it writes them.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::Value;

use super::entry::Entry;
use super::jsonc::{self, Fault};
use super::tables;

/// An MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Windsurf,
    Gemini,
    Codex,
}

/// For whom a server is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Scope {
    /// You, everywhere
    User,
    /// Everybody, in the project of the current directory
    Project,
}

/// What the environment says about where files lie.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) home: PathBuf,
    /// Where programs keep their settings: differs by system.
    pub(super) settings: PathBuf,
    pub(super) claude: Option<PathBuf>,
    pub(super) codex: Option<PathBuf>,
    pub(super) project: PathBuf,
}

impl Places {
    pub(super) fn from_env() -> Result<Places> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let Some(home) = variable("HOME") else { bail!("expected the variable HOME to name your home directory") };
        let settings = match cfg!(target_os = "macos") {
            true => home.join("Library/Application Support"),
            false => variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
        };
        let project = std::env::current_dir()?;
        Ok(Places { home, settings, claude: variable("CLAUDE_CONFIG_DIR"), codex: variable("CODEX_HOME"), project })
    }
}

impl Client {
    /// The file that holds the client's servers.
    pub(super) fn file(self, scope: Scope, places: &Places) -> Result<PathBuf> {
        let Places { home, settings, claude, codex, project } = places;
        Ok(match (self, scope) {
            (Client::ClaudeCode, Scope::User) => claude.as_deref().unwrap_or(home).join(".claude.json"),
            (Client::ClaudeCode, Scope::Project) => project.join(".mcp.json"),
            (Client::ClaudeDesktop, Scope::User) => settings.join("Claude/claude_desktop_config.json"),
            (Client::Cursor, Scope::User) => home.join(".cursor/mcp.json"),
            (Client::Cursor, Scope::Project) => project.join(".cursor/mcp.json"),
            (Client::Vscode, Scope::User) => settings.join("Code/User/mcp.json"),
            (Client::Vscode, Scope::Project) => project.join(".vscode/mcp.json"),
            (Client::Windsurf, Scope::User) => home.join(".codeium/windsurf/mcp_config.json"),
            (Client::Gemini, Scope::User) => home.join(".gemini/settings.json"),
            (Client::Gemini, Scope::Project) => project.join(".gemini/settings.json"),
            (Client::Codex, Scope::User) => codex.clone().unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            (Client::Codex, Scope::Project) => project.join(".codex/config.toml"),
            (Client::ClaudeDesktop | Client::Windsurf, Scope::Project) => {
                bail!("{} has no servers of a project: expected --scope user", self.name())
            }
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Client::ClaudeCode => "Claude Code",
            Client::ClaudeDesktop => "Claude Desktop",
            Client::Cursor => "Cursor",
            Client::Vscode => "VS Code",
            Client::Windsurf => "Windsurf",
            Client::Gemini => "Gemini CLI",
            Client::Codex => "Codex",
        }
    }

    /// Whether its entries say that the server is a program.
    pub(super) fn types_entries(self) -> bool {
        matches!(self, Client::ClaudeCode | Client::Cursor | Client::Vscode)
    }

    fn container(self) -> &'static str {
        match self {
            Client::Vscode => "servers",
            Client::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    /// The value of a server in the client's file.
    pub(super) fn find(self, text: &str, name: &str) -> Result<Option<Value>, Fault> {
        match self {
            Client::Codex => tables::find(text, self.container(), name),
            _ => jsonc::find(text, self.container(), name),
        }
    }

    /// The client's file with this server in it.
    pub(super) fn put(self, text: &str, name: &str, entry: &Entry) -> Result<String, Fault> {
        match self {
            Client::Codex => tables::put(text, self.container(), name, entry),
            _ => jsonc::put(text, self.container(), name, entry),
        }
    }

    /// The client's file without this server.
    pub(super) fn remove(self, text: &str, name: &str) -> Result<String, Fault> {
        match self {
            Client::Codex => tables::remove(text, self.container(), name),
            _ => jsonc::remove(text, self.container(), name),
        }
    }

    /// The file as it was before a server was installed, as far as can be told: `None` if there was none. `backups` come
    /// newest first.
    pub(super) fn undo(self, text: &str, name: &str, backups: &[String]) -> Result<Option<String>, Fault> {
        let mut text = text.to_owned();
        let mut undone = false;
        for backup in backups {
            let Some(value) = self.find(&text, name)? else { return Ok(Some(text)) };
            if undone && !Entry::is_ours(&value) {
                return Ok(Some(text));
            }
            let Some(entry) = Entry::read(&value) else { break };
            if self.put(backup, name, &entry).is_ok_and(|made| made == text) {
                text.clone_from(backup);
                undone = true;
            }
        }
        let Some(value) = self.find(&text, name)? else { return Ok(Some(text)) };
        if undone && !Entry::is_ours(&value) {
            return Ok(Some(text));
        }
        // Nothing but what we write into a file that is not there.
        let alone = Entry::read(&value).is_some_and(|entry| self.put("", name, &entry).is_ok_and(|made| made == text));
        if alone { Ok(None) } else { self.remove(&text, name).map(Some) }
    }
}

/// Whether a client takes this name.
pub(super) fn check_name(client: Client, name: &str) -> Result<()> {
    let dots = client != Client::Codex;
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || (dots && b == b'.');
    if name.is_empty() || name.len() > 100 || !name.bytes().all(fits) {
        let also = if dots { ", '_' and '.'" } else { " and '_'" };
        bail!("--name: expected up to 100 letters, digits, '-'{also}; came {name:?}");
    }
    Ok(())
}

/// The path as people write it.
pub(super) fn shown(path: &Path, places: &Places) -> String {
    match path.strip_prefix(&places.home) {
        Ok(inside) => format!("~/{}", inside.display()),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(target: &str) -> Entry {
        Entry { typed: true, command: "/bin/mcpwire".to_owned(), args: vec!["connect".to_owned(), target.to_owned()] }
    }

    const TEXTS: [&str; 8] = [
        "",
        "{}",
        "{ }\n",
        "// only this\n",
        "{\"servers\":{}}",
        "{\n\t// c\n\t\"servers\": {\n\t\t\"a\": {\"x\": 1}, // d\n\t},\n}\n",
        "{\n  \"servers\": {\n    \"n\": {\"command\": \"other\"}\n  }\n}",
        "{\"inputs\": []\n}\r\n",
    ];

    proptest! {
        /// Installed several times with other targets, then taken out: byte for byte what it was.
        #[test]
        fn a_file_nobody_changed_is_what_it_was(at in 0..TEXTS.len(), targets in prop::collection::vec("[ab]", 1..5)) {
            let (client, mut text, mut backups) = (Client::Vscode, TEXTS[at].to_owned(), Vec::new());
            for target in &targets {
                let made = client.put(&text, "n", &entry(target)).unwrap();
                if made != text {
                    backups.insert(0, std::mem::replace(&mut text, made));
                }
            }
            prop_assert_eq!(client.undo(&text, "n", &backups).unwrap(), Some(TEXTS[at].to_owned()));
        }

        #[test]
        fn a_file_we_made_goes_away(targets in prop::collection::vec("[ab]", 1..5)) {
            for client in [Client::Cursor, Client::Codex] {
                let entry = |target: &str| Entry { typed: client.types_entries(), ..entry(target) };
                let mut text = client.put("", "n", &entry(&targets[0])).unwrap();
                let mut backups = Vec::new();
                for target in &targets[1..] {
                    let made = client.put(&text, "n", &entry(target)).unwrap();
                    backups.insert(0, std::mem::replace(&mut text, made));
                }
                prop_assert_eq!(client.undo(&text, "n", &backups).unwrap(), None);
            }
        }
    }

    #[test]
    fn what_others_wrote_meanwhile_stays() {
        let client = Client::Vscode;
        let made = client.put(TEXTS[5], "n", &entry("a")).unwrap();
        let changed = made.replace("\"x\": 1", "\"x\": 2");
        let left = client.undo(&changed, "n", &[TEXTS[5].to_owned()]).unwrap();
        assert_eq!(left, Some(TEXTS[5].replace("\"x\": 1", "\"x\": 2")));
    }
}
