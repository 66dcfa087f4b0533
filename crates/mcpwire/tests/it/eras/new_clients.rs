//! Clients without sessions, and a server that speaks one era only.

use std::fmt;

use super::suite::{Feature, Rig};
use crate::support::cases::{self, Place};
use crate::support::rig::{Front, Speaks, Target};

#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) front: Front,
    pub(super) target: Target,
    pub(super) server: Speaks,
    /// All clients are on one server.
    pub(super) shared: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { front, target, server, shared } = self;
        write!(f, "{front:?} to {target:?}, stateless to {server:?}{}", if *shared { ", shared" } else { "" })
    }
}

fn cases(front: Front, target: Target) -> Vec<Case> {
    let mut cases = Vec::new();
    for server in [Speaks::Session, Speaks::Stateless] {
        cases.push(Case { front, target, server, shared: false });
        if front != Front::Connect {
            cases.push(Case { front, target, server, shared: true });
        }
    }
    cases
}

async fn run(case: Case, place: Place) {
    let mut rig = Rig::start(case).await;
    for feature in Feature::ALL.into_iter().filter(|feature| feature.lacks(case).is_none()) {
        place.at(format!("{feature:?}"));
        feature.show(&mut rig).await;
        rig.assert_quiet().await;
    }
    place.at("the end");
    rig.finish().await;
}

macro_rules! table {
    ($($name:ident: $front:ident to $target:ident;)*) => {
        $(#[tokio::test]
        async fn $name() {
            cases::check(cases(Front::$front, Target::$target), run).await;
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
    unix_to_child: Unix to Child;
    unix_to_streamable: Unix to Streamable;
    unix_to_unix: Unix to Unix;
    connect_to_quic: Connect to Quic;
    quic_to_child: Quic to Child;
}
