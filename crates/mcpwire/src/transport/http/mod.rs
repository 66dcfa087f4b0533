//! Streamable HTTP.

pub mod client;

/// The header that names the session, in requests and in the answer to `initialize`.
pub const SESSION_ID: &str = "mcp-session-id";
/// The header that names the protocol version, in every request after `initialize`.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The header that names the last event seen of a stream to resume.
pub const LAST_EVENT_ID: &str = "last-event-id";

pub const JSON: &str = "application/json";
pub const EVENT_STREAM: &str = "text/event-stream";
