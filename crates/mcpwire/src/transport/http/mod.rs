//! Streamable HTTP; the names of its headers are shared by its two sides, nothing else is.

pub mod client;
pub mod server;

use http::HeaderName;

/// Names the session in every message after `initialize` (2025-03-26 to 2025-11-25, Transports).
pub const SESSION_ID: &str = "mcp-session-id";
/// Names the negotiated version in every message after `initialize` (since 2025-06-18, Transports).
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Where to resume a stream of events (HTML Living Standard, section 9.2).
pub const LAST_EVENT_ID: &str = "last-event-id";

pub const JSON: &str = "application/json";
pub const EVENT_STREAM: &str = "text/event-stream";

/// The same names, ready to be looked for: a name is checked byte by byte when it is made.
static SESSION_ID_HEADER: HeaderName = HeaderName::from_static(SESSION_ID);
static PROTOCOL_VERSION_HEADER: HeaderName = HeaderName::from_static(PROTOCOL_VERSION);
static LAST_EVENT_ID_HEADER: HeaderName = HeaderName::from_static(LAST_EVENT_ID);
