//! `mcpwire servers` on the machine of a person with many clients.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::docs::{blocks, words};
use crate::support::scratch::Scratch;

const SECRET: &str = "s3cret";

/// A home and a project, and nothing of the real one.
struct Machine(Scratch);

impl Machine {
    fn new() -> Machine {
        let machine = Machine(Scratch::new());
        fs::create_dir_all(machine.0.path().join("home")).unwrap();
        fs::create_dir_all(machine.0.path().join("project")).unwrap();
        machine
    }

    fn write(&self, name: &str, text: &str) -> &Machine {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpwire"));
        command.arg("servers").args(args).current_dir(self.0.path().join("project")).env_clear();
        command.env("HOME", self.0.path().join("home")).env("TOKEN", SECRET).output().expect("the binary runs")
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn what_is_found_is_shown_with_where_and_why_not() {
    let machine = Machine::new();
    machine.write("home/.claude.json", r#"{"mcpServers":{"docs":{"type":"http","url":"https://example.com/mcp"},"old":{"command":"x","enabled":false}}}"#);
    machine.write(
        "home/.cursor/mcp.json",
        r#"{"mcpServers":{"docs":{"command":"other"},"tools":{"command":"npx","args":["-y","@scope/tools"]}}}"#,
    );
    machine.write("project/.mcp.json", r#"{"mcpServers":{"theirs":{"command":"theirs"}}}"#);
    let output = machine.run(&[]);
    let expected = "\
NAME   TRANSPORT  SERVER                   FROM
docs   http       https://example.com/mcp  ~/.claude.json (claude)
tools  stdio      npx -y @scope/tools      ~/.cursor/mcp.json (cursor)

IGNORED  FROM                         WHY
old      ~/.claude.json (claude)      disabled
docs     ~/.cursor/mcp.json (cursor)  shadowed by the one in ~/.claude.json
theirs   .mcp.json (project)          came with the project, and is taken with --project only
";
    assert_eq!(stdout(&output), expected);
    assert!(output.status.success());
    let names =
        |found: &Value| found["servers"].as_array().unwrap().iter().map(|s| s["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&machine.json(&["--project"])), ["docs", "tools", "theirs"]);
    assert_eq!(names(&machine.json(&["--config", ".mcp.json"])), ["theirs"]);
}

#[test]
fn secrets_are_in_no_output() {
    let machine = Machine::new();
    let config = json!({ "mcpServers": {
        "a": { "command": "srv", "args": ["--key", SECRET, "${TOKEN}"], "env": { "KEY": SECRET, "OTHER": "${TOKEN}", "CMD": format!("!echo {SECRET}") } },
        "b": { "url": format!("https://u:{SECRET}@h/mcp?key={SECRET}"), "headers": { "Authorization": format!("Bearer {SECRET}") } },
        "c": { "type": "${TOKEN}", "url": SECRET },
        "d": { "url": SECRET, "headers": { "X": format!("{SECRET}\n") } },
        "e": { "command": SECRET, "url": SECRET, "args": { "x": SECRET }, "env": [SECRET], "timeout": SECRET, "protocol": SECRET },
        "path": { "url": "https://h/${TOKEN}/mcp" },
        "default": { "url": format!("https://h/${{NONE:-{SECRET}}}/mcp#{SECRET}") },
        "bad-url": { "url": format!("https://u:{SECRET}@h:port/") },
        "bad-header": { "url": "https://h/", "headers": { format!("Authorization: Bearer {SECRET}"): "" } },
    } });
    machine.write("home/.config/mcpwire/mcp.json", &config.to_string());
    machine
        .write("home/.codex/config.toml", "[mcp_servers.f]\nurl = \"http://h/\"\nbearer_token_env_var = \"TOKEN\"\n");
    for args in [&["--json"][..], &[]] {
        let output = machine.run(args);
        assert_eq!(output.status.code(), Some(1));
        let told = format!("{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr));
        assert!(told.contains("OTHER") == args.contains(&"--json"), "{told}");
        assert!(!told.contains(SECRET), "{told}");
    }
    let found = machine.json(&[]);
    assert_eq!(found["servers"][0]["env"], json!(["CMD", "KEY", "OTHER"]));
    assert_eq!(found["servers"][0]["command"], "srv --key … …");
    assert_eq!(found["servers"][1]["headers"], json!(["Authorization"]));
    assert_eq!(found["servers"][1]["url"], "https://h/mcp?...");
    let path = found["servers"].as_array().unwrap().iter().find(|server| server["name"] == "path").unwrap();
    assert_eq!(path["url"], "https://h/${TOKEN}/mcp");
}

#[test]
fn nothing_is_run_to_show_it() {
    let machine = Machine::new();
    let mark = machine.0.path().join("mark");
    let entry = json!({ "command": "touch", "args": [mark], "env": { "A": format!("!touch {}", mark.display()) } });
    machine.write("home/.config/mcpwire/mcp.json", &json!({ "mcpServers": { "a": entry } }).to_string());
    assert_eq!(machine.json(&[])["servers"][0]["name"], "a");
    assert!(!mark.exists());
}

#[test]
fn exit_codes_tell_whether_all_is_well() {
    let machine = Machine::new();
    let output = machine.run(&[]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "No servers.\n"));
    assert_eq!(machine.run(&["--config", "none.json"]).status.code(), Some(1));
    assert_eq!(machine.run(&["--nonsense"]).status.code(), Some(2));
    machine.write("home/.cursor/mcp.json", r#"{"mcpServers":{"n":{"type":"x"},"ok":{"command":"c"}}}"#);
    let output = machine.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains(r#"Server "n": unknown server type "x""#), "{}", stdout(&output));
    assert!(stdout(&output).contains("ok "), "the others are there");
}

#[test]
fn names_cannot_give_orders_to_the_terminal() {
    let machine = Machine::new();
    machine.write("project/.mcp.json", "{\"mcpServers\":{\"\\u001b[2Jgone\":{\"command\":\"c\"}}}");
    for args in [&[][..], &["--project"]] {
        assert!(!stdout(&machine.run(args)).contains('\u{1b}'));
    }
}

/// Every file of `docs/config.md` is read as it is shown, and says what the page says it does.
#[test]
fn the_files_shown_in_the_documentation_are_understood() {
    let page = include_str!("../../../../docs/config.md");
    let machine = Machine::new();
    let mut seen = 0;
    for (language, text) in blocks(page) {
        let name = match language.as_str() {
            "json" | "jsonc" => "shown.json",
            "toml" => "shown.toml",
            _ => continue,
        };
        machine.write(&format!("project/{name}"), &text);
        let output = machine.run(&["--config", name]);
        assert!(output.status.success(), "{text}{}", stdout(&output));
        let told = stdout(&output);
        let warnings = told.split_once("WARNING").map_or("", |(_, rows)| rows);
        // The variables of a reader are set.
        assert!(warnings.lines().skip(1).all(|line| line.ends_with(" is not set")), "{told}");
        seen += 1;
    }
    assert!(seen >= 3, "only {seen} files were found");
}

/// A session in the documentation: the file it is about, then the command and what it prints.
#[test]
fn the_listing_shown_in_the_documentation_is_what_comes() {
    let page = include_str!("../../../../docs/config.md");
    let machine = Machine::new();
    let blocks = blocks(page);
    let file = &blocks.iter().find(|(language, _)| language == "json").unwrap().1;
    machine.write("home/.config/mcpwire/mcp.json", file);
    machine.write("home/.cursor/mcp.json", r#"{"mcpServers":{"files":{"command":"x"}}}"#);
    machine.write("project/.mcp.json", r#"{"mcpServers":{"theirs":{"command":"x"}}}"#);
    let (_, session) = blocks.iter().find(|(_, text)| text.starts_with("$ mcpwire servers\n")).unwrap();
    let (command, shown) = session.split_once('\n').unwrap();
    let output = machine.run(&words(command)[3..].iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(stdout(&output), shown);
}
