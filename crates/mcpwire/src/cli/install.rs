//! `mcpwire install`: what an editor needs to know to start us.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use serde_json::{Value, json};

/// Print what an editor needs to start mcpwire
///
/// For VS Code: an entry for mcp.json, and the part of a manifest for extensions that bring a server along.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Which editor
    #[arg(value_enum)]
    editor: Editor,
    /// What to serve, as `mcpwire connect` takes it
    #[arg(value_name = "TARGET", default_value = "sample:")]
    target: String,
    /// What the server is called
    #[arg(long, value_name = "NAME", default_value = "mybusiness")]
    name: String,
    /// Print it; nothing is ever written to the editor's own files
    #[arg(long)]
    print: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Editor {
    Vscode,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !args.print {
        bail!("expected --print: the editor's files are yours to change");
    }
    let Editor::Vscode = args.editor;
    let command = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("mcpwire"));
    let printed = json!({ "mcp.json": entry(&args.name, &command.to_string_lossy(), &args.target), "package.json": manifest(&args.name) });
    let text = serde_json::to_string_pretty(&printed)? + "\n";
    io::stdout().write_all(text.as_bytes()).context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}

/// The entry for `mcp.json`.
fn entry(name: &str, command: &str, target: &str) -> Value {
    json!({ "servers": { name: { "type": "stdio", "command": command, "args": ["connect", target] } } })
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

    #[test]
    fn the_entry_starts_us() {
        let entry = entry("library", "/bin/mcpwire", "./library");
        let server = json!({ "type": "stdio", "command": "/bin/mcpwire", "args": ["connect", "./library"] });
        assert_eq!(entry["servers"]["library"], server);
    }
}
