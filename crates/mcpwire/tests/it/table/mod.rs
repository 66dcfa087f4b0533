//! One suite over the table front x target x version, each with a server of its own and with a shared one where there
//! is a choice.
//!
//! Every case runs every feature, unless [`Case::lacks`] gives the reason why not.

mod rig;
mod suite;

use std::fmt;
use std::sync::{Arc, Mutex};

use mcpwire_proto::version::{SESSION_ERA, V2025_03_26, V2025_06_18, V2025_11_25};
use tokio::task::JoinSet;

use rig::Rig;
use suite::Feature;

/// Where the client comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    /// `connect`, on its stdin and stdout.
    Connect,
    /// `expose --http`, asked by Streamable HTTP.
    Streamable,
    /// `expose --http`, asked by HTTP+SSE.
    Sse,
    /// `expose --unix`.
    Unix,
    /// `expose --quic`, asked by MCP over QUIC.
    Quic,
}

/// Where the reference server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A program on stdio.
    Child,
    Streamable,
    Sse,
    /// A Unix socket.
    Unix,
    /// MCP over QUIC.
    Quic,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    front: Front,
    target: Target,
    version: &'static str,
    /// All clients are on one server session, and the client has company.
    shared: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { front, target, version, shared } = self;
        write!(f, "{front:?} to {target:?}, {version}{}", if *shared { ", shared" } else { "" })
    }
}

impl Case {
    /// The cases of a front and a target.
    fn of(front: Front, target: Target) -> Vec<Case> {
        let versions = SESSION_ERA.into_iter().filter(|version| match front {
            // The transport came with this version. Its servers are asked by older clients through other fronts.
            Front::Streamable => *version >= V2025_03_26,
            // HTTP+SSE is of 2024-11-05, but newer versions are spoken over it to this day.
            Front::Connect | Front::Sse | Front::Unix | Front::Quic => true,
        });
        let shared: &[bool] = match front {
            // It has one client.
            Front::Connect => &[false],
            Front::Streamable | Front::Sse | Front::Unix | Front::Quic => &[false, true],
        };
        let with = |version| shared.iter().map(move |&shared| Case { front, target, version, shared });
        versions.flat_map(with).collect()
    }

    /// Why this case goes without a feature, if it does.
    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        match feature {
            Feature::Elicitation if self.version < V2025_06_18 => Some("elicitation came with 2025-06-18"),
            Feature::Large if self.version != V2025_11_25 => {
                Some("takes long, and no version has a say in the size of messages: done with the newest one only")
            }
            _ => None,
        }
    }
}

async fn check(front: Front, target: Target) {
    let mut running = JoinSet::new();
    for case in Case::of(front, target) {
        running.spawn(run(case));
    }
    let failures: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a case; tells what failed, if anything did.
async fn run(case: Case) -> Option<String> {
    let at = Arc::new(Mutex::new("the start".to_owned()));
    let here = Arc::clone(&at);
    let suite = tokio::spawn(async move {
        let mut rig = Rig::start(case).await;
        for feature in Feature::ALL.into_iter().filter(|feature| case.lacks(*feature).is_none()) {
            *here.lock().unwrap() = format!("{feature:?}");
            feature.show(&mut rig).await;
            rig.assert_quiet().await;
        }
        *here.lock().unwrap() = "the end".to_owned();
        rig.finish().await;
    });
    let panic = suite.await.err()?.into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
    let at = at.lock().unwrap();
    Some(format!("{case}: {at}: {text}"))
}

/// A test for each front and target, so that they run side by side.
macro_rules! table {
    ($($name:ident: $front:ident to $target:ident;)*) => {
        $(#[tokio::test]
        async fn $name() {
            check(Front::$front, Target::$target).await;
        })*
    };
}

table! {
    connect_to_child: Connect to Child;
    connect_to_streamable: Connect to Streamable;
    connect_to_sse: Connect to Sse;
    connect_to_unix: Connect to Unix;
    streamable_to_child: Streamable to Child;
    streamable_to_streamable: Streamable to Streamable;
    streamable_to_sse: Streamable to Sse;
    streamable_to_unix: Streamable to Unix;
    sse_to_child: Sse to Child;
    sse_to_streamable: Sse to Streamable;
    sse_to_sse: Sse to Sse;
    sse_to_unix: Sse to Unix;
    unix_to_child: Unix to Child;
    unix_to_streamable: Unix to Streamable;
    unix_to_sse: Unix to Sse;
    unix_to_unix: Unix to Unix;
    connect_to_quic: Connect to Quic;
    streamable_to_quic: Streamable to Quic;
    sse_to_quic: Sse to Quic;
    unix_to_quic: Unix to Quic;
    quic_to_child: Quic to Child;
    quic_to_streamable: Quic to Streamable;
    quic_to_sse: Quic to Sse;
    quic_to_unix: Quic to Unix;
    quic_to_quic: Quic to Quic;
}
