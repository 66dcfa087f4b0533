//! TOML edited by its text: a server's table goes in at the end or out, every other byte stays as it is.

use std::ops::Range;

use serde_json::Value;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table};

use super::entry::Entry;
use super::jsonc::Fault;
use crate::config::jsonc::line_of;

/// The value of a server, if there is one.
pub(super) fn find(text: &str, container: &str, name: &str) -> Result<Option<Value>, Fault> {
    let table = parse(text)?;
    let value = table.get(container).and_then(|servers| servers.get(name));
    Ok(value.map(|value| serde_json::to_value(value).unwrap_or_default()))
}

/// Writes a server's table, in the place of the one that has its name or at the end.
pub(super) fn put(text: &str, container: &str, name: &str, entry: &Entry) -> Result<String, Fault> {
    let mut expected = parse(text)?;
    let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let block = block(container, name, entry, line);
    let after = match place(text, container, name)? {
        Some(place) => format!("{}{block}{}", &text[..place.start], text[place.end..].trim_start_matches(['\r', '\n'])),
        None => {
            let gap = match text {
                "" => "",
                text if text.ends_with('\n') => line,
                _ => &format!("{line}{line}"),
            };
            format!("{text}{gap}{block}")
        }
    };
    let servers = expected.entry(container).or_insert_with(|| Table::new().into());
    let Some(servers) = servers.as_table_mut() else { return Err(odd(text, container)) };
    let table = Table::from_iter([
        ("command".to_owned(), entry.command.clone().into()),
        ("args".to_owned(), entry.args.clone().into()),
    ]);
    servers.insert(name.to_owned(), table.into());
    checked(after, &expected).ok_or_else(|| odd(text, container))
}

/// Takes a server's table out; the rest stays.
pub(super) fn remove(text: &str, container: &str, name: &str) -> Result<String, Fault> {
    let mut expected = parse(text)?;
    let Some(place) = place(text, container, name)? else { return Ok(text.to_owned()) };
    // The empty line that set it apart goes with it.
    let before = &text[..place.start];
    let before = ["\r\n\r\n", "\n\n"]
        .iter()
        .find(|gap| before.ends_with(**gap))
        .map_or(before, |gap| &before[..before.len() - gap.len() / 2]);
    let after = format!("{before}{}", &text[place.end..]);
    if let Some(servers) = expected.get_mut(container).and_then(toml::Value::as_table_mut) {
        servers.remove(name);
        if servers.is_empty() && !parse(&after)?.contains_key(container) {
            expected.remove(container);
        }
    }
    checked(after, &expected).ok_or_else(|| odd(text, container))
}

fn block(container: &str, name: &str, entry: &Entry, line: &str) -> String {
    // A JSON string is a TOML string but for DEL, which paths and arguments do not hold.
    let quoted = |text: &String| Value::from(text.as_str()).to_string();
    let args: Vec<String> = entry.args.iter().map(quoted).collect();
    let command = quoted(&entry.command);
    let bare = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let name = if bare { name.to_owned() } else { Value::from(name).to_string() };
    format!("[{container}.{name}]{line}command = {command}{line}args = [{}]{line}", args.join(", "))
}

/// The lines of a server's table, with those of its own tables.
fn place(text: &str, container: &str, name: &str) -> Result<Option<Range<usize>>, Fault> {
    let document = DeTable::parse(text).map_err(|e| fault(text, &e))?;
    let servers = document.get_ref().iter().find(|(key, _)| key.get_ref() == container);
    let Some(servers) = servers.and_then(|(_, servers)| servers.get_ref().as_table()) else { return Ok(None) };
    let Some((key, value)) = servers.iter().find(|(key, _)| key.get_ref() == name) else { return Ok(None) };
    let start = text[..key.span().start].rfind('\n').map_or(0, |at| at + 1);
    if !text[start..].trim_start().starts_with('[') {
        let what = format!("{name:?} is not written as a table of its own: change it by hand");
        return Err(Fault { line: line_of(text, start), what });
    }
    let end = value_end(value).max(key.span().end);
    let end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    Ok(Some(start..end))
}

/// The end of everything that is said of a value, wherever its tables stand.
fn value_end(value: &Spanned<DeValue<'_>>) -> usize {
    let members = value.get_ref().as_table().into_iter().flatten();
    let inside = members.map(|(key, value)| key.span().end.max(value_end(value))).max();
    value.span().end.max(inside.unwrap_or_default())
}

fn parse(text: &str) -> Result<Table, Fault> {
    toml::from_str(text).map_err(|e| fault(text, &e))
}

fn fault(text: &str, error: &toml::de::Error) -> Fault {
    let at = error.span().map_or(0, |span| span.start);
    Fault { line: line_of(text, at), what: error.message().lines().collect::<Vec<_>>().join(", ") }
}

fn checked(after: String, expected: &Table) -> Option<String> {
    toml::from_str::<Table>(&after).is_ok_and(|seen| seen == *expected).then_some(after)
}

fn odd(text: &str, container: &str) -> Fault {
    let at = text.find(container).unwrap_or_default();
    let what = format!("{container} is written in a way that mcpwire cannot change safely: change it by hand");
    Fault { line: line_of(text, at), what }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
