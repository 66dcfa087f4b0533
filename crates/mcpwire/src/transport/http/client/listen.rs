//! The listening stream: what the server has to say by itself.

use std::sync::Arc;
use std::time::Duration;

use mcpwire_proto::Lane;
use mcpwire_proto::session::backoff::Backoff;
use tokio::time::{Instant, sleep};

use super::endpoint::{Endpoint, Refusal};
use super::stream::{self, Cursor};

/// The wait before a stream that ended is opened again, if the server names none.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// A stream that lasts this long is none that a server refuses to keep, even if nothing came on it: gateways end idle ones.
const LASTED: Duration = Duration::from_secs(10);

/// Keeps the stream open for as long as the session lasts, if the server offers one.
pub(super) async fn run(endpoint: Arc<Endpoint>) {
    let session = endpoint.headers();
    let mut cursor = Cursor::default();
    let mut listened = false;
    let mut backoff = Backoff::new(fastrand::u64(..));
    loop {
        let wait = match endpoint.get(&session, cursor.last_event_id.as_ref()).await {
            Ok(response) => {
                tracing::debug!(target: "http", "listening");
                listened = true;
                let opened = Instant::now();
                let ended = stream::follow(&endpoint, response.into_body(), &Lane::Main, None, &mut cursor, None).await;
                tracing::debug!(target: "http", "the listening stream ended: {ended}");
                // One that ends again and again without anything new is opened less and less often.
                if cursor.advanced || opened.elapsed() >= LASTED {
                    backoff.reset();
                }
                cursor.retry.unwrap_or(RETRY).min(LONGEST_RETRY).max(backoff.next_wait())
            }
            Err(Refusal::NotOffered(status)) => {
                return tracing::debug!(target: "http", "the server offers no listening stream: HTTP {status}");
            }
            // The server may not have noticed yet that the stream before this one is gone.
            Err(Refusal::Taken) if listened => backoff.next_wait(),
            Err(Refusal::Taken) => {
                return tracing::debug!(target: "http", "the server has a listening stream open already");
            }
            Err(Refusal::SessionLost(why)) if listened && endpoint.is_current(&session) => {
                return endpoint.report_session_lost(why).await;
            }
            // Many servers answer 404 to a GET because they have no such thing.
            Err(Refusal::SessionLost(why)) => {
                return tracing::debug!(target: "http", "the server offers no listening stream: {why}");
            }
            Err(Refusal::Failed(failure)) => {
                tracing::debug!(target: "http", "cannot listen: {failure}");
                backoff.next_wait()
            }
        };
        sleep(wait).await;
    }
}
