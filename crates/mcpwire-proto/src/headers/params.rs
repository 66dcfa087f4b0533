//! Tool parameters that are repeated in headers: which they are, whether a schema may say so, and their values in a call
//! (2026-07-28, Custom Headers from Tool Parameters).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::value::RawValue;

use super::{Given, decode, mismatch};
use crate::Fault;

const ANNOTATION: &str = "x-mcp-header";
/// The largest whole number that every peer reads as the same (2^53 - 1).
const SAFE: f64 = 9_007_199_254_740_991.0;

/// A parameter with a header of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The names that lead to it from the arguments of the call.
    path: Vec<String>,
    /// What follows `Mcp-Param-`, as the schema spells it.
    pub header: String,
}

/// The value of a parameter in a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Flag(bool),
    /// A number, and how it is written.
    Number(f64, String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) | Value::Number(_, text) => f.write_str(text),
            Value::Flag(flag) => write!(f, "{flag}"),
        }
    }
}

impl Parameter {
    /// Its value in the arguments of a call. What is absent, null, no primitive value or no safe integer has no header.
    pub(super) fn value_in(&self, arguments: &str) -> Option<Value> {
        let mut text = arguments;
        for name in &self.path {
            let members: HashMap<Name<'_>, &RawValue> = serde_json::from_str(text).ok()?;
            text = members.get(&Name(Cow::Borrowed(name)))?.get();
        }
        match text.as_bytes().first()? {
            b'"' => serde_json::from_str(text).ok().map(Value::Text),
            b't' => Some(Value::Flag(true)),
            b'f' => Some(Value::Flag(false)),
            b'-' | b'0'..=b'9' => {
                let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
                match number.fract() == 0.0 {
                    true => (number.abs() <= SAFE).then(|| Value::Number(number, format!("{}", number as i64))),
                    false => Some(Value::Number(number, text.to_owned())),
                }
            }
            _ => None,
        }
    }

    /// Whether its header says the same as the call. A header for a value that is not there says something else.
    pub(super) fn check(&self, value: Option<&Value>, header: Given<'_>) -> Result<(), Fault> {
        let name = format!("Mcp-Param-{}", self.header);
        let text = match header {
            Given::Text(text) => decode(text),
            Given::Absent | Given::Unreadable => None,
        };
        match (value, text) {
            (None, _) if header == Given::Absent => Ok(()),
            (None, _) => Err(Fault::Headers(format!("expected no {name}: the call has no such value"))),
            (Some(value), Some(text)) if value.is(&text) => Ok(()),
            (Some(value), _) => Err(mismatch(&name, &value.to_string(), header)),
        }
    }
}

impl Value {
    fn is(&self, header: &str) -> bool {
        match self {
            Value::Text(text) => text == header,
            Value::Flag(flag) => header == if *flag { "true" } else { "false" },
            // `42.0` is 42, and so is `4.2e1`; but ` 42` and `+42` are no numbers.
            Value::Number(number, _) => {
                header.trim_ascii() == header && serde_json::from_str::<f64>(header).is_ok_and(|other| other == *number)
            }
        }
    }
}

/// A key that borrows where it can.
#[derive(PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The parameters that an input schema gives headers to; or why the schema must not be used.
pub fn parameters(schema: &serde_json::Value) -> Result<Vec<Parameter>, String> {
    let mut found = Found::default();
    found.visit(schema, Some(&mut Vec::new()))?;
    Ok(found.parameters)
}

#[derive(Default)]
struct Found {
    parameters: Vec<Parameter>,
    /// In lower case: header names are the same in any.
    names: HashSet<String>,
}

impl Found {
    /// Looks at a schema and those inside it. `path` leads to it through `properties` alone; `None` if nothing does.
    fn visit(&mut self, schema: &serde_json::Value, mut path: Option<&mut Vec<String>>) -> Result<(), String> {
        let Some(schema) = schema.as_object() else { return Ok(()) };
        if let Some(annotation) = schema.get(ANNOTATION) {
            self.take(annotation, schema.get("type"), path.as_deref().map(Vec::as_slice))?;
        }
        for (keyword, inner) in schema {
            match keyword.as_str() {
                "properties" => {
                    for (name, property) in inner.as_object().into_iter().flatten() {
                        if let Some(path) = path.as_deref_mut() {
                            path.push(name.clone());
                        }
                        self.visit(property, path.as_deref_mut())?;
                        path.as_deref_mut().map(Vec::pop);
                    }
                }
                "$defs" | "definitions" | "patternProperties" | "dependentSchemas" | "dependencies" => {
                    inner.as_object().into_iter().flatten().try_for_each(|(_, schema)| self.visit(schema, None))?;
                }
                // Data, in which nothing is a schema.
                "default" | "const" | "enum" | "examples" => {}
                _ => match inner {
                    serde_json::Value::Array(schemas) => {
                        schemas.iter().try_for_each(|schema| self.visit(schema, None))?;
                    }
                    schema => self.visit(schema, None)?,
                },
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        annotation: &serde_json::Value,
        kind: Option<&serde_json::Value>,
        path: Option<&[String]>,
    ) -> Result<(), String> {
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return Err(format!("expected {ANNOTATION} only where `properties` alone lead from the root"));
        };
        let at = path.join(".");
        let Some(header) = annotation.as_str().filter(|name| !name.is_empty() && name.bytes().all(is_tchar)) else {
            return Err(format!("{at}: expected {ANNOTATION} to be a header name, came {annotation}"));
        };
        if !matches!(kind.and_then(serde_json::Value::as_str), Some("string" | "integer" | "boolean")) {
            let came = kind.map_or("none".to_owned(), ToString::to_string);
            return Err(format!("{at}: expected {ANNOTATION} on type string, integer or boolean, came {came}"));
        }
        if !self.names.insert(header.to_ascii_lowercase()) {
            return Err(format!("{at}: expected another {ANNOTATION} than {header:?}, which is used already"));
        }
        self.parameters.push(Parameter { path: path.to_vec(), header: header.to_owned() });
        Ok(())
    }
}

/// RFC 9110, section 5.6.2.
fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
