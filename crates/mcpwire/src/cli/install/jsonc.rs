//! JSON with comments, edited by its text: one member goes in or out, every other byte stays as it is.

use std::ops::Range;

use serde_json::Value;

use super::entry::Entry;

/// Why a text is left alone, and on which line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) what: String,
}

/// A text and where its parts lie.
struct Document<'t> {
    text: &'t str,
    /// The same without comments and trailing commas: blanks stand in their places, so that every place is the same.
    plain: String,
    /// Where trailing commas were.
    trailing: Vec<usize>,
    /// Where comments are.
    comments: Vec<Range<usize>>,
}

/// An object: its braces and what is between them.
struct Object {
    open: usize,
    close: usize,
    members: Vec<Member>,
}

struct Member {
    key: String,
    start: usize,
    value: Range<usize>,
    comma: Option<usize>,
}

/// The value of a server, if there is one.
pub(super) fn find(text: &str, container: &str, name: &str) -> Result<Option<Value>, Fault> {
    let document = Document::read(text)?;
    let Some(root) = document.root()? else { return Ok(None) };
    let Some(servers) = document.servers(&root, container)? else { return Ok(None) };
    let Some(member) = document.only(&servers, name)? else { return Ok(None) };
    Ok(serde_json::from_str(&document.plain[member.value.clone()]).ok())
}

/// Writes a server's entry, in the place of the one that has its name or behind the last.
pub(super) fn put(text: &str, container: &str, name: &str, entry: &Entry) -> Result<String, Fault> {
    let document = Document::read(text)?;
    let layout = Layout::of(&document);
    let key = Value::from(name).to_string();
    let Some(root) = document.root()? else {
        let (unit, line) = (&layout.unit, layout.line);
        let value = entry.json(Some(&unit.repeat(2)), unit, line);
        let container = Value::from(container);
        let whole =
            format!("{{{line}{unit}{container}: {{{line}{unit}{unit}{key}: {value}{line}{unit}}}{line}}}{line}");
        let gap = if text.is_empty() || text.ends_with(['\n', '\u{feff}']) { "" } else { line };
        return Ok(format!("{text}{gap}{whole}"));
    };
    let after = match document.servers(&root, container)? {
        Some(servers) => match document.only(&servers, name)? {
            Some(member) => {
                let indent = own_line(text, member.start);
                let value = entry.json(indent, &layout.unit, layout.line);
                splice(text, vec![(member.value.clone(), value)])
            }
            None => {
                let member = |indent: Option<&str>| format!("{key}:{}", layout.value(entry, indent));
                splice(text, layout.append(&document, &servers, &member))
            }
        },
        None => {
            let member = |indent: Option<&str>| {
                let key_of_all = Value::from(container);
                match indent {
                    Some(indent) => {
                        let (unit, line) = (&layout.unit, layout.line);
                        let deeper = format!("{indent}{unit}");
                        let value = entry.json(Some(&deeper), unit, line);
                        format!("{key_of_all}: {{{line}{deeper}{key}: {value}{line}{indent}}}")
                    }
                    None => format!("{key_of_all}:{{{key}:{}}}", layout.value(entry, None)),
                }
            };
            splice(text, layout.append(&document, &root, &member))
        }
    };
    let mut expected = document.value()?;
    expected[container][name] = entry.value();
    checked(after, &expected)
}

/// Takes a server's entry out; the rest stays.
pub(super) fn remove(text: &str, container: &str, name: &str) -> Result<String, Fault> {
    let document = Document::read(text)?;
    let Some(root) = document.root()? else { return Ok(text.to_owned()) };
    let Some(servers) = document.servers(&root, container)? else { return Ok(text.to_owned()) };
    let Some(member) = document.only(&servers, name)? else { return Ok(text.to_owned()) };
    let blank = |at: &usize| text.as_bytes()[*at - 1].is_ascii_whitespace();
    let mut start = member.start;
    while blank(&start) {
        start -= 1;
    }
    let at = servers.members.iter().position(|other| other.start == member.start).unwrap_or_default();
    let last = at + 1 == servers.members.len();
    let previous = at.checked_sub(1).and_then(|at| servers.members.get(at));
    let mut cuts = match (member.comma, previous.and_then(|previous| previous.comma)) {
        // What stood between the value and its comma stays, if it is a comment.
        (Some(comma), _) => {
            let end = if text[member.value.end..comma].trim().is_empty() { comma + 1 } else { member.value.end };
            let alone = (end == member.value.end).then_some((comma..comma + 1, String::new()));
            vec![Some((start..end, String::new())), alone].into_iter().flatten().collect::<Vec<_>>()
        }
        (None, Some(comma)) if last => {
            let start = start.max(comma + 1);
            vec![(comma..comma + 1, String::new()), (start..member.value.end, String::new())]
        }
        (None, _) => vec![(start..member.value.end, String::new())],
    };
    if servers.members.len() == 1 {
        let rest = format!("{}{}", &text[servers.open + 1..start], &text[member.value.end..servers.close]);
        if rest.trim_matches(|c: char| c.is_ascii_whitespace() || c == ',').is_empty() {
            cuts = vec![(servers.open + 1..servers.close, String::new())];
        }
    }
    let after = splice(text, cuts);
    let mut expected = document.value()?;
    if let Some(servers) = expected[container].as_object_mut() {
        servers.remove(name);
    }
    checked(after, &expected)
}

