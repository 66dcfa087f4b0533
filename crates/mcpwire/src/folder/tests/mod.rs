//! Drives a folder over an in-memory link, as clients of both eras would.

mod live;
mod questions;
mod stateless;
mod validity;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use mcpwire_proto::{Id, Lane, Message};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Folder, Settings};
use crate::link::{Event, Link};

/// Longer than any test takes; a server that does not answer fails the test instead of hanging it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of a test's own, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(files: &[(&str, &str)]) -> Scratch {
        let path = std::env::temp_dir().join(format!("mcpwire-folder-{:016x}", fastrand::u64(..)));
        fs::create_dir(&path).unwrap();
        let scratch = Scratch(path);
        files.iter().for_each(|(name, text)| scratch.write(name, text));
        scratch
    }

    /// Puts a file there whole, as editors do: a scan in between must not see half of it.
    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = path.with_file_name(".new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).unwrap();
    }

    fn open(&self) -> Folder {
        Folder::open(&Settings { folder: self.0.clone(), ..Settings::default() }).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Client {
    link: Link,
    server: JoinHandle<()>,
    last_id: u64,
}

impl Client {
    fn silent(folder: &Folder) -> Client {
        let (link, server) = folder.connect();
        Client { link, server, last_id: 0 }
    }

    async fn open(folder: &Folder, version: &str) -> Client {
        let mut client = Client::silent(folder);
        let result = client.request("initialize", json!({ "protocolVersion": version, "capabilities": {} })).await;
        assert_eq!(result["protocolVersion"], version);
        client
    }

    async fn start(&mut self, method: &str, params: Value) -> Id {
        self.last_id += 1;
        let id = Id::from(self.last_id);
        self.link.tx.send(Message::request(&id, method, Some(&params.to_string())).into()).await.unwrap();
        id
    }

    async fn next(&mut self, lane: &Lane) -> Value {
        let event = timeout(PATIENCE, self.link.rx.recv()).await.expect("a message in time").expect("a session");
        let Event::Packet(packet) = event else { panic!("{event:?}") };
        assert_eq!(&packet.lane, lane, "{}", String::from_utf8_lossy(packet.message.as_bytes()));
        serde_json::from_slice(packet.message.as_bytes()).unwrap()
    }

    async fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        self.next(&Lane::Request(id)).await
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params).await;
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// The methods of the next notifications, sorted: the order of a burst is no promise.
    async fn notified(&mut self, count: usize) -> Vec<String> {
        let mut methods = Vec::new();
        for _ in 0..count {
            let message = self.next(&Lane::Main).await;
            let uri = message["params"]["uri"].as_str().map(|uri| format!(" {uri}")).unwrap_or_default();
            methods.push(format!("{}{uri}", message["method"].as_str().unwrap()));
        }
        methods.sort();
        methods
    }

    async fn close(mut self) {
        drop(self.link.tx);
        let left = timeout(PATIENCE, self.link.rx.recv()).await.expect("an end in time");
        assert!(left.is_none(), "left unread: {left:?}");
        timeout(PATIENCE, self.server).await.expect("an end in time").expect("no panic");
    }
}

#[test]
fn the_sample_is_sound() {
    let report = Folder::sample().check();
    assert!(report.passes(), "{report}");
    let told = report.to_json();
    assert!(told["resources"].as_u64().unwrap() >= 150, "{report}");
    assert_eq!(told["data"].as_array().unwrap().len(), 5);
}

#[test]
fn a_folder_without_anything_is_refused() {
    let scratch = Scratch::new(&[("resources/.keep", ""), ("notes.md", "x")]);
    let open = |folder: PathBuf| Folder::open(&Settings { folder, ..Settings::default() });
    let told = open(scratch.0.clone()).unwrap_err().to_string();
    assert!(told.contains("nothing to serve"), "{told}");
    assert!(open(scratch.0.join("none")).unwrap_err().to_string().contains("no such folder"));
    assert!(open(scratch.0.join("notes.md")).unwrap_err().to_string().contains("no such folder"));
    scratch.write("resources/agents/a.md", "x");
    scratch.write("mcpwire.toml", "name = 1");
    assert!(open(scratch.0.clone()).unwrap_err().to_string().contains("mcpwire.toml:1"));
}

