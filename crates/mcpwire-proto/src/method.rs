//! Method names, and what a bridge has to know about them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

pub const INITIALIZE: &str = "initialize";
pub const PING: &str = "ping";
pub const DISCOVER: &str = "server/discover";
pub const LISTEN: &str = "subscriptions/listen";
pub const TOOLS_LIST: &str = "tools/list";
pub const TOOLS_CALL: &str = "tools/call";
pub const RESOURCES_LIST: &str = "resources/list";
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
pub const RESOURCES_READ: &str = "resources/read";
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
pub const PROMPTS_LIST: &str = "prompts/list";
pub const PROMPTS_GET: &str = "prompts/get";
pub const COMPLETION_COMPLETE: &str = "completion/complete";
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
pub const ELICITATION_CREATE: &str = "elicitation/create";
pub const ROOTS_LIST: &str = "roots/list";

pub const INITIALIZED: &str = "notifications/initialized";
pub const CANCELLED: &str = "notifications/cancelled";
pub const PROGRESS: &str = "notifications/progress";
pub const LOG_MESSAGE: &str = "notifications/message";
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

const KNOWN: [&str; 29] = [
    INITIALIZE,
    PING,
    DISCOVER,
    LISTEN,
    TOOLS_LIST,
    TOOLS_CALL,
    RESOURCES_LIST,
    RESOURCES_TEMPLATES_LIST,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    RESOURCES_UNSUBSCRIBE,
    PROMPTS_LIST,
    PROMPTS_GET,
    COMPLETION_COMPLETE,
    LOGGING_SET_LEVEL,
    SAMPLING_CREATE_MESSAGE,
    ELICITATION_CREATE,
    ROOTS_LIST,
    INITIALIZED,
    CANCELLED,
    PROGRESS,
    LOG_MESSAGE,
    TOOLS_LIST_CHANGED,
    PROMPTS_LIST_CHANGED,
    RESOURCES_LIST_CHANGED,
    RESOURCES_UPDATED,
    ROOTS_LIST_CHANGED,
    ELICITATION_COMPLETE,
    ACKNOWLEDGED,
];

/// The levels of log messages, from the least to the most severe.
pub const LOG_LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A method name. Known names cost no allocation; unknown ones are carried as they came.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Method(Cow<'static, str>);

impl Method {
    /// Whether a request may be sent a second time when its first answer was lost.
    ///
    /// Reads and settings may; anything that may act on the world (`tools/call`, and every method we do not know)
    /// may not.
    pub fn is_repeatable(&self) -> bool {
        matches!(
            &*self.0,
            INITIALIZE
                | PING
                | DISCOVER
                | TOOLS_LIST
                | RESOURCES_LIST
                | RESOURCES_TEMPLATES_LIST
                | RESOURCES_READ
                | RESOURCES_SUBSCRIBE
                | RESOURCES_UNSUBSCRIBE
                | PROMPTS_LIST
                | PROMPTS_GET
                | COMPLETION_COMPLETE
                | LOGGING_SET_LEVEL
        )
    }

    /// Whether a client asks the server to do something with this request, and not only what there is.
    pub fn is_call(&self) -> bool {
        matches!(&*self.0, TOOLS_CALL | RESOURCES_READ | PROMPTS_GET | COMPLETION_COMPLETE)
    }

    /// Whether 2026-07-28 took this request away. A server of that version answers it as an unknown method.
    pub fn is_gone(&self) -> bool {
        matches!(&*self.0, INITIALIZE | PING | LOGGING_SET_LEVEL | RESOURCES_SUBSCRIBE | RESOURCES_UNSUBSCRIBE)
    }

    /// Whether a server of 2026-07-28 may answer this request by asking for input first.
    pub fn may_ask(&self) -> bool {
        matches!(&*self.0, TOOLS_CALL | PROMPTS_GET | RESOURCES_READ)
    }

    /// Whether the result of this request says how long it may be kept (2026-07-28, Caching).
    pub fn is_cacheable(&self) -> bool {
        matches!(
            &*self.0,
            DISCOVER | TOOLS_LIST | PROMPTS_LIST | RESOURCES_LIST | RESOURCES_TEMPLATES_LIST | RESOURCES_READ
        )
    }

    /// The notification that tells of a change in what this list method lists.
    pub fn list_changed(&self) -> Option<&'static str> {
        match &*self.0 {
            TOOLS_LIST => Some(TOOLS_LIST_CHANGED),
            PROMPTS_LIST => Some(PROMPTS_LIST_CHANGED),
            RESOURCES_LIST | RESOURCES_TEMPLATES_LIST => Some(RESOURCES_LIST_CHANGED),
            _ => None,
        }
    }
}

impl From<&str> for Method {
    fn from(name: &str) -> Self {
        match KNOWN.iter().find(|known| **known == name) {
            Some(known) => Method(Cow::Borrowed(known)),
            None => Method(Cow::Owned(name.to_owned())),
        }
    }
}

impl Deref for Method {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Method {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Method {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