/// The net below every edit: the result must say what was meant and nothing else.
fn checked(after: String, expected: &Value) -> Result<String, Fault> {
    let seen = Document::read(&after)?.value()?;
    match seen == *expected {
        true => Ok(after),
        false => Err(Fault { line: 1, what: "written in a way that mcpwire cannot change safely".to_owned() }),
    }
}

impl<'t> Document<'t> {
    fn read(text: &'t str) -> Result<Document<'t>, Fault> {
        let mut document = Document { text, plain: String::new(), trailing: Vec::new(), comments: Vec::new() };
        let mut plain = text.as_bytes().to_vec();
        let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        plain[..start].fill(b' ');
        // The last byte that says something, and the last one before it.
        let (mut last, mut before) = ((start, b'{'), b'{');
        let mut at = start;
        while at < plain.len() {
            let end = match plain[at] {
                b'"' => string_end(&plain, at),
                b'/' if matches!(plain.get(at + 1), Some(b'/' | b'*')) => {
                    let end = comment_end(text, at)?;
                    document.comments.push(at..end);
                    blank(&mut plain[at..end]);
                    at = end;
                    continue;
                }
                _ => at + 1,
            };
            let byte = plain[at];
            if !byte.is_ascii_whitespace() {
                if matches!(byte, b'}' | b']') && last.1 == b',' && !matches!(before, b'{' | b'[' | b',') {
                    document.trailing.push(last.0);
                    plain[last.0] = b' ';
                }
                before = last.1;
                last = (at, byte);
            }
            at = end;
        }
        // Only whole comments and single commas were taken out.
        document.plain = String::from_utf8(plain).unwrap_or_default();
        if !document.is_blank() {
            document.value()?;
        }
        Ok(document)
    }

    fn is_blank(&self) -> bool {
        self.plain.trim().is_empty()
    }

    fn value(&self) -> Result<Value, Fault> {
        if self.is_blank() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        serde_json::from_str(&self.plain).map_err(|e| {
            let what = e.to_string();
            // serde_json ends its texts with the place, which we say ourselves.
            let what = what.rsplit_once(" at line").map_or(what.as_str(), |(what, _)| what).to_owned();
            // It has read on to the line break when it finds out that a word is too short.
            let line = if e.column() == 0 { e.line().saturating_sub(1) } else { e.line() };
            Fault { line: line.max(1), what }
        })
    }

    fn fault(&self, at: usize, what: String) -> Fault {
        Fault { line: 1 + self.text[..at].matches('\n').count(), what }
    }

    /// The object that the text is; `None` if it says nothing at all.
    fn root(&self) -> Result<Option<Object>, Fault> {
        let Some(open) = self.plain.find(|c: char| !c.is_whitespace()) else { return Ok(None) };
        self.object(open, "the file").map(Some)
    }

    fn servers(&self, root: &Object, container: &str) -> Result<Option<Object>, Fault> {
        match self.only(root, container)? {
            Some(member) => self.object(member.value.start, &format!("{container:?}")).map(Some),
            None => Ok(None),
        }
    }

    /// The member of this name. Of two, programs take the one or the other: no way to change that safely.
    fn only<'o>(&self, object: &'o Object, key: &str) -> Result<Option<&'o Member>, Fault> {
        let mut members = object.members.iter().filter(|member| member.key == key);
        match (members.next(), members.next()) {
            (_, Some(second)) => Err(self.fault(second.start, format!("{key:?} is there twice"))),
            (first, None) => Ok(first),
        }
    }

    fn object(&self, open: usize, what: &str) -> Result<Object, Fault> {
        let bytes = self.plain.as_bytes();
        if bytes.get(open) != Some(&b'{') {
            return Err(self.fault(open, format!("expected {what} to be an object")));
        }
        let skip = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            at
        };
        let mut members = Vec::new();
        let mut at = skip(open + 1);
        while bytes.get(at) == Some(&b'"') {
            let (start, key_end) = (at, string_end(bytes, at));
            let key = serde_json::from_str(&self.plain[start..key_end]).unwrap_or_default();
            let from = skip(skip(key_end) + 1);
            let value = from..value_end(bytes, from);
            at = skip(value.end);
            let comma = (bytes.get(at) == Some(&b',')).then_some(at);
            at = if comma.is_some() { skip(at + 1) } else { at };
            members.push(Member { key, start, value, comma });
        }
        if let Some(last) = members.last_mut() {
            last.comma = self.trailing.iter().copied().find(|comma| (last.value.end..at).contains(comma));
        }
        Ok(Object { open, close: at, members })
    }
}

