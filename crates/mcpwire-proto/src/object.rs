//! A JSON object as its members, each with the text of its value: to add, take away and replace some without reading the rest.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The members of an object, in their order. Values are JSON text.
#[derive(Debug, Clone, Default)]
pub struct Object<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Object<'a> {
    pub fn new() -> Object<'a> {
        Object::default()
    }

    pub(crate) fn of(members: Vec<(Cow<'a, str>, Cow<'a, str>)>) -> Object<'a> {
        Object(members)
    }

    pub(crate) fn into_members(self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        self.0
    }

    /// Takes an object apart; `None` if the text is something else.
    pub fn parse(text: &'a str) -> Option<Object<'a>> {
        serde_json::from_str(text).ok()
    }

    /// The text of a member's value. Of several members under one name the last counts, as with most readers.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// A member that is an object itself.
    pub fn object(&self, name: &str) -> Option<Object<'_>> {
        Object::parse(self.get(name)?)
    }

    /// A member that is a string.
    pub fn string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// Replaces a member where it stands, or adds it at the end.
    pub fn set(&mut self, name: &'a str, value: impl Into<Cow<'a, str>>) {
        let value = value.into();
        match self.0.iter_mut().rev().find(|(key, _)| key == name) {
            Some(member) => member.1 = value,
            None => self.0.push((Cow::Borrowed(name), value)),
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// The object as JSON text.
    pub(crate) fn text(&self) -> String {
        let size: usize = self.0.iter().map(|(key, value)| key.len() + value.len() + 4).sum();
        let mut text = String::with_capacity(size + 2);
        for (n, (key, value)) in self.0.iter().enumerate() {
            text.push(if n > 0 { ',' } else { '{' });
            text.push_str(&quoted(key));
            text.push(':');
            text.push_str(value);
        }
        text.push_str(if self.0.is_empty() { "{}" } else { "}" });
        text
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The text as a JSON string.
pub fn quoted(text: &str) -> String {
    // Names and the like, which are written with every message, seldom have anything in them to escape.
    if text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        return serde_json::Value::from(text).to_string();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    quoted.push_str(text);
    quoted.push('"');
    quoted
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// `Cow` alone never borrows.
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

        struct Members<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Members<'a> {
            type Value = Object<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'a>, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    members.push((key, Cow::Borrowed(value.get())));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_touched_stays_as_it_was() {
        let mut object = Object::parse(r#"{ "a": 1.10, "b\"": {"c" : 12345678901234567890}, "d":null}"#).unwrap();
        object.set("d", "2");
        object.set("e", "[]");
        object.remove("a");
        assert_eq!(object.to_string(), r#"{"b\"":{"c" : 12345678901234567890},"d":2,"e":[]}"#);
    }

    #[test]
    fn texts_are_quoted_as_json_wants_it() {
        for text in ["", "plain/name", "ü\u{7f}\u{2028}", "a\"b", "back\\slash", "line\nbreak", "\u{0}\u{1f}"] {
            assert_eq!(quoted(text), serde_json::Value::from(text).to_string(), "{text:?}");
        }
    }

    #[test]
    fn only_objects_are_objects() {
        for text in ["[]", "1", "null", "\"{}\"", "{", "{}x"] {
            assert!(Object::parse(text).is_none(), "{text}");
        }
        assert!(Object::parse("{}").unwrap().is_empty());
    }

    #[test]
    fn the_last_of_several_members_counts() {
        let mut object = Object::parse(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(object.get("a"), Some("2"));
        object.set("a", "3");
        assert_eq!(object.to_string(), r#"{"a":1,"a":3}"#);
        object.remove("a");
        assert!(object.is_empty());
    }
}
