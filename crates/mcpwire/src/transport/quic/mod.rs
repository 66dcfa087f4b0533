//! QUIC, with two protocols on one port: Orchestra's (Protobuf, a stream for each call) and MCP itself (lines, a stream
//! for each request). Both as target and as front, both with certificates on either side.
//!
//! ```text
//!   quic://      target ── calls ──►  orchestrator, or our front      ALPN orchestra-plugin
//!   quic+mcp://  mcp::target ── lines ──►  our front                  ALPN mcpwire-mcp/1
//! ```

mod call;
pub mod certs;
mod dial;
mod frame;
mod front;
mod mcp;
mod plugin;
mod proto;
mod target;
#[cfg(test)]
mod tests;
mod tls;
mod value;

pub use self::dial::Address;
pub use self::front::{Listener, Options as FrontOptions, serve};
pub use self::mcp::connect as connect_mcp;
pub use self::plugin::{Manifest, register};
pub use self::target::connect;
pub use self::tls::Unusable;

use std::time::Duration;

use self::certs::Identity;

/// The port of an orchestrator that was told none.
pub const ORCHESTRATOR_PORT: u16 = 50100;

const ORCHESTRA_ALPN: &[u8] = b"orchestra-plugin";
const MCP_ALPN: &[u8] = b"mcpwire-mcp/1";

/// Who calls, as orchestrators know their bridge.
const CALLER: &str = "transport.stdio";
/// The member of a tool's result that holds a result of MCP as it was, when its text does not say all of it.
const MCP_RESULT: &str = "_mcp";
/// Pieces of an answer that say more than that there is a piece: progress, the text of the result, and all of it.
const TEXT_TYPE: &str = "text/plain;mcp=result";
const PROGRESS_TYPE: &str = "application/mcp-progress+json";
const RESULT_TYPE: &str = "application/mcp-result+json";

const RESOURCE_SCHEME: &str = "orchestra://";
/// The folders of the storage that are shown as resources.
const RESOURCE_KINDS: [(&str, &str); 3] =
    [("features", "Project Features"), ("notes", "Project Notes"), ("docs", "Project Documentation")];

/// Which server, and who we are to it.
#[derive(Debug, Clone)]
pub struct TargetOptions {
    pub address: Address,
    pub identity: Identity,
    /// How long a request waits for a server that cannot be reached.
    pub wait: Duration,
    /// The largest message taken from a server of MCP, in bytes; Orchestra has a limit of its own.
    pub max_message: usize,
}

/// A random identifier (RFC 9562, version 4).
fn uuid() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // It has to be unlike others, not unguessable.
        fastrand::fill(&mut bytes);
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
