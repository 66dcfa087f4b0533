//! Watches the links to the server: the handler hears what goes wrong on them, and a client that does not recover is spared
//! the bridge's attempts to mend it.

use std::sync::Arc;

use mcpwire_proto::{Cause, Failure, Message, Packet, code};

use super::books::Books;
use super::{Error, Handler, RpcError};
use crate::bridge::Reach;
use crate::channel::{Receiver, Sender, channel};
use crate::link::{Event, Link};

/// How many events wait for the bridge here, besides those on the link itself.
const DEPTH: usize = 16;

#[derive(Clone)]
pub(super) struct Tap {
    pub(super) books: Arc<Books>,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) recover: bool,
}

impl Tap {
    /// The same target, watched. What is found out about it is kept for both.
    pub(super) fn on(self, reach: &Reach) -> Reach {
        reach.map(move |Link { tx, rx }| {
            let (events, tapped) = channel(DEPTH);
            tokio::spawn(self.clone().run(rx, events));
            Link { tx, rx: tapped }
        })
    }

    async fn run(self, mut rx: Receiver<Event>, events: Sender<Event>) {
        loop {
            let event = tokio::select! {
                event = rx.recv() => event,
                () = events.closed() => return,
            };
            let Some(event) = event else { return };
            self.tell(&event);
            let event = if self.recover { event } else { finally(event) };
            match event {
                Event::Gone(why) if !self.recover => return self.books.close(Some(&why)),
                // The requests will say so themselves.
                Event::SessionLost(_) if !self.recover => {}
                event => {
                    if events.send(event).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn tell(&self, event: &Event) {
        match event {
            Event::Failed { message, failure } if !message.is_request() => {
                let what = message.method().map_or("an answer", |method| method);
                self.handler.on_error(&format!("{what} failed: {}", in_words(failure)));
            }
            Event::Gone(why) | Event::SessionLost(why) => self.handler.on_error(why),
            Event::Garbage(rejected) => self.handler.on_error(&rejected.fault.to_string()),
            Event::Packet(_) | Event::Batch(_) | Event::Failed { .. } => {}
        }
    }
}

/// A failure that nobody is to make up for.
pub(super) fn finally(event: Event) -> Event {
    let Event::Failed { message, failure } = event else { return event };
    let (cause, why) = match &failure {
        Failure::Unreachable(why) | Failure::NotConnected(why) => (Cause::Unreachable, why),
        Failure::Interrupted(why) => (Cause::Interrupted, why),
        Failure::SessionLost(why) => (Cause::SessionLost, why),
        Failure::Refused(_) => return Event::Failed { message, failure },
    };
    let error = RpcError::new(code::INTERNAL_ERROR, why);
    let failure = Failure::refused(error.to_object(), cause);
    Event::Failed { message, failure }
}

fn in_words(failure: &Failure) -> String {
    match failure {
        Failure::Refused(refusal) => {
            let error = Packet::from(Message::error_object(None, &refusal.error)).because(refusal.cause.clone());
            Error::of(&error, true).to_string()
        }
        other => other.to_string(),
    }
}
