//! JSON with comments, edited in place: one member goes in or out, comments and layout stay.

use std::ops::Range;

use jsonc_parser::common::Ranged;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ast, parse_to_ast};
use serde_json::Value;

use super::entry::Entry;
pub(super) use crate::config::jsonc::Fault;
use crate::config::jsonc::{BYTE_ORDER_MARK, DIALECT, line_of, parse};

/// The value of a server, if there is one.
pub(super) fn find(text: &str, container: &str, name: &str) -> Result<Option<Value>, Fault> {
    Ok(read(text, container, name)?[container].get(name).cloned())
}

/// Writes a server's entry, in the place of the one that has its name or behind the last.
pub(super) fn put(text: &str, container: &str, name: &str, entry: &Entry) -> Result<String, Fault> {
    let mut expected = read(text, container, name)?;
    expected[container][name] = entry.value();
    let body = body(text);
    let root = CstRootNode::parse(body, &DIALECT).map_err(|_| unsafe_edit())?;
    let servers = root.object_value_or_create().and_then(|root| root.object_value_or_create(container));
    let servers = servers.ok_or_else(unsafe_edit)?;
    match servers.get(name) {
        Some(member) => member.set_value(input(entry)),
        None => drop(servers.append(name, input(entry))),
    }
    checked(format!("{}{root}", &text[..text.len() - body.len()]), &expected)
}

/// Removes a server's entry; the rest stays, comments beside the entry included, which `cst` would remove with it.
pub(super) fn remove(text: &str, container: &str, name: &str) -> Result<String, Fault> {
    let mut expected = read(text, container, name)?;
    let removed = expected[container].as_object_mut().and_then(|servers| servers.remove(name));
    let body = body(text);
    let options = CollectOptions { tokens: true, ..CollectOptions::default() };
    let parsed = parse_to_ast(body, &options, &DIALECT).map_err(|_| unsafe_edit())?;
    let root = parsed.value.as_ref().and_then(ast::Value::as_object);
    let servers = root.and_then(|root| root.get_object(container));
    let (Some(_), Some(servers)) = (removed, servers) else { return Ok(text.to_owned()) };
    let commas = parsed.tokens.iter().flatten().filter(|token| token.token == Token::Comma).map(Ranged::start);
    let mut after = body.to_owned();
    for cut in cuts(body, servers, name, &commas.collect::<Vec<_>>()).into_iter().rev() {
        after.replace_range(cut, "");
    }
    checked(format!("{}{after}", &text[..text.len() - body.len()]), &expected)
}

/// What goes with a member, in order: itself, the blanks before it and one comma.
fn cuts(text: &str, servers: &ast::Object<'_>, name: &str, commas: &[usize]) -> Vec<Range<usize>> {
    let at = servers.properties.iter().position(|member| member.name.as_str() == name);
    let Some((at, member)) = at.map(|at| (at, &servers.properties[at])) else { return Vec::new() };
    let inside = servers.start() + 1..servers.end() - 1;
    let one = |cut: Range<usize>| Vec::from([cut]);
    let start = text[..member.start()].trim_end().len();
    if servers.properties.len() == 1 && text[inside.start..start].trim().is_empty() {
        let rest = text[member.end()..inside.end].trim();
        if rest.is_empty() || rest == "," {
            return one(inside);
        }
    }
    let next = servers.properties.get(at + 1).map_or(inside.end, Ranged::start);
    let own = commas.iter().copied().find(|comma| (member.end()..next).contains(comma));
    let before = commas.iter().copied().rfind(|comma| (inside.start..member.start()).contains(comma));
    match (own, before) {
        (Some(comma), _) if text[member.end()..comma].trim().is_empty() => one(start..comma + 1),
        (Some(comma), _) => vec![start..member.end(), comma..comma + 1],
        (None, Some(comma)) => vec![comma..comma + 1, start.max(comma + 1)..member.end()],
        (None, None) => one(start..member.end()),
    }
}

fn unsafe_edit() -> Fault {
    Fault { line: 1, what: "written in a way that mcpwire cannot change safely".to_owned() }
}

/// The net below every edit: the result must have the intended meaning and no other.
fn checked(after: String, expected: &Value) -> Result<String, Fault> {
    let seen = parse(body(&after))?.map(Value::from);
    if seen.as_ref() == Some(expected) { Ok(after) } else { Err(unsafe_edit()) }
}

/// The text behind the byte order mark.
fn body(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

fn input(entry: &Entry) -> CstInputValue {
    let typed = entry.typed.then(|| ("type".to_owned(), "stdio".into()));
    let args = CstInputValue::Array(entry.args.iter().map(|arg| arg.as_str().into()).collect());
    let members = [("command".to_owned(), entry.command.as_str().into()), ("args".to_owned(), args)];
    CstInputValue::Object(typed.into_iter().chain(members).collect())
}

/// The meaning of a text, with an object at the top and one as the container if it is there. The container and the server
/// may be there once only: of two, programs take the one or the other, and no change is safe.
fn read(text: &str, container: &str, name: &str) -> Result<Value, Fault> {
    let body = body(text);
    let Some(value) = parse(body)? else { return Ok(Value::Object(serde_json::Map::new())) };
    let root = object(body, &value, "the file")?;
    if let Some(servers) = only(body, root, container)? {
        only(body, object(body, servers, &format!("{container:?}"))?, name)?;
    }
    Ok(value.into())
}

fn object<'v, 't>(text: &str, value: &'v ast::Value<'t>, what: &str) -> Result<&'v ast::Object<'t>, Fault> {
    value.as_object().ok_or_else(|| fault(text, value, format!("expected {what} to be an object")))
}

fn only<'v, 't>(text: &str, object: &'v ast::Object<'t>, key: &str) -> Result<Option<&'v ast::Value<'t>>, Fault> {
    let mut members = object.properties.iter().filter(|member| member.name.as_str() == key);
    match (members.next(), members.next()) {
        (_, Some(second)) => Err(fault(text, second, format!("{key:?} is there twice"))),
        (first, None) => Ok(first.map(|member| &member.value)),
    }
}

fn fault(text: &str, at: &impl Ranged, what: String) -> Fault {
    Fault { line: line_of(text, at.start()), what }
}

#[cfg(test)]
#[path = "jsonc_tests.rs"]
mod tests;
