//! Files of servers: the shapes in which clients write them, JSON and TOML, taken apart into entries.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use mcpwire_proto::Object;
use ring::digest::{SHA256, digest};
use serde_json::Value as Json;

use super::environment::Environment;
use super::place::{Part, Place};
use super::{Scope, jsonc};

/// Claude Code keeps much more than servers in its file.
const LARGEST: u64 = 64 << 20;

/// One server as it is written.
#[derive(Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: Json,
}

/// Secrets may be written out.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Entry {
    /// Keys are sorted: that is how serde_json keeps objects.
    pub(super) fn hash(&self) -> String {
        let digest = digest(&SHA256, self.value.to_string().as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Why a file is of no use.
#[derive(Debug)]
pub(super) struct Fault(pub(super) String);

/// The entries at a place; none if there is no such file.
pub(super) fn read(place: &Place, environment: &Environment) -> Result<Option<Vec<Entry>>, Fault> {
    let path = &place.source.path;
    let given = place.source.scope == Scope::Given;
    let Some(text) = text(path, given)? else { return Ok(None) };
    let entries = if path.extension().is_some_and(|e| e == "toml") {
        toml_entries(&text)?
    } else {
        let plain = jsonc::plain(&text).map_err(|fault| Fault(format!("expected a JSON object: {fault}")))?;
        json_entries(&plain, place.part, environment)?
    };
    match entries {
        None if given => {
            Err(Fault("expected \"mcpServers\", \"servers\" or \"mcp.servers\", came none of them".to_owned()))
        }
        entries => Ok(Some(entries.unwrap_or_default())),
    }
}

fn text(path: &Path, given: bool) -> Result<Option<String>, Fault> {
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(e) if !given && matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(Fault(format!("cannot be read: {e}"))),
    };
    // A pipe that comes with a project would hold us up for ever; one that the user names is meant.
    if metadata.is_dir() || !(metadata.is_file() || given) {
        return Err(Fault("expected a file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| Fault(format!("cannot be read: {e}")))?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| Fault(format!("cannot be read: {e}")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Fault(format!("expected at most {} MiB", LARGEST >> 20)));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| Fault("expected UTF-8".to_owned()))
}

fn json_entries(text: &str, part: Part, environment: &Environment) -> Result<Option<Vec<Entry>>, Fault> {
    if text.trim().is_empty() {
        return Err(Fault("expected JSON, came nothing".to_owned()));
    }
    let top: Object = serde_json::from_str(text).map_err(|e| Fault(format!("expected a JSON object: {e}")))?;
    match part {
        Part::Top => top_entries(&top),
        Part::ClaudeProject => {
            let projects = top.object("projects").unwrap_or_default();
            let Some(project) = environment.cwd.to_str().and_then(|cwd| projects.object(cwd)) else { return Ok(None) };
            top_entries(&project)
        }
    }
}

/// `mcpServers` is what most write; VS Code has `servers`, and `mcp.servers` among its settings.
fn top_entries(top: &Object) -> Result<Option<Vec<Entry>>, Fault> {
    let settings = top.object("mcp").unwrap_or_default();
    let found = [
        ("mcpServers", top.get("mcpServers")),
        ("servers", top.get("servers")),
        ("mcp.servers", settings.get("servers")),
        ("mcp.servers", top.get("mcp.servers")),
    ];
    let mut entries = None;
    for (key, text) in found {
        let Some(text) = text.filter(|text| *text != "null") else { continue };
        let servers = Object::parse(text).ok_or_else(|| Fault(format!("expected an object under {key:?}")))?;
        let entries: &mut Vec<Entry> = entries.get_or_insert_default();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (name, text) in servers.iter() {
            // What is nested too deep is no server.
            let value = serde_json::from_str(text).unwrap_or_default();
            match known.get(name) {
                // Of several under one name the last counts, as with most readers.
                Some(&at) => entries[at].value = value,
                None => {
                    known.insert(name, entries.len());
                    entries.push(Entry { name: name.to_owned(), value });
                }
            }
        }
    }
    Ok(entries)
}

fn toml_entries(text: &str) -> Result<Option<Vec<Entry>>, Fault> {
    let top: toml::Table = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(0, |span| text.bytes().take(span.start).filter(|&b| b == b'\n').count() + 1);
        Fault(format!("expected TOML: {} at line {line}", e.message().replace('\n', " ")))
    })?;
    let Some(servers) = top.get("mcp_servers") else { return Ok(None) };
    let servers = servers.as_table().ok_or_else(|| Fault("expected a table under \"mcp_servers\"".to_owned()))?;
    let entry = |(name, value): (&String, &toml::Value)| Entry {
        name: name.clone(),
        value: serde_json::to_value(value).unwrap_or_default(),
    };
    Ok(Some(servers.iter().map(entry).collect()))
}
