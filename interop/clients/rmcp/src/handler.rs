//! The client's side of a conversation: answers what it is asked, and notes what it hears.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, Implementation, ListRootsResult, ProgressNotificationParam,
    ResourceUpdatedNotificationParam, Root, RootsCapabilities, SamplingCapability, SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

pub const ROOT: &str = "file:///interop/root";

/// How long something that is told is waited for: server-everything repeats its updates every 5 s.
const WAIT: Duration = Duration::from_secs(12);

/// What a client heard.
#[derive(Debug, Clone, Default)]
pub struct Heard(Arc<(Mutex<Notes>, Notify)>);

#[derive(Debug, Default)]
pub struct Notes {
    pub progress: Vec<f64>,
    pub updated: Vec<String>,
    pub tools_changed: u32,
    pub elicitations: u32,
    pub sampled: String,
}

impl Heard {
    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.notes());
        self.0.1.notify_waiters();
    }

    /// Waits until the notes are so.
    pub async fn until(&self, what: &str, so: impl Fn(&Notes) -> bool) -> Result<()> {
        let wait = async {
            loop {
                let noted = self.0.1.notified();
                if so(&self.notes()) {
                    return;
                }
                noted.await;
            }
        };
        tokio::time::timeout(WAIT, wait).await.with_context(|| format!("{what}: came {:?}", self.notes()))
    }
}

pub struct Handler {
    config: ClientConfig,
    form: Value,
    heard: Heard,
}

impl Handler {
    pub fn new(kind: &str, roots: bool, heard: Heard) -> Handler {
        let mut capabilities = ClientCapabilities::default();
        capabilities.sampling = Some(SamplingCapability::default());
        capabilities.elicitation = Some(ElicitationCapability::default());
        capabilities.roots = roots.then(RootsCapabilities::default);
        let config = ClientConfig::new(capabilities, Implementation::new("interop-eras", "1.0.0"));
        let form = match kind {
            "everything" | "python" => json!({ "name": "elicited-4711" }),
            _ => json!({ "username": "elicited-4711", "email": "a@example.com" }),
        };
        Handler { config, form, heard }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let asked = serde_json::to_string(&params.messages).unwrap_or_default();
        self.heard.note(|notes| notes.sampled = asked);
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text("sampled-4711"), "none".into()))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.heard.note(|notes| notes.elicitations += 1);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(self.form.clone()))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(ROOT).with_name("root")]))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.note(|notes| notes.progress.push(params.progress));
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.note(|notes| notes.updated.push(params.uri));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.heard.note(|notes| notes.tools_changed += 1);
    }
}
