//! Random conversations with the binary: every request is answered once, and no call runs twice.
//!
//! A seed decides all that a test can decide: the transports, the eras, what each client writes together, and when servers are
//! killed and connections cut. `MCPWIRE_RANDOM_SEED` is the first seed, `MCPWIRE_RANDOM_SECONDS` how long to go on;
//! a failure names its seed, and `MCPWIRE_RANDOM_SEED=N MCPWIRE_RANDOM_SECONDS=0` runs that one again.

mod client;
mod plan;
mod relay;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use client::{Client, Totals};
use plan::Plan;
use tokio::task::JoinSet;
use world::World;

/// How many conversations run side by side.
const AT_ONCE: u64 = 3;
/// How long to go on unless the environment says otherwise: enough for each kind of server to be met.
const SECONDS: u64 = 5;

#[tokio::test]
async fn every_request_of_a_random_conversation_is_answered_once() {
    let first = number("MCPWIRE_RANDOM_SEED").unwrap_or(1);
    let seconds = number("MCPWIRE_RANDOM_SECONDS").unwrap_or(SECONDS);
    let until = Instant::now() + Duration::from_secs(seconds);
    let next = Arc::new(AtomicU64::new(first));
    let mut workers = JoinSet::new();
    for _ in 0..if seconds == 0 { 1 } else { AT_ONCE } {
        let next = Arc::clone(&next);
        workers.spawn(async move {
            let mut totals = Totals::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                totals += converse(seed).await;
                if Instant::now() >= until {
                    return totals;
                }
            }
        });
    }
    let mut totals = Totals::default();
    while let Some(done) = workers.join_next().await {
        totals += done.unwrap_or_else(|failure| std::panic::resume_unwind(failure.into_panic()));
    }
    let last = next.load(Ordering::Relaxed) - 1;
    assert!(totals.answered > 0, "nothing was asked");
    report(&format!("seeds {first} to {last}: {totals}; 0 unanswered, 0 doubled"));
}

#[expect(clippy::print_stderr, reason = "what was run is worth a line, and only shown when asked for")]
fn report(line: &str) {
    eprintln!("{line}");
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}: expected a number, got {text:?}")))
}

/// One conversation, or several at once with the same server; gives what was seen.
async fn converse(seed: u64) -> Totals {
    let plan = Plan::new(seed);
    let mut world = World::start(&plan).await;
    let mut clients: Vec<Client> =
        plan.scripts.iter().enumerate().map(|(index, script)| Client::start(&plan, script, &world, index)).collect();
    let mut totals = Totals::default();
    let mut faults = plan.faults.iter();
    // The clients take turns, so that the seed decides who writes before whom.
    for turn in 0..plan.turns {
        for client in &mut clients {
            client.turn(turn).await;
        }
        if let Some(fault) = faults.next().copied().flatten() {
            let processes: Vec<u32> = clients.iter().map(Client::process).collect();
            totals.faults += u64::from(world.suffer(fault, &processes).await);
        }
    }
    world.revive().await;
    for client in clients {
        totals += client.finish().await;
    }
    world.check_ledger(&plan);
    world.finish().await;
    totals.conversations += 1;
    totals
}
