//! What every request of the stateless era says of its sender: written into it, or carried beside its text for as long
//! as it stays in this process.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::meta::{Declared, Level, key};
use crate::method::LOG_LEVELS;
use crate::object::quoted;
use crate::{Message, Object};

/// What a session-era client said of itself in `initialize`.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub version: &'static str,
    info: Option<Box<RawValue>>,
    capabilities: Box<RawValue>,
}

/// The session-era client that a request is from.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub identity: Arc<Identity>,
    pub logs: Logs,
    /// The request carries the input that the server required (`inputResponses`, `requestState`).
    pub is_retry: bool,
}

/// Which log messages a session-era client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logs {
    /// None: the server does not declare `logging`.
    Off,
    /// The client never set a level, so the server decides (2025-11-25, Logging, Setting Log Level).
    Default,
    /// Messages of this level, and more severe ones.
    From(&'static str),
}

impl Logs {
    /// The level that a stateless request names. A stateless server logs nothing unless a request names one; a
    /// session-era server on an official SDK sends every message until a level is set. So `debug` is the default.
    pub(crate) fn level(self) -> Option<&'static str> {
        match self {
            Logs::Off => None,
            Logs::Default => Some(LOG_LEVELS[0]),
            Logs::From(level) => Some(level),
        }
    }
}

impl Identity {
    /// `capabilities` are those that the server may count on.
    pub(crate) fn new(version: &'static str, info: Option<&str>, capabilities: &Object<'_>) -> Identity {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).ok();
        let capabilities = raw(&capabilities.to_string()).unwrap_or_else(|| RawValue::NULL.to_owned());
        Identity { version, info: info.and_then(raw), capabilities }
    }

    /// The same request as one that stands for itself.
    pub(crate) fn sign(&self, request: &Message, log_level: Option<&str>) -> Message {
        let mut params = request.members().unwrap_or_default();
        let meta = {
            let mut meta = params.object("_meta").unwrap_or_default();
            meta.set(key::PROTOCOL_VERSION, quoted(self.version));
            if let Some(info) = &self.info {
                meta.set(key::CLIENT_INFO, info.get());
            }
            meta.set(key::CLIENT_CAPABILITIES, self.capabilities.get());
            if let Some(level) = log_level {
                meta.set(key::LOG_LEVEL, quoted(level));
            }
            meta.text()
        };
        params.set("_meta", meta);
        request.with_members(&params)
    }
}

impl Sender {
    /// What the request would say if it were written into it.
    pub(crate) fn declared(&self) -> Declared<'_> {
        Declared {
            version: Some(Cow::Borrowed(self.identity.version)),
            client_info: self.identity.info.as_deref(),
            capabilities: Some(&self.identity.capabilities),
            log_level: self.logs.level().map(Level::Known),
        }
    }
}
