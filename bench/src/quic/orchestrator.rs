//! Orchestra's own orchestrator, with mcpwire as its plugin in front of the fast server.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::connect::piped::Piped;
use crate::places::Places;

/// Starts it, waits until its plugin is there, and tells where it listens.
pub fn start(program: &str, places: &Places, certs: &str) -> Result<(Piped, String)> {
    let config = places.here.join("state/plugins.yaml");
    let (mcpwire, server) = (places.mcpwire.display(), places.here.join("fast-stdio"));
    let plugin = format!(
        "tcp_addr: 127.0.0.1:0
plugins:
  - id: tools.fast
    enabled: true
    binary: {mcpwire}
    args: [expose, --plugin, --plugin-id, tools.fast, --, {}]
",
        server.display()
    );
    fs::write(&config, plugin).with_context(|| format!("cannot write {}", config.display()))?;
    let mut command = Command::new("sh");
    // It says everything on stderr.
    command.args(["-c", r#"exec "$@" 2>&1"#, "sh", program, "--listen-addr", "127.0.0.1:0", "--certs-dir", certs]);
    command.arg("--config").arg(config);
    let mut orchestrator = Piped::spawn(command)?;
    let mut address = None;
    loop {
        let line = String::from_utf8_lossy(orchestrator.line()?).into_owned();
        if let Some((_, at)) = line.split_once("QUIC server listening on ") {
            address = Some(at.trim().to_owned());
        }
        if line.contains("failed to start plugin") {
            bail!("the orchestrator: {line}");
        }
        if line.contains("registered with router") {
            return Ok((orchestrator, address.context("the orchestrator does not say where it listens")?));
        }
    }
}
