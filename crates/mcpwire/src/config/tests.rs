//! What is found where, what wins, and what is said about the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::target::Target;

/// A home and a project of a test's own.
struct Machine(PathBuf);

impl Machine {
    fn new() -> Machine {
        let root = std::env::temp_dir().join(format!("mcpwire-config-{:016x}", fastrand::u64(..)));
        fs::create_dir_all(root.join("home")).unwrap();
        fs::create_dir_all(root.join("project")).unwrap();
        Machine(root)
    }

    fn environment(&self) -> Environment {
        let variable = |name: &str| match name {
            "TOKEN" => Some("t0p".to_owned()),
            "HOST" => Some("example.com".to_owned()),
            "ORDER" => Some("!touch pwned".to_owned()),
            "LOUD" => Some("true".to_owned()),
            _ => None,
        };
        Environment::new(Some(self.0.join("home")), self.0.join("project"), variable)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) -> &Machine {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn load(&self) -> Found {
        load(&self.environment(), &Options { project: true, ..Options::default() })
    }

    fn sources(&self, found: &Found) -> Vec<(String, String)> {
        let below = |path: &Path| path.strip_prefix(&self.0).unwrap().display().to_string();
        found.servers.iter().map(|server| (server.name.clone(), below(&server.source.path))).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What becomes of one entry in a file of the user.
fn one(entry: serde_json::Value) -> Found {
    let machine = Machine::new();
    machine.write("home/.cursor/mcp.json", &json!({ "mcpServers": { "n": entry } }).to_string());
    machine.load()
}

fn remote(found: &Found) -> &Remote {
    match &found.servers[0].transport {
        Transport::Http(remote) | Transport::Sse(remote) => remote,
        Transport::Stdio(_) => panic!("{found:?}"),
    }
}

fn program(found: &Found) -> &Program {
    let Transport::Stdio(program) = &found.servers[0].transport else { panic!("{found:?}") };
    program
}

#[test]
fn the_transport_is_told_or_inferred() {
    let url = "http://h/mcp";
    let cases = [
        (json!({ "command": "c" }), "stdio"),
        (json!({ "url": url }), "http"),
        (json!({ "type": "stdio", "command": "c" }), "stdio"),
        (json!({ "type": "http", "url": url }), "http"),
        (json!({ "type": "streamable-http", "url": url }), "http"),
        (json!({ "transport": "sse", "url": url }), "sse"),
        (json!({ "type": "sse", "url": url }), "sse"),
        (json!({ "httpUrl": url }), "http"),
        (json!({ "serverUrl": url }), "http"),
        (json!({ "type": "${NONE:-sse}", "url": url }), "sse"),
    ];
    for (entry, expected) in cases {
        let found = one(entry.clone());
        assert_eq!(found.servers.first().map(|server| server.transport.name()), Some(expected), "{entry}: {found:?}");
    }
}

#[test]
fn faults_are_told_in_these_words() {
    let both =
        "both \"command\" and \"url\" are set - server should be either stdio (command) OR http/sse (url), not both";
    let cases = [
        (json!({}), r#"Server "n": stdio server requires "command" field"#.to_owned()),
        (json!({ "command": "" }), r#"Server "n": stdio server requires "command" field"#.to_owned()),
        (json!({ "type": "http" }), r#"Server "n": http server requires "url" field"#.to_owned()),
        (json!({ "type": "sse", "command": "c" }), r#"Server "n": sse server requires "url" field"#.to_owned()),
        (json!({ "type": "carrier-pigeon" }), r#"Server "n": unknown server type "carrier-pigeon""#.to_owned()),
        (json!({ "type": 5 }), r#"Server "n": unknown server type "5""#.to_owned()),
        (json!({ "type": "${TOKEN}" }), r#"Server "n": unknown server type "${TOKEN}""#.to_owned()),
        (json!({ "command": "c", "url": "http://h" }), format!("Server \"n\": {both}")),
        (
            json!({ "type": "x", "command": "c", "url": "http://h" }),
            format!("Server \"n\": {both}; Server \"n\": unknown server type \"x\""),
        ),
        (json!({ "url": "ftp://h" }), r#"Server "n": "url" must be an http or https URL"#.to_owned()),
        (
            json!({ "url": "http://h", "headers": { "a b": "c" } }),
            r#"Server "n": "headers" has a name that no header can have"#.to_owned(),
        ),
        (
            json!({ "url": "http://h", "headers": [] }),
            r#"Server "n": "headers" must be an object of strings"#.to_owned(),
        ),
        (
            json!({ "command": 5 }),
            r#"Server "n": "command" must be a string; Server "n": stdio server requires "command" field"#.to_owned(),
        ),
        (json!({ "command": "c", "args": "x" }), r#"Server "n": "args" must be an array of strings"#.to_owned()),
        (
            json!({ "command": "c", "env": { "A=B": "x" } }),
            r#"Server "n": "env" has a name that no variable can have"#.to_owned(),
        ),
        (json!("c"), r#"Server "n": expected an object"#.to_owned()),
    ];
    for (entry, expected) in cases {
        let found = one(entry.clone());
        assert!(found.servers.is_empty(), "{entry}");
        assert_eq!(
            found.ignored.iter().map(|i| i.why.clone()).collect::<Vec<_>>(),
            [Why::Invalid(expected)],
            "{entry}"
        );
    }
}

#[test]
fn the_first_name_wins_and_nothing_is_merged() {
    let machine = Machine::new();
    // In the order in which names are given away.
    let places = [
        ("project/.mcpwire/mcp.json", "mcpServers"),
        ("home/.config/mcpwire/mcp.json", "mcpServers"),
        ("project/.omp/mcp.json", "mcpServers"),
        ("project/.omp/.mcp.json", "mcpServers"),
        ("home/.omp/agent/mcp.json", "mcpServers"),
        ("home/.omp/agent/.mcp.json", "mcpServers"),
        ("project/.claude/.mcp.json", "mcpServers"),
        ("home/.claude.json", "mcpServers"),
        ("project/.gemini/settings.json", "mcpServers"),
        ("home/.gemini/settings.json", "mcpServers"),
        ("project/.cursor/mcp.json", "mcpServers"),
        ("home/.cursor/mcp.json", "mcpServers"),
        ("project/.windsurf/mcp_config.json", "mcpServers"),
        ("home/.codeium/windsurf/mcp_config.json", "mcpServers"),
        ("project/.vscode/mcp.json", "servers"),
        ("home/.config/Code/User/mcp.json", "servers"),
        ("project/mcp.json", "mcpServers"),
        ("project/.mcp.json", "mcpServers"),
    ];
    for (n, (place, key)) in places.iter().enumerate() {
        let entry = |name: &str| json!({ "command": format!("{name}-{n}"), "env": { format!("V{n}"): "x" } });
        machine.write(place, &json!({ *key: { "same": entry("same"), format!("own-{n}"): entry("own") } }).to_string());
    }
    for (n, (place, _)) in places.iter().enumerate() {
        let found = machine.load();
        let first = found.servers.iter().find(|server| server.name == "same").unwrap();
        assert_eq!(first.source.path, machine.path(place));
        let Transport::Stdio(program) = &first.transport else { panic!() };
        assert_eq!((program.command.clone(), program.env.len()), (format!("same-{n}"), 1));
        let names: Vec<String> = found.servers.iter().map(|server| server.name.clone()).collect();
        let others: Vec<String> = (n..places.len()).map(|n| format!("own-{n}")).collect();
        assert_eq!(names.iter().filter(|name| *name != "same").cloned().collect::<Vec<_>>(), others);
        let shadowed = found.ignored.iter().filter(|ignored| ignored.why == Why::Shadowed(first.source.clone()));
        assert_eq!(shadowed.count(), places.len() - n - 1);
        fs::remove_file(machine.path(place)).unwrap();
    }
}

#[test]
fn some_places_stand_in_for_others() {
    let machine = Machine::new();
    machine.write("home/.claude/mcp.json", r#"{"mcpServers":{"second":{"command":"c"}}}"#);
    machine.write("home/.claude.json", r#"{"numStartups": 3, "mcpServers":{}}"#);
    assert_eq!(machine.sources(&machine.load()), [("second".into(), "home/.claude/mcp.json".into())]);
    machine.write("home/.claude.json", r#"{"mcpServers":{"first":{"command":"c"}}}"#);
    assert_eq!(machine.sources(&machine.load()), [("first".into(), "home/.claude.json".into())]);
}

#[test]
fn claude_keeps_servers_for_single_projects() {
    let machine = Machine::new();
    let here = machine.path("project").display().to_string();
    let text = json!({
        "mcpServers": { "a": { "command": "everywhere" }, "b": { "command": "b" } },
        "projects": {
            here: { "mcpServers": { "a": { "command": "here" } } },
            "/elsewhere": { "mcpServers": { "c": { "command": "c" } } },
        },
    });
    machine.write("home/.claude.json", &text.to_string());
    let found = load(&machine.environment(), &Options::default());
    assert_eq!(program(&found).command, "here");
    assert_eq!(found.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn vs_code_writes_comments_and_has_names_of_its_own() {
    let machine = Machine::new();
    let text = "{\n  // mine\n  \"inputs\": [],\n  \"servers\": { \"a\": { \"type\": \"stdio\", \"command\": \"a\", }, }, /* end */\n}";
    machine.write("project/.vscode/mcp.json", text);
    machine.write(
        "home/.config/Code/User/settings.json",
        r#"{"mcp": {"servers": {"b": {"transport": "sse", "url": "http://h/"}}}}"#,
    );
    machine.write(
        "project/.vscode/settings.json",
        r#"{"mcp.servers": {"c": {"command": "c", "envFile": ".env"}}, "editor.tabSize": 2,}"#,
    );
    let found = machine.load();
    let names: Vec<&str> = found.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["a", "c", "b"]);
    assert_eq!(found.ignored.len(), 1);
    assert_eq!(found.ignored[0].why, Why::Setting("\"envFile\" is not read".into()));
}

#[test]
fn codex_writes_toml() {
    let machine = Machine::new();
    let text = r#"
        model = "o3"
        [mcp_servers.local]
        command = "npx"
        args = ["-y", "server"]
        env_vars = ["TOKEN", "NONE"]
        tool_timeout_sec = 1.5
        enabled_tools = ["read_*"]
        [mcp_servers.local.env]
        MODE = "dev"
        [mcp_servers.remote]
        url = "https://example.com/mcp"
        bearer_token_env_var = "TOKEN"
        http_headers = { "X-One" = "1" }
        env_http_headers = { "X-Host" = "HOST", "X-None" = "NONE" }
        [mcp_servers.off]
        command = "x"
        enabled = false
    "#;
    machine.write("home/.codex/config.toml", text);
    let found = machine.load();
    let local = &found.servers[0];
    assert_eq!((local.name.as_str(), local.timeout), ("local", Some(Duration::from_millis(1500))));
    assert_eq!((&local.include[..], &local.exclude[..]), (&["read_*".to_owned()][..], &[][..]));
    let env: Vec<&str> = program(&found).env.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(env, ["MODE", "TOKEN"]);
    let Transport::Http(remote) = &found.servers[1].transport else { panic!() };
    let text = |text: &str| Value::Text(Secret::new(text));
    let expected = [
        ("X-One".to_owned(), Value::Name(Secret::new("1"))),
        ("X-Host".to_owned(), text("example.com")),
        ("Authorization".to_owned(), text("Bearer t0p")),
    ];
    assert_eq!(remote.headers, expected);
    let whys: Vec<String> = found.ignored.iter().map(|ignored| ignored.why.to_string()).collect();
    assert_eq!(whys, ["disabled", "header \"X-None\" is left out: NONE is not set"]);
}

#[test]
fn variables_are_put_into_every_string() {
    let found = one(
        json!({ "command": "${NONE:-sh}", "args": ["${TOKEN}", 8080], "cwd": "${NONE:-sub}", "env": { "A": "x-${TOKEN}", "B": "${NONE}" } }),
    );
    let program = program(&found);
    assert_eq!(program.command, "sh");
    assert_eq!(program.args.iter().map(Secret::reveal).collect::<Vec<_>>(), ["t0p", "8080"]);
    assert!(program.cwd.ends_with("project/sub"));
    assert_eq!(program.env[0].1, Value::Text(Secret::new("x-t0p")));
    // Not set: as it is written, and told.
    assert_eq!(program.env[1].1, Value::Name(Secret::new("${NONE}")));
    assert_eq!(found.ignored[0].why, Why::Setting("${NONE} is not set".into()));
    assert_eq!(program.outline, "${NONE:-sh} … …");
    let found = one(json!({ "url": "https://${HOST}/mcp?key=${TOKEN}" }));
    assert_eq!(remote(&found).url.as_str(), "https://example.com/mcp?key=t0p");
    assert!(!format!("{found:?}").contains("t0p"), "{found:?}");
}

#[test]
fn what_is_off_has_its_name_and_what_is_broken_has_not() {
    let machine = Machine::new();
    machine
        .write("home/.config/mcpwire/mcp.json", r#"{"mcpServers":{"off":{"command":"c","enabled":false},"bad":{}}}"#);
    machine.write("home/.cursor/mcp.json", r#"{"mcpServers":{"off":{"command":"c"},"bad":{"command":"good"}}}"#);
    machine.write(
        "home/.gemini/settings.json",
        r#"{"mcpServers":{"x":{"command":"c","disabled":true},"y":{"command":"c","enabled":"false"}}}"#,
    );
    let found = machine.load();
    assert_eq!(machine.sources(&found), [("bad".into(), "home/.cursor/mcp.json".into())]);
    let kinds: Vec<&str> = found.ignored.iter().map(|ignored| ignored.why.kind()).collect();
    assert_eq!(kinds, ["disabled", "invalid", "disabled", "disabled", "shadowed"]);
}

#[test]
fn a_bad_file_hurts_no_other() {
    let machine = Machine::new();
    machine.write("home/.cursor/mcp.json", "{\"mcpServers\": {\n oh");
    machine.write("home/.gemini/settings.json", r#"{"mcpServers": []}"#);
    machine.write("home/.codex/config.toml", "[mcp_servers\n");
    machine.write("home/.omp/agent/mcp.json", "");
    fs::create_dir_all(machine.path("home/.claude.json")).unwrap();
    fs::write(machine.path("home/.omp/agent/.mcp.json"), b"\xff").unwrap();
    machine.write("home/.codeium/windsurf/mcp_config.json", r#"{"mcpServers":{"good":{"command":"c"}}}"#);
    let found = machine.load();
    assert_eq!(found.servers.len(), 1);
    let faults: Vec<String> = found.ignored.iter().map(|ignored| ignored.why.to_string()).collect();
    let begin = [
        "expected JSON, came nothing",
        "expected UTF-8",
        "expected a file",
        "expected TOML",
        "expected an object under",
        "expected a JSON object",
    ];
    assert_eq!(faults.len(), begin.len(), "{faults:?}");
    for (fault, begin) in faults.iter().zip(begin) {
        assert!(fault.starts_with(begin), "{fault}");
    }
    assert!(faults[5].contains("line 2: expected string"), "{}", faults[5]);
}

#[test]
fn bad_settings_are_left_alone_and_told() {
    let found = one(json!({ "command": "c", "timeout": "soon", "enabled": 7, "protocol": "1999-01-01" }));
    assert_eq!((found.servers[0].timeout, found.servers[0].protocol), (None, None));
    assert_eq!(found.ignored.len(), 3, "{:?}", found.ignored);
    assert_eq!(one(json!({ "command": "c", "protocol": 5 })).servers.len(), 1);
    let found = one(json!({ "command": "c", "timeout": "2500", "enabled": "1", "protocol": "2025-06-18" }));
    assert_eq!(found.servers[0].timeout, Some(Duration::from_millis(2500)));
    assert_eq!(found.servers[0].protocol, Some("2025-06-18"));
    assert_eq!(found.ignored, []);
    for timeout in [json!(-1), json!(0), json!(1e300), json!(null), json!("NaN"), json!("inf")] {
        assert_eq!(one(json!({ "command": "c", "timeout": timeout })).servers[0].timeout, None, "{timeout}");
    }
}

#[test]
fn a_project_is_asked_for() {
    let machine = Machine::new();
    machine.write("project/.mcp.json", r#"{"mcpServers":{"tool":{"command":"theirs"}}}"#);
    machine.write("home/.cursor/mcp.json", r#"{"mcpServers":{"tool":{"command":"mine"}}}"#);
    machine.write("project/.mcpwire/mcp.json", r#"{"mcpServers":{"tool":{"command":"theirs"}}}"#);
    let found = load(&machine.environment(), &Options::default());
    assert_eq!(program(&found).command, "mine", "what may not be taken shadows nothing");
    assert_eq!(found.ignored.iter().filter(|ignored| ignored.why == Why::Project).count(), 2);
    assert_eq!(program(&machine.load()).command, "theirs");
}

#[test]
fn in_the_home_itself_the_files_are_the_users() {
    let machine = Machine::new();
    machine.write("home/.cursor/mcp.json", r#"{"mcpServers":{"a":{"command":"c"}}}"#);
    let mut environment = machine.environment();
    environment.cwd = machine.path("home");
    let found = load(&environment, &Options::default());
    assert_eq!((found.servers.len(), found.ignored.len()), (1, 0), "{found:?}");
    assert_eq!(found.servers[0].source.scope, Scope::User);
}

#[test]
fn a_projects_values_are_text_and_nothing_else() {
    let entry = r#"{"mcpServers":{"n":{"command":"c","env":{"A":"!touch pwned","B":"TOKEN","C":"${ORDER}"}}}}"#;
    let machine = Machine::new();
    machine.write("project/.mcp.json", entry);
    let found = machine.load();
    let values: Vec<&Value> = program(&found).env.iter().map(|(_, value)| value).collect();
    let text = |text: &str| Value::Text(Secret::new(text));
    assert_eq!(values, [&Value::Nothing, &text("TOKEN"), &text("!touch pwned")]);
    assert_eq!(found.ignored[0].why, Why::Setting("env \"A\" is left out: commands of a project are not run".into()));
    // The same file, named by the user.
    let found = load(&machine.environment(), &Options { files: vec![".mcp.json".into()], project: false });
    let values: Vec<&Value> = program(&found).env.iter().map(|(_, value)| value).collect();
    // What a variable holds never becomes a command.
    let expected =
        [&Value::Command(Secret::new("touch pwned")), &Value::Name(Secret::new("TOKEN")), &text("!touch pwned")];
    assert_eq!(values, expected);
    assert_eq!(found.servers[0].source.scope, Scope::Given);
}

#[test]
fn a_named_file_must_be_there_and_have_servers() {
    let machine = Machine::new();
    machine.write("project/empty.json", "{}");
    let files = vec!["none.json".into(), "empty.json".into()];
    let found = load(&machine.environment(), &Options { files, project: false });
    assert!(matches!(&found.ignored[0].why, Why::Unreadable(why) if why.starts_with("cannot be read: ")));
    let expected = "expected \"mcpServers\", \"servers\" or \"mcp.servers\", came none of them";
    assert_eq!(found.ignored[1].why, Why::Unreadable(expected.into()));
}

#[test]
fn a_pipe_in_a_project_holds_nobody_up() {
    let machine = Machine::new();
    let path = machine.path("project/.mcp.json");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert_eq!(machine.load().ignored[0].why, Why::Unreadable("expected a file".into()));
}

#[test]
fn the_hash_is_of_what_is_written() {
    let hash = |entry: &str| {
        let machine = Machine::new();
        machine.write("home/.cursor/mcp.json", &format!(r#"{{"mcpServers":{{"n":{entry}}}}}"#));
        machine.load().servers[0].hash.clone()
    };
    let first = hash(r#"{"command":"c","env":{"A":"${TOKEN}","B":"2"}}"#);
    // sha256 of {"command":"c","env":{"A":"${TOKEN}","B":"2"}}
    let expected: String =
        ring::digest::digest(&ring::digest::SHA256, br#"{"command":"c","env":{"A":"${TOKEN}","B":"2"}}"#)
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
    assert_eq!(first, expected);
    assert_eq!(first, hash(r#"{ "env": {"B":"2", "A":"${TOKEN}"}, /* same */ "command": "c" }"#));
    assert_ne!(first, hash(r#"{"command":"c","env":{"A":"t0p","B":"2"}}"#));
    assert_ne!(first, hash(r#"{"command":"c","env":{"A":"${TOKEN}","B":"3"}}"#));
}

#[tokio::test]
async fn a_server_becomes_a_target() {
    let machine = Machine::new();
    let entry = json!({ "mcpServers": {
        "local": { "command": "sh", "args": ["-c", "${TOKEN}"], "env": { "A": "TOKEN", "B": "!echo out", "C": "!exit 1", "D": "plain" }, "timeout": 1000 },
        "remote": { "type": "sse", "url": "https://${HOST}/mcp", "headers": { "Authorization": "Bearer ${TOKEN}", "X-Cmd": "!echo x", "X-Gone": "!false" }, "protocol": "2025-06-18" },
        "lost": { "command": "sh", "cwd": "nowhere" },
        "bad": { "url": "http://h/", "headers": { "X": "!printf 'a\\nb'" } },
    } });
    machine.write("home/.config/mcpwire/mcp.json", &entry.to_string());
    let found = machine.load();
    let resolver = Resolver::new(machine.environment());
    let server = |name: &str| found.servers.iter().find(|server| server.name == name).unwrap();
    let local = server("local").target(&resolver).await.unwrap();
    let Target::Child(options) = &local else { panic!() };
    let env: Vec<(&str, &str)> = options.env.iter().map(|(n, v)| (n.to_str().unwrap(), v.to_str().unwrap())).collect();
    assert_eq!(env, [("A", "t0p"), ("B", "out"), ("D", "plain")]);
    assert_eq!((options.args[1].to_str(), options.cwd.clone()), (Some("t0p"), Some(machine.path("project"))));
    assert!(!format!("{local:?}").contains("t0p"), "{local:?}");
    let config = server("local").conversation(&local).unwrap();
    assert_eq!((config.relay.timeout, config.relay.attribute), (Some(Duration::from_secs(1)), true));
    let remote = server("remote").target(&resolver).await.unwrap();
    let Target::Http(options) = &remote else { panic!() };
    assert_eq!(options.url.as_str(), "https://example.com/mcp");
    assert_eq!(options.headers["authorization"], "Bearer t0p");
    assert!(!format!("{remote:?}").contains("t0p"), "{remote:?}");
    assert_eq!((options.headers["x-cmd"].to_str().unwrap(), options.headers.len()), ("x", 2));
    assert_eq!(server("remote").conversation(&remote).unwrap().protocol, Some("2025-06-18"));
    for (name, fault) in [("lost", "\"cwd\" is no directory"), ("bad", "header \"X\" cannot be sent")] {
        let told = server(name).target(&resolver).await.unwrap_err().to_string();
        assert_eq!(told, format!("Server \"{name}\": {fault}"));
    }
}

#[tokio::test]
async fn changes_are_told_as_they_are_made() {
    let machine = Machine::new();
    machine.write("project/.mcp.json", r#"{"mcpServers":{"a":{"command":"one"}}}"#);
    let options = Options { project: true, ..Options::default() };
    let mut watch = Watch::new(machine.environment(), &options);
    let first = watch.found();
    // Another server, in a folder that was not there before.
    machine.write("home/.config/mcpwire/mcp.json", r#"{"mcpServers":{"b":{"command":"two"}}}"#);
    let second = told(&mut watch).await;
    assert_eq!(names(&second), ["b", "a"]);
    assert_eq!(second.servers[1], first.servers[0], "what did not change is the same");
    // Half of a file: it goes on as it was.
    machine.write("project/.mcp.json", r#"{"mcpServers":{"a":{"comma"#);
    let broken = told(&mut watch).await;
    assert_eq!(broken.servers, second.servers);
    assert!(matches!(&broken.ignored[0].why, Why::Stale(_)), "{broken:?}");
    // The other half.
    machine.write("project/.mcp.json", r#"{"mcpServers":{"a":{"command":"other"}}}"#);
    let mended = told(&mut watch).await;
    assert_eq!((names(&mended), mended.ignored.len()), (vec!["b".to_owned(), "a".to_owned()], 0));
    assert_ne!(mended.servers[1].hash, second.servers[1].hash);
    assert_eq!(mended.servers[0].hash, second.servers[0].hash);
    // Replaced as editors do it, then gone, then its whole folder.
    fs::write(machine.path("project/new"), r#"{"mcpServers":{"c":{"command":"c"}}}"#).unwrap();
    fs::rename(machine.path("project/new"), machine.path("project/.mcp.json")).unwrap();
    assert_eq!(names(&*told(&mut watch).await), ["b", "c"]);
    fs::remove_file(machine.path("project/.mcp.json")).unwrap();
    assert_eq!(names(&*told(&mut watch).await), ["b"]);
    fs::remove_dir_all(machine.path("home/.config")).unwrap();
    assert_eq!(names(&*told(&mut watch).await), [""; 0]);
    machine.write("home/.config/mcpwire/mcp.json", r#"{"mcpServers":{"b":{"command":"two"}}}"#);
    assert_eq!(names(&*told(&mut watch).await), ["b"]);
}

fn names(found: &Found) -> Vec<String> {
    found.servers.iter().map(|server| server.name.clone()).collect()
}

async fn told(watch: &mut Watch) -> std::sync::Arc<Found> {
    tokio::time::timeout(Duration::from_secs(20), watch.changed()).await.expect("the change is told")
}

/// Any JSON, with the names that matter among its keys.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|b| json!(b)),
        any::<f64>().prop_map(|n| json!(n)),
        "\\PC*".prop_map(|s| json!(s)),
        prop_oneof![Just("stdio"), Just("http"), Just("http://h"), Just("!x"), Just("${TOKEN}")].prop_map(|s| json!(s)),
    ];
    let keys = [
        "mcpServers",
        "servers",
        "mcp",
        "type",
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "timeout",
        "enabled",
        "include",
        "exclude",
        "protocol",
        "env_vars",
        "bearer_token_env_var",
        "env_http_headers",
        "x",
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(|items| json!(items)),
            proptest::collection::vec((proptest::sample::select(keys.to_vec()), inner), 0..6).prop_map(|members| {
                members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<serde_json::Map<_, _>>().into()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_json_is_read_without_harm(value in any_json(), cut in any::<proptest::sample::Index>()) {
        let machine = Machine::new();
        let text = json!({ "mcpServers": { "n": value, "good": { "command": "c" } } }).to_string();
        machine.write("home/.cursor/mcp.json", &text);
        let found = machine.load();
        prop_assert!(found.servers.iter().any(|server| server.name == "good"));
        machine.write("home/.cursor/mcp.json", &value.to_string());
        machine.load();
        let mut cut = cut.index(text.len());
        while !text.is_char_boundary(cut) { cut -= 1; }
        machine.write("home/.cursor/mcp.json", &text[..cut]);
        prop_assert!(machine.load().servers.is_empty());
    }
}
