//! The servers behind the hub, and how mcpwire is started in front of them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::client::Era;
use crate::places::Places;

pub const SERVERS: usize = 10;
pub const TOOLS: usize = 50;

/// Configurations and the hub's cache, in a folder that is removed with this.
pub struct Rig {
    folder: PathBuf,
    mcpwire: PathBuf,
    server: String,
    show_stderr: bool,
}

impl Rig {
    pub fn new(places: &Places, show_stderr: bool) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("mcpwire-bench-hub-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let server = places.here.join("fast-stdio").display().to_string();
        Ok(Self { folder, mcpwire: places.mcpwire.clone(), server, show_stderr })
    }

    /// A plain bridge to one server.
    pub fn plain(&self, era: Era) -> Command {
        let mut command = self.connect();
        command.args(["--", &self.server, &TOOLS.to_string(), era.name()]);
        command
    }

    /// A hub of all of them, which take so long to start. It knows them from before if one like it has run.
    pub fn hub(&self, era: Era, delay_ms: u64) -> Result<Command> {
        let entry = |number: usize| {
            // The number makes entries differ, as those of different servers do.
            let args = [TOOLS.to_string(), era.name().to_string(), delay_ms.to_string(), number.to_string()];
            (format!("up{number}"), json!({"command": self.server, "args": args}))
        };
        let entries: Map<String, Value> = (0..SERVERS).map(entry).collect();
        let file = self.folder.join(format!("{}-{delay_ms}.json", era.name()));
        fs::write(&file, json!({"mcpServers": entries}).to_string())?;
        let mut command = self.connect();
        command.arg("--config").arg(file);
        Ok(command)
    }

    /// How many servers the hubs so far have written down.
    pub fn cached(&self) -> usize {
        fs::read_dir(self.folder.join("mcpwire")).map_or(0, |files| {
            files
                .filter(|file| file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|e| e == "json")))
                .count()
        })
    }

    fn connect(&self) -> Command {
        let mut command = Command::new(&self.mcpwire);
        command.arg("connect").env("XDG_CACHE_HOME", &self.folder).env("LOG_LEVEL", "error");
        command.stderr(if self.show_stderr { Stdio::inherit() } else { Stdio::null() });
        command
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
