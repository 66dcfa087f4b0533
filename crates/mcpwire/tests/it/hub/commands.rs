//! Several targets on the command line, and servers from configurations, as a person starts them.

use std::fs;

use serde_json::{Value, json};

use crate::support::process::Mcpwire;
use crate::support::scratch::Scratch;
use crate::support::{proc, until};

const BINARY: &str = env!("CARGO_BIN_EXE_mcpwire");

/// A home of its own, so that nothing is read or kept of the real one.
struct Home(Scratch);

impl Home {
    fn new() -> Home {
        Home(Scratch::new())
    }

    /// Writes a configuration of these servers, in one step as editors do.
    fn configure(&self, servers: Value) -> String {
        let (beside, path) = (self.0.file("mcp.json.new"), self.0.file("mcp.json"));
        fs::write(&beside, json!({"mcpServers": servers}).to_string()).unwrap();
        fs::rename(beside, &path).unwrap();
        path
    }

    fn start(&self, args: &[&str]) -> Mcpwire {
        let home = self.0.path().to_str().unwrap();
        Mcpwire::start_with(args, &[("HOME", home), ("XDG_CACHE_HOME", home), ("XDG_CONFIG_HOME", home)])
    }

    /// How many catalogues are kept.
    fn kept(&self) -> usize {
        fs::read_dir(self.0.path().join("mcpwire")).map_or(0, Iterator::count)
    }
}

fn reference() -> Value {
    json!({"command": BINARY, "args": ["reference", "--stdio"]})
}

fn sample() -> Value {
    json!({"command": BINARY, "args": ["connect", "sample:"]})
}

async fn answer(client: &mut Mcpwire, id: u64) -> Value {
    loop {
        let message = client.message().await;
        if message["id"] == id {
            return message;
        }
    }
}

