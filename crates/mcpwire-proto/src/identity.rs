//! What every request of the stateless era says of its sender: written into it, or carried beside its text for as long
//! as it stays in this process.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::meta::{Declared, key};
use crate::object::quoted;
use crate::{Message, Object};

/// What a session-era client said of itself in `initialize`.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub version: &'static str,
    info: Option<Box<RawValue>>,
    capabilities: Box<RawValue>,
}

/// One who signs a request, and the least severe log message it wants to hear of.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub identity: Arc<Identity>,
    pub log_level: Option<&'static str>,
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
            log_level: self.log_level.map(Cow::Borrowed),
        }
    }
}
