//! What can be set of the HTTP front, with defaults that are safe on a loopback address.

use std::sync::Arc;
use std::time::Duration;

use mcpwire_proto::frame::DEFAULT_LIMIT;

use super::guard::Token;
use crate::health::Board;

/// Limits, times and names of the HTTP front.
#[derive(Debug, Clone)]
pub struct Options {
    /// The one path that is served.
    pub path: String,
    /// Names that `Host` may carry beside the loopback ones: `name` for any port, `name:port`, or `*` for all.
    pub allowed_hosts: Vec<String>,
    /// Origins allowed beside the loopback ones: `scheme://name[:port]`, or `*` for all.
    pub allowed_origins: Vec<String>,
    /// The bearer token that every request must carry, if one must.
    pub token: Option<Token>,
    /// The certificate to show, for https.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// What `/health` and `/metrics` tell of, if they are served.
    pub health: Option<Board>,
    /// Whether clients of 2024-11-05 are served too, at `/sse` and `/messages`.
    pub http_with_sse: bool,
    /// The largest request body, in bytes.
    pub max_message: usize,
    /// How many connections are open at once; more wait to be accepted.
    pub max_connections: usize,
    /// How many sessions live at once; and how many clients without a session listen at once.
    pub max_sessions: usize,
    /// How many requests of one session, or of all clients without a session, wait for an answer at once.
    pub max_in_flight: usize,
    /// How long a session lives on without a connection of its client.
    pub session_idle: Duration,
    /// How long a connection may take to send the head of its next request.
    pub header_timeout: Duration,
    /// How long a request body may pause.
    pub body_timeout: Duration,
    /// How long a client may read nothing while there is something to read.
    pub write_timeout: Duration,
    /// How long the taker of the links may take to accept a new session.
    pub session_timeout: Duration,
    /// A request without an answer after this long gets a stream, which can be kept alive and resumed.
    pub stream_after: Duration,
    /// Closes the stream of a POST that has been open this long, so that the client comes back for the rest. Only for
    /// clients of 2025-11-25 and later, which know to do so. The stream they come back to stays open.
    pub close_stream_after: Option<Duration>,
    /// How long a client should wait before it resumes a stream that ended.
    pub retry: Duration,
    /// How long a stream is silent before a comment shows that it lives.
    pub keep_alive: Duration,
    /// How many events, and bytes of them, may wait for a client that reads slowly before its stream is closed.
    pub stream_events: usize,
    pub stream_bytes: usize,
    /// How many events, and bytes of them, a session keeps for streams that are resumed. The newest event is kept
    /// whatever its size.
    pub log_events: usize,
    pub log_bytes: usize,
    /// How long they are kept once they have been delivered.
    pub resume_within: Duration,
    /// How long requests under way may take when the front is stopped.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            path: "/mcp".to_owned(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            token: None,
            tls: None,
            health: None,
            http_with_sse: false,
            max_message: DEFAULT_LIMIT,
            max_connections: 4096,
            max_sessions: 1000,
            max_in_flight: 1024,
            session_idle: Duration::from_secs(30 * 60),
            header_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            session_timeout: Duration::from_secs(10),
            stream_after: Duration::from_secs(5),
            close_stream_after: None,
            retry: Duration::from_secs(1),
            keep_alive: Duration::from_secs(15),
            stream_events: 1024,
            stream_bytes: 4 * 1024 * 1024,
            log_events: 512,
            log_bytes: 1024 * 1024,
            resume_within: Duration::from_secs(5 * 60),
            grace: Duration::from_secs(10),
        }
    }
}
