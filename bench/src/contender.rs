//! Who takes part: where each contender's program is, how it is started, and how much it is asked to do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use serde::Serialize;

/// A bridge between stdin/stdout and the server's URL, or none at all.
pub struct Contender {
    pub name: String,
    pub start: Start,
    pub pace: Pace,
    show_stderr: bool,
    state: PathBuf,
}

pub enum Start {
    Direct,
    /// Program and arguments; the URL takes the place of `URL`.
    Command(Vec<String>),
}

/// Interpreted peers are given less to do, so that the whole run stays short.
#[derive(Clone, Copy)]
pub enum Pace {
    Fast,
    Slow,
}

/// A contender whose program is not installed.
#[derive(Serialize)]
pub struct Skipped {
    pub name: String,
    pub why: String,
}

/// Where programs are looked for.
pub struct Places {
    /// Our own binaries.
    pub here: PathBuf,
    pub mcpwire: PathBuf,
    /// What `interop/setup` installs.
    pub peers: PathBuf,
}

impl Contender {
    pub fn command(&self, url: &str) -> Result<Command> {
        let Start::Command(words) = &self.start else {
            bail!("{} has no process", self.name);
        };
        let mut words = words.iter().map(|word| if word == "URL" { url } else { word.as_str() });
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        // Loopback stays loopback, whatever proxy the environment names.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        // mcp-remote keeps lock files; not in the home of whoever runs this.
        command.env("MCP_REMOTE_CONFIG_DIR", &self.state);
        command.stderr(if self.show_stderr { Stdio::inherit() } else { Stdio::null() });
        Ok(command)
    }

    /// The files that must exist: a program, and for a script its interpreter too.
    fn missing(&self) -> Option<&Path> {
        match &self.start {
            Start::Direct => None,
            Start::Command(words) => {
                words.iter().filter(|word| word.starts_with('/')).map(Path::new).find(|path| !path.exists())
            }
        }
    }
}

/// Everyone that is here, in the order of the report, and everyone that is not.
pub fn all(places: &Places, variants: bool, show_stderr: bool) -> (Vec<Contender>, Vec<Skipped>) {
    let mut entries = vec![("direct".to_string(), Start::Direct, Pace::Fast)];
    entries.extend(native(places).map(|(name, words)| (name.to_string(), Start::Command(words), Pace::Fast)));
    entries.extend(interpreted(places).map(|(name, words)| (name.to_string(), Start::Command(words), Pace::Slow)));
    if variants {
        let bare = program(&places.here, "bare");
        for runtime in ["current", "multi"] {
            for io in ["tokio", "threads", "pipe"] {
                let words = words(&[&bare, "--io", io, "--rt", runtime, "URL"]);
                entries.push((format!("{io}/{runtime}"), Start::Command(words), Pace::Fast));
            }
        }
    }

    let mut present = Vec::new();
    let mut skipped = Vec::new();
    for (name, start, pace) in entries {
        let contender = Contender { name, start, pace, show_stderr, state: places.here.join("state") };
        match contender.missing() {
            Some(path) => skipped.push(Skipped { why: format!("no {}", path.display()), name: contender.name }),
            None => present.push(contender),
        }
    }
    (present, skipped)
}

fn native(places: &Places) -> [(&'static str, Vec<String>); 4] {
    let rmcp = program(&places.here, "rmcp-proxy");
    [
        ("bare", words(&[&program(&places.here, "bare"), "URL"])),
        ("mcpwire", words(&[&places.mcpwire.display().to_string(), "connect", "URL"])),
        ("rmcp-proxy", words(&[&rmcp, "URL"])),
        ("rmcp-tuned", words(&[&rmcp, "--tuned", "URL"])),
    ]
}

/// Started without their launchers (npx, uvx) and with their logs off: each at its best.
fn interpreted(places: &Places) -> [(&'static str, Vec<String>); 2] {
    let node = program(&places.peers, "node_modules/.bin/node");
    let mcp_remote = program(&places.peers, "node_modules/mcp-remote/dist/proxy.js");
    let mcp_proxy = program(&places.peers, "mcp-proxy/bin/mcp-proxy");
    [
        ("mcp-remote", words(&[&node, &mcp_remote, "URL", "--transport", "http-only", "--silent"])),
        ("mcp-proxy", words(&[&mcp_proxy, "--log-level", "ERROR", "--transport", "streamablehttp", "URL"])),
    ]
}

fn program(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
