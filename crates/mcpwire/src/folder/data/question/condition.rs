//! What a question asks of a record, and how that is told.

use serde_json::{Map, Value, json};

use super::compare::Bound;
use super::fields::text;
use super::scan::Span;

/// What is asked of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// It has one of these values.
    Is(Vec<Value>),
    /// It contains these words.
    Contains(String),
    Bounds(Vec<Bound>),
    Truth(bool),
    Missing,
}

/// A field of the records, and what is asked of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) field: String,
    pub(super) test: Test,
    /// Where the words were found, if not in that field: `departments.name = Engineering`.
    pub(super) via: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) span: Span,
    /// Alternatives: one must hold.
    pub(super) parts: Vec<Part>,
    /// The records that fulfil it, sorted.
    pub(super) records: Vec<u32>,
    pub(super) negated: bool,
    /// Whether a record may have several values there.
    pub(super) is_list: bool,
    /// Whether the words are a whole value.
    pub(super) is_whole: bool,
    pub(super) score: i32,
}

impl Condition {
    pub(super) fn own(span: Span, field: &str, test: Test, records: Vec<u32>) -> Condition {
        let part = Part { field: field.to_owned(), test, via: None };
        Condition { span, parts: vec![part], records, negated: false, is_list: false, is_whole: true, score: 90 }
    }

    /// Whether it is about the same fields as another.
    pub(super) fn is_like(&self, other: &Condition) -> bool {
        let fields = |condition: &Condition| condition.parts.iter().map(|part| part.field.clone()).collect::<Vec<_>>();
        fields(self) == fields(other)
    }

    /// Makes it hold where either holds.
    pub(super) fn or(&mut self, other: Condition) {
        self.records.extend(other.records);
        self.records.sort_unstable();
        self.records.dedup();
        for part in other.parts {
            match self.parts.iter_mut().find(|known| known.field == part.field) {
                Some(Part { test: Test::Is(values), via, .. }) if matches!(part.test, Test::Is(_)) => {
                    if let Test::Is(more) = part.test {
                        let new: Vec<Value> = more.into_iter().filter(|value| !values.contains(value)).collect();
                        values.extend(new);
                    }
                    *via = via.take().zip(part.via).map(|(a, b)| format!("{a} or {b}"));
                }
                _ => self.parts.push(part),
            }
        }
    }

    pub(super) fn admits(&self, record: u32) -> bool {
        self.records.binary_search(&record).is_ok() != self.negated
    }

    /// For people: `ownerDepartmentId = dept-eng (departments.name = Engineering)`.
    pub(super) fn told(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(Part::told).collect();
        format!("{}{}", if self.negated { "not " } else { "" }, parts.join(" or "))
    }

    /// For programs, below the name of each field.
    pub(super) fn write(&self, criteria: &mut Map<String, Value>) {
        let alternatives = self.parts.len() > 1;
        for part in &self.parts {
            let mut value = part.test.json();
            if self.negated {
                value = json!({ "not": value });
            }
            if alternatives {
                value = json!({ "optional": value });
            }
            match criteria.get_mut(&part.field) {
                None => {
                    criteria.insert(part.field.clone(), value);
                }
                Some(Value::Object(known)) if known.contains_key("allOf") => {
                    if let Some(all) = known["allOf"].as_array_mut() {
                        all.push(value);
                    }
                }
                Some(known) => *known = json!({ "allOf": [known.take(), value] }),
            }
        }
    }
}

impl Part {
    pub(super) fn told(&self) -> String {
        let own = match &self.test {
            Test::Is(values) => {
                let values: Vec<String> = values.iter().filter_map(text).collect();
                format!("{} = {}", self.field, values.join(" or "))
            }
            Test::Contains(words) => format!("{} contains \"{words}\"", self.field),
            Test::Truth(value) => format!("{} = {value}", self.field),
            Test::Missing => format!("{} is missing", self.field),
            Test::Bounds(bounds) => {
                let bounds: Vec<String> =
                    bounds.iter().map(|bound| format!("{} {} {}", self.field, bound.sign(), bound.number)).collect();
                bounds.join(" and ")
            }
        };
        match &self.via {
            Some(via) => format!("{own} ({via})"),
            None => own,
        }
    }
}

impl Test {
    fn json(&self) -> Value {
        match self {
            Test::Is(values) => match &values[..] {
                [value] => json!(value),
                values => json!({ "anyOf": values }),
            },
            Test::Contains(words) => json!({ "contains": words }),
            Test::Truth(value) => json!(value),
            Test::Missing => Value::Null,
            Test::Bounds(bounds) => {
                bounds.iter().map(|bound| (bound.sign().to_owned(), bound.json())).collect::<Map<_, _>>().into()
            }
        }
    }
}
