//! The JSON-RPC envelope around raw payloads: parsed once, classified by hand, never re-printed.

mod beside;
mod members;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use self::beside::Beside;
use self::members::Found;
use crate::method::Method;
use crate::object::quoted;
use crate::{Fault, Id, json};

/// One JSON-RPC message: the bytes it came in, and where its parts are.
///
/// The text holds no line break, so it is a stdio frame and an SSE `data` line as it stands. Payloads are slices of
/// it and pass byte for byte. Cloning costs next to nothing.
#[derive(Clone)]
pub struct Message(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    raw: ByteString,
    kind: Kind,
    /// Where the id's own text lies in `raw`, if there is one.
    id_span: Option<Range<usize>>,
    /// Where `params`, `result` or `error` lies in `raw`.
    payload: Option<Range<usize>>,
    members: Found,
    beside: Beside,
}

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Request {
        id: Id,
        method: Method,
    },
    Notification {
        method: Method,
    },
    Result {
        id: Id,
    },
    /// An error response; the id is absent when the peer could not tell which request failed.
    Error {
        id: Option<Id>,
    },
}

impl Kind {
    fn with_id(&self, id: &Id) -> Kind {
        match self {
            Kind::Request { method, .. } => Kind::Request { id: id.clone(), method: method.clone() },
            Kind::Result { .. } => Kind::Result { id: id.clone() },
            Kind::Error { .. } => Kind::Error { id: Some(id.clone()) },
            Kind::Notification { method } => Kind::Notification { method: method.clone() },
        }
    }
}

/// The wire form. `RawValue` does not work inside untagged or flattened enums, hence one flat struct.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `"result": null` apart from no result at all.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A text that is no message: the fault, and the id of the request it seems to be, so that it can be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    pub id: Option<Id>,
    pub fault: Fault,
}

