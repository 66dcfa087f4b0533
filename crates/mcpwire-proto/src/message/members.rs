//! The members of a payload: found once however often they are asked for, and put together to another payload.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{Inner, Kind, Message, span_of};
use crate::object::{Object, quoted};

/// The most members remembered with a message: many small ones would take several times its own memory.
const MOST_KEPT: usize = 100;

/// Where the members of a payload lie, once somebody asked; `None` if it is no object.
#[derive(Clone, Default)]
pub(super) struct Found(OnceLock<Option<Box<[Member]>>>);

#[derive(Clone)]
struct Member {
    name: Name,
    value: Range<usize>,
}

#[derive(Clone)]
enum Name {
    Plain(Range<usize>),
    /// One with escapes, as it reads without them.
    Unescaped(Box<str>),
}

impl Found {
    /// The same members after the text around them has grown or shrunk.
    pub(super) fn moved(&self, shift: impl Fn(usize) -> usize) -> Found {
        let found = self.clone();
        let Some(Some(members)) = found.0.into_inner() else { return Found::default() };
        let moved = members.into_iter().map(|Member { name, value }| {
            let name = match name {
                Name::Plain(at) => Name::Plain(shift(at.start)..shift(at.end)),
                unescaped => unescaped,
            };
            Member { name, value: shift(value.start)..shift(value.end) }
        });
        Found(Some(moved.collect()).into())
    }
}

impl Message {
    /// The text of a member of the payload. Of several under one name the last counts.
    pub fn member(&self, name: &str) -> Option<&str> {
        let members = self.found()?;
        let found = members.iter().rev().find(|member| match &member.name {
            Name::Plain(at) => &self.0.raw[at.clone()] == name,
            Name::Unescaped(text) => **text == *name,
        });
        self.text(found?.value.clone())
    }

