//! `--mcp-hub`: finds an mcp-hub that runs on this machine, in the file where hubs write down that they run.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::Deserialize;
use url::Url;

/// A running hub, as mcp-hub 4.2 describes itself.
#[derive(Debug, Clone, Deserialize)]
struct Hub {
    cwd: PathBuf,
    /// Where they are relative, then to `cwd`.
    #[serde(default)]
    config_files: Vec<PathBuf>,
    pid: u32,
    port: u16,
    /// ISO 8601 in UTC, so that the later one is also the greater text.
    #[serde(default, rename = "startTime")]
    started: String,
}

/// The address of the hub that is nearest to the directory we are in.
pub(super) fn find() -> Result<Url> {
    let file = workspaces().context("--mcp-hub: expected HOME or XDG_STATE_HOME in the environment")?;
    let here = std::env::current_dir().context("--mcp-hub: cannot tell the current directory")?;
    let hubs = std::fs::read(&file).map(|text| parse(&text)).unwrap_or_default();
    let hub = nearest(hubs.into_iter().filter(|hub| is_running(hub.pid)), &here)
        .with_context(|| format!("--mcp-hub: no mcp-hub is running, says {}", file.display()))?;
    tracing::info!(target: "connect", "the mcp-hub of {} is at port {}", hub.cwd.display(), hub.port);
    Ok(format!("http://127.0.0.1:{}/mcp", hub.port).parse()?)
}

/// Where hubs write it down: where mcp-hub itself looks.
fn workspaces() -> Option<PathBuf> {
    let directory = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = directory("HOME");
    let of_old = home.as_ref().map(|home| home.join(".mcp-hub")).filter(|folder| folder.exists());
    let state = || directory("XDG_STATE_HOME").or_else(|| Some(home.as_ref()?.join(".local/state")));
    let folder = of_old.or_else(|| Some(state()?.join("mcp-hub")))?;
    Some(folder.join("workspaces.json"))
}

/// The hubs in the file. An entry that is none costs only itself.
fn parse(text: &[u8]) -> Vec<Hub> {
    let entries: HashMap<String, serde_json::Value> = serde_json::from_slice(text).unwrap_or_default();
    entries.into_values().filter_map(|entry| serde_json::from_value(entry).ok()).collect()
}

fn nearest(hubs: impl Iterator<Item = Hub>, here: &Path) -> Option<Hub> {
    hubs.max_by_key(|hub| (hub.nearness(here), hub.started.clone(), Reverse(hub.port)))
}

impl Hub {
    /// How near its directory, or the directory of one of its configuration files, is to ours.
    fn nearness(&self, here: &Path) -> usize {
        let configured = self.config_files.iter().filter_map(|file| Some(self.cwd.join(file).parent()?.to_owned()));
        configured.chain([self.cwd.clone()]).map(|folder| nearness(&folder, here)).max().unwrap_or_default()
    }
}

/// What is shared of the way counts most, then whether one is inside the other.
fn nearness(folder: &Path, here: &Path) -> usize {
    let shared = folder.components().zip(here.components()).take_while(|(a, b)| a == b);
    let shared = shared.filter(|(a, _)| matches!(a, Component::Normal(_))).count();
    let inside = match (here.starts_with(folder), folder.starts_with(here)) {
        (true, _) => 50,
        (_, true) => 25,
        _ => 0,
    };
    100 * shared + inside
}

fn is_running(pid: u32) -> bool {
    let processes = Path::new("/proc/self");
    if processes.exists() {
        return processes.with_file_name(pid.to_string()).exists();
    }
    let mut kill = Command::new("kill");
    kill.args(["-0", &pid.to_string()]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Where nobody can tell, connecting will.
    kill.status().map_or(true, |status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(port: u16, cwd: &str, config_files: &[&str], started: &str) -> Hub {
        let config_files = config_files.iter().map(PathBuf::from).collect();
        Hub { cwd: cwd.into(), config_files, pid: 1, port, started: started.into() }
    }

    fn chosen(hubs: &[Hub], here: &str) -> Option<u16> {
        nearest(hubs.iter().cloned(), Path::new(here)).map(|hub| hub.port)
    }

    #[test]
    fn the_nearest_hub_is_chosen_and_of_equals_the_newest() {
        let hubs = [
            hub(1, "/home/u", &["/home/u/.config/mcphub/servers.json"], "2026-01-01T00:00:00.000Z"),
            hub(2, "/home/u/work/a", &["servers.json"], "2026-01-01T00:00:00.000Z"),
            hub(3, "/", &["home/u/work/b/mcp.json"], "2026-01-01T00:00:00.000Z"),
            hub(4, "/home/u/work/b", &[], "2026-01-02T00:00:00.000Z"),
        ];
        assert_eq!(chosen(&hubs, "/home/u/work/a/src"), Some(2));
        assert_eq!(chosen(&hubs, "/home/u/work/b"), Some(4));
        assert_eq!(chosen(&hubs[..3], "/home/u/work/b"), Some(3));
        assert_eq!(chosen(&hubs[..1], "/somewhere/else"), Some(1));
        assert_eq!(chosen(&[], "/"), None);
    }

    #[test]
    fn what_lies_around_us_is_nearer_than_what_lies_below() {
        assert_eq!(nearness(Path::new("/a/b"), Path::new("/a/b/c")), 250);
        assert_eq!(nearness(Path::new("/a/b/c"), Path::new("/a/b")), 225);
        assert_eq!(nearness(Path::new("/a/x"), Path::new("/a/b")), 100);
    }

    #[test]
    fn entries_that_are_no_hubs_cost_only_themselves() {
        let text = br#"{"1":{"cwd":"/a","pid":7,"port":1,"more":[]},"2":{"cwd":3},"3":null}"#;
        assert_eq!(parse(text).iter().map(|hub| hub.port).collect::<Vec<_>>(), [1]);
        assert!(parse(b"no JSON").is_empty());
    }

    #[test]
    fn this_process_is_running() {
        assert!(is_running(std::process::id()));
    }
}
