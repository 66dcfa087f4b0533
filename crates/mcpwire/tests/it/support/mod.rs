//! What the tests are made of: a scripted HTTP server, the binary on pipes, and an MCP client.

pub mod client;
pub mod proc;
pub mod process;
pub mod reach;
pub mod script;

use std::time::Duration;

/// No wait in a test is longer. It is a limit, not a measure: machines are slow at times.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Awaits something that must happen.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {LIMIT:?} for {what}"),
    }
}
