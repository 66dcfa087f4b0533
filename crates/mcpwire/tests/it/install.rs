//! `mcpwire install` and `mcpwire uninstall` on homes of their own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::scratch::Scratch;

struct Home(Scratch);

impl Home {
    fn new() -> Home {
        let home = Home(Scratch::new());
        fs::create_dir(home.path("project")).unwrap();
        fs::create_dir(home.path("project/library")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// Runs mcpwire in the home's project.
    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpwire"));
        command.args(line.split(' ')).current_dir(self.path("project")).env("HOME", self.0.path());
        for name in ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"] {
            command.env_remove(name);
        }
        command.output().expect("the binary runs")
    }

    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn refused(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// The names in a folder, sorted.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn settings() -> &'static str {
    if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" }
}

#[test]
fn every_client_gets_its_own_form_in_its_own_place() {
    let exe = Path::new(env!("CARGO_BIN_EXE_mcpwire")).canonicalize().unwrap();
    let (exe, settings) = (exe.to_str().unwrap(), settings());
    let bare = json!({"command": exe, "args": ["connect", "https://a.example/mcp"]});
    let mut typed = bare.clone();
    typed["type"] = "stdio".into();
    for (client, scope, file, expected) in [
        ("claude-code", "user", ".claude.json", json!({"mcpServers": {"n": typed}})),
        ("claude-code", "project", "project/.mcp.json", json!({"mcpServers": {"n": typed}})),
        (
            "claude-desktop",
            "user",
            &format!("{settings}/Claude/claude_desktop_config.json"),
            json!({"mcpServers": {"n": bare}}),
        ),
        ("cursor", "user", ".cursor/mcp.json", json!({"mcpServers": {"n": typed}})),
        ("cursor", "project", "project/.cursor/mcp.json", json!({"mcpServers": {"n": typed}})),
        ("vscode", "user", &format!("{settings}/Code/User/mcp.json"), json!({"servers": {"n": typed}})),
        ("vscode", "project", "project/.vscode/mcp.json", json!({"servers": {"n": typed}})),
        ("windsurf", "user", ".codeium/windsurf/mcp_config.json", json!({"mcpServers": {"n": bare}})),
        ("gemini", "user", ".gemini/settings.json", json!({"mcpServers": {"n": bare}})),
        ("gemini", "project", "project/.gemini/settings.json", json!({"mcpServers": {"n": bare}})),
        ("codex", "user", ".codex/config.toml", json!({"mcp_servers": {"n": bare}})),
        ("codex", "project", "project/.codex/config.toml", json!({"mcp_servers": {"n": bare}})),
    ] {
        let home = Home::new();
        let line = format!("install {client} --scope {scope} https://a.example/mcp --name n");
        assert!(home.ok(&format!("{line} --dry-run")).contains("+ "), "{client}");
        assert!(!home.path(file).exists(), "{client}: a dry run wrote {file}");
        home.ok(&line);
        let text = home.read(file);
        let value: Value = match client {
            "codex" => serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap(),
            _ => serde_json::from_str(&text).unwrap(),
        };
        assert_eq!(value, expected, "{client}");
        let mode = fs::metadata(home.path(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if scope == "user" { 0o600 } else { 0o644 }, "{client}");
        assert!(home.ok(&line).contains("already"));
        home.ok(&format!("uninstall {client} n --scope {scope}"));
        assert!(!home.path(file).exists(), "{client}: the file was not there before");
    }
}

#[test]
fn what_was_installed_and_taken_out_leaves_the_bytes_that_were() {
    let home = Home::new();
    let (file, before) = (".cursor/mcp.json", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"url\": \"x\"}, // mine\n\t}\n}");
    home.write(file, before);
    fs::set_permissions(home.path(file), fs::Permissions::from_mode(0o640)).unwrap();
    let shown = home.ok("install cursor --dry-run ./library");
    assert!(shown.contains("+ \t\t\"library\": {\n"), "{shown}");
    assert!(shown.starts_with("~/.cursor/mcp.json\n"), "{shown}");
    home.ok("install cursor ./library");
    let with = home.read(file);
    let path = home.path("project/library").canonicalize().unwrap();
    assert!(with.contains(&format!("[\"connect\", \"{}\"]", path.display())), "{with}");
    assert_eq!(home.read(&format!("{file}.mcpwire-backup-1")), before);
    home.ok("install cursor https://b.example --name library -H X:1");
    assert_eq!(home.read(&format!("{file}.mcpwire-backup-2")), with);
    home.ok("uninstall cursor library");
    assert_eq!(home.read(file), before);
    for name in home.names(".cursor") {
        let mode = fs::metadata(home.path(".cursor").join(&name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o640, "{name}");
    }
    assert_eq!(home.names(".cursor").len(), 4, "the file and a copy for each change");
}

#[test]
fn without_copies_only_the_entry_goes() {
    let home = Home::new();
    home.write(".gemini/settings.json", "{\n  \"theme\": \"x\"\n}\n");
    home.ok("install gemini -- npx -y server-everything");
    for name in home.names(".gemini").iter().filter(|name| name.contains("backup")) {
        fs::remove_file(home.path(".gemini").join(name)).unwrap();
    }
    home.ok("uninstall gemini server-everything");
    let left: Value = serde_json::from_str(&home.read(".gemini/settings.json")).unwrap();
    assert_eq!(left, json!({"theme": "x", "mcpServers": {}}));
}

#[test]
fn a_name_that_is_taken_needs_force_and_comes_back() {
    let home = Home::new();
    let before = "[mcp_servers.n]\nurl = \"https://other\" # other\n";
    home.write(".codex/config.toml", before);
    let said = home.refused("install codex https://a.example --name n");
    assert!(said.contains("another server") && said.contains("--force"), "{said}");
    assert_eq!(home.read(".codex/config.toml"), before);
    home.ok("install codex https://a.example --name n --force");
    assert!(home.read(".codex/config.toml").contains("a.example"));
    home.ok("uninstall codex n");
    assert_eq!(home.read(".codex/config.toml"), before);
    let said = home.refused("uninstall codex n");
    assert!(said.contains("not put there by mcpwire"), "{said}");
}

#[test]
fn a_file_that_is_not_understood_is_left_alone() {
    let home = Home::new();
    for (client, file, text, line) in [
        ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": {,}\n}", "line 2"),
        ("cursor", ".cursor/mcp.json", "{\n\n  \"mcpServers\": []}", "line 3"),
        ("codex", ".codex/config.toml", "a = 1\nb = \n", "line 2"),
    ] {
        home.write(file, text);
        for command in ["install CLIENT https://a.example --name n --force", "uninstall CLIENT n --force"] {
            let said = home.refused(&command.replace("CLIENT", client));
            assert!(said.contains(file) && said.contains(line), "{said}");
            assert_eq!(home.read(file), text);
        }
    }
    home.write(".cursor/mcp.json", "");
    fs::write(home.path(".cursor/mcp.json"), b"{\"a\": \"\xff\"}").unwrap();
    assert!(home.refused("install cursor https://a.example").contains("UTF-8"));
    assert_eq!(home.names(".cursor"), ["mcp.json"]);
    assert!(home.refused("install windsurf --scope project https://a.example").contains("--scope user"));
    assert!(home.refused("install cursor https://a.example --name a/b").contains("--name"));
    assert!(home.refused("install cursor docs --name docs").contains("its own target"));
    assert_eq!(home.run("install cursor").status.code(), Some(2));
    assert_eq!(home.run("install cursor ftp://x").status.code(), Some(2));
}

#[test]
fn links_are_followed_and_stay() {
    let home = Home::new();
    home.write("dotfiles/mcp.json", "{}");
    fs::create_dir(home.path(".cursor")).unwrap();
    symlink("../dotfiles/mcp.json", home.path(".cursor/mcp.json")).unwrap();
    home.ok("install cursor https://a.example --name n");
    assert!(fs::symlink_metadata(home.path(".cursor/mcp.json")).unwrap().is_symlink());
    assert!(home.read("dotfiles/mcp.json").contains("a.example"));
    home.ok("uninstall cursor n");
    assert_eq!(home.read("dotfiles/mcp.json"), "{}");
    fs::remove_file(home.path("dotfiles/mcp.json")).unwrap();
    assert!(home.refused("install cursor https://a.example").contains("a link to nothing"));
}

#[test]
fn a_link_that_came_with_a_project_is_not_written_through() {
    for (client, link, leads, held) in [
        ("claude-code", "project/.mcp.json", "../.bashrc", ".bashrc"),
        ("claude-code", "project/.mcp.json", "../new-file", "new-file"),
        ("cursor", "project/.cursor", "../.ssh", ".ssh/mcp.json"),
        ("vscode", "project/.vscode/mcp.json", "../library/mcp.json", "project/library/mcp.json"),
    ] {
        let home = Home::new();
        fs::create_dir(home.path(".ssh")).unwrap();
        home.write(".bashrc", "{}");
        home.write("project/library/mcp.json", "{}");
        fs::create_dir_all(home.path(link).parent().unwrap()).unwrap();
        symlink(leads, home.path(link)).unwrap();
        let before = fs::read(home.path(held)).ok();
        for dry in ["", " --dry-run"] {
            let said = home.refused(&format!("install {client} --scope project https://a.example --name n{dry}"));
            assert!(said.contains("is a symbolic link") && said.contains(leads), "{said}");
        }
        home.refused(&format!("uninstall {client} n --scope project --force"));
        assert_eq!(fs::read(home.path(held)).ok(), before, "{link}");
        assert!(fs::symlink_metadata(home.path(link)).unwrap().is_symlink());
    }
}

#[test]
fn an_editor_entry_is_printed_with_the_manifest() {
    let home = Home::new();
    let printed: Value = serde_json::from_str(&home.ok("install vscode ./library --name library --print")).unwrap();
    let server = &printed["mcp.json"]["servers"]["library"];
    assert_eq!(server["type"], "stdio");
    assert_eq!(server["args"][0], "connect");
    assert_eq!(printed["package.json"]["contributes"]["chatParticipants"][0]["name"], "mybusiness");
    let printed: Value = serde_json::from_str(&home.ok("install vscode --print")).unwrap();
    assert_eq!(printed["mcp.json"]["servers"]["mybusiness"]["args"], json!(["connect", "sample:"]));
    assert_eq!(home.names(""), ["project"]);
}
