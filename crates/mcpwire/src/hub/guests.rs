//! The clients of a hub: each has a link of its own, and none waits for another.

use std::collections::BTreeMap;
use std::task::Poll;

use mcpwire_proto::hub::Client;
use mcpwire_proto::{Message, Packet};

use super::Key;
use crate::bells::{Bell, Bells};
use crate::channel::Receiver;
use crate::link::{Event, Port};
use crate::outgoing::Outgoing;

/// How much waits for a client before no more is read from it.
const BACKLOG: usize = 256;
/// How much waits for a client before it hears no more of progress and the like.
const MOST_NEWS: usize = 1024;

#[derive(Default)]
pub(super) struct Guests {
    guests: BTreeMap<Client, Guest>,
    next: u64,
    /// Those for which something waits.
    slow: Vec<Client>,
}

struct Guest {
    outgoing: Outgoing<Event>,
    rx: Receiver<Packet>,
    bell: Bell<Key>,
    /// It is one of the slow.
    slow: bool,
}

impl Guests {
    pub(super) fn is_empty(&self) -> bool {
        self.guests.is_empty()
    }

    pub(super) fn join(&mut self, Port { tx, rx }: Port, bells: &Bells<Key>) -> Client {
        self.next += 1;
        let client = Client(self.next);
        let bell = bells.add(Key::Guest(client));
        self.guests.insert(client, Guest { outgoing: Outgoing::new(tx), rx, bell, slow: false });
        client
    }

    pub(super) fn leave(&mut self, client: Client) {
        self.guests.remove(&client);
    }

    pub(super) fn tell(&mut self, client: Client, packet: Packet) {
        let Some(guest) = self.guests.get_mut(&client) else { return };
        if guest.outgoing.len() >= MOST_NEWS && !packet.message.is_response() {
            return tracing::debug!(target: "hub", "a client that does not read was not told {}", packet.message);
        }
        if !std::mem::replace(&mut guest.slow, true) {
            self.slow.push(client);
        }
        guest.outgoing.push(Event::Packet(packet));
    }

    /// What a client says, or that it is gone. Its bell rings when there may be more.
    pub(super) fn hear(&mut self, client: Client) -> Poll<Option<Message>> {
        let Some(Guest { outgoing, rx, bell, .. }) = self.guests.get_mut(&client) else { return Poll::Pending };
        bell.poll(|cx| {
            while outgoing.poll_room(cx).is_ready() {}
            match outgoing.len() < BACKLOG {
                true => rx.poll_recv(cx).map(|packet| packet.map(|packet| packet.message)),
                false => Poll::Pending,
            }
        })
    }

    /// A client may have more to say.
    pub(super) fn ring(&self, client: Client) {
        self.guests.get(&client).into_iter().for_each(|guest| guest.bell.ring());
    }

    /// Hands over what waits, as far as it is taken at once; gives those that take nothing any more.
    pub(super) fn flush(&mut self) -> Vec<Client> {
        let mut gone = Vec::new();
        let guests = &mut self.guests;
        self.slow.retain(|client| {
            let Some(guest) = guests.get_mut(client) else { return false };
            if !guest.outgoing.flush() {
                gone.push(*client);
            }
            guest.slow = !guest.outgoing.is_empty();
            if guest.outgoing.wants_to_be_polled() {
                guest.bell.ring();
            }
            guest.slow
        });
        gone
    }
}
