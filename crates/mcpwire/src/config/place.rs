//! Where configurations lie, in the order in which names are given away.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::{Scope, Source};

#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) source: Source,
    pub(super) part: Part,
    /// Read only if the place before has no servers.
    pub(super) stands_in: bool,
}

impl Place {
    /// Whether it can be read only once.
    pub(super) fn is_pipe(&self) -> bool {
        self.source.path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    }
}

/// Where in its file a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// At the top.
    Top,
    /// What Claude Code keeps in `~/.claude.json` for the project alone.
    ClaudeProject,
}

/// A file that the user has named.
pub(super) fn given(file: &Path, environment: &Environment) -> Place {
    place("given", Scope::Given, environment.cwd.join(file))
}

/// All places that are known. Clients come in the order of their priority; in each the project, which is nearer, comes first.
pub(super) fn known(environment: &Environment) -> Vec<Place> {
    let project = |client, path: &str| Some(place(client, Scope::Project, environment.cwd.join(path)));
    let user = |client, path: &str| Some(place(client, Scope::User, environment.home.as_ref()?.join(path)));
    let config = |client, path: &str| Some(place(client, Scope::User, environment.config_home()?.join(path)));
    let codex_home = environment.variable("CODEX_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let codex = match codex_home {
        Some(path) => Some(place("codex", Scope::User, path.join("config.toml"))),
        None => user("codex", ".codex/config.toml"),
    };
    let places = [
        project("mcpwire", ".mcpwire/mcp.json"),
        config("mcpwire", "mcpwire/mcp.json"),
        project("omp", ".omp/mcp.json"),
        project("omp", ".omp/.mcp.json"),
        user("omp", ".omp/agent/mcp.json"),
        user("omp", ".omp/agent/.mcp.json"),
        user("claude", ".claude.json").map(|place| Place { part: Part::ClaudeProject, ..place }),
        project("claude", ".claude/.mcp.json"),
        project("claude", ".claude/mcp.json").map(stand_in),
        user("claude", ".claude.json"),
        user("claude", ".claude/mcp.json").map(stand_in),
        project("codex", ".codex/config.toml"),
        codex,
        project("gemini", ".gemini/settings.json"),
        user("gemini", ".gemini/settings.json"),
        project("cursor", ".cursor/mcp.json"),
        user("cursor", ".cursor/mcp.json"),
        project("windsurf", ".windsurf/mcp_config.json"),
        user("windsurf", ".codeium/windsurf/mcp_config.json"),
        project("vscode", ".vscode/mcp.json"),
        project("vscode", ".vscode/settings.json"),
        config("vscode", "Code/User/mcp.json"),
        config("vscode", "Code/User/settings.json"),
        user("vscode", "Library/Application Support/Code/User/mcp.json"),
        user("vscode", "Library/Application Support/Code/User/settings.json"),
        project("project", "mcp.json"),
        project("project", ".mcp.json"),
    ];
    let places: Vec<Place> = places.into_iter().flatten().collect();
    let users: Vec<PathBuf> = in_scope(&places, Scope::User).map(|place| place.source.path.clone()).collect();
    // In the home itself both are the same file, and it is the user's.
    let doubled = |place: &Place| place.source.scope == Scope::Project && users.contains(&place.source.path);
    places.into_iter().filter(|place| !doubled(place)).collect()
}

fn in_scope(places: &[Place], scope: Scope) -> impl Iterator<Item = &Place> {
    places.iter().filter(move |place| place.source.scope == scope)
}

fn place(client: &'static str, scope: Scope, path: PathBuf) -> Place {
    Place { source: Source { path, client, scope }, part: Part::Top, stands_in: false }
}

fn stand_in(place: Place) -> Place {
    Place { stands_in: true, ..place }
}