impl Message {
    /// Reads one message. Text that spans several lines is brought to one.
    pub fn parse(text: Bytes) -> Result<Message, Rejected> {
        let reject = |id: Option<Id>, fault| Err(Rejected { id, fault });
        let raw = match ByteString::try_from(json::one_line(text)) {
            Ok(raw) => raw,
            Err(e) => return reject(None, Fault::Syntax(format!("invalid UTF-8 at byte {}", e.valid_up_to()))),
        };
        let text = raw.trim_ascii();
        if let Some(fault) = not_an_object(text) {
            return reject(None, fault);
        }
        let wire: Wire<'_> = match serde_json::from_str(text) {
            Ok(wire) => wire,
            Err(e) if e.is_data() => return reject(None, Fault::Shape(e.to_string())),
            Err(e) => return reject(None, Fault::Syntax(e.to_string())),
        };
        match wire.classify() {
            Ok(kind) => {
                let span = |part: Option<&RawValue>| part.map(|part| span_of(text, part.get()));
                let id_span = span(wire.id);
                let payload = span(match kind {
                    Kind::Request { .. } | Kind::Notification { .. } => wire.params,
                    Kind::Result { .. } => wire.result,
                    Kind::Error { .. } => wire.error,
                });
                let trimmed = (text.len() < raw.len()).then(|| raw.slice_ref(text));
                Ok(Message(Arc::new(Inner {
                    raw: trimmed.unwrap_or(raw),
                    kind,
                    id_span,
                    payload,
                    members: Found::default(),
                    beside: Beside::Nothing,
                })))
            }
            Err(fault) => {
                // The id of an answer names a request of its receiver; any other id was chosen by the sender.
                let answers = wire.method.is_none() && (wire.result.is_some() || wire.error.is_some());
                reject(wire.id.filter(|_| !answers).and_then(|id| Id::from_json(id.get())), fault)
            }
        }
    }

    pub fn request(id: &Id, method: &str, params: Option<&str>) -> Message {
        let mut text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{}"#, quoted(method));
        if let Some(params) = params {
            text.push_str(r#","params":"#);
            text.push_str(params);
        }
        text.push('}');
        Message::built(text)
    }

    pub fn notification(method: &str, params: Option<&str>) -> Message {
        let mut text = format!(r#"{{"jsonrpc":"2.0","method":{}"#, quoted(method));
        if let Some(params) = params {
            text.push_str(r#","params":"#);
            text.push_str(params);
        }
        text.push('}');
        Message::built(text)
    }

    pub fn result(id: &Id, result: &str) -> Message {
        Message::built(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }

    pub fn error(id: Option<&Id>, code: i32, message: &str) -> Message {
        Message::error_object(id, &format!(r#"{{"code":{code},"message":{}}}"#, quoted(message)))
    }

    /// An error response around an error object that is JSON already.
    pub fn error_object(id: Option<&Id>, error: &str) -> Message {
        let id = id.map_or("null", Id::as_json);
        Message::built(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
    }

    /// Text of our own making is a message unless a caller passed something that is not JSON.
    fn built(text: String) -> Message {
        Message::parse(text.into()).unwrap_or_else(|rejected| rejected.fault.to_message(None))
    }

    /// The same message under another id; everything else stays byte for byte.
    pub fn with_id(&self, id: &Id) -> Message {
        let raw = &self.0.raw;
        let Some(span) = self.0.id_span.clone().filter(|span| raw.as_bytes()[span.clone()] != *id.as_bytes()) else {
            return self.clone();
        };
        let length = id.as_bytes().len();
        let mut text = String::with_capacity(raw.len() - span.len() + length);
        text.push_str(&raw[..span.start]);
        text.push_str(id.as_json());
        text.push_str(&raw[span.end..]);
        let shift = |at: usize| if at >= span.end { at - span.end + span.start + length } else { at };
        let kind = self.kind().with_id(id);
        Message(Arc::new(Inner {
            raw: text.into(),
            kind,
            id_span: Some(span.start..span.start + length),
            payload: self.0.payload.clone().map(|p| shift(p.start)..shift(p.end)),
            members: self.0.members.moved(shift),
            beside: self.0.beside.clone(),
        }))
    }

    /// The same message in memory of its own. One that is kept for long must not keep the whole chunk it was read in.
    pub(crate) fn detached(&self) -> Message {
        Message(Arc::new(Inner { raw: ByteString::from(&*self.0.raw), ..(*self.0).clone() }))
    }

    /// The same message with a part of its payload, which must be borrowed from it, replaced by other JSON text.
    pub(crate) fn replace(&self, part: &str, by: &str) -> Message {
        let raw = &self.0.raw;
        let span = span_of(raw, part);
        let mut text = String::with_capacity(raw.len() + by.len());
        text.push_str(&raw[..span.start]);
        text.push_str(by);
        text.push_str(&raw[span.end..]);
        Message::parse(text.into()).map_or_else(|_| self.clone(), |message| message.beside_as(self))
    }

    /// The same message under another id, and with parts of its payload, which must be borrowed from it and lie apart,
    /// replaced by other JSON text. Nothing is read anew.
    pub(crate) fn rewritten(&self, id: &Id, parts: &[(&str, &str)]) -> Message {
        let Some(id_span) = self.0.id_span.clone() else { return self.clone() };
        let raw = &self.0.raw;
        let mut edits: Vec<(Range<usize>, &str)> = Vec::with_capacity(parts.len() + 1);
        edits.push((id_span.clone(), id.as_json()));
        edits.extend(parts.iter().map(|(part, by)| (span_of(raw, part), *by)));
        edits.sort_unstable_by_key(|(span, _)| span.start);
        let mut text = String::with_capacity(raw.len() + edits.iter().map(|(_, by)| by.len()).sum::<usize>());
        let mut done = 0;
        for (span, by) in &edits {
            text.push_str(&raw[done..span.start]);
            text.push_str(by);
            done = span.end;
        }
        text.push_str(&raw[done..]);
        let shift = |at: usize| {
            let before = edits.iter().filter(|(span, _)| span.end <= at);
            before.fold(at, |at, (span, by)| at + by.len() - span.len())
        };
        let id_start = shift(id_span.start);
        let payload = self.0.payload.clone().map(|payload| shift(payload.start)..shift(payload.end));
        let kind = self.kind().with_id(id);
        let id_span = Some(id_start..id_start + id.as_bytes().len());
        let (members, beside) = (Found::default(), self.0.beside.clone());
        Message(Arc::new(Inner { raw: text.into(), kind, id_span, payload, members, beside }))
    }

    /// The whole message, on one line, without its line break.
    pub fn as_bytes(&self) -> &Bytes {
        self.0.raw.as_bytes()
    }

    /// The same, without a copy or a count if this is the only clone.
    pub fn into_bytes(self) -> Bytes {
        Arc::try_unwrap(self.0).map_or_else(|shared| shared.raw.as_bytes().clone(), |inner| inner.raw.into_bytes())
    }

    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    pub fn id(&self) -> Option<&Id> {
        match self.kind() {
            Kind::Request { id, .. } | Kind::Result { id } => Some(id),
            Kind::Error { id } => id.as_ref(),
            Kind::Notification { .. } => None,
        }
    }

    pub fn method(&self) -> Option<&Method> {
        match self.kind() {
            Kind::Request { method, .. } | Kind::Notification { method } => Some(method),
            Kind::Result { .. } | Kind::Error { .. } => None,
        }
    }

    pub fn is_request(&self) -> bool {
        matches!(self.kind(), Kind::Request { .. })
    }

    pub fn is_response(&self) -> bool {
        matches!(self.kind(), Kind::Result { .. } | Kind::Error { .. })
    }

    /// Whether this is a request or a notification of that name.
    pub fn is(&self, method: &str) -> bool {
        self.method().is_some_and(|m| *m == method)
    }

    /// The text of `params`, `result` or `error`, whichever this kind of message carries.
    pub fn payload(&self) -> Option<&str> {
        self.0.raw.get(self.0.payload.clone()?)
    }

    /// Reads parts of the payload into a type of the caller's; `None` if it does not fit.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.payload()?).ok()
    }
}

impl Wire<'_> {
    fn classify(&self) -> Result<Kind, Fault> {
        let shape = |text: String| Err(Fault::Shape(text));
        match self.jsonrpc.map(RawValue::get) {
            Some(r#""2.0""#) => {}
            Some(other) => return shape(format!(r#"expected "jsonrpc": "2.0", came {}"#, excerpt(other))),
            None => return shape(r#"expected "jsonrpc": "2.0", came none"#.into()),
        }
        let id = match self.id.map(RawValue::get) {
            None | Some("null") => None,
            Some(raw) => match Id::from_json(raw) {
                Some(id) => Some(id),
                None => return shape(format!("expected a string or a number as id, came {}", excerpt(raw))),
            },
        };
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => {
                let Some(name) = text_of(method) else {
                    return shape(format!("expected a string as method, came {}", excerpt(method.get())));
                };
                let method = Method::from(&*name);
                match id {
                    Some(id) => Ok(Kind::Request { id, method }),
                    None if self.id.is_none() => Ok(Kind::Notification { method }),
                    None => shape("expected a string or a number as id, came null".into()),
                }
            }
            (None, Some(_), None) => match id {
                Some(id) => Ok(Kind::Result { id }),
                None => shape("expected the id of a request beside result, came none".into()),
            },
            (None, None, Some(_)) => Ok(Kind::Error { id }),
            (None, None, None) => shape("expected one of method, result, error, came none".into()),
            _ => shape("expected one of method, result, error, came several".into()),
        }
    }
}

/// The text of a JSON string. Most have no escape in them, and are what stands between the quotes.
fn text_of(value: &RawValue) -> Option<Cow<'_, str>> {
    let raw = value.get();
    match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(text) if !text.contains('\\') => Some(Cow::Borrowed(text)),
        _ => serde_json::from_str(raw).ok().map(Cow::Owned),
    }
}

/// The most messages taken in one array. Each costs more memory than its text.
pub const MOST_IN_BATCH: usize = 1000;

/// Splits a JSON array into the texts of its elements; `None` if the text is not an array, or has too many.
///
/// Batches exist in version 2025-03-26 only; who may send one is decided by the caller.
pub fn split_batch(text: &Bytes) -> Option<Vec<Bytes>> {
    if text.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let Parts(parts) = serde_json::from_slice(text).ok()?;
    Some(parts.iter().map(|part| text.slice(span_of(text, part.get()))).collect())
}

struct Parts<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Parts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Elements<'a> {
            type Value = Parts<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an array of at most {MOST_IN_BATCH} messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Parts<'a>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = elements.next_element()? {
                    if parts.len() == MOST_IN_BATCH {
                        return Err(serde::de::Error::invalid_length(MOST_IN_BATCH + 1, &self));
                    }
                    parts.push(part);
                }
                Ok(Parts(parts))
            }
        }
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

/// Where a part that was borrowed from `whole` lies in it.
fn span_of(whole: impl AsRef<[u8]>, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ref().as_ptr() as usize;
    start..start + part.len()
}

/// Says what came instead of an object. (The wire struct alone would take an array as its fields in order.)
fn not_an_object(text: &str) -> Option<Fault> {
    let came = match text.as_bytes().first()? {
        b'{' => return None,
        b'[' => "an array",
        b'"' => "a string",
        b'n' => "null",
        b't' | b'f' => "a boolean",
        _ => "a number",
    };
    Some(match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Fault::Shape(format!("expected a JSON-RPC object, came {came}")),
        Err(e) => Fault::Syntax(e.to_string()),
    })
}

/// The beginning of a peer's text, short enough for an error message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 40;
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let end = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

impl fmt::Debug for Message {
    /// Shows what the message is and never what it carries: payloads may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Kind::Request { id, method } => write!(f, "request {method} id={id}")?,
            Kind::Notification { method } => write!(f, "notification {method}")?,
            Kind::Result { id } => write!(f, "result id={id}")?,
            Kind::Error { id: Some(id) } => write!(f, "error id={id}")?,
            Kind::Error { id: None } => write!(f, "error id=null")?,
        }
        write!(f, " ({} bytes)", self.0.raw.len())
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
