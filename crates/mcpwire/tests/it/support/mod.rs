//! What the tests are made of: a scripted HTTP server, the binary on pipes, and an MCP client.

pub mod ask;
pub mod cases;
pub mod client;
pub mod proc;
pub mod process;
pub mod reach;
pub mod rig;
pub mod scratch;
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

/// Waits until something is so that nobody tells us of.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    within(what, async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Whether a process runs; one that has ended and waits to be reaped does not.
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
