//! One field of a record, read without building the rest of it.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::{Number, Value};

/// The value of a field in the JSON text of an object; `None` if it has no such field.
pub(super) fn field(record: &str, name: &str) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_str(record);
    reader.deserialize_map(Only(name)).ok().flatten()
}

struct Only<'a>(&'a str);

impl<'de> Visitor<'de> for Only<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Value>, A::Error> {
        let mut found = None;
        while let Some(wanted) = map.next_key_seed(Is(self.0))? {
            if wanted {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Compares a key without keeping it.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

/// Whether two numbers are the same, however they are written.
pub(super) fn same_number(a: &Number, b: &Number) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a == b,
        _ => a.as_f64() == b.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::field;

    #[test]
    fn a_field_is_found_wherever_it_is() {
        let record = r#"{"a":{"x":1},"x":[1,2],"\u0062":"é"}"#;
        assert_eq!(field(record, "x"), Some(json!([1, 2])));
        assert_eq!(field(record, "b"), Some(json!("é")));
        assert_eq!(field(record, "c"), None);
        assert_eq!(field(r#"{"n":null}"#, "n"), Some(json!(null)));
        assert_eq!(field("[1]", "n"), None);
    }
}
