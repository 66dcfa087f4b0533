//! Who takes part: where each contender's program is, how it is started, and how much it is asked to do.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::places::{Named, Pace, Places, Skipped, missing, program, words};

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

impl Named for Contender {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Contender {
    /// A program with all its arguments.
    pub fn new(name: &str, words: Vec<String>, places: &Places, show_stderr: bool) -> Self {
        let (start, state) = (Start::Command(words), places.here.join("state"));
        Self { name: name.to_string(), start, pace: Pace::Fast, show_stderr, state }
    }

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
        let absent = match &start {
            Start::Direct => None,
            Start::Command(words) => missing(words).map(|path| format!("no {}", path.display())),
        };
        match absent {
            Some(why) => skipped.push(Skipped { name, why }),
            None => present.push(Contender { name, start, pace, show_stderr, state: places.here.join("state") }),
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
