//! What servers on the command line are called if nobody says.

use std::path::Path;

use super::super::address::Address;
use super::super::folder::Place;
use crate::target::Target;

/// Programs that run the program which their arguments name.
const RUNNERS: [&str; 14] =
    ["npx", "bunx", "pnpx", "uvx", "uv", "pipx", "node", "bun", "deno", "python", "python3", "docker", "sh", "bash"];
/// Endings of programs that are run.
const CODE: [&str; 6] = [".js", ".mjs", ".cjs", ".ts", ".py", ".sh"];

/// A folder or socket by its own name, the others by that of their machine.
pub(super) fn of_address(address: &Address, target: &Target) -> String {
    let name = match address {
        Address::Folder(Place::Disk(path)) => {
            path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        }
        Address::Folder(Place::Sample) => Some("sample".to_owned()),
        Address::Unix(path) => path.file_stem().map(|stem| stem.to_string_lossy().into_owned()),
        _ => None,
    };
    plain(&name.unwrap_or_else(|| target.label()))
}

/// The program, or what a runner is told to run: `npx -y @scope/server-x@1.2` is `server-x`.
pub(in crate::cli) fn of_command(words: &[String]) -> Option<String> {
    let program = Path::new(words.first()?).file_stem()?.to_string_lossy().into_owned();
    let named =
        |word: &&String| !word.starts_with('-') && !matches!(word.as_str(), "run" | "exec" | "x" | "tool" | "dlx");
    let run = words[1..].iter().find(named).filter(|_| RUNNERS.contains(&program.as_str()));
    let name = run.map_or(program, |word| {
        let last = word.rsplit('/').next().unwrap_or(word);
        let last = last.split('@').next().unwrap_or(last);
        CODE.iter().find_map(|end| last.strip_suffix(end)).unwrap_or(last).to_owned()
    });
    Some(plain(&name))
}

/// A name of characters that are allowed everywhere.
fn plain(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "server".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn commands_are_called_by_what_they_run() {
        for (command, name) in [
            ("/usr/bin/my-server --flag", "my-server"),
            ("npx -y @modelcontextprotocol/server-everything stdio", "server-everything"),
            ("npx -y @scope/server-x@1.2.3", "server-x"),
            ("uvx mcp-server-git", "mcp-server-git"),
            ("python3 -u tools/serve.py", "serve"),
            ("node server.v2.mjs", "server-v2"),
            ("node", "node"),
        ] {
            assert_eq!(of_command(&words(command)).as_deref(), Some(name), "{command}");
        }
    }
}
