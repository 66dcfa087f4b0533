//! A case set up: the bridge, and the client that asks.

use super::Case;
use crate::support::client::Client;
use crate::support::rig::{Plan, Rig as Bridge};

pub(super) struct Rig {
    pub(super) case: Case,
    pub(super) client: Client,
    /// Where the server is shared: another client, which sees nothing but what is for all.
    pub(super) bystander: Option<Client>,
    bridge: Bridge,
}

impl Rig {
    pub(super) async fn start(case: Case) -> Rig {
        let options: &[&str] = if case.shared { &["--share"] } else { &[] };
        let bridge = Bridge::start(Plan { front: case.front, target: case.target, server: case.server, options }).await;
        let bystander = match case.shared {
            true => Some(Client::open(bridge.connect(), case.version).await),
            false => None,
        };
        let client = Client::open(bridge.connect(), case.version).await;
        Rig { case, client, bystander, bridge }
    }

    /// Kills the server; one that is not started by the bridge is started anew.
    pub(super) async fn kill_server(&mut self, process: u32) {
        self.bridge.kill_server(process).await;
    }

    pub(super) async fn assert_quiet(&mut self) {
        self.client.assert_quiet().await;
        if let Some(bystander) = &mut self.bystander {
            bystander.assert_quiet().await;
        }
    }

    /// Ends everything. Nobody has anything left to say.
    pub(super) async fn finish(self) {
        self.client.close().await;
        if let Some(bystander) = self.bystander {
            bystander.close().await;
        }
        self.bridge.finish().await;
    }
}
