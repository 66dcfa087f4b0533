//! The clients of a hub: each has a link of its own, and none waits for another.

use std::collections::HashMap;
use std::task::{Context, Poll};

use mcpwire_proto::hub::Client;
use mcpwire_proto::{Message, Packet};
use tokio::sync::{mpsc, watch};
use tokio::task;

use super::outlet::Outlet;
use crate::link::{Event, Port};

/// How much waits for a client before no more is read from it.
const BACKLOG: usize = 256;
/// How much waits for a client before it hears no more of progress and the like.
const MOST_NEWS: usize = 1024;

/// What a client said; none when it is gone.
pub(super) type Said = (Client, Option<Message>);

pub(super) struct Guests {
    guests: HashMap<Client, Guest>,
    next: u64,
    said: mpsc::WeakSender<Said>,
    /// Those for which something waits.
    slow: Vec<Client>,
}

struct Guest {
    outlet: Outlet<Event>,
    /// Whether it may say more.
    heard: watch::Sender<bool>,
    /// It is one of the slow.
    slow: bool,
}

impl Guests {
    pub(super) fn new(said: mpsc::WeakSender<Said>) -> Guests {
        Guests { guests: HashMap::new(), next: 0, said, slow: Vec::new() }
    }

    /// Takes a client in; none if all others are gone, and we with them.
    pub(super) fn join(&mut self, Port { tx, mut rx }: Port) -> Option<Client> {
        let said = self.said.upgrade()?;
        self.next += 1;
        let client = Client(self.next);
        let (heard, mut may_speak) = watch::channel(true);
        self.guests.insert(client, Guest { outlet: Outlet::new(tx), heard, slow: false });
        task::spawn(async move {
            while let Some(packet) = rx.recv().await {
                let is_gone = may_speak.wait_for(|may| *may).await.is_err();
                if is_gone || said.send((client, Some(packet.message))).await.is_err() {
                    return;
                }
            }
            let _ = said.send((client, None)).await;
        });
        Some(client)
    }

    pub(super) fn leave(&mut self, client: Client) {
        self.guests.remove(&client);
    }

    pub(super) fn tell(&mut self, client: Client, packet: Packet) {
        let Some(guest) = self.guests.get_mut(&client) else { return };
        if guest.outlet.len() >= MOST_NEWS && !packet.message.is_response() {
            return tracing::debug!(target: "hub", "a client that does not read was not told {}", packet.message);
        }
        if !std::mem::replace(&mut guest.slow, true) {
            self.slow.push(client);
        }
        guest.outlet.push(Event::Packet(packet));
    }

    /// Hands over what waits, as far as it is taken at once; gives those that take nothing any more.
    pub(super) fn flush(&mut self) -> Vec<Client> {
        let mut gone = Vec::new();
        let guests = &mut self.guests;
        self.slow.retain(|client| {
            let Some(guest) = guests.get_mut(client) else { return false };
            if !guest.outlet.flush() {
                gone.push(*client);
            }
            guest.hear();
            guest.slow = guest.outlet.len() > 0;
            guest.slow
        });
        gone
    }

    /// Ready when a client took something.
    pub(super) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for client in &self.slow {
            if let Some(guest) = self.guests.get_mut(client)
                && guest.outlet.poll_room(cx).is_ready()
            {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

impl Guest {
    fn hear(&self) {
        let may = self.outlet.len() < BACKLOG;
        self.heard.send_if_modified(|before| std::mem::replace(before, may) != may);
    }
}