    /// The members of the payload; `None` if it is no object.
    pub fn members(&self) -> Option<Object<'_>> {
        let member = |member: &'_ Member| {
            let name = match &member.name {
                Name::Plain(at) => Cow::Borrowed(self.text(at.clone())?),
                Name::Unescaped(text) => Cow::Owned(text.to_string()),
            };
            Some((name, Cow::Borrowed(self.text(member.value.clone())?)))
        };
        self.found()?.iter().map(member).collect::<Option<Vec<_>>>().map(Object::of)
    }

    /// Whether the members have been found already.
    pub(crate) fn is_taken_apart(&self) -> bool {
        self.0.members.0.get().is_some()
    }

    fn found(&self) -> Option<Cow<'_, [Member]>> {
        let (kept, raw) = (&self.0.members.0, &self.0.raw);
        let find = || {
            let members = Object::parse(self.payload()?)?.into_members();
            let place = |(name, value): (Cow<'_, str>, Cow<'_, str>)| Member {
                name: match name {
                    Cow::Borrowed(name) => Name::Plain(span_of(raw, name)),
                    Cow::Owned(name) => Name::Unescaped(name.into()),
                },
                value: span_of(raw, &value),
            };
            Some(members.into_iter().map(place).collect::<Box<[Member]>>())
        };
        if kept.get().is_none() {
            match find() {
                Some(many) if many.len() > MOST_KEPT => return Some(Cow::Owned(many.into_vec())),
                found => kept.get_or_init(|| found),
            };
        }
        kept.get()?.as_deref().map(Cow::Borrowed)
    }

    fn text(&self, at: Range<usize>) -> Option<&str> {
        self.0.raw.get(at)
    }

    /// The same message around other members. What it is made of is JSON already, so it is not read again.
    pub(crate) fn with_members(&self, members: &Object<'_>) -> Message {
        let kind = self.kind().clone();
        let size: usize = members.iter().map(|(name, value)| name.len() + value.len() + 8).sum();
        let mut text = String::with_capacity(size + 128);
        text.push_str(r#"{"jsonrpc":"2.0""#);
        let id = match &kind {
            Kind::Request { id, .. } | Kind::Result { id } => Some(id.as_json()),
            Kind::Error { id } => Some(id.as_ref().map_or("null", |id| id.as_json())),
            Kind::Notification { .. } => None,
        };
        let id_span = id.map(|id| {
            text.push_str(r#","id":"#);
            push(&mut text, id)
        });
        if let Some(method) = self.method() {
            text.push_str(r#","method":"#);
            text.push_str(&quoted(method));
        }
        text.push_str(match &kind {
            Kind::Request { .. } | Kind::Notification { .. } => r#","params":"#,
            Kind::Result { .. } => r#","result":"#,
            Kind::Error { .. } => r#","error":"#,
        });
        let start = text.len();
        let mut found = Vec::new();
        for (n, (name, value)) in members.iter().enumerate() {
            text.push(if n > 0 { ',' } else { '{' });
            let written = push(&mut text, &quoted(name));
            let inner = written.start + 1..written.end - 1;
            let name = if inner.len() == name.len() { Name::Plain(inner) } else { Name::Unescaped(name.into()) };
            text.push(':');
            found.push(Member { name, value: push(&mut text, value) });
        }
        text.push_str(if found.is_empty() { "{}" } else { "}" });
        let payload = Some(start..text.len());
        text.push('}');
        debug_assert!(Message::parse(text.clone().into()).is_ok_and(|read| read.kind() == &kind), "made of JSON");
        let members = if found.len() > MOST_KEPT { Found::default() } else { Found(Some(found.into()).into()) };
        let beside = self.0.beside.clone();
        Message(Arc::new(Inner { raw: text.into(), kind, id_span, payload, members, beside }))
    }
}

/// Adds a text, and says where it lies.
fn push(text: &mut String, part: &str) -> Range<usize> {
    let start = text.len();
    text.push_str(part);
    start..text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Id;

    fn message(text: &str) -> Message {
        Message::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn members_are_found_by_name_however_it_is_written() {
        let call = message(r#"{"id":1,"params":{"a":1,"\u0062":{"c":"d"},"a":2},"jsonrpc":"2.0","method":"m"}"#);
        assert_eq!(call.member("a"), Some("2"));
        assert_eq!(call.member("b"), Some(r#"{"c":"d"}"#));
        assert_eq!(call.member("c"), None);
        assert_eq!(call.members().unwrap().to_string(), r#"{"a":1,"b":{"c":"d"},"a":2}"#);
        for none in ["[1]", "null", "1"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{none}}}"#);
            assert!(message(&text).members().is_none(), "{none}");
        }
        assert!(message(r#"{"jsonrpc":"2.0","method":"m"}"#).member("a").is_none());
    }

    #[test]
    fn many_members_are_found_and_not_kept() {
        let many: Vec<String> = (0..=MOST_KEPT).map(|n| format!(r#""m{n}":{n}"#)).collect();
        let call = message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{}}}}}"#, many.join(",")));
        assert_eq!(call.member("m7"), Some("7"));
        let made = call.with_members(&call.members().unwrap());
        assert_eq!(made.as_bytes(), call.as_bytes());
        assert!(!call.is_taken_apart() && !made.is_taken_apart());
    }

    #[test]
    fn a_message_of_members_is_what_it_would_be_if_it_were_read() {
        for text in [
            r#"{"jsonrpc":"2.0","id":"x","method":"m\"","params":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.50,"result":{"a":"ü"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
        ] {
            let before = message(text);
            let mut members = before.members().unwrap();
            members.set("\"ö", "[2]");
            let made = before.with_members(&members);
            for (made, id) in [(made.clone(), before.id().cloned()), (made.with_id(&Id::from("longer")), None)] {
                let read = Message::parse(made.as_bytes().clone()).unwrap();
                assert_eq!((made.kind(), made.payload()), (read.kind(), read.payload()), "{text}");
                assert_eq!(made.0.id_span, read.0.id_span, "{text}");
                assert_eq!(made.members().unwrap().to_string(), read.payload().unwrap(), "{text}");
                assert_eq!(made.member("\"ö"), Some("[2]"), "{text}");
                assert!(id.is_none() || id.as_ref() == made.id());
            }
        }
    }
}