async fn tools(client: &mut Mcpwire) -> Vec<String> {
    client.request(90, "tools/list", json!({})).await;
    let answer = answer(client, 90).await;
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn said(client: &mut Mcpwire, tool: &str, arguments: Value) -> String {
    client.call(91, tool, arguments).await;
    let answer = answer(client, 91).await;
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn several_targets_are_one_server() {
    let home = Home::new();
    let mut client = home.start(&["connect", "notes=sample:", "--", BINARY, "reference", "--stdio"]);
    client.open_session().await;
    let names = tools(&mut client).await;
    assert!(names[0].starts_with("notes__"), "{names:?}");
    assert!(names.contains(&"mcpwire__echo".to_owned()), "{names:?}");
    assert_eq!(said(&mut client, "mcpwire__echo", json!({"message": "hello"})).await, "hello");
    let below = proc::children(client.id());
    assert_eq!(below.len(), 1, "one program, one process");
    client.finish().await;
    until("the catalogues to be kept", || home.kept() == 2).await;

    let mut again = home.start(&["connect", "--no-cache", "--prefix", "never", "sample:", "sample:"]);
    again.open_session().await;
    let names = tools(&mut again).await;
    assert!(names.contains(&"relevant-data.ask".to_owned()), "{names:?}");
    assert!(names.contains(&"relevant-data.ask_2".to_owned()), "{names:?}");
    again.finish().await;
    assert_eq!(home.kept(), 2, "--no-cache");
}

#[tokio::test]
async fn a_configuration_is_served_and_followed() {
    let home = Home::new();
    let broken = json!({"command": "/no/such/program"});
    let file = home.configure(json!({"a": reference(), "broken": broken, "bad": {"type": "stdio"}}));
    let mut client = home.start(&["connect", "--config", &file]);
    client.open_session().await;
    client.logged("Server \"bad\": stdio server requires \"command\" field").await;
    let names = tools(&mut client).await;
    assert!(names.iter().all(|name| name.starts_with("a__")), "{names:?}");
    assert_eq!(said(&mut client, "a__echo", json!({"message": "1"})).await, "1");
    let first = proc::children(client.id());

    home.configure(json!({"a": reference(), "b": sample()}));
    loop {
        let message = client.message().await;
        if message["method"] == "notifications/tools/list_changed" && tools(&mut client).await.len() > names.len() {
            break;
        }
    }
    assert!(tools(&mut client).await.contains(&"b__relevant-data.ask".to_owned()));
    assert!(first.iter().all(|child| proc::children(client.id()).contains(child)), "what stays is not restarted");

    home.configure(json!({"b": sample()}));
    until("the program to be gone", || proc::children(client.id()).len() == 1).await;
    client.close_stdin();
    assert_eq!(client.wait().await.code(), Some(0));
}

#[tokio::test]
async fn a_name_is_a_target_of_every_command() {
    let home = Home::new();
    let file = home.configure(json!({"ref": reference(), "off": {"command": "x", "enabled": false}}));
    let mut client = home.start(&["connect", "--config", &file, "ref"]);
    client.open_session().await;
    assert_eq!(
        said(&mut client, "echo", json!({"message": "one server, its own names"})).await,
        "one server, its own names"
    );
    client.finish().await;

    for (name, says) in [("off", "disabled"), ("nobody", "expected one of ref")] {
        let mut client = home.start(&["connect", "--config", &file, name]);
        assert_eq!(client.wait().await.code(), Some(1));
        client.logged(says).await;
    }
    let mut tools = home.start(&["tools", "ref", "--config", &file, "--json"]);
    let listed = tools.line().await.unwrap_or_default();
    assert!(listed.starts_with('{'), "{listed}");
    assert_eq!(tools.wait().await.code(), Some(0));
}

#[tokio::test]
async fn secrets_are_fetched_while_the_others_are_served() {
    let home = Home::new();
    let slow = json!({"command": BINARY, "args": ["reference", "--stdio"], "env": {"TOKEN": "!sleep 1; echo t0p"}});
    let file = home.configure(json!({"slow": slow, "quick": reference()}));
    let mut client = home.start(&["connect", "--config", &file]);
    client.open_session().await;
    assert_eq!(said(&mut client, "quick__echo", json!({"message": "now"})).await, "now");
    assert_eq!(said(&mut client, "slow__echo", json!({"message": "then"})).await, "then");
    client.close_stdin();
    assert_eq!(client.wait().await.code(), Some(0));
}

#[tokio::test]
async fn a_hub_of_all_servers_does_not_start_itself() {
    let home = Home::new();
    fs::create_dir_all(home.0.path().join("mcpwire")).unwrap();
    let ourselves = json!({"command": BINARY, "args": ["connect", "--all"]});
    let servers = json!({"mcpServers": {"everything": ourselves, "ref": reference()}});
    fs::write(home.0.path().join("mcpwire/mcp.json"), servers.to_string()).unwrap();
    let mut client = home.start(&["connect", "--all"]);
    client.open_session().await;
    assert_eq!(said(&mut client, "ref__echo", json!({"message": "hello"})).await, "hello");
    client.logged("would start it again").await;
    client.close_stdin();
    assert_eq!(client.wait().await.code(), Some(0));
}

#[tokio::test]
async fn mistakes_are_told_at_once() {
    let home = Home::new();
    let empty = home.configure(json!({}));
    for (args, code, says) in [
        (
            &["connect", "-H", "A: b", "http://localhost:1/", "http://localhost:2/"][..],
            1,
            "--header would go to every URL",
        ),
        (&["connect", "--config", &empty], 1, "no servers are configured"),
        (&["connect", "--prefix", "sometimes", "sample:"], 2, "expected always, conflict, never or mcp"),
        (&["connect", "--all", "sample:"], 2, "cannot be used with"),
        (&["connect", "nobody"], 1, "no server \"nobody\" is configured"),
    ] {
        let mut client = home.start(args);
        assert_eq!(client.wait().await.code(), Some(code), "{args:?}");
        client.logged(says).await;
    }
}
