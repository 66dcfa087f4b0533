//! What is known of tools from the lists that have passed by: whose parameters have headers.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::params::{Parameter, parameters};
use crate::{Kind, Message};

/// The most tools whose parameters are remembered.
const MOST: usize = 4096;

/// The tools whose parameters have headers, by name.
#[derive(Debug, Default)]
pub struct Tools(HashMap<String, Vec<Parameter>>);

/// A tool that must not be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    pub tool: String,
    pub why: String,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default, rename = "inputSchema")]
    schema: Option<&'a RawValue>,
}

impl Tools {
    pub(super) fn parameters_of(&self, tool: &str) -> &[Parameter] {
        self.0.get(tool).map_or(&[], Vec::as_slice)
    }

    /// Learns from a result of `tools/list`. Gives the same list without the tools that break the rules, if there are
    /// any, and those.
    pub fn learn(&mut self, list: &Message) -> (Message, Vec<Invalid>) {
        let mut invalid = Vec::new();
        let whole = matches!(list.kind(), Kind::Result { .. });
        // Most servers have no such tools: they cost a look, and no parse.
        if !whole || (self.0.is_empty() && !may_annotate(list.as_bytes())) {
            return (list.clone(), invalid);
        }
        let Some((all, tools)) = list
            .read::<List<'_>>()
            .and_then(|list| Some((list.tools, serde_json::from_str::<Vec<&RawValue>>(list.tools.get()).ok()?)))
        else {
            return (list.clone(), invalid);
        };
        let mut kept = Vec::with_capacity(tools.len());
        for text in tools {
            match self.learn_tool(text.get()) {
                Ok(()) => kept.push(text.get()),
                Err(broken) => invalid.push(broken),
            }
        }
        match invalid.is_empty() {
            true => (list.clone(), invalid),
            false => (list.replace(all.get(), &format!("[{}]", kept.join(","))), invalid),
        }
    }

    fn learn_tool(&mut self, text: &str) -> Result<(), Invalid> {
        let Ok(tool) = serde_json::from_str::<Tool<'_>>(text) else { return Ok(()) };
        let schema = tool.schema.filter(|schema| may_annotate(schema.get().as_bytes()));
        let schema = schema.and_then(|schema| serde_json::from_str(schema.get()).ok());
        let found = schema.map_or(Ok(Vec::new()), |schema| parameters(&schema));
        match found {
            Ok(found) if !found.is_empty() && (self.0.len() < MOST || self.0.contains_key(&*tool.name)) => {
                self.0.insert(tool.name.into_owned(), found);
                Ok(())
            }
            Ok(_) => {
                self.0.remove(&*tool.name);
                Ok(())
            }
            Err(why) => {
                self.0.remove(&*tool.name);
                Err(Invalid { tool: tool.name.into_owned(), why })
            }
        }
    }
}

/// Whether there may be an annotation in a text; nobody escapes its letters, but one may.
fn may_annotate(text: &[u8]) -> bool {
    memmem::find(text, b"x-mcp-header").is_some() || memmem::find(text, b"\\u00").is_some()
}
