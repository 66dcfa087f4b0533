//! Who takes part: the gateways, how each is started, and which of them is the lower bound of which.

use std::process::{Command, Stdio};

use serde::Serialize;

use crate::places::{Named, Pace, Places, Skipped, missing, program, words};

/// A gateway: listens on a port of loopback and starts the server.
pub struct Contender {
    pub name: String,
    pub server: Server,
    pub pace: Pace,
    /// `PORT` stands for the port and `IDLE` for the words in `idle`, or none.
    words: Vec<String>,
    /// What makes it end sessions that are idle for two seconds; empty if nothing does.
    idle: Vec<String>,
    env: Vec<(String, String)>,
    show_stderr: bool,
}

/// How many servers there are behind a gateway.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Server {
    /// One for each session.
    Own,
    /// One for all.
    Shared,
}

impl Named for Contender {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Server {
    /// The contender that passes bytes on in the same way.
    pub fn bare(self) -> &'static str {
        match self {
            Self::Own => "bare",
            Self::Shared => "bare-share",
        }
    }
}

impl Contender {
    pub fn ends_idle_sessions(&self) -> bool {
        !self.idle.is_empty()
    }

    pub fn command(&self, port: u16, end_idle_sessions: bool) -> Command {
        let port = port.to_string();
        let idle: &[String] = if end_idle_sessions { &self.idle } else { &[] };
        let mut all = self.words.iter().flat_map(|word| match word.as_str() {
            "IDLE" => idle.to_vec(),
            _ => vec![word.replace("PORT", &port)],
        });
        let mut command = Command::new(all.next().unwrap_or_default());
        command.args(all).envs(self.env.clone());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(if self.show_stderr { Stdio::inherit() } else { Stdio::null() });
        command
    }
}

/// Everyone that is here, in the order of the report, and everyone that is not.
pub fn all(places: &Places, show_stderr: bool) -> (Vec<Contender>, Vec<Skipped>) {
    let mut present = Vec::new();
    let mut skipped = Vec::new();
    for mut contender in native(places).into_iter().chain(interpreted(places)) {
        contender.show_stderr = show_stderr;
        match missing(&contender.words) {
            Some(path) => skipped.push(Skipped { why: format!("no {}", path.display()), name: contender.name }),
            None => present.push(contender),
        }
    }
    (present, skipped)
}

fn native(places: &Places) -> Vec<Contender> {
    let bare = program(&places.here, "bare-gateway");
    let rmcp = program(&places.here, "rmcp-gateway");
    let mcpwire = places.mcpwire.display().to_string();
    let stdio = program(&places.here, "fast-stdio");
    let at = "127.0.0.1:PORT";
    let entry = |name: &str, server, line: &[&str], idle: &[&str]| Contender {
        name: name.to_string(),
        server,
        pace: Pace::Fast,
        words: words(line),
        idle: words(idle),
        env: Vec::new(),
        show_stderr: false,
    };
    let limit = ["--session-idle", "2s"];
    vec![
        entry("bare", Server::Own, &[&bare, "--http", at, "--", &stdio], &[]),
        entry("mcpwire", Server::Own, &[&mcpwire, "expose", "--http", at, "IDLE", "--", &stdio], &limit),
        entry("rmcp-gateway", Server::Own, &[&rmcp, "--http", at, "IDLE", "--", &stdio], &["--session-idle", "2000"]),
        entry("bare-share", Server::Shared, &[&bare, "--share", "--http", at, "--", &stdio], &[]),
        entry(
            "mcpwire-share",
            Server::Shared,
            &[&mcpwire, "expose", "--share", "--http", at, "IDLE", "--", &stdio],
            &limit,
        ),
    ]
}

/// Started without their launchers (npx, uvx) and with their logs off: each at its best.
fn interpreted(places: &Places) -> Vec<Contender> {
    let node = program(&places.peers, "node_modules/.bin/node");
    let supergateway = program(&places.peers, "node_modules/supergateway/dist/index.js");
    let mcp_proxy_node = program(&places.peers, "node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs");
    let mcp_proxy = program(&places.peers, "mcp-proxy/bin/mcp-proxy");
    let stdio = program(&places.here, "fast-stdio");
    // supergateway would listen on all interfaces and has no option against it.
    let preload = ("NODE_OPTIONS".to_string(), format!("--require={}", places.loopback.display()));
    let entry = |name: &str, server, line: &[&str], idle: &[&str]| Contender {
        name: name.to_string(),
        server,
        pace: Pace::Slow,
        words: words(line),
        idle: words(idle),
        env: vec![preload.clone()],
        show_stderr: false,
    };
    let to_http = ["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none"];
    let on_loopback = ["--host", "127.0.0.1", "--port", "PORT"];
    vec![
        entry(
            "supergateway",
            Server::Own,
            &[&[&node, &supergateway, "--stdio", &stdio, "--port", "PORT", "IDLE"], &to_http[..]].concat(),
            &["--sessionTimeout", "2000"],
        ),
        entry(
            "mcp-proxy-node",
            Server::Shared,
            &[&[&node, &mcp_proxy_node, "--server", "stream", "IDLE"], &on_loopback[..], &["--", &stdio]].concat(),
            &["--sessionIdleTimeout", "2000"],
        ),
        entry(
            "mcp-proxy-python",
            Server::Shared,
            &[&[&mcp_proxy, "--log-level", "ERROR"], &on_loopback[..], &["--", &stdio]].concat(),
            &[],
        ),
    ]
}
