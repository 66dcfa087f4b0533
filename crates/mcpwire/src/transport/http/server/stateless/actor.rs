//! All clients without a session on one link: a loop that owns the open exchanges and our end of the link. It ends when
//! nothing was asked for long, and another begins with the next request.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use http::StatusCode;
use mcpwire_proto::{Fault, Id, Message, Packet, code, meta, method};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, Sleep};

use super::exchange::{Exchange, Reply};
use super::known::Known;
use super::names::Names;
use super::presence::{Exits, Key};
use crate::link::{Event, Port, hand_over};
use crate::transport::http::server::Stage;
use crate::transport::http::server::answer::Refusal;
use crate::transport::http::server::exchange::Accepts;
use crate::transport::http::server::options::Options;

/// How many messages are handled between two looks at everything else.
const BURST: usize = 64;

/// What a connection asks for.
#[derive(Debug)]
pub(super) enum Command {
    Ask(Ask),
    /// A notification, which has no answer.
    Tell(Message),
}

#[derive(Debug)]
pub(super) struct Ask {
    pub(super) request: Message,
    pub(super) progress_token: Option<Id>,
    pub(super) wants_log: bool,
    pub(super) accepts: Accepts,
    pub(super) key: Key,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// What wakes the loop.
enum Input {
    /// `None` when there will be no more.
    Command(Option<Command>),
    /// A packet from the server, or its end.
    Packet(Option<Packet>),
    /// The server takes the next message of the outbox, or is gone.
    Room(bool),
    Exits,
    Alarm,
    Stage(Stage),
}

#[derive(Debug)]
pub(super) struct Actor {
    options: Arc<Options>,
    commands: mpsc::Receiver<Command>,
    exits: Arc<Exits>,
    known: Arc<Known>,
    stage: watch::Receiver<Stage>,
    port: Port,
    /// Messages that the server had no room for yet. No command is taken while there are any.
    outbox: VecDeque<Message>,
    pub(super) exchanges: HashMap<Key, Exchange>,
    ids: Names,
    pub(super) tokens: Names,
    /// How many of the exchanges listen.
    listening: usize,
    /// When the last exchange ended.
    idle_since: Instant,
    alarm: Pin<Box<Sleep>>,
    /// Set when all is over, with what to tell those who still wait.
    over: Option<&'static str>,
}

impl Actor {
    pub(super) fn new(
        options: Arc<Options>,
        commands: mpsc::Receiver<Command>,
        exits: Arc<Exits>,
        known: Arc<Known>,
        stage: watch::Receiver<Stage>,
        port: Port,
    ) -> Actor {
        Actor {
            alarm: Box::pin(tokio::time::sleep(options.session_idle)),
            options,
            commands,
            exits,
            known,
            stage,
            port,
            outbox: VecDeque::new(),
            exchanges: HashMap::new(),
            ids: Names::default(),
            tokens: Names::default(),
            listening: 0,
            idle_since: Instant::now(),
            over: None,
        }
    }

    pub(super) async fn run(mut self) {
        let why = loop {
            match self.next().await {
                Input::Command(Some(command)) => self.obey(command),
                Input::Command(None) => self.over = Some("nothing was asked for long"),
                Input::Packet(Some(packet)) => self.pass(packet),
                Input::Room(true) => self.flush(),
                Input::Packet(None) | Input::Room(false) => self.over = Some("the server ended the connection"),
                Input::Exits => self.exits.take().into_iter().for_each(|key| self.cancel(key)),
                Input::Alarm => self.ring(),
                Input::Stage(Stage::Running) => {}
                Input::Stage(Stage::Draining) => self.end_listening(),
                Input::Stage(Stage::Ending) => self.over = Some("the server is shutting down"),
            }
            self.take_what_waits();
            if let Some(why) = self.over {
                break why;
            }
        };
        for (_, exchange) in std::mem::take(&mut self.exchanges) {
            let error = Message::error(Some(&exchange.id.ours), code::INTERNAL_ERROR, why);
            exchange.answer(&error, &self.options);
        }
    }

