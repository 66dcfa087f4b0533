//! A folder as a target of the binary: what the two servers it takes the place of do, over stdio and over HTTP.

mod data;
mod faults;
mod knowledge;
mod process;

use mcpwire::link::Link;
use mcpwire_proto::version::{STATELESS_ERA, V2025_11_25, V2026_07_28};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::client::Client;
use crate::support::process::Mcpwire;
use crate::support::reach;
use crate::support::scratch::Scratch;

/// The sample on disk.
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample");

/// A small library whose scores are known.
const LIBRARY: &[(&str, &str)] = &[
    ("mcpwire.toml", "name = \"orchestr8\"\nversion = \"1.0.0\"\n"),
    (
        "resources/agents/alpha.md",
        "---\nid: alpha-declared\ntags: [TypeScript, rest-api]\ncapabilities: [REST API design]\nuseWhen: [Building a TypeScript REST API]\nestimatedTokens: 1234\n---\n# Alpha\n\nThe body of alpha.\n",
    ),
    (
        "resources/agents/_fragments/nested.md",
        "---\ntags: [painting]\ncapabilities: [Colour]\nuseWhen: []\n---\n# Nested\n",
    ),
    ("resources/skills/beta.md", "---\ntags: [cooking]\ncapabilities: [Soup]\nuseWhen: []\n---\n# Beta\n"),
    ("resources/guides/gamma.md", "---\ntags: [garden]\ncapabilities: [Roses]\nuseWhen: []\n---\n# Gamma\n"),
    ("resources/guides/a b.md", "# Space\n"),
    ("resources/examples/delta.json", "{\"delta\": 4}\n"),
    ("resources/patterns/epsilon.yaml", "epsilon: 5\n"),
    ("resources/examples/note.txt", "plain\n"),
    ("resources/workflows/zeta.md", "# Zeta\n"),
    (
        "prompts/workflows/ship.md",
        "---\nname: deploy-it\ntitle: Deploy it\narguments:\n  - name: service\n    required: true\n  - name: env-name\n    values: [prod, preview, dev]\n---\nShip ${service} to ${env-name} now. $ARGUMENTS / ${service} $& ${unknown}\n",
    ),
    ("prompts/top.md", "At the top.\n"),
];

fn write(scratch: &Scratch, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = scratch.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn library() -> Scratch {
    let scratch = Scratch::new();
    write(&scratch, LIBRARY);
    scratch
}

/// Runs a suite over stdio and over HTTP, in a session of the newest version that has them and without sessions.
async fn everywhere(folder: &str, suite: impl AsyncFn(&mut Client)) {
    with_version(folder, V2025_11_25, &suite).await;
    with_version(folder, V2026_07_28, &suite).await;
}

/// Runs a suite over stdio and over HTTP.
async fn with_version(folder: &str, version: &str, suite: impl AsyncFn(&mut Client)) {
    let mut client = open(reach::stdio(&["connect".to_owned(), folder.to_owned()]), version).await;
    suite(&mut client).await;
    client.close().await;

    let mut server = Mcpwire::start(&["expose", "--http", "127.0.0.1:0", "--print-url", folder]);
    let url = server.line().await.expect("the URL");
    let mut client = open(reach::http(&url), version).await;
    suite(&mut client).await;
    client.close().await;
    server.signal("TERM");
    assert_eq!(server.wait().await.code(), Some(0), "{}", server.stderr());
}

async fn open(connection: (Link, JoinHandle<()>), version: &str) -> Client {
    match STATELESS_ERA.contains(&version) {
        true => Client::stateless(connection, version),
        false => Client::open(connection, version).await,
    }
}

async fn ask(client: &mut Client, method: &str, params: Value) -> Value {
    let id = client.request(method, params).await;
    client.result(id).await
}

async fn refused(client: &mut Client, method: &str, params: Value) -> (i64, String) {
    let id = client.request(method, params).await;
    let error = client.refusal(id).await;
    (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
}

/// The text of a resource.
async fn read(client: &mut Client, uri: &str) -> String {
    let result = ask(client, "resources/read", json!({ "uri": uri })).await;
    assert_eq!(result["contents"][0]["uri"], uri);
    result["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}
