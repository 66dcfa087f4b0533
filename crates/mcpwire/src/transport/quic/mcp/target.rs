//! A server of MCP over QUIC as a link that outlives the connection: it is made with the first message, and again with the
//! next message after it was lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpwire_proto::frame::line::Line;
use mcpwire_proto::{Failure, Fault, Id, Kind, Lane, Message, Packet, meta, method};
use quinn::{Connection, RecvStream, SendStream};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::{self, JoinHandle, JoinSet};
use tokio::time::timeout;

use super::{Purpose, write};
use crate::channel::Sender;
use crate::link::{Event, Link};
use crate::transport::lines::{Lines, Outbox};
use crate::transport::quic::dial::{Peer, lost};
use crate::transport::quic::{MCP_ALPN, TargetOptions, Unusable, tls};

/// How many messages wait to be written on one stream.
const DEPTH: usize = 64;
/// How long the last messages may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Makes the link. No connection is made before the first message. When the link is dropped the connection is closed; the
/// handle completes when it is.
pub fn connect(options: TargetOptions) -> Result<(Link, JoinHandle<()>), Unusable> {
    let config = tls::client(&options.identity, MCP_ALPN)?;
    let peer = Peer::new("the server", options.address, config, options.wait);
    let (link, port) = Link::pair();
    Ok((link, task::spawn(run(peer, options.max_message, Outbox::new(port)))))
}

async fn run(peer: Peer, limit: usize, mut outbox: Outbox) {
    while let Some(first) = outbox.first().await {
        match peer.connection().await {
            Err(why) => outbox.failed(first.message, Failure::NotConnected(why)).await,
            Ok(connection) => match converse(&connection, limit, first, &mut outbox).await {
                // The next server must not find this one's connection.
                Some(why) => {
                    peer.close().await;
                    outbox.gone(&why).await;
                }
                None => break,
            },
        }
    }
    peer.close().await;
}

/// Carries messages until the server is gone, which is told, or the link is dropped.
async fn converse(connection: &Connection, limit: usize, first: Packet, outbox: &mut Outbox) -> Option<String> {
    let (to_main, main_messages) = mpsc::channel(DEPTH);
    let streams = Arc::new(Streams {
        connection: connection.clone(),
        limit,
        events: outbox.events(),
        open: Mutex::default(),
        asked: Mutex::default(),
    });
    let mut tasks = JoinSet::new();
    let mut main = task::spawn(Arc::clone(&streams).main(main_messages));
    let mut sent_on_main = 0;
    let mut next = Some(first);
    let gone = loop {
        if let Some(Packet { message, .. }) = next.take() {
            match message.kind() {
                Kind::Request { id, .. } => {
                    let (to_stream, extra) = mpsc::channel(DEPTH);
                    lock(&streams.open).insert(id.clone(), to_stream);
                    tasks.spawn(Arc::clone(&streams).request(id.clone(), message, sent_on_main, extra));
                }
                _ => {
                    if let Some(message) = streams.pass_to_request(message) {
                        sent_on_main += 1;
                        // A closed channel tells by the end of `main`.
                        let _ = to_main.send(message).await;
                    }
                }
            }
        }
        tokio::select! {
            packet = outbox.next() => match packet {
                Some(packet) => next = Some(packet),
                None => break None,
            },
            Some(_) = tasks.join_next() => {}
            why = connection.closed() => break Some(lost(&why)),
            _ = &mut main => break Some("it ended the conversation".to_owned()),
        }
    };
    drop(to_main);
    if gone.is_none() {
        let _ = timeout(LAST_WORDS, &mut main).await;
    }
    main.abort();
    tasks.shutdown().await;
    gone
}

/// The streams of one connection.
struct Streams {
    connection: Connection,
    limit: usize,
    events: Sender<Event>,
    /// Requests under way, with the way to add to their stream.
    open: Mutex<HashMap<Id, mpsc::Sender<Message>>>,
    /// Questions of the server, and the request on whose stream they came.
    asked: Mutex<HashMap<Id, Id>>,
}