/// How a text is laid out, so that what goes in looks like the rest.
struct Layout {
    line: &'static str,
    unit: String,
    /// Everything stands on one line.
    flat: bool,
    /// No blanks behind colons and commas.
    tight: bool,
}

impl Layout {
    fn of(document: &Document<'_>) -> Layout {
        let text = document.text;
        let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let root = document.root().ok().flatten();
        let first = root.as_ref().and_then(|root| root.members.first());
        let outer = root.as_ref().map_or("", |root| line_indent(text, root.open));
        let indent = first.and_then(|first| own_line(text, first.start));
        let unit = indent.map(|indent| indent.strip_prefix(outer).unwrap_or(indent)).filter(|unit| !unit.is_empty());
        let flat = first.is_some_and(|first| own_line(text, first.start).is_none());
        let tight = first.is_some_and(|first| document.plain[first.start..first.value.start].ends_with(':'));
        Layout { line, unit: unit.unwrap_or("  ").to_owned(), flat, tight }
    }

    /// A value behind its colon.
    fn value(&self, entry: &Entry, indent: Option<&str>) -> String {
        let blank = if self.tight && indent.is_none() { "" } else { " " };
        format!("{blank}{}", entry.json(indent, &self.unit, self.line))
    }

    /// What to write where, to add a member behind the last.
    fn append(
        &self,
        document: &Document<'_>,
        object: &Object,
        member: &dyn Fn(Option<&str>) -> String,
    ) -> Vec<(Range<usize>, String)> {
        let (text, line) = (document.text, self.line);
        let outer = line_indent(text, object.open);
        let deeper = format!("{outer}{}", self.unit);
        let Some(last) = object.members.last() else {
            let inside = object.open + 1..object.close;
            let comment = document.comments.iter().rfind(|comment| inside.contains(&comment.start));
            return match comment {
                Some(comment) => vec![(comment.end..comment.end, format!("{line}{deeper}{}", member(Some(&deeper))))],
                None if self.flat => vec![(inside, member(None))],
                None => vec![(inside, format!("{line}{deeper}{}{line}{outer}", member(Some(&deeper))))],
            };
        };
        let mut splices = Vec::new();
        if last.comma.is_none() {
            splices.push((last.value.end..last.value.end, ",".to_owned()));
        }
        let comma = if last.comma.is_some() { "," } else { "" };
        let from = last.comma.map_or(last.value.end, |comma| comma + 1);
        let (at, mut indent) = (document.line_end(from), own_line(text, last.start));
        if at != from && indent.is_none() {
            indent = Some(&deeper);
        }
        let added = match indent {
            Some(indent) => format!("{line}{indent}{}{comma}", member(Some(indent))),
            None => format!("{}{}{comma}", if self.tight { "" } else { " " }, member(None)),
        };
        splices.push((at..at, added));
        splices
    }
}

impl Document<'_> {
    /// The end of the comments that stand on the same line: they belong to what is before them.
    fn line_end(&self, from: usize) -> usize {
        let mut end = from;
        for comment in self.comments.iter().filter(|comment| comment.start >= from) {
            let gap = &self.text[end..comment.start];
            if !gap.chars().all(|c| c == ' ' || c == '\t') {
                break;
            }
            end = comment.end;
        }
        end
    }
}

/// The blanks before a place, if nothing else is on its line.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    text[start..at].bytes().all(|b| b == b' ' || b == b'\t').then_some(&text[start..at])
}

/// The blanks that the line of a place begins with.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            // A string ends with its line: what follows is reported as the fault it is.
            b'"' | b'\n' => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return at + depth,
            b'}' | b']' => depth -= 1,
            b if depth == 0 && (b == b',' || b.is_ascii_whitespace()) => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

fn comment_end(text: &str, start: usize) -> Result<usize, Fault> {
    let rest = &text[start..];
    if rest.starts_with("//") {
        let end = rest.find('\n').unwrap_or(rest.len());
        let end = if rest[..end].ends_with('\r') { end - 1 } else { end };
        return Ok(start + end);
    }
    let unclosed =
        || Fault { line: 1 + text[..start].matches('\n').count(), what: "this comment has no end".to_owned() };
    rest[2..].find("*/").map(|end| start + end + 4).ok_or_else(unclosed)
}

/// Line breaks stay, so that faults are found on their lines.
fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

/// Puts texts in the places of ranges, which come in order.
fn splice(text: &str, splices: Vec<(Range<usize>, String)>) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (range, new) in splices {
        out.push_str(&text[at..range.start]);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
#[path = "jsonc_tests.rs"]
mod tests;
