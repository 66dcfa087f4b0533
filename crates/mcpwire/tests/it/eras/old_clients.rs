//! Clients with sessions, and a server that speaks one era only.

use mcpwire_proto::version::{V2025_06_18, V2025_11_25};

use crate::support::rig::{Front, Speaks, Target};
use crate::table::{Case, check};

/// The cases of a front and a target. What differs between versions of one era is seen to by the table of all versions.
fn cases(front: Front, target: Target) -> Vec<Case> {
    let case = Case { front, target, server: Speaks::Stateless, version: V2025_11_25, shared: false };
    let mut cases = vec![case, Case { server: Speaks::Session, ..case }];
    if front == Front::Connect {
        cases.push(Case { version: V2025_06_18, ..case });
    } else {
        // Only where there can be company.
        cases.push(Case { shared: true, ..case });
    }
    cases
}

macro_rules! table {
    ($($name:ident: $front:ident to $target:ident;)*) => {
        $(#[tokio::test]
        async fn $name() {
            check(cases(Front::$front, Target::$target)).await;
        })*
    };
}

table! {
    connect_to_child: Connect to Child;
    connect_to_streamable: Connect to Streamable;
    connect_to_unix: Connect to Unix;
    streamable_to_child: Streamable to Child;
    streamable_to_streamable: Streamable to Streamable;
    streamable_to_unix: Streamable to Unix;
    sse_to_child: Sse to Child;
    unix_to_child: Unix to Child;
    unix_to_streamable: Unix to Streamable;
    unix_to_unix: Unix to Unix;
    connect_to_quic: Connect to Quic;
    quic_to_child: Quic to Child;
}
