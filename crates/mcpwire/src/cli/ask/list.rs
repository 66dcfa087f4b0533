//! `mcpwire tools`, `resources` and `prompts`: what a server has, as a table or as JSON.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::Value;

use super::terminal::Terminal;
use super::values::resolved;
use super::{AskArgs, explained, print};
use crate::client::{Client, Prompt, Resource, Template, Tool, Whole};

/// List the tools of a server
///
/// Exit codes: 0 when the list came, 1 when the server could not be reached or answered with an error, 2 when the command line
/// is not understood, 130 after Ctrl-C.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ToolsArgs {
    #[command(flatten)]
    ask: AskArgs,
}

/// List the resources of a server, and its templates for more
///
/// Exit codes as of `mcpwire tools`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ResourcesArgs {
    #[command(flatten)]
    ask: AskArgs,
}

/// List the prompts of a server
///
/// Exit codes as of `mcpwire tools`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct PromptsArgs {
    #[command(flatten)]
    ask: AskArgs,
}

pub(in crate::cli) fn tools(args: &ToolsArgs) -> Result<ExitCode> {
    args.ask.run(async |session| {
        let tools = session.client.list_tools().await.map_err(explained)?;
        if args.ask.json {
            return done(&format!("{{\"tools\":{}}}\n", raw(&tools)));
        }
        let row = |tool: &Whole<Tool>| vec![tool.name.clone(), arguments(tool), about(&tool.title, &tool.description)];
        let rows: Vec<_> = tools.iter().map(row).collect();
        done(&shown(&session.client, "tools", &["NAME", "ARGUMENTS", "DESCRIPTION"], &rows))
    })
}

pub(in crate::cli) fn resources(args: &ResourcesArgs) -> Result<ExitCode> {
    args.ask.run(async |session| {
        let resources = session.client.list_resources().await.map_err(explained)?;
        let templates = session.client.list_templates().await.map_err(explained)?;
        if args.ask.json {
            let (resources, templates) = (raw(&resources), raw(&templates));
            return done(&format!("{{\"resources\":{resources},\"resourceTemplates\":{templates}}}\n"));
        }
        let kind = |kind: &Option<String>| kind.clone().unwrap_or_else(|| "-".to_owned());
        let resource = |resource: &Whole<Resource>| {
            let about = about(&resource.title, &resource.description);
            vec![resource.uri.clone(), resource.name.clone(), kind(&resource.mime_type), about]
        };
        let template = |template: &Whole<Template>| {
            let about = about(&template.title, &template.description);
            vec![template.uri_template.clone(), template.name.clone(), kind(&template.mime_type), about]
        };
        let rows: Vec<_> = resources.iter().map(resource).collect();
        let mut text = shown(&session.client, "resources", &["URI", "NAME", "TYPE", "DESCRIPTION"], &rows);
        let rows: Vec<_> = templates.iter().map(template).collect();
        if !rows.is_empty() {
            text.push('\n');
            text.push_str(&Terminal::stdout().table(&["TEMPLATE", "NAME", "TYPE", "DESCRIPTION"], &rows));
        }
        done(&text)
    })
}

pub(in crate::cli) fn prompts(args: &PromptsArgs) -> Result<ExitCode> {
    args.ask.run(async |session| {
        let prompts = session.client.list_prompts().await.map_err(explained)?;
        if args.ask.json {
            return done(&format!("{{\"prompts\":{}}}\n", raw(&prompts)));
        }
        let row = |prompt: &Whole<Prompt>| {
            let arguments = prompt.arguments.iter().map(|argument| optional(&argument.name, argument.required));
            let arguments = arguments.collect::<Vec<_>>().join(" ");
            vec![prompt.name.clone(), arguments, about(&prompt.title, &prompt.description)]
        };
        let rows: Vec<_> = prompts.iter().map(row).collect();
        done(&shown(&session.client, "prompts", &["NAME", "ARGUMENTS", "DESCRIPTION"], &rows))
    })
}

fn done(text: &str) -> Result<ExitCode> {
    print(text).map(|()| ExitCode::SUCCESS)
}

/// The entries as the server wrote them.
fn raw<T>(items: &[Whole<T>]) -> String {
    let items: Vec<&str> = items.iter().map(Whole::raw).collect();
    format!("[{}]", items.join(","))
}

fn shown(client: &Client, what: &str, headings: &[&str], rows: &[Vec<String>]) -> String {
    match rows.is_empty() {
        false => Terminal::stdout().table(headings, rows),
        true => {
            let name = Terminal::stdout().safe(&client.server().info.name);
            format!("{name} has no {what}\n")
        }
    }
}

fn about(title: &Option<String>, description: &Option<String>) -> String {
    let text = description.as_ref().or(title.as_ref()).map(|text| text.trim());
    // The first paragraph says what it is; the rest how to use it.
    text.unwrap_or_default().split("\n\n").next().unwrap_or_default().to_owned()
}

/// What a tool takes: `name:type`, in brackets if it may be left out.
fn arguments(tool: &Tool) -> String {
    let schema: Value =
        tool.input_schema.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut arguments: Vec<(bool, String)> = properties
        .map(|(name, property)| {
            let required = required.contains(&name.as_str());
            let kind = match &resolved(property, &schema)["type"] {
                Value::String(kind) => format!(":{kind}"),
                _ => String::new(),
            };
            (!required, optional(&format!("{name}{kind}"), required))
        })
        .collect();
    arguments.sort_by_key(|(optional, _)| *optional);
    arguments.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
}

fn optional(text: &str, required: bool) -> String {
    if required { text.to_owned() } else { format!("[{text}]") }
}
