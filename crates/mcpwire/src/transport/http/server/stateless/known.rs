//! What the answers that pass by tell of the server: whose parameters have headers, and which versions it names.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mcpwire_proto::headers::Tools;
use mcpwire_proto::version::{ALL, STATELESS_ERA};
use mcpwire_proto::{Message, method};
use serde::Deserialize;

/// Nothing is ever asked for this: a request of our own would be seen by the server.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Facts>);

#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) tools: Tools,
    /// The server names fewer versions than we could serve.
    names_few: bool,
}

impl Facts {
    /// What a client of an unknown version is told. No more than the server itself says.
    pub(super) fn supported(&self) -> &'static [&'static str] {
        if self.names_few { &STATELESS_ERA } else { &ALL }
    }
}

impl Known {
    /// Whether the answer to such a request has something to tell.
    pub(super) fn matters(request: &Message) -> bool {
        request.is(method::TOOLS_LIST) || request.is(method::DISCOVER)
    }

    pub(super) fn learn(&self, answer: &Message) {
        #[derive(Deserialize)]
        struct Discovered {
            #[serde(rename = "supportedVersions")]
            versions: Vec<String>,
        }
        let mut facts = self.facts();
        match answer.read::<Discovered>() {
            Some(told) => facts.names_few = !ALL.iter().all(|version| told.versions.iter().any(|v| v == version)),
            // A tool that breaks the rules is for the client to leave out.
            None => drop(facts.tools.learn(answer)),
        }
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
