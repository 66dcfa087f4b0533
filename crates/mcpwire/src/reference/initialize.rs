//! The handshake: who the client is, which version both speak, and what this server offers.

use mcpwire_proto::Fault;
use mcpwire_proto::version::{SESSION_ERA, V2025_03_26, V2025_06_18, V2025_11_25};
use serde_json::{Value, json};

use super::args::Args;

const INSTRUCTIONS: &str = "A server to try things with: call `echo`, `add`, `slow`, `progress` or `info`, \
    read test://static-text, or watch test://watched-resource and call `touch`.";

/// What the client said about itself.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) version: &'static str,
    pub(super) name: String,
    capabilities: Value,
}

impl Client {
    pub(super) fn read(args: &Args) -> Result<Client, Fault> {
        let asked = args.text("protocolVersion")?;
        let version = SESSION_ERA.into_iter().find(|known| *known == asked).unwrap_or(V2025_11_25);
        args.object("capabilities")?;
        let name = args.object("clientInfo")?.optional_text("name")?.unwrap_or_default().to_owned();
        let capabilities = args.value("capabilities").cloned().unwrap_or_default();
        Ok(Client { version, name, capabilities })
    }

    /// Whether the client declared a capability, by its path: `/sampling`, `/elicitation/url`.
    pub(super) fn offers(&self, path: &str) -> bool {
        self.capabilities.pointer(path).is_some_and(Value::is_object)
    }

    /// Output schemas, structured content, resource links and titles came with 2025-06-18.
    pub(super) fn knows_structure(&self) -> bool {
        self.version >= V2025_06_18
    }

    /// Audio content and tool annotations came with 2025-03-26.
    pub(super) fn knows_audio(&self) -> bool {
        self.version >= V2025_03_26
    }
}

pub(super) fn result(client: &Client) -> Value {
    let mut info = json!({ "name": "mcpwire-reference", "version": env!("CARGO_PKG_VERSION") });
    if client.knows_structure() {
        info["title"] = json!("mcpwire reference server");
    }
    json!({
        "protocolVersion": client.version,
        "capabilities": {
            "tools": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "prompts": { "listChanged": true },
            "logging": {},
            "completions": {},
        },
        "serverInfo": info,
        "instructions": INSTRUCTIONS,
    })
}
