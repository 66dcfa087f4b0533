//! Which records a filter lets through: by strict rules for the search tool, by lenient ones for questions.

use serde_json::{Map, Value};

use super::field::same_number;

/// The strict rules: every filter must hold; values are equal in type and case; a list in the record holds its members;
/// an empty text filters nothing; null is equal to null alone, and not to a missing field; a list or an object is equal
/// to nothing.
pub(super) fn strict(filters: &Map<String, Value>, record: &Map<String, Value>) -> bool {
    filters.iter().filter(|(_, wanted)| !is_blank(wanted)).all(|(field, wanted)| match record.get(field) {
        Some(Value::Array(members)) => members.iter().any(|member| equal(wanted, member)),
        Some(value) => equal(wanted, value),
        None => false,
    })
}

pub(super) fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(str::is_empty)
}

/// Equal as JavaScript's `===` has it.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(_) | Value::Object(_), _) => false,
        _ => a == b,
    }
}

/// The lenient rules: texts are compared without case and outer spaces; of a list all members must be there; null is as
/// good as missing; an object asks for its fields.
pub(super) fn lenient(criteria: &Map<String, Value>, record: &Map<String, Value>) -> bool {
    criteria.iter().filter(|(_, wanted)| !is_blank(wanted)).all(|(field, wanted)| alike(wanted, record.get(field)))
}

fn alike(wanted: &Value, value: Option<&Value>) -> bool {
    match (wanted, value) {
        (Value::Null, None | Some(Value::Null)) => true,
        (Value::Null, _) | (_, None) => false,
        (Value::Array(all), Some(value)) => all.iter().all(|wanted| alike(wanted, Some(value))),
        (_, Some(Value::Array(members))) => members.iter().any(|member| alike(wanted, Some(member))),
        (Value::Object(criteria), Some(Value::Object(record))) => lenient(criteria, record),
        (Value::String(a), Some(Value::String(b))) => a.trim().to_lowercase() == b.trim().to_lowercase(),
        (a, Some(b)) => equal(a, b),
    }
}

/// Puts the names that records use in the place of other names for them.
pub(super) fn resolve(criteria: &Map<String, Value>, name: impl Fn(&str) -> String) -> Map<String, Value> {
    criteria.iter().map(|(field, wanted)| (name(field), wanted.clone())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn person() -> Value {
        json!({
            "id": "person-001", "name": "Ana", "level": 3, "remote": true, "managerId": null, "skills": ["Python", "SQL"],
            "address": { "city": "Porto", "floor": 2 },
        })
    }

    fn check(rule: fn(&Map<String, Value>, &Map<String, Value>) -> bool, filters: Value, expected: bool) {
        let (filters, record) = (filters.as_object().unwrap().clone(), person().as_object().unwrap().clone());
        assert_eq!(rule(&filters, &record), expected, "{}", Value::Object(filters));
    }

    #[test]
    fn the_strict_rules() {
        for (filters, expected) in [
            (json!({}), true),
            (json!({"name": "Ana"}), true),
            (json!({"name": "ana"}), false),
            (json!({"name": "Ana", "level": 4}), false),
            (json!({"level": 3}), true),
            (json!({"level": 3.0}), true),
            (json!({"level": "3"}), false),
            (json!({"remote": true}), true),
            (json!({"remote": "true"}), false),
            (json!({"name": ""}), true),
            (json!({"skills": "Python"}), true),
            (json!({"skills": "python"}), false),
            (json!({"skills": ["Python"]}), false),
            (json!({"managerId": null}), true),
            (json!({"missing": null}), false),
            (json!({"address": {"city": "Porto", "floor": 2}}), false),
        ] {
            check(strict, filters, expected);
        }
    }

    #[test]
    fn the_lenient_rules() {
        for (criteria, expected) in [
            (json!({"name": " ANA "}), true),
            (json!({"skills": "python"}), true),
            (json!({"skills": ["python", "sql"]}), true),
            (json!({"skills": ["python", "go"]}), false),
            (json!({"missing": null, "managerId": null}), true),
            (json!({"name": null}), false),
            (json!({"address": {"city": "PORTO"}}), true),
            (json!({"address": {"city": "Faro"}}), false),
            (json!({"level": 3}), true),
            (json!({"name": ["ana"]}), true),
        ] {
            check(lenient, criteria, expected);
        }
    }

    proptest! {
        /// What is strictly equal is also alike, save for blank lists of criteria.
        #[test]
        fn strict_is_narrower_than_lenient(
            field in "[ab]",
            wanted in prop_oneof![Just(json!(null)), Just(json!("x")), Just(json!("X")), Just(json!(1)), Just(json!(true))],
            value in prop_oneof![Just(json!(null)), Just(json!("x")), Just(json!(1)), Just(json!(["x", 1])), Just(json!({}))],
        ) {
            let filters = Map::from_iter([(field, wanted)]);
            let record = Map::from_iter([("a".to_owned(), value)]);
            prop_assert!(!strict(&filters, &record) || lenient(&filters, &record));
        }
    }
}
