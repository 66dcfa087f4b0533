//! One connection of the Orchestra protocol: a stream for each call, answered from the session behind it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpwire_proto::method;
use quinn::{Connection, RecvStream, SendStream, VarInt};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::caller::{Caller, Failed};
use super::content::failure;
use super::stream::Streams;
use super::{Service, answers, storage, stream};
use crate::transport::quic::frame::{self, LONGEST, Unread};
use crate::transport::quic::proto::{
    BootResult, HealthResult, PluginRequest, PluginResponse, RegistrationResult, Request, Response, ShutdownResult,
};

/// How long the server may take to answer a question after its health.
const HEALTHY_WITHIN: Duration = Duration::from_secs(5);
/// How long a caller may take to read its last answer.
const READ_WITHIN: Duration = Duration::from_secs(10);
const HEALTHY: i32 = 1;
const UNHEALTHY: i32 = 3;

pub(super) async fn serve(connection: Connection, service: Service) {
    let mut stopped = service.stopped.clone();
    let client = Arc::new(Client { service, session: Mutex::default(), streams: Streams::default() });
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept_bi() => match accepted {
                Ok((output, input)) => {
                    calls.spawn(answer(Arc::clone(&client), output, input));
                }
                // Nobody is left to hear the answers: calls are cancelled as they are dropped.
                Err(_) => return calls.shutdown().await,
            },
            Some(_) = calls.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    while calls.join_next().await.is_some() {}
    connection.close(VarInt::from_u32(0), b"");
}

/// A client and its session.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) service: Service,
    session: Mutex<Session>,
    pub(super) streams: Streams,
}

#[derive(Debug, Default)]
struct Session {
    open: Option<Arc<Caller>>,
    /// The last try to open one that failed.
    failed: Option<(Instant, Failed)>,
}

impl Client {
    /// The session, opened if there is none. Those who wait for the same try share what comes of it.
    pub(super) async fn session(&self) -> Result<Arc<Caller>, Failed> {
        let asked = Instant::now();
        let mut session = self.session.lock().await;
        if let Some(open) = session.open.as_ref().filter(|open| open.is_open()) {
            return Ok(Arc::clone(open));
        }
        session.open = None;
        if let Some((when, failed)) = &session.failed
            && *when >= asked
        {
            return Err(failed.clone());
        }
        match Caller::open(&self.service).await {
            Ok(opened) => Ok(Arc::clone(session.open.insert(Arc::new(opened)))),
            Err(failed) => {
                session.failed = Some((Instant::now(), failed.clone()));
                Err(failed)
            }
        }
    }
}

/// Answers one call, unless the caller stops waiting for it.
async fn answer(client: Arc<Client>, mut output: SendStream, mut input: RecvStream) {
    let (request_id, request) = match frame::read::<PluginRequest>(&mut input, &client.service.budget).await {
        Ok(PluginRequest { request_id, request }) => (request_id, request),
        Err(Unread::Broken(_)) => return,
        Err(error) => {
            tracing::info!(target: "quic", "a client sent no request: {error}");
            let _ = input.stop(VarInt::from_u32(0));
            let response = Response::ToolCall(failure("invalid_request", error.to_string()));
            return send(&mut output, String::new(), response).await;
        }
    };
    let response = match request {
        Some(Request::StreamStart(start)) => return stream::serve(&client, output, input, request_id, start).await,
        Some(Request::StreamCancel(cancel)) => return client.streams.cancel(&cancel.stream_id),
        request => tokio::select! {
            response = dispatch(&client, request) => response,
            _ = output.stopped() => return,
        },
    };
    send(&mut output, request_id, response).await;
}

async fn send(output: &mut SendStream, request_id: String, response: Response) {
    if write(output, request_id, response).await {
        finish(output).await;
    }
}

/// Ends a stream. Once this returns, the caller has all of it, or will never have it.
pub(super) async fn finish(output: &mut SendStream) {
    if output.finish().is_ok() {
        let _ = timeout(READ_WITHIN, output.stopped()).await;
    }
}

/// Writes a frame; an answer that is too long is replaced by an error that says so. Tells whether it was written.
pub(super) async fn write(output: &mut SendStream, request_id: String, response: Response) -> bool {
    let response = PluginResponse { request_id, response: Some(response) };
    let frame = frame::encode(&response).or_else(|| {
        let text = format!("the answer is over {LONGEST} bytes");
        let told = Some(Response::ToolCall(failure("invalid_response", text)));
        frame::encode(&PluginResponse { request_id: response.request_id.clone(), response: told })
    });
    match frame {
        Some(frame) => output.write_all(&frame).await.is_ok(),
        None => false,
    }
}

async fn dispatch(client: &Client, request: Option<Request>) -> Response {
    match request {
        Some(Request::Register(_)) => {
            Response::Register(RegistrationResult { accepted: true, reject_reason: String::new() })
        }
        Some(Request::Boot(_)) => match client.session().await {
            Ok(_) => Response::Boot(BootResult { ready: true, error: String::new() }),
            Err(failed) => Response::Boot(BootResult { ready: false, error: failed.to_string() }),
        },
        Some(Request::Shutdown(_)) => {
            if let Some(shutdown) = &client.service.options.shutdown {
                // If it is full, somebody has asked already.
                let _ = shutdown.try_send(());
            }
            Response::Shutdown(ShutdownResult { clean: true })
        }
        Some(Request::Health(_)) => health(client).await,
        Some(Request::ListTools(_)) => answers::list_tools(client).await,
        Some(Request::ToolCall(call)) => answers::call_tool(client, call).await,
        Some(Request::ListPrompts(_)) => answers::list_prompts(client).await,
        Some(Request::PromptGet(request)) => answers::prompt(client, request).await,
        Some(Request::StorageList(request)) => storage::list(client, &request).await,
        Some(Request::StorageRead(request)) => storage::read(client, &request).await,
        Some(Request::StorageWrite(_)) => storage::refuse_write(),
        Some(Request::StorageDelete(_)) => storage::refuse_delete(),
        _ => Response::ToolCall(failure("unknown_request", "unrecognized request type")),
    }
}

/// What is known of the server. A question alone opens no session.
async fn health(client: &Client) -> Response {
    let session = client.session.lock().await.open.clone();
    let well = match session {
        None => Ok(()),
        Some(session) => match timeout(HEALTHY_WITHIN, session.request(method::PING, json!({}))).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(failed)) => Err(failed.to_string()),
            Err(_) => Err("the server does not answer".to_owned()),
        },
    };
    let (status, message) = match well {
        Ok(()) => (HEALTHY, "ok".to_owned()),
        Err(why) => (UNHEALTHY, why),
    };
    Response::Health(HealthResult { status, message, ..Default::default() })
}
