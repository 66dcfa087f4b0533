//! What VS Code needs to know to start us, printed: nothing is written to its own files.

use anyhow::Result;
use serde_json::{Value, json};

use super::entry::Entry;

/// An entry for `mcp.json`, and the manifest's part.
pub(super) fn print(name: &str, entry: &Entry) -> Result<String> {
    let printed = json!({ "mcp.json": { "servers": { name: entry.value() } }, "package.json": manifest(name) });
    Ok(serde_json::to_string_pretty(&printed)? + "\n")
}

/// What the manifest of an extension declares, as `editors/vscode` does.
fn manifest(name: &str) -> Value {
    let setting = |kind: &str, default: Value, description: &str| json!({ "type": kind, "default": default, "description": description });
    json!({
        "contributes": {
            "mcpServerDefinitionProviders": [{ "id": "mybusiness-local", "label": "My Business Embedded Server" }],
            "chatParticipants": [{ "id": "MyBusinessMCP", "name": "mybusiness", "isSticky": true }],
            "commands": [
                { "command": "mybusinessMCP.invokeTool", "title": "Invoke a tool" },
                { "command": "mybusinessMCP.registerServer", "title": "Register the server" },
                { "command": "mybusinessMCP.unregisterServer", "title": "Unregister the server" },
            ],
            "configuration": {
                "properties": {
                    "mybusinessMCP.serverUrl": setting("string", json!(""), "The URL of a server to use instead"),
                    "mybusinessMCP.token": setting("string", json!(""), "A bearer token for that server"),
                    "mybusinessMCP.autoRegister": setting("boolean", json!(true), "Offer the server when the editor starts"),
                    "mybusinessMCP.port": setting("number", json!(39200), "The port of that server"),
                    "mybusinessMCP.registerServerId": setting("string", json!(name), "What the server is called"),
                    "mybusinessMCP.includeAuthHeader": setting("boolean", json!(false), "Send the token"),
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_declares_what_extensions_of_this_kind_do() {
        let contributes = manifest("mybusiness")["contributes"].take();
        let provider = json!([{ "id": "mybusiness-local", "label": "My Business Embedded Server" }]);
        assert_eq!(contributes["mcpServerDefinitionProviders"], provider);
        assert_eq!(
            contributes["chatParticipants"],
            json!([{ "id": "MyBusinessMCP", "name": "mybusiness", "isSticky": true }])
        );
        let commands: Vec<&Value> = contributes["commands"].as_array().unwrap().iter().map(|c| &c["command"]).collect();
        assert_eq!(
            commands,
            ["invokeTool", "registerServer", "unregisterServer"]
                .map(|c| json!(format!("mybusinessMCP.{c}")))
                .iter()
                .collect::<Vec<_>>()
        );
        let defaults = json!({
            "serverUrl": "", "token": "", "autoRegister": true, "port": 39200, "registerServerId": "mybusiness",
            "includeAuthHeader": false,
        });
        for (name, default) in defaults.as_object().unwrap() {
            let setting = &contributes["configuration"]["properties"][format!("mybusinessMCP.{name}")];
            assert_eq!(&setting["default"], default, "{name}");
        }
    }
}
