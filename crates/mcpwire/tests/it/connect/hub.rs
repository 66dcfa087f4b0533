//! `--mcp-hub`: the hub that runs on this machine, found by what hubs write down.

use serde_json::json;

use super::legacy::{finish, open};
use crate::support::process::Mcpwire;
use crate::support::script::Script;

/// A folder that goes when the test ends.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("mcpwire-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        let file = self.0.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ended_process() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[tokio::test]
async fn a_running_hub_is_found() {
    let here = std::env::current_dir().unwrap();
    for (at, variable) in [("state/mcp-hub", true), ("home/.local/state/mcp-hub", false), ("home/.mcp-hub", true)] {
        let folder = Folder::new(&format!("hub-{}", at.replace('/', "-")));
        let (home, state) = (format!("{}/home", folder.path()), format!("{}/state", folder.path()));
        let mut server = Script::start().await;
        let port = server.address().port();
        let hub = |cwd: &str, port: u16, pid: u32| {
            json!({"cwd": cwd, "config_files": [format!("{cwd}/servers.json")], "pid": pid, "port": port,
                   "startTime": "2026-01-01T00:00:00.000Z", "state": "active", "activeConnections": 0})
        };
        let (us, here) = (std::process::id(), here.to_str().unwrap());
        let hubs = json!({"1": hub(here, 1, ended_process()), "2": hub("/elsewhere", 2, us), "3": hub(here, port, us)});
        folder.write(&format!("{at}/workspaces.json"), &hubs.to_string());
        let state = if variable { state } else { String::new() };
        let env = [("HOME", home.as_str()), ("XDG_STATE_HOME", state.as_str())];
        let mut client = Mcpwire::start_with(&["connect", "--mcp-hub"], &env);
        let stream = open(&mut client, &mut server).await;
        finish(client, server, stream).await;
    }
}

#[tokio::test]
async fn no_running_hub_is_one_line_and_a_code() {
    let folder = Folder::new("no-hub");
    let dead = json!({"1": {"cwd": "/", "config_files": [], "pid": ended_process(), "port": 1}});
    for text in [None, Some("{}".to_owned()), Some("no JSON".into()), Some(dead.to_string())] {
        if let Some(text) = &text {
            folder.write("mcp-hub/workspaces.json", text);
        }
        let env = [("HOME", folder.path()), ("XDG_STATE_HOME", folder.path())];
        let mut client = Mcpwire::start_with(&["connect", "--mcp-hub"], &env);
        assert_eq!(client.wait().await.code(), Some(1), "{text:?}");
        client.logged("no mcp-hub is running").await;
        assert_eq!(client.stderr().lines().count(), 1, "{}", client.stderr());
        assert_eq!(client.line().await, None);
    }
}