    async fn next(&mut self) -> Input {
        tokio::select! {
            // Closed when idle: what had been sent by then is still taken, and its exchanges are still served.
            command = self.commands.recv(), if self.outbox.is_empty() && !self.is_closing() => Input::Command(command),
            packet = self.port.rx.recv() => Input::Packet(packet),
            room = self.port.tx.reserve(), if !self.outbox.is_empty() => Input::Room(room.is_ok()),
            () = self.exits.some() => Input::Exits,
            () = self.alarm.as_mut() => Input::Alarm,
            changed = self.stage.changed() => match changed {
                Ok(()) => Input::Stage(*self.stage.borrow_and_update()),
                Err(_) => Input::Stage(Stage::Ending),
            },
        }
    }

    /// Whether no more commands will come, but exchanges are still open.
    fn is_closing(&self) -> bool {
        self.commands.is_closed() && self.commands.is_empty() && !self.exchanges.is_empty()
    }

    /// Handles what else has come, so that a burst costs one wait, and not one for each message.
    fn take_what_waits(&mut self) {
        for _ in 0..BURST {
            if self.over.is_some() {
                return;
            }
            if let Ok(packet) = self.port.rx.try_recv() {
                self.pass(packet);
            } else if self.outbox.is_empty()
                && let Ok(command) = self.commands.try_recv()
            {
                self.obey(command);
            } else {
                return;
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Ask(ask) => self.ask(ask),
            Command::Tell(message) => self.send(message),
        }
    }

    fn ask(&mut self, ask: Ask) {
        // Whoever has gone by now wants nothing any more.
        if ask.reply.is_closed() {
            return;
        }
        if let Some(refusal) = self.refuses(&ask.request) {
            let _ = ask.reply.send(Reply::Refused(refusal));
            return;
        }
        let Ask { mut request, progress_token, wants_log, accepts, key, reply } = ask;
        let Some(id) = request.id().cloned() else { return };
        let id = self.ids.take(id, key);
        let token = progress_token.map(|token| self.tokens.take(token, key));
        if id.is_renamed() {
            request = request.with_id(&id.ours);
        }
        if let Some(token) = token.as_ref().filter(|token| token.is_renamed()) {
            request = meta::with_progress_token(&request, &token.ours);
        }
        let exchange = Exchange::new(key, id, token, &request, wants_log, accepts, reply);
        self.listening += usize::from(exchange.is_listen);
        self.wake_by(exchange.streams_at(&self.options));
        self.exchanges.insert(key, exchange);
        self.send(request);
    }

    /// Why a request is not taken, if it is not. A listening client counts as a session does.
    fn refuses(&self, request: &Message) -> Option<Refusal> {
        let is_listen = request.is(method::LISTEN);
        if is_listen && *self.stage.borrow() != Stage::Running {
            return Some(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down"));
        }
        let (open, limit) = match is_listen {
            true => (self.listening, self.options.max_sessions),
            false => (self.exchanges.len() - self.listening, self.options.max_in_flight),
        };
        (open >= limit).then(|| {
            let what = if is_listen { "listen" } else { "wait for an answer" };
            let fault = Fault::Upstream(format!("too many requests {what}: the limit is {limit}"));
            Refusal::fault(StatusCode::TOO_MANY_REQUESTS, request.id(), &fault)
        })
    }

    /// Sends a message to the server as soon as it has room.
    pub(super) fn send(&mut self, message: Message) {
        self.outbox.push_back(message);
        self.flush();
    }

    fn flush(&mut self) {
        if !hand_over(&mut self.outbox, &self.port.tx, |message| Event::Packet(message.into())) {
            self.over = Some("the server ended the connection");
        }
    }

    /// The client has gone: the server is told, and whatever it still says reaches nobody.
    pub(super) fn cancel(&mut self, key: Key) {
        let Some(exchange) = self.close(key) else { return };
        let params = format!(r#"{{"requestId":{},"reason":"the client closed the connection"}}"#, exchange.id.ours);
        self.ids.retire(exchange.id.ours);
        exchange.token.into_iter().for_each(|token| self.tokens.retire(token.ours));
        self.send(Message::notification(method::CANCELLED, Some(&params)));
    }

    /// Takes an exchange off the books that its answer ends.
    fn settle(&mut self, key: Key) -> Option<Exchange> {
        let exchange = self.close(key)?;
        self.ids.release(&exchange.id.ours);
        exchange.token.iter().for_each(|token| self.tokens.release(&token.ours));
        Some(exchange)
    }

    fn close(&mut self, key: Key) -> Option<Exchange> {
        let exchange = self.exchanges.remove(&key)?;
        self.listening -= usize::from(exchange.is_listen);
        if self.exchanges.is_empty() {
            self.idle_since = Instant::now();
            self.wake_by(Some(self.idle_since + self.options.session_idle));
        }
        Some(exchange)
    }

    pub(super) fn owner(&self, id: &Id) -> Option<Key> {
        self.ids.owner(id)
    }

    pub(super) fn answer(&mut self, id: &Id, answer: &Message) {
        let Some(exchange) = self.owner(id).and_then(|key| self.settle(key)) else {
            // If it was cancelled, its id may be used again now.
            self.ids.release(id);
            return tracing::debug!(target: "http", %id, "the server answered a request that is owed no answer");
        };
        if exchange.teaches {
            self.known.learn(answer);
        }
        exchange.answer(answer, &self.options);
    }

    pub(super) fn tell(&mut self, key: Key, message: &Message) {
        let options = &self.options;
        let told = self.exchanges.get_mut(&key).is_some_and(|exchange| exchange.tell(message, options));
        if !told {
            self.cancel(key);
        }
    }

    /// Ends a subscription as its server would (2026-07-28, Subscriptions, Graceful Closure).
    pub(super) fn end_gracefully(&mut self, key: Key) {
        let Some(exchange) = self.settle(key) else { return };
        let id = &exchange.id.theirs;
        let result = format!(r#"{{"resultType":"complete","_meta":{{"{}":{id}}}}}"#, meta::key::SUBSCRIPTION_ID);
        let end = Message::result(id, &result);
        exchange.answer(&end, &self.options);
    }

    fn end_listening(&mut self) {
        let listening = self.exchanges.values().filter(|exchange| exchange.is_listen);
        let listening: Vec<_> = listening.map(|exchange| (exchange.key, exchange.id.ours.clone())).collect();
        for (key, id) in listening {
            self.end_gracefully(key);
            let params = format!(r#"{{"requestId":{id},"reason":"the server is shutting down"}}"#);
            self.ids.retire(id);
            self.send(Message::notification(method::CANCELLED, Some(&params)));
        }
    }

    /// Does what is due, and sets the alarm for the next time.
    fn ring(&mut self) {
        let now = Instant::now();
        let mut next = now + self.options.session_idle;
        for exchange in self.exchanges.values_mut() {
            if exchange.streams_at(&self.options).is_some_and(|at| at <= now) {
                exchange.start_streaming(&self.options);
            }
            next = exchange.streams_at(&self.options).map_or(next, |at| next.min(at));
        }
        if self.exchanges.is_empty() {
            next = self.idle_since + self.options.session_idle;
            if next <= now {
                self.commands.close();
                next = now + self.options.session_idle;
            }
        }
        self.alarm.as_mut().reset(next);
    }

    fn wake_by(&mut self, at: Option<Instant>) {
        if let Some(at) = at.filter(|at| *at < self.alarm.deadline()) {
            self.alarm.as_mut().reset(at);
        }
    }
}