#[tokio::test]
async fn a_bad_file_costs_only_itself() {
    let scratch = Scratch::new(&[
        ("resources/agents/good.md", "# Good"),
        ("resources/agents/bad.md", "---\na: [\n---\n"),
        ("resources/guides/bad.json", "{\n\"a\": }"),
        ("prompts/good.md", "text"),
        ("prompts/bad.md", "---\narguments: 1\n---\n"),
        ("data/things/records.json", "[{\"id\":\"a\"},\n{]"),
        ("data/others/records.json", "[{\"id\":\"a\"}]"),
        ("data/others/category.json", "{"),
    ]);
    let report = scratch.open().check().to_string();
    for told in [
        "resources/agents/bad.md:",
        "resources/guides/bad.json:2:",
        "prompts/bad.md:",
        "data/others/category.json:1:",
        "data/things/records.json:2:",
    ] {
        assert!(report.contains(told), "{told} in {report}");
    }
    let mut client = Client::open(&scratch.open(), "2025-11-25").await;
    let list = client.request("resources/list", json!({})).await;
    assert_eq!(list["resources"].as_array().unwrap().len(), 1 + 6 + 1);
    assert_eq!(client.request("prompts/list", json!({})).await["prompts"].as_array().unwrap().len(), 1);
    let search = |category: &str| json!({"name": "relevant-data.searchRecords", "arguments": {"categoryId": category}});
    assert_eq!(client.request("tools/call", search("others")).await["structuredContent"]["total"], 1);
    let failed = client.answer("tools/call", search("things")).await;
    assert_eq!(failed["error"]["code"], -32000, "{failed}");
    assert!(!failed.to_string().contains(scratch.0.to_str().unwrap()), "{failed}");
    client.close().await;
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let scratch = Scratch::new(&[("mcpwire.toml", "[limits]\npage = 4\n"), ("prompts/p.md", "x")]);
    (0..5).for_each(|n| scratch.write(&format!("resources/agents/a{n}.md"), "x"));
    let mut client = Client::open(&scratch.open(), "2025-11-25").await;
    let (mut uris, mut cursor) = (Vec::new(), json!({}));
    for size in [4, 4, 4] {
        let page = client.request("resources/list", cursor).await;
        let entries = page["resources"].as_array().unwrap();
        assert_eq!(entries.len(), size);
        uris.extend(entries.iter().map(|entry| entry["uri"].as_str().unwrap().to_owned()));
        cursor = json!({ "cursor": page["nextCursor"] });
    }
    assert_eq!(cursor["cursor"], Value::Null);
    assert_eq!((uris.len(), uris.last().unwrap().as_str()), (12, "orchestr8://agents/a4"));
    let wrong = client.answer("resources/list", json!({ "cursor": "from-99" })).await;
    assert_eq!(wrong["error"]["code"], -32602);
    client.close().await;
}

#[tokio::test]
async fn who_we_are_is_told_before_anything_is_read() {
    let scratch = Scratch::new(&[("resources/agents/a.md", "x"), ("mcpwire.toml", "name = \"early\"")]);
    let (link, port) = Link::pair();
    // Without a keeper there is never a catalog.
    let server = tokio::spawn(super::serve::serve(port, scratch.open()));
    let mut client = Client { link, server, last_id: 0 };
    let opened = client.request("initialize", json!({ "protocolVersion": "2025-11-25" })).await;
    assert_eq!(opened["serverInfo"]["name"], "early");
    assert_eq!(opened["capabilities"]["resources"]["subscribe"], true);
    assert!(opened["capabilities"].get("prompts").is_none());
    assert_eq!(client.request("ping", json!({})).await, json!({}));
    client.close().await;
}
