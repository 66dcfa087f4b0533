//! The server's side of a bridge: the conversation, which decides everything, and the connections that it holds.

use std::task::{Context, Poll};
use std::time::Instant;

use mcpwire_proto::Packet;
use mcpwire_proto::conversation::{Config, Conversation, Effect, Upstream};
use mcpwire_proto::session::legacy::Phase;

use super::upstreams::{News, Upstreams};
use crate::channel::Shortcut;
use crate::health::{Condition, Watch};
use crate::link::Event;

pub(crate) struct Side {
    conversation: Conversation,
    upstreams: Upstreams,
    watch: Option<Watch>,
}

impl Side {
    pub(crate) fn new(upstreams: Upstreams, config: Config, watch: Option<Watch>) -> Side {
        let conversation = Conversation::new(Config { known: upstreams.reach.known(), ..config });
        let conversation = conversation.limited(upstreams.reach.policy().clone());
        let conversation = if upstreams.has_first() { conversation.opened_first() } else { conversation };
        Side { conversation, upstreams, watch }
    }

    /// The client says something.
    pub(crate) fn on_client(&mut self, event: Event, now: Instant) {
        match event {
            Event::Packet(packet) => {
                if let Some(watch) = &mut self.watch {
                    watch.saw_client(&packet.message, now);
                }
                self.conversation.handle_client(packet.message, now);
            }
            Event::Batch(text) => self.conversation.handle_client_batch(&text, now),
            Event::Garbage(rejected) => self.conversation.handle_garbage(*rejected),
            Event::Failed { message, failure } => tracing::warn!(target: "bridge", "{message} failed: {failure}"),
            Event::SessionLost(why) | Event::Gone(why) => {
                tracing::warn!(target: "bridge", "the client's session is gone: {why}");
            }
        }
    }

    /// A connection to the server has news.
    pub(crate) fn on_news(&mut self, news: News, now: Instant) {
        match news {
            News::Sent => {}
            News::Came(upstream, Some(event)) => self.on_server(upstream, event, now),
            News::Came(upstream, None) => self.on_closed(upstream, "the connection to the server ended", now),
        }
    }

    fn on_server(&mut self, upstream: Upstream, event: Event, now: Instant) {
        match event {
            Event::Packet(packet) => {
                if let Some(watch) = &mut self.watch {
                    watch.saw_server(upstream);
                }
                self.conversation.handle_server(upstream, packet, now);
            }
            Event::Failed { message, failure } => {
                if let Some(watch) = &mut self.watch {
                    watch.saw_failure(&failure);
                }
                self.conversation.handle_failed(upstream, message, failure, now);
            }
            Event::SessionLost(why) => self.conversation.handle_session_lost(upstream, &why, now),
            Event::Gone(why) => {
                if let Some(watch) = &mut self.watch {
                    watch.saw_lost(upstream, &why);
                }
                self.conversation.handle_server_gone(upstream, &why, now);
            }
            Event::Garbage(rejected) => {
                tracing::warn!(target: "bridge", "skipped what the server sent: {}", rejected.fault);
            }
            Event::Batch(_) => tracing::warn!(target: "bridge", "skipped a batch from the server"),
        }
    }

    fn on_closed(&mut self, upstream: Upstream, why: &str, now: Instant) {
        self.upstreams.close(upstream);
        self.conversation.handle_closed(upstream, why, now);
    }

    pub(crate) fn on_alarm(&mut self, now: Instant) {
        self.conversation.handle_timeout(now);
    }

    /// When [`Side::on_alarm`] wants to be called. Calling it early does no harm.
    pub(crate) fn alarm(&self) -> Option<Instant> {
        self.conversation.poll_timeout()
    }

    /// Does what the conversation wants: tells the client, and hands over what is to be sent to the server, as far as it
    /// is taken at once.
    pub(crate) fn pump(&mut self, now: Instant, mut tell: impl FnMut(Packet)) {
        while let Some(effect) = self.conversation.poll_effect() {
            match effect {
                Effect::ToClient(packet) => {
                    if let Some(watch) = &mut self.watch {
                        watch.saw_answer(&packet.message, now);
                    }
                    tell(packet);
                }
                Effect::ToServer(upstream, packet) => self.upstreams.push(upstream, packet),
                Effect::Open(upstream) => {
                    if let Err(error) = self.upstreams.open(upstream) {
                        tracing::error!(target: "bridge", "cannot reach for the server: {error:#}");
                        self.on_closed(upstream, "cannot reach for the server", now);
                    }
                }
                Effect::Close(upstream) => self.upstreams.close(upstream),
                Effect::Learned(known) => self.upstreams.reach.learn(known),
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.report(condition(&self.conversation), self.conversation.trouble());
        }
        self.upstreams.flush();
    }

    /// Ready with what a connection has to tell, which is asked for only if there is room for what comes of it, or when
    /// one took a message.
    pub(crate) fn poll_news(&mut self, read: bool, cx: &mut Context<'_>) -> Poll<News> {
        self.upstreams.poll_news(read, cx)
    }

    /// What has come already.
    pub(crate) fn take(&mut self) -> Option<News> {
        self.upstreams.take().map(|(upstream, event)| News::Came(upstream, Some(event)))
    }

    /// Whether something has come up that only a poll can see to.
    pub(crate) fn wants_to_be_polled(&self) -> bool {
        self.upstreams.want_to_be_polled()
    }

    /// Opens a shortcut, made by `make`, on every connection that has none yet.
    pub(super) fn open_shortcuts(&mut self, make: impl Fn(Upstream) -> Shortcut<Event>) {
        self.upstreams.open_shortcuts(make);
    }

    /// Whether a connection is there and has told nothing that was not heard yet.
    pub(super) fn is_heard(&self, upstream: Upstream) -> bool {
        self.upstreams.is_heard(upstream)
    }

    /// How many messages wait on the connection where most do.
    pub(crate) fn backlog(&self) -> usize {
        self.upstreams.backlog()
    }

    /// How many answers the client still waits for.
    pub(crate) fn owed_to_client(&self) -> usize {
        self.conversation.owed_to_client()
    }

    /// Whether the server cannot be had any more.
    pub(crate) fn is_over(&self) -> bool {
        self.conversation.is_over()
    }

    /// Answers everything that is still owed: nothing more will come from the server.
    pub(crate) fn abandon(&mut self, why: &str, now: Instant) {
        self.conversation.abandon(why, now);
    }

    /// The connections, to be ended.
    pub(crate) fn into_upstreams(self) -> Upstreams {
        self.upstreams
    }
}

fn condition(conversation: &Conversation) -> Condition {
    match conversation.phase() {
        Phase::Idle => Condition::Idle,
        Phase::Opening => Condition::Starting,
        Phase::Open => Condition::Up,
        Phase::Waiting | Phase::Closed => Condition::Down,
    }
}
