//! `mcpwire tools`, `resources` and `prompts`: what a server has, as a table or as JSON.

use std::fmt;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
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

/// What a tool takes: `name:type`, in brackets if it may be left out; in the order in which the server names them.
fn arguments(tool: &Tool) -> String {
    let raw = tool.input_schema.as_ref().map_or("null", |raw| raw.get());
    let schema: Value = serde_json::from_str(raw).unwrap_or_default();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let names = serde_json::from_str::<Properties>(raw).map(|schema| schema.properties.0).unwrap_or_default();
    let argument = |name: &String| {
        let kind = match &resolved(&schema["properties"][name], &schema)["type"] {
            Value::String(kind) => format!(":{kind}"),
            _ => String::new(),
        };
        optional(&format!("{name}{kind}"), required.contains(&name.as_str()))
    };
    let (needed, others): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| required.contains(&name.as_str()));
    needed.into_iter().chain(others).map(argument).collect::<Vec<_>>().join(" ")
}

#[derive(Deserialize)]
struct Properties {
    #[serde(default)]
    properties: Names,
}

/// The names of an object's members, in their order.
#[derive(Default)]
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = members.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

fn optional(text: &str, required: bool) -> String {
    if required { text.to_owned() } else { format!("[{text}]") }
}
