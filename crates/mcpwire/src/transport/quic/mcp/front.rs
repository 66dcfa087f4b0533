//! One connection of MCP over QUIC: a client, whose session is given away as a [`Link`].

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpwire_proto::frame::line::Line;
use mcpwire_proto::{Fault, Id, Kind, Lane, Message, Packet, method};
use quinn::{Connection, RecvStream, SendStream, VarInt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Purpose, write};
use crate::channel::{Receiver, Sender};
use crate::link::{Event, Link, Port};
use crate::transport::lines::{Lines, event};
use crate::transport::quic::front::Service;

/// How many messages wait to be written on one stream.
const DEPTH: usize = 64;
/// How long what a request comes after may take.
const OVERTAKEN: Duration = Duration::from_secs(10);
/// How long the last messages may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(in crate::transport::quic) async fn serve(connection: Connection, service: Service) {
    let (link, Port { tx, rx }) = Link::pair();
    if !matches!(timeout(service.options.session_timeout, service.links.send(link)).await, Ok(Ok(()))) {
        tracing::warn!(target: "quic", "nobody takes a new connection");
        return connection.close(VarInt::from_u32(1), b"nobody takes a new connection");
    }
    let Service { options, links, mut stopped, .. } = service;
    drop(links);
    let (to_main, main_messages) = mpsc::channel(DEPTH);
    let client = Arc::new(Client {
        limit: options.max_message,
        events: Mutex::new(Some(tx)),
        streams: Mutex::default(),
        read_on_main: watch::Sender::new(0),
        main_messages: Mutex::new(Some(main_messages)),
    });
    let mut tasks = JoinSet::new();
    let mut delivering = tokio::spawn(deliver(Arc::clone(&client), rx, to_main));
    loop {
        tokio::select! {
            accepted = connection.accept_bi() => match accepted {
                Ok((output, input)) => {
                    tasks.spawn(Arc::clone(&client).stream(output, input));
                }
                Err(_) => {
                    delivering.abort();
                    return tasks.shutdown().await;
                }
            },
            Some(_) = tasks.join_next() => {}
            _ = stopped.changed() => break,
            // The session is over: there is nobody to hear the client.
            _ = &mut delivering => break,
        }
    }
    // Nothing more is read; the session ends once it has answered what it owes.
    lock(&client.events).take();
    client.read_on_main.send_replace(u64::MAX);
    if !delivering.is_finished() {
        let _ = delivering.await;
    }
    let _ = timeout(LAST_WORDS, async { while tasks.join_next().await.is_some() {} }).await;
    connection.close(VarInt::from_u32(0), b"");
}

/// Puts each message of the session on its stream, until the session is over.
async fn deliver(client: Arc<Client>, mut packets: Receiver<Packet>, to_main: mpsc::Sender<Message>) {
    while let Some(Packet { lane, message, .. }) = packets.recv().await {
        let request = match (message.kind(), lane) {
            (Kind::Result { id } | Kind::Error { id: Some(id) }, _) => Some(id.clone()),
            (_, Lane::Request(id)) => Some(id),
            (_, Lane::Main | Lane::Unsorted) => None,
        };
        let to_stream = request.and_then(|id| {
            let mut streams = lock(&client.streams);
            // The response is the last.
            if message.is_response() { streams.remove(&id) } else { streams.get(&id).cloned() }
        });
        // A stream that was closed by the client has nobody who would read it.
        let _ = to_stream.as_ref().unwrap_or(&to_main).send(message).await;
    }
    lock(&client.streams).clear();
}

struct Client {
    limit: usize,
    /// The way into the session; none once nothing more is taken.
    events: Mutex<Option<Sender<Event>>>,
    /// Requests under way, with the way to their stream.
    streams: Mutex<HashMap<Id, mpsc::Sender<Message>>>,
    /// How many messages came on `main`.
    read_on_main: watch::Sender<u64>,
    /// What is to be written on `main`; taken by the first stream of that purpose.
    main_messages: Mutex<Option<mpsc::Receiver<Message>>>,
}

impl Client {
    async fn stream(self: Arc<Self>, output: SendStream, input: RecvStream) {
        let mut lines = Lines::new(input, self.limit);
        match Purpose::read(&mut lines).await {
            Some(Purpose::Request(after)) => self.request(output, lines, after).await,
            Some(Purpose::Main) => {
                let messages = lock(&self.main_messages).take();
                match messages {
                    Some(messages) => self.main(output, lines, messages).await,
                    None => refuse(output, "expected one stream of this purpose, came a second").await,
                }
            }
            None => refuse(output, "expected a line that says what the stream is for").await,
        }
    }

