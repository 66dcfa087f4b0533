//! JSON and `google.protobuf.Struct`, each from the other. Whole numbers stay whole; what a double cannot hold is refused.

use mcpwire_proto::Fault;
use serde_json::{Map, Number, Value as Json};

use super::proto::{Kind, ListValue, Struct, Value};

/// Numbers up to here are exact as doubles.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// How deep values may be nested: peers, prost among them, read no deeper than 100 messages, three for each object.
const DEEPEST: usize = 30;

/// A JSON object as a Struct. Fails on a number that would arrive as another one, and on values nested too deeply.
pub(super) fn to_struct(object: Map<String, Json>) -> Result<Struct, Fault> {
    object_within(object, DEEPEST)
}

fn object_within(object: Map<String, Json>, depth: usize) -> Result<Struct, Fault> {
    let fields = object.into_iter().map(|(name, value)| Ok((name, value_within(value, depth)?)));
    Ok(Struct { fields: fields.collect::<Result<_, Fault>>()? })
}

fn value_within(json: Json, depth: usize) -> Result<Value, Fault> {
    let Some(below) = depth.checked_sub(1) else {
        return Err(Fault::Params(format!("expected values nested at most {DEEPEST} deep, came deeper ones")));
    };
    let kind = match json {
        Json::Null => Kind::Null(0),
        Json::Bool(value) => Kind::Bool(value),
        Json::Number(number) => Kind::Number(to_double(&number)?),
        Json::String(text) => Kind::String(text),
        Json::Array(values) => {
            let values = values.into_iter().map(|value| value_within(value, below)).collect::<Result<_, _>>()?;
            Kind::List(ListValue { values })
        }
        Json::Object(object) => Kind::Struct(object_within(object, below)?),
    };
    Ok(Value { kind: Some(kind) })
}

fn to_double(number: &Number) -> Result<f64, Fault> {
    let inexact = || Fault::Params(format!("expected a number that a double holds exactly, came {number}"));
    let double = number.as_f64().ok_or_else(inexact)?;
    let same = match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => double as i128 == i128::from(whole),
        (None, Some(whole)) => double as i128 == i128::from(whole),
        (None, None) => true,
    };
    if same { Ok(double) } else { Err(inexact()) }
}

/// A Struct as a JSON object.
pub(super) fn to_object(fields: Struct) -> Map<String, Json> {
    fields.fields.into_iter().map(|(name, value)| (name, to_json(value))).collect()
}

fn to_json(value: Value) -> Json {
    match value.kind {
        None | Some(Kind::Null(_)) => Json::Null,
        Some(Kind::Bool(value)) => Json::Bool(value),
        Some(Kind::Number(number)) => from_double(number),
        Some(Kind::String(text)) => Json::String(text),
        Some(Kind::List(list)) => Json::Array(list.values.into_iter().map(to_json).collect()),
        Some(Kind::Struct(fields)) => Json::Object(to_object(fields)),
    }
}

fn from_double(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() <= EXACT {
        return Json::from(number as i64);
    }
    // JSON has neither infinities nor NaN.
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn there_and_back(json: Json) -> Json {
        let Json::Object(object) = json else { panic!("no object") };
        Json::Object(to_object(to_struct(object).unwrap()))
    }

    #[test]
    fn whole_numbers_stay_whole() {
        let value =
            json!({"a": 1, "b": -7, "c": 1.5, "d": 9_007_199_254_740_992_i64, "e": [0, {"f": null}], "g": true});
        assert_eq!(there_and_back(value.clone()).to_string(), value.to_string());
        assert_eq!(there_and_back(json!({"a": 1.0})).to_string(), r#"{"a":1}"#);
    }

    #[test]
    fn a_number_that_would_change_on_the_way_is_refused() {
        for number in ["9007199254740993", "18446744073709551615", "-9007199254740993"] {
            let object: Map<String, Json> = serde_json::from_str(&format!(r#"{{"a":{number}}}"#)).unwrap();
            assert!(to_struct(object).unwrap_err().to_string().contains(number), "{number}");
        }
    }

    #[test]
    fn numbers_that_json_does_not_have_become_null() {
        assert_eq!(from_double(f64::NAN), Json::Null);
        assert_eq!(from_double(f64::INFINITY), Json::Null);
        assert_eq!(from_double(1e300).to_string(), "1e+300");
    }

    #[test]
    fn what_is_accepted_can_be_read_by_prost() {
        use prost::Message;
        let nest = |depth: usize| (1..depth).fold(json!({"a": 1}), |inner, _| json!({"a": inner}));
        let Json::Object(deepest) = nest(DEEPEST) else { panic!("no object") };
        let bytes = to_struct(deepest).unwrap().encode_to_vec();
        // In a response it lies two messages deeper.
        assert!(Struct::decode(&*bytes).is_ok());
        let Json::Object(deeper) = nest(DEEPEST + 1) else { panic!("no object") };
        assert!(to_struct(deeper).is_err());
    }

    #[test]
    fn doubles_come_back() {
        let mut random = fastrand::Rng::with_seed(1);
        let numbers = std::iter::repeat_with(|| f64::from_bits(random.u64(..))).filter(|number| number.is_finite());
        for number in numbers.take(10_000).chain([0.0, -1.5, 1e15, 1e16, f64::MIN_POSITIVE]) {
            assert_eq!(from_double(number).as_f64(), Some(number));
        }
    }
}
