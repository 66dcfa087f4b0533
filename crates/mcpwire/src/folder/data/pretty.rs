//! JSON text laid out with two spaces, without touching a number, an escape or the order of keys.

/// Lays out JSON text, which must be sound.
pub(super) fn pretty(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len() * 3 / 2);
    let mut depth = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = end_of_string(bytes, at);
                out.push_str(&json[at..end]);
                at = end;
                continue;
            }
            open @ (b'{' | b'[') => {
                out.push(char::from(open));
                let next = bytes[at + 1..].iter().position(|b| !b.is_ascii_whitespace()).map(|n| at + 1 + n);
                match next.filter(|next| matches!(bytes[*next], b'}' | b']')) {
                    Some(next) => {
                        out.push(char::from(bytes[next]));
                        at = next;
                    }
                    None => {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
            }
            close @ (b'}' | b']') => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(char::from(close));
            }
            b',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            b':' => out.push_str(": "),
            b if b.is_ascii_whitespace() => {}
            b => out.push(char::from(b)),
        }
        at += 1;
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Where a string that begins here ends.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::pretty;

    #[test]
    fn numbers_order_and_escapes_stay() {
        let text = r#"{"b":1.10,"a":[1e400,{},[ ],"x\"{,\\"],"n":12345678901234567890123}"#;
        let expected = "{\n  \"b\": 1.10,\n  \"a\": [\n    1e400,\n    {},\n    [],\n    \"x\\\"{,\\\\\"\n  ],\n  \"n\": 12345678901234567890123\n}";
        assert_eq!(pretty(text), expected);
        assert_eq!(pretty(&pretty(text)), expected);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_what_serde_json_does(value in json()) {
            prop_assert_eq!(pretty(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        }
    }
}
