//! `initialize`, and finding out by it which transport the server speaks (2025-11-25, transports, backwards
//! compatibility).

use std::sync::Arc;

use mcpwire_proto::{Failure, Message};

use super::Transport;
use super::endpoint::Endpoint;
use super::exchange::{self, Debt};
use super::legacy::{self, Unopened};

pub(super) async fn run(endpoint: Arc<Endpoint>, initialize: Message) {
    let debt = Debt { endpoint, request: Some(initialize) };
    let Some(initialize) = &debt.request else { return };
    let outcome = open(&debt.endpoint, initialize).await;
    debt.settle(outcome).await;
}

/// What the server was found to speak the last time is tried first.
async fn open(endpoint: &Arc<Endpoint>, initialize: &Message) -> Result<(), Failure> {
    let may_change = endpoint.transport == Transport::Auto;
    if endpoint.legacy.is_spoken() {
        match legacy::open(endpoint, initialize).await {
            Err(Unopened::NotOffered(why)) if may_change => {
                tracing::info!(target: "http", "the server speaks HTTP+SSE no more: {why}");
                endpoint.legacy.unlearn();
            }
            outcome => return outcome.map_err(Failure::from),
        }
    }
    let declined = match endpoint.offer(initialize, &endpoint.headers()).await {
        Ok(response) => return exchange::take(endpoint, initialize, &endpoint.headers(), response).await,
        Err(declined) => declined,
    };
    if !(may_change && declined.by_older) {
        return Err(declined.failure);
    }
    match legacy::open(endpoint, initialize).await {
        Err(Unopened::NotOffered(why)) => {
            tracing::debug!(target: "http", "the server does not speak HTTP+SSE either: {why}");
            Err(declined.failure)
        }
        outcome => outcome.map_err(Failure::from),
    }
}
