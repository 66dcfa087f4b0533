//! The fields of a category as a question may speak of them, and what their values look like.

use serde_json::{Map, Value};

use super::super::category::Category;
use super::super::records::plain_text;
use super::words::{akin, name_stems, stems};

/// How deep fields of objects are looked at.
const DEEPEST: usize = 4;

/// Words that people use for one another. Each line holds for a category that has a field of one of these names and none
/// of the name that was used; of several lines the first.
const SYNONYMS: [&[&str]; 14] = [
    &["title", "role", "position", "job", "occupation", "designation", "function"],
    &["name", "title", "label"],
    &["location", "city", "town", "place", "office", "site", "address"],
    &["email", "mail"],
    &["manager", "boss", "supervisor", "superior", "lead", "leader", "head"],
    &["department", "team", "division", "unit"],
    &["skill", "expertise", "competence", "technology", "knowledge"],
    &["price", "cost", "rate"],
    &["status", "state"],
    &["type", "kind", "category", "sort", "class", "genre"],
    &["owner", "responsible", "maintainer"],
    &["phone", "telephone", "mobile"],
    &["description", "summary", "text", "note"],
    &["priority", "criticality", "severity", "importance"],
];

/// What a field is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// What a record is called.
    Title,
    /// What a record is referred to by, or refers to another by.
    Key,
    Other,
}

/// A field, by its path: `address.city`.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) path: String,
    pub(super) stems: Vec<String>,
    pub(super) purpose: Purpose,
    /// Whether a record may have several values.
    pub(super) is_list: bool,
    /// How many values there are, and how many of them are numbers or dates, and truth values.
    pub(super) values: usize,
    pub(super) numbers: usize,
    /// Numbers that are not in a text.
    pub(super) plain_numbers: usize,
    pub(super) truths: usize,
    /// The smallest and the largest number.
    pub(super) range: Option<(f64, f64)>,
}

impl Field {
    pub(super) fn new(category: &Category, path: &str, keys: &[String]) -> Field {
        let mut stems = name_stems(path);
        let last = stems.last().cloned().unwrap_or_default();
        let is_key =
            keys.iter().any(|key| key == path) || matches!(last.as_str(), "id" | "ids" | "uuid" | "guid" | "key");
        if is_key && stems.len() > 1 && matches!(last.as_str(), "id" | "ids" | "uuid" | "guid" | "key" | "code") {
            stems.pop();
        }
        let purpose = match last.as_str() {
            _ if is_key => Purpose::Key,
            "nam" | "name" | "titl" | "label" if !path.contains('.') => Purpose::Title,
            _ => Purpose::Other,
        };
        let aliases = category.field_aliases(path);
        stems.extend(aliases.iter().flat_map(|alias| name_stems(alias)));
        Field {
            path: path.to_owned(),
            stems,
            purpose,
            is_list: false,
            values: 0,
            numbers: 0,
            plain_numbers: 0,
            truths: 0,
            range: None,
        }
    }

    pub(super) fn observe(&mut self, value: &Value, in_list: bool) {
        self.is_list |= in_list;
        self.values += 1;
        self.plain_numbers += usize::from(value.is_number());
        self.truths += usize::from(truth(value).is_some());
        if let Some(number) = number(value) {
            self.numbers += 1;
            let (low, high) = self.range.unwrap_or((number, number));
            self.range = Some((low.min(number), high.max(number)));
        }
    }

    pub(super) fn is_numeric(&self) -> bool {
        self.values > 0 && self.numbers == self.values && self.purpose != Purpose::Key
    }

    pub(super) fn is_truth(&self) -> bool {
        self.values > 0 && self.truths == self.values
    }

    /// Whether a word speaks of this field by its name.
    pub(super) fn is_named(&self, stem: &str) -> bool {
        self.stems.iter().any(|own| akin(own, stem))
    }
}

/// For each field whether a word speaks of it: by its name, or else by a word of the same meaning.
pub(super) fn spoken_of(fields: &[Field], stem: &str) -> Vec<bool> {
    let named: Vec<bool> = fields.iter().map(|field| field.is_named(stem)).collect();
    // `title` is the role of people who have no title of their own.
    if named.contains(&true) {
        return named;
    }
    let groups = SYNONYMS.iter().map(|group| group.iter().flat_map(|word| stems(word)).collect::<Vec<_>>());
    let of = |group: Vec<String>| -> Vec<bool> {
        fields.iter().map(|field| field.stems.iter().any(|own| group.contains(own))).collect()
    };
    let mut meant = groups.filter(|group| group.iter().any(|word| word == stem)).map(of);
    meant.find(|fields| fields.contains(&true)).unwrap_or(named)
}

/// Gives every plain value of a record with its path and whether it is in a list.
pub(super) fn values(record: &Map<String, Value>, give: &mut dyn FnMut(&str, &Value, bool)) {
    for (name, value) in record {
        visit(name, value, false, 0, give);
    }
}

fn visit(path: &str, value: &Value, in_list: bool, depth: usize, give: &mut dyn FnMut(&str, &Value, bool)) {
    match value {
        Value::Null => {}
        Value::Array(members) => members.iter().for_each(|member| visit(path, member, true, depth, give)),
        Value::Object(_) if depth >= DEEPEST => {}
        Value::Object(inner) => {
            for (name, value) in inner {
                visit(&format!("{path}.{name}"), value, in_list, depth + 1, give);
            }
        }
        value => give(path, value, in_list),
    }
}

/// The text of a plain value.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        value => plain_text(value),
    }
}

/// A number, also in a text; of a date the year.
pub(super) fn number(value: &Value) -> Option<f64> {
    let text = match value {
        Value::Number(number) => return number.as_f64(),
        Value::String(text) => text.trim(),
        _ => return None,
    };
    let is_date = text.len() >= 7 && text.as_bytes()[4] == b'-' && text.is_ascii();
    let digits = if is_date { &text[..4] } else { text };
    digits
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && digits.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
}

pub(super) fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