    async fn main(&self, output: SendStream, mut lines: Lines<RecvStream>, messages: mpsc::Receiver<Message>) {
        let reading = async {
            while let Ok(Some(line)) = lines.next().await {
                self.hear(event(line, self.limit)).await;
                self.read_on_main.send_modify(|read| *read = read.saturating_add(1));
            }
        };
        tokio::join!(reading, write_all(output, messages));
    }

    async fn request(&self, output: SendStream, mut lines: Lines<RecvStream>, after: u64) {
        let request = match self.first(&mut lines).await {
            Ok(request) => request,
            Err(answer) => return answer_and_end(output, answer).await,
        };
        let Some(id) = request.id().cloned() else { return };
        let mut read = self.read_on_main.subscribe();
        if timeout(OVERTAKEN, read.wait_for(|read| *read >= after)).await.is_err() {
            let fault = Fault::Shape(format!("expected {after} messages on main before this request, came fewer"));
            return answer_and_end(output, fault.to_message(Some(&id))).await;
        }
        let (to_stream, messages) = mpsc::channel(DEPTH);
        let taken = {
            let mut streams = lock(&self.streams);
            let taken = streams.contains_key(&id);
            if !taken {
                streams.insert(id.clone(), to_stream);
            }
            taken
        };
        if taken {
            let fault = Fault::Shape(format!("expected a new request id, came {id}, which is still in use"));
            return answer_and_end(output, fault.to_message(Some(&id))).await;
        }
        self.hear(Event::Packet(request.into())).await;
        {
            let reading = async {
                self.follow(&id, &mut lines).await;
                // A client that has said all may still read.
                pending::<()>().await;
            };
            tokio::select! {
                () = reading => {}
                () = write_all(output, messages) => {}
            }
        }
        if lock(&self.streams).contains_key(&id) {
            // The client reads no more: perhaps it says why.
            let _ = timeout(LAST_WORDS, self.follow(&id, &mut lines)).await;
            self.give_up(&id).await;
        }
    }

    /// Hears what a client adds to a request, until it has said all.
    async fn follow(&self, id: &Id, lines: &mut Lines<RecvStream>) {
        loop {
            match lines.next().await {
                Ok(Some(line)) => {
                    let event = event(line, self.limit);
                    let cancels = matches!(&event, Event::Packet(packet) if packet.message.is(method::CANCELLED));
                    self.hear(event).await;
                    if cancels {
                        // Nothing more is owed here, and so the stream ends.
                        lock(&self.streams).remove(id);
                    }
                }
                Ok(None) => return,
                // The client has dropped the stream: it does not wait any more.
                Err(_) => return self.give_up(id).await,
            }
        }
    }

    /// The request that a stream begins with, or what its client is answered instead.
    async fn first(&self, lines: &mut Lines<RecvStream>) -> Result<Message, Message> {
        let shape = |text: &str| Fault::Shape(text.to_owned()).to_message(None);
        match lines.next().await {
            Ok(Some(line @ Line::Text(_))) => match event(line, self.limit) {
                Event::Packet(packet) if packet.message.is_request() => Ok(packet.message),
                Event::Garbage(rejected) => Err(rejected.fault.to_message(rejected.id.as_ref())),
                _ => Err(shape("expected a request, came another message")),
            },
            Ok(Some(Line::TooLong { id, .. })) => Err(Fault::TooLarge { limit: self.limit }.to_message(id.as_ref())),
            Ok(None) | Err(_) => Err(shape("expected a request, came none")),
        }
    }

    async fn give_up(&self, id: &Id) {
        if lock(&self.streams).remove(id).is_some() {
            let params = format!(r#"{{"requestId":{id},"reason":"the client closed the stream"}}"#);
            self.hear(Event::Packet(Message::notification(method::CANCELLED, Some(&params)).into())).await;
        }
    }

    async fn hear(&self, event: Event) {
        let events = lock(&self.events).clone();
        if let Some(events) = events {
            let _ = events.send(event).await;
        }
    }
}

/// Writes messages until there are no more to come, then ends the stream; or until the client reads no more of it.
async fn write_all(mut output: SendStream, mut messages: mpsc::Receiver<Message>) {
    loop {
        let message = tokio::select! {
            biased;
            message = messages.recv() => message,
            _ = output.stopped() => return,
        };
        match message {
            Some(message) if write(&mut output, &message).await.is_ok() => {}
            Some(_) => return,
            None => return end(output).await,
        }
    }
}

async fn end(mut output: SendStream) {
    if output.finish().is_ok() {
        let _ = timeout(LAST_WORDS, output.stopped()).await;
    }
}

async fn answer_and_end(mut output: SendStream, answer: Message) {
    if write(&mut output, &answer).await.is_ok() {
        end(output).await;
    }
}

async fn refuse(output: SendStream, why: &str) {
    answer_and_end(output, Fault::Shape(why.to_owned()).to_message(None)).await;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
