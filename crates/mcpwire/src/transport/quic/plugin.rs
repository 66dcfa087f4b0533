//! Being a plugin: telling an orchestrator that we are here.

use std::time::Duration;

use serde::Serialize;
use tokio::time::{sleep, timeout};

use super::call::{self, NoAnswer};
use super::certs::Identity;
use super::dial::{Address, Peer};
use super::frame::{Budget, LONGEST};
use super::proto::{PluginManifest, Request, Response};
use super::{ORCHESTRA_ALPN, tls, uuid};

/// How often, and after which pause, an orchestrator that cannot be reached is tried again.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// What a plugin says of itself.
#[derive(Debug, Clone, Serialize)]
pub struct Manifest {
    pub id: String,
    pub version: String,
    pub language: String,
    pub description: String,
}

impl Manifest {
    pub fn new(id: &str, description: &str) -> Manifest {
        Manifest {
            id: id.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            language: "rust".to_owned(),
            description: description.to_owned(),
        }
    }
}

/// Registers with the orchestrator at that address.
pub async fn register(address: Address, identity: &Identity, manifest: &Manifest) -> Result<(), String> {
    let config = tls::client(identity, ORCHESTRA_ALPN).map_err(|error| error.to_string())?;
    let peer = Peer::new("orchestrator", address, config, ANSWERED_WITHIN);
    let mut outcome = Err("it was not tried".to_owned());
    for tried in 0..TRIES {
        if tried > 0 {
            sleep(PAUSE * tried).await;
        }
        outcome = match timeout(ANSWERED_WITHIN, try_register(&peer, manifest)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(NoAnswer::Useless(why))) => {
                outcome = Err(why);
                break;
            }
            Ok(Err(NoAnswer::Unreachable(why) | NoAnswer::NotConnected(why) | NoAnswer::Interrupted(why))) => Err(why),
            Err(_) => Err("it does not answer".to_owned()),
        };
        if outcome.is_ok() {
            break;
        }
    }
    peer.close().await;
    outcome
}

async fn try_register(peer: &Peer, manifest: &Manifest) -> Result<(), NoAnswer> {
    let Manifest { id, version, language, description } = manifest.clone();
    let manifest = PluginManifest { id, version, language, description, ..Default::default() };
    match call::call(peer, &Budget::new(LONGEST), uuid(), Request::Register(Box::new(manifest))).await? {
        Response::Register(result) if result.accepted => Ok(()),
        Response::Register(result) => Err(NoAnswer::Useless(format!("it refused: {}", result.reject_reason))),
        _ => Err(NoAnswer::Useless(call::UNEXPECTED.to_owned())),
    }
}
