//! Single values deep in a payload, read and replaced without touching the rest.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::method::LOG_LEVELS;
use crate::{Id, Message, method};

/// The names that 2026-07-28 reserves in `_meta`.
pub mod key {
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

/// Looked for in every request, so what it takes to find them is prepared once.
static OUR_NAMES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("io.modelcontextprotocol"));
static PROGRESS_TOKEN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("progressToken"));

/// What a request of the stateless era says of its sender.
#[derive(Debug, Default, Deserialize)]
pub struct Declared<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    pub log_level: Option<Level<'a>>,
}

/// The least severe log message that a request asks for.
#[derive(Debug, Clone, Copy)]
pub enum Level<'a> {
    Known(&'static str),
    /// No level of the protocol, perhaps not even a string. It must not hide what else the request declares.
    Unknown(&'a str),
}

impl<'de: 'a, 'a> Deserialize<'de> for Level<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Level<'a>, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?.get();
        let name: Option<String> = serde_json::from_str(value).ok();
        let known = LOG_LEVELS.into_iter().find(|known| name.as_deref() == Some(known));
        Ok(known.map_or(Level::Unknown(value), Level::Known))
    }
}

impl Level<'_> {
    /// The place among [`LOG_LEVELS`].
    pub(crate) fn rank(self) -> Option<usize> {
        match self {
            Level::Known(name) => LOG_LEVELS.iter().position(|known| *known == name),
            Level::Unknown(_) => None,
        }
    }
}

/// Reads what a request says of its sender; `None` if it says no version, and so is no request of the stateless era.
pub fn declared(request: &Message) -> Option<Declared<'_>> {
    if let Some(sender) = request.sender() {
        return Some(sender.declared());
    }
    // Most requests of older versions have no such name in them: they cost a look, and no parse. The slash after it may be
    // escaped.
    if !request.is_taken_apart() {
        OUR_NAMES.find(request.as_bytes())?;
    }
    in_meta::<Declared<'_>>(request).filter(|declared| declared.version.is_some())
}

/// Reads `_meta`. Who only passes a message on has no use for its other members.
fn in_meta<'a, T: Deserialize<'a>>(message: &'a Message) -> Option<T> {
    #[derive(Deserialize)]
    struct Params<T> {
        #[serde(rename = "_meta")]
        meta: T,
    }
    if message.is_taken_apart() {
        return serde_json::from_str(message.member("_meta")?).ok();
    }
    message.read::<Params<T>>().map(|params| params.meta)
}

/// The listen request that a notification, or the end of a subscription, belongs to.
pub fn subscription_id(message: &Message) -> Option<Id> {
    find_subscription_id(message).and_then(Id::from_json)
}

/// The same message for another listen request, if it belongs to one.
pub fn with_subscription_id(message: &Message, id: &Id) -> Message {
    match find_subscription_id(message) {
        Some(found) => message.replace(found, id.as_json()),
        None => message.clone(),
    }
}

fn find_subscription_id(message: &Message) -> Option<&str> {
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
        id: &'a RawValue,
    }
    in_meta::<Meta<'_>>(message).map(|meta| meta.id.get())
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

/// The token under which a request wants to hear of its progress, or which a progress notification carries.
pub fn progress_token(message: &Message) -> Option<Id> {
    find_progress_token(message).and_then(Id::from_json)
}

/// The same message with another progress token, if it has one.
pub fn with_progress_token(message: &Message, token: &Id) -> Message {
    match find_progress_token(message) {
        Some(found) => message.replace(found, token.as_json()),
        None => message.clone(),
    }
}

/// The request that a `notifications/cancelled` names.
pub fn cancelled_request(notification: &Message) -> Option<Id> {
    notification.member("requestId").and_then(Id::from_json)
}

/// The same `notifications/cancelled` for another request.
pub fn with_cancelled_request(notification: &Message, id: &Id) -> Message {
    match notification.member("requestId") {
        Some(found) => notification.replace(found, id.as_json()),
        None => notification.clone(),
    }
}

fn find_progress_token(message: &Message) -> Option<&str> {
    // Most messages have none; an escape could hide the name.
    let text = message.as_bytes();
    if !message.is_taken_apart() && PROGRESS_TOKEN.find(text).is_none() && memchr(b'\\', text).is_none() {
        return None;
    }
    if message.is(method::PROGRESS) {
        return message.member("progressToken");
    }
    in_meta::<Meta<'_>>(message)?.progress_token.map(RawValue::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn a_progress_token_is_replaced_and_nothing_else() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"progressToken":9,"_meta":{"x":1.10,"progressToken":"p"},"z":"p"}}"#;
        assert_eq!(progress_token(&message(call)), Some(Id::from("p")));
        assert_eq!(
            with_progress_token(&message(call), &Id::from(77)).as_bytes(),
            &call.replacen(r#":"p"}"#, ":77}", 1)
        );
        let told =
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":0.50}}"#;
        assert_eq!(with_progress_token(&message(told), &Id::from("p")).as_bytes(), &told.replace("77", r#""p""#));
        let spelled = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progress\u0054oken":"p"}}}"#;
        assert_eq!(progress_token(&message(spelled)), Some(Id::from("p")));
        let none = message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!(progress_token(&none), None);
        assert_eq!(with_progress_token(&none, &Id::from(1)).as_bytes(), none.as_bytes());
    }

    #[test]
    fn a_request_declares_its_sender() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}"#;
        let request = message(text);
        let declared = declared(&request).unwrap();
        assert_eq!(declared.version.as_deref(), Some("2026-07-28"));
        assert_eq!(declared.capabilities.map(RawValue::get), Some(r#"{"roots":{}}"#));
        assert!(declared.log_level.is_none());
        let old = message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":1}}}"#);
        assert!(super::declared(&old).is_none());
    }

    #[test]
    fn a_notification_follows_its_subscription() {
        let text = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen:0"},"uri":"listen:0"}}"#;
        assert_eq!(subscription_id(&message(text)), Some(Id::from("listen:0")));
        let moved = with_subscription_id(&message(text), &Id::from(7));
        assert_eq!(moved.as_bytes(), &text.replacen(r#""listen:0""#, "7", 1));
    }

    #[test]
    fn a_cancelled_request_is_renamed() {
        let text = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"a"}}"#;
        assert_eq!(cancelled_request(&message(text)), Some(Id::from("a")));
        let renamed = with_cancelled_request(&message(text), &Id::from(5));
        assert_eq!(renamed.as_bytes(), &text.replacen(r#""a""#, "5", 1));
    }
}
