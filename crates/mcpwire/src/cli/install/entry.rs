//! What is written for a client to start us: the program, and the arguments of `connect`.

use std::path::Path;

use serde_json::{Value, json};

/// A server's entry, the same for every client but for its layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Whether the client wants to be told that it is a program.
    pub(super) typed: bool,
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

impl Entry {
    /// Reads an entry that was written by us and not changed since.
    pub(super) fn read(value: &Value) -> Option<Entry> {
        let command = value["command"].as_str()?.to_owned();
        let args = value["args"].as_array()?.iter().map(|arg| arg.as_str().map(str::to_owned));
        let entry = Entry { typed: value.get("type").is_some(), command, args: args.collect::<Option<_>>()? };
        (entry.value() == *value).then_some(entry)
    }

    /// Whether an entry starts mcpwire, whatever else it says.
    pub(super) fn is_ours(value: &Value) -> bool {
        let program = value["command"].as_str().map(Path::new).and_then(Path::file_stem);
        program.is_some_and(|program| program == "mcpwire") && value["args"][0] == "connect"
    }

    pub(super) fn value(&self) -> Value {
        let mut value = json!({"command": self.command, "args": self.args});
        if self.typed {
            value["type"] = "stdio".into();
        }
        value
    }
}
