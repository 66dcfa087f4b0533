//! The loop behind a client: gives answers to those who wait, notifications to the handler, and answers to the server.

use std::collections::HashMap;
use std::sync::Arc;

use mcpwire_proto::{Id, Kind, Message, Packet, code, meta, method};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::{self, AbortHandle, JoinError, JoinSet};

use super::books::Books;
use super::request::Progress;
use super::{Error, Handler, RpcError};
use crate::channel::Receiver;
use crate::link::Event;

pub(super) struct Driver {
    pub(super) books: Arc<Books>,
    pub(super) handler: Arc<dyn Handler>,
    /// Whether the bridge makes up for failures.
    recover: bool,
    answering: JoinSet<()>,
    /// The server's requests that are being answered.
    asked: HashMap<Id, AbortHandle>,
}

impl Driver {
    pub(super) fn new(books: Arc<Books>, handler: Arc<dyn Handler>, recover: bool) -> Driver {
        Driver { books, handler, recover, answering: JoinSet::new(), asked: HashMap::new() }
    }

    /// Runs until the bridge has ended. What is being answered then has nobody to be sent to.
    pub(super) async fn run(mut self, mut packets: Receiver<Packet>) {
        loop {
            tokio::select! {
                packet = packets.recv() => match packet {
                    Some(packet) => self.take(packet),
                    None => return,
                },
                Some(answered) = self.answering.join_next_with_id() => self.answered(answered),
            }
        }
    }

    fn take(&mut self, packet: Packet) {
        let message = &packet.message;
        match message.kind() {
            Kind::Result { id } => {
                if let Some(pending) = self.books.settle(id) {
                    let _ = pending.reply.send(Ok(message.clone()));
                }
            }
            Kind::Error { id: Some(id) } => {
                if let Some(pending) = self.books.settle(id) {
                    let _ = pending.reply.send(Err(Error::of(&packet, self.recover)));
                }
            }
            Kind::Error { id: None } => self.handler.on_error(message.payload().unwrap_or_default()),
            Kind::Notification { method } => self.hear(method, message),
            Kind::Request { id, method } => self.ask(id.clone(), method.to_string(), message.clone()),
        }
    }

    fn hear(&mut self, method: &str, message: &Message) {
        match method {
            method::PROGRESS => {
                let tell = meta::progress_token(message).and_then(|token| self.books.progressed(&token));
                if let (Some(tell), Some(progress)) = (tell, message.read::<Progress>()) {
                    tell(progress);
                }
            }
            method::CANCELLED => {
                let asked = meta::cancelled_request(message).and_then(|id| self.asked.remove(&id));
                asked.iter().for_each(AbortHandle::abort);
            }
            _ => {}
        }
        self.handler.on_notification(method, message.read::<&RawValue>());
    }

    /// Each request is answered in a task of its own, `ping` as well: this loop must go on reading, or a server that waits for
    /// us to read would wait for ever.
    fn ask(&mut self, id: Id, method: String, message: Message) {
        let (handler, books) = (Arc::clone(&self.handler), Arc::clone(&self.books));
        let key = id.clone();
        let answering = self.answering.spawn(async move {
            let params = message.read::<Value>().unwrap_or_default();
            let answer = match &*method {
                method::PING => Ok(json!({})),
                method => handler.on_request(method, params).await,
            };
            tell(&books, &id, answer).await;
        });
        self.asked.insert(key, answering);
    }

    fn answered(&mut self, answered: Result<(task::Id, ()), JoinError>) {
        let (task, panicked) = match answered {
            Ok((task, _)) => (task, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let asked = self.asked.extract_if(|_, answering| answering.id() == task).next();
        if let (Some((id, _)), true) = (asked, panicked) {
            let books = Arc::clone(&self.books);
            let failed = RpcError::new(code::INTERNAL_ERROR, "the handler failed");
            self.answering.spawn(async move { tell(&books, &id, Err(failed)).await });
        }
    }
}

async fn tell(books: &Books, id: &Id, answer: Result<Value, RpcError>) {
    let answer = match answer {
        Ok(result) => Message::result(id, &result.to_string()),
        Err(error) => Message::error_object(Some(id), &error.to_object()),
    };
    if let Some(tx) = books.sender() {
        let _ = tx.send(Event::Packet(answer.into())).await;
    }
}
