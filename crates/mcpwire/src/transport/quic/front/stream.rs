//! Calls whose answer comes in pieces: the target's progress as it happens, then the result.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpwire_proto::{Message, method};
use quinn::{RecvStream, SendStream};
use tokio::sync::Notify;

use super::answers::{call_params, refused};
use super::caller::{Failed, Step};
use super::content::ToolResult;
use super::orchestra::{Client, finish, write};
use crate::transport::quic::frame::{self, Budget};
use crate::transport::quic::proto::{PluginRequest, Request, Response, StreamChunk, StreamEnd, StreamStart, Struct};
use crate::transport::quic::{PROGRESS_TYPE, RESULT_TYPE, TEXT_TYPE};

/// The longest piece of a result's text.
const PIECE: usize = 1024 * 1024;

/// The calls in pieces of one connection, by the id that the caller gave them.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<HashMap<String, Arc<Notify>>>);

impl Streams {
    pub(super) fn cancel(&self, stream_id: &str) {
        if let Some(cancel) = self.lock().get(stream_id) {
            cancel.notify_one();
        }
    }

    fn open(&self, stream_id: &str) -> Arc<Notify> {
        let cancel = Arc::new(Notify::new());
        self.lock().insert(stream_id.to_owned(), Arc::clone(&cancel));
        cancel
    }

    /// A later call may have come under the same id.
    fn close(&self, stream_id: &str, cancel: &Arc<Notify>) {
        let mut open = self.lock();
        if open.get(stream_id).is_some_and(|known| Arc::ptr_eq(known, cancel)) {
            open.remove(stream_id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers in pieces. The call can be cancelled on any stream of the connection; Orchestra's own clients do it on `input`.
pub(super) async fn serve(
    client: &Client,
    output: SendStream,
    mut input: RecvStream,
    request_id: String,
    start: StreamStart,
) {
    let cancel = client.streams.open(&start.stream_id);
    let stream_id = start.stream_id.clone();
    let mut pieces = Pieces { output, request_id, stream_id: stream_id.clone(), sent: 0 };
    let end = tokio::select! {
        end = call(client, start, &mut pieces) => end,
        () = cancel.notified() => cancelled(),
        () = asked_to_stop(&mut input, &client.service.budget) => cancelled(),
    };
    client.streams.close(&stream_id, &cancel);
    let end = StreamEnd { stream_id, total_chunks: pieces.sent, ..end };
    if write(&mut pieces.output, pieces.request_id, Response::StreamEnd(end)).await {
        finish(&mut pieces.output).await;
    }
}

/// Completes when the caller cancels on the stream of its call; what else it says there means nothing.
async fn asked_to_stop(input: &mut RecvStream, budget: &Budget) {
    while let Ok(PluginRequest { request, .. }) = frame::read(input, budget).await {
        if let Some(Request::StreamCancel(_)) = request {
            return;
        }
    }
    pending().await
}

fn cancelled() -> StreamEnd {
    failed("cancelled", "the call was cancelled".to_owned())
}

/// Where the pieces go.
struct Pieces {
    output: SendStream,
    request_id: String,
    stream_id: String,
    sent: i64,
}

impl Pieces {
    async fn send(&mut self, content_type: &str, data: &[u8]) -> bool {
        let chunk = StreamChunk {
            stream_id: self.stream_id.clone(),
            data: data.to_vec(),
            content_type: content_type.to_owned(),
            sequence: self.sent,
        };
        self.sent += 1;
        write(&mut self.output, self.request_id.clone(), Response::StreamChunk(chunk)).await
    }
}

async fn call(client: &Client, start: StreamStart, pieces: &mut Pieces) -> StreamEnd {
    match answer(client, &start.tool_name, start.arguments, pieces).await {
        Ok(answer) => send_result(answer.payload().unwrap_or("{}"), pieces).await,
        Err(failure) => {
            let told = refused(client, &start.tool_name, &failure).await;
            failed(&told.error_code, told.error_message)
        }
    }
}

/// The target's answer; its progress goes out as it comes.
async fn answer(
    client: &Client,
    tool: &str,
    arguments: Option<Struct>,
    pieces: &mut Pieces,
) -> Result<Message, Failed> {
    let session = client.session().await?;
    let mut call = session.start(method::TOOLS_CALL, call_params(tool, arguments), true).await?;
    loop {
        let step = tokio::select! {
            step = call.next() => step?,
            _ = pieces.output.stopped() => return Err(Failed::NoSession("the caller is gone".to_owned())),
        };
        match step {
            Step::Answer(answer) => return Ok(answer),
            Step::Progress(progress) => {
                pieces.send(PROGRESS_TYPE, progress.payload().unwrap_or("{}").as_bytes()).await;
            }
        }
    }
}

async fn send_result(whole: &str, pieces: &mut Pieces) -> StreamEnd {
    let result = ToolResult::read(whole);
    if result.is_error && result.plain {
        return failed("tool_error", result.text);
    }
    for piece in result.text.as_bytes().chunks(PIECE) {
        pieces.send(TEXT_TYPE, piece).await;
    }
    if !result.plain {
        pieces.send(RESULT_TYPE, whole.as_bytes()).await;
    }
    StreamEnd { success: true, ..Default::default() }
}

fn failed(code: &str, message: String) -> StreamEnd {
    StreamEnd { error_code: code.to_owned(), error_message: message, ..Default::default() }
}