impl Streams {
    /// Puts a message on the stream of the request that it belongs to, or gives it back.
    fn pass_to_request(&self, message: Message) -> Option<Message> {
        let request = match message.kind() {
            Kind::Notification { method } if *method == method::CANCELLED => meta::cancelled_request(&message),
            Kind::Result { id } | Kind::Error { id: Some(id) } => lock(&self.asked).remove(id),
            _ => None,
        };
        let to_stream = request.and_then(|request| lock(&self.open).get(&request).cloned());
        match to_stream {
            Some(to_stream) => to_stream.try_send(message).err().map(mpsc::error::TrySendError::into_inner),
            None => Some(message),
        }
    }

    /// What belongs to no request, both ways; ends when nothing more is to be written, or the server ends it.
    async fn main(self: Arc<Self>, mut messages: mpsc::Receiver<Message>) {
        let Ok((mut output, input)) = self.connection.open_bi().await else { return };
        let writing = async {
            AsyncWriteExt::write_all(&mut output, Purpose::Main.line().as_bytes()).await?;
            while let Some(message) = messages.recv().await {
                write(&mut output, &message).await?;
            }
            let _ = output.finish();
            let _ = output.stopped().await;
            std::io::Result::Ok(())
        };
        let reading = async {
            let mut lines = Lines::new(input, self.limit);
            while let Ok(Some(line)) = lines.next().await {
                self.hear(line, &Lane::Main).await;
            }
        };
        tokio::select! {
            _ = writing => {}
            () = reading => {}
        }
    }

    async fn request(self: Arc<Self>, id: Id, message: Message, after: u64, extra: mpsc::Receiver<Message>) {
        let outcome = self.exchange(&id, &message, after, extra).await;
        lock(&self.open).remove(&id);
        lock(&self.asked).retain(|_, request| *request != id);
        // A lost connection is told once, for all.
        if let Err(failure) = outcome
            && self.connection.close_reason().is_none()
        {
            let _ = self.events.send(Event::Failed { message, failure }).await;
        }
    }

    /// Sends a request, and hands on what comes until its response has.
    async fn exchange(
        &self,
        id: &Id,
        message: &Message,
        after: u64,
        mut extra: mpsc::Receiver<Message>,
    ) -> Result<(), Failure> {
        let opened = self.connection.open_bi().await;
        let (mut output, input) = opened.map_err(|error| Failure::Unreachable(lost(&error)))?;
        let interrupted = |why: &str| Failure::Interrupted(why.to_owned());
        send_first(&mut output, message, after).await.map_err(|error| interrupted(&error.to_string()))?;
        let mut lines: Lines<RecvStream> = Lines::new(input, self.limit);
        let lane = Lane::Request(id.clone());
        loop {
            tokio::select! {
                line = lines.next() => match line {
                    Ok(Some(line)) => if self.hear(line, &lane).await {
                        return Ok(());
                    },
                    Ok(None) => return Err(interrupted("it closed the stream without an answer")),
                    Err(error) => return Err(interrupted(&error.to_string())),
                },
                Some(more) = extra.recv() => {
                    // If it cannot be written, the answer tells, or the end of the stream.
                    let _ = write(&mut output, &more).await;
                    if more.is(method::CANCELLED) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Hands on what a line says. Tells whether it was the response to the request whose stream this is.
    async fn hear(&self, line: Line, lane: &Lane) -> bool {
        let message = match line {
            Line::Text(text) => match Message::parse(text) {
                Ok(message) => message,
                Err(rejected) => {
                    tracing::warn!(target: "quic", "skipped what the server sent: {}", rejected.fault);
                    return false;
                }
            },
            Line::TooLong { answers: Some(id), .. } => {
                let limit = self.limit;
                let text = format!("the server's answer is over {limit} bytes (--max-message sets the limit)");
                Fault::Upstream(text).to_message(Some(&id))
            }
            Line::TooLong { .. } => return false,
        };
        let done = matches!(lane, Lane::Request(id) if message.is_response() && message.id() == Some(id));
        if let (Kind::Request { id, .. }, Lane::Request(request)) = (message.kind(), lane) {
            lock(&self.asked).insert(id.clone(), request.clone());
        }
        let _ = self.events.send(Event::Packet(Packet::new(lane.clone(), message))).await;
        done
    }
}

async fn send_first(output: &mut SendStream, message: &Message, after: u64) -> std::io::Result<()> {
    AsyncWriteExt::write_all(output, Purpose::Request(after).line().as_bytes()).await?;
    write(output, message).await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
