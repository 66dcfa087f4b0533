//! One server for many clients: each gets a link of its own, and [`mcpwire_proto::session::share`] keeps them apart.

mod seats;

use std::collections::VecDeque;

use mcpwire_proto::session::share::{Effect, Member, Share};
use mcpwire_proto::{Failure, Message, Packet};
use tokio::sync::mpsc;
use tokio::task::{self, JoinHandle};

use self::seats::Seats;
use crate::bridge::Reach;
use crate::health::{Health, SharedWatch};
use crate::link::{Event, Link, Port, hand_over};

/// How many messages wait for the server before we stop reading from the clients.
const BACKLOG: usize = 256;
/// How many messages are handled between two looks at new clients.
const BURST: usize = 64;
/// How many new clients wait to be taken in.
const JOINING: usize = 16;

/// Where clients join.
#[derive(Debug, Clone)]
pub struct Entrance {
    join: mpsc::Sender<Port>,
}

impl Entrance {
    /// A link to the shared server.
    pub fn link(&self) -> Link {
        let (link, port) = Link::pair();
        // If the server's loop has ended the port is dropped here, and the link tells by its end.
        if let Err(mpsc::error::TrySendError::Full(port)) = self.join.try_send(port) {
            let join = self.join.clone();
            task::spawn(async move { drop(join.send(port).await) });
        }
        link
    }
}

/// Shares one connection to a target; `share` says how. The handle completes when the last entrance, the last client and
/// the server are gone.
pub fn open(target: Reach, share: Share, health: &Health) -> anyhow::Result<(Entrance, JoinHandle<()>)> {
    let (join, joining) = mpsc::channel(JOINING);
    let (server, goodbye) = target.open()?;
    let mut clients = Clients {
        target,
        server,
        goodbyes: goodbye.into_iter().collect(),
        is_over: false,
        share,
        seats: Seats::new(),
        next: 0,
        to_server: VecDeque::new(),
        watch: health.watch_shared(),
    };
    let running = async move {
        clients.run(joining).await;
        let goodbyes = std::mem::take(&mut clients.goodbyes);
        drop(clients);
        for goodbye in goodbyes {
            let _ = goodbye.await;
        }
    };
    Ok((Entrance { join }, task::spawn(running)))
}

struct Clients {
    target: Reach,
    server: Link,
    /// They complete when what is behind a connection is gone.
    goodbyes: Vec<JoinHandle<()>>,
    /// No connection can be made any more.
    is_over: bool,
    share: Share,
    seats: Seats,
    next: u64,
    to_server: VecDeque<Message>,
    watch: SharedWatch,
}

impl Clients {
    async fn run(&mut self, mut joining: mpsc::Receiver<Port>) {
        let mut open = true;
        loop {
            self.pump();
            if self.is_over || !open && self.seats.is_empty() && self.to_server.is_empty() {
                return;
            }
            let server = &self.server.tx;
            let has_room = async { server.reserve().await.is_ok() };
            tokio::select! {
                biased;
                is_open = has_room, if !self.to_server.is_empty() => if !is_open {
                    return;
                },
                event = self.server.rx.recv() => match event {
                    Some(event) => self.on_server(event),
                    None => return,
                },
                port = joining.recv(), if open => match port {
                    Some(port) => self.join(port),
                    None => open = false,
                },
                (member, packet) = self.seats.next(), if self.to_server.len() < BACKLOG => self.on_client(member, packet),
            }
            self.take_what_waits();
        }
    }

    /// Handles what else has come, so that a burst costs one wait, and not one for each message.
    fn take_what_waits(&mut self) {
        for _ in 0..BURST {
            let event = self.server.rx.try_recv().ok();
            let said = if self.to_server.len() < BACKLOG { self.seats.take() } else { None };
            if event.is_none() && said.is_none() {
                return;
            }
            event.into_iter().for_each(|event| self.on_server(event));
            said.into_iter().for_each(|(member, packet)| self.on_client(member, packet));
            self.pump();
        }
    }

    fn join(&mut self, port: Port) {
        self.next += 1;
        let member = Member(self.next);
        self.share.handle_join(member);
        self.seats.join(member, port);
    }

    /// A client has said something, or is gone.
    fn on_client(&mut self, member: Member, packet: Option<Packet>) {
        match packet {
            Some(packet) => self.share.handle_client(member, packet.message),
            None => self.leave(member),
        }
    }

    fn leave(&mut self, member: Member) {
        self.seats.leave(member);
        self.share.handle_leave(member);
    }

    fn on_server(&mut self, event: Event) {
        match event {
            Event::Packet(packet) => {
                self.watch.saw_server();
                self.share.handle_server(packet.message);
            }
            Event::Failed { message, failure } => self.fail(&message, &failure),
            Event::Gone(why) => {
                self.watch.saw_lost(&why);
                self.share.handle_server_gone();
                self.tell_all(|| Event::Gone(why.clone()));
            }
            Event::SessionLost(why) => self.lose_session(&why),
            Event::Garbage(rejected) => {
                tracing::warn!(target: "share", "skipped what the server sent: {}", rejected.fault);
            }
            Event::Batch(_) => tracing::warn!(target: "share", "skipped a batch from the server"),
        }
    }

    fn fail(&mut self, message: &Message, failure: &Failure) {
        if let Failure::Unreachable(why) = failure {
            self.watch.saw_lost(why);
        }
        let present = self.share.is_present(message);
        for (member, message) in self.share.handle_failed(message) {
            self.tell(member, Event::Failed { message, failure: failure.clone() });
        }
        if let Failure::SessionLost(why) = failure
            && present
        {
            self.lose_session(why);
        }
    }

    fn lose_session(&mut self, why: &str) {
        if self.share.handle_session_lost() {
            self.tell_all(|| Event::SessionLost(why.to_owned()));
        }
    }

    /// Hands over what is to be sent, as far as the server takes it at once.
    fn pump(&mut self) {
        while let Some(effect) = self.share.poll_effect() {
            match effect {
                Effect::ToServer(message) => self.to_server.push_back(message),
                Effect::ToClient(member, packet) => self.tell(member, Event::Packet(packet)),
                Effect::Replace(by) => self.replace(by),
            }
        }
        hand_over(&mut self.to_server, &self.server.tx, Packet::from);
    }

    /// Connects to the server once more, for what a client has to say; the others lose what they have under way.
    fn replace(&mut self, by: Member) {
        let why = "the server was started again to be used in the other era";
        tracing::info!(target: "share", "{why}");
        self.to_server.clear();
        self.goodbyes.retain(|goodbye| !goodbye.is_finished());
        match self.target.open() {
            Ok((server, goodbye)) => {
                self.server = server;
                self.goodbyes.extend(goodbye);
            }
            Err(error) => {
                tracing::error!(target: "share", "cannot reach for the server: {error:#}");
                self.is_over = true;
            }
        }
        for member in self.share.members().filter(|member| *member != by).collect::<Vec<_>>() {
            self.tell(member, Event::Gone(why.to_owned()));
        }
    }

    fn tell_all(&mut self, event: impl Fn() -> Event) {
        for member in self.share.members().collect::<Vec<_>>() {
            self.tell(member, event());
        }
    }

    /// A client that takes nothing for so long that its channel is full is let go: it must not hold up the others.
    fn tell(&mut self, member: Member, event: Event) {
        let Some(client) = self.seats.sender(member) else { return };
        if client.try_send(event).is_err() {
            tracing::warn!(target: "share", "a client that does not read was let go");
            self.leave(member);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use mcpwire_proto::{Id, Message};

    use super::*;

    /// A target with one connection.
    fn open(link: Link, health: &Health) -> (Entrance, JoinHandle<()>) {
        let link = Mutex::new(Some(link));
        let connect = move || Ok((link.lock().unwrap().take().expect("the first connection"), None));
        super::open(Reach::new(Arc::new(connect)), Share::default(), health).expect("a link")
    }

    async fn sent_to(server: &mut Port) -> Message {
        server.rx.recv().await.expect("a message").message
    }

    async fn told(client: &mut Link) -> Option<Event> {
        client.rx.recv().await
    }

    async fn request(client: &Link, id: u64, method: &str) {
        client.tx.send(Message::request(&Id::from(id), method, None).into()).await.expect("open");
    }

    #[tokio::test]
    async fn two_clients_with_the_same_ids_get_their_own_answers() {
        let (link, mut server) = Link::pair();
        let (entrance, _) = open(link, &Health::new("t"));
        let (mut a, mut b) = (entrance.link(), entrance.link());
        request(&a, 1, "tools/call").await;
        let first = sent_to(&mut server).await;
        request(&b, 1, "tools/call").await;
        let second = sent_to(&mut server).await;
        for (request, text) in [(&second, "\"b\""), (&first, "\"a\"")] {
            let answer = Message::result(request.id().expect("an id"), text);
            server.tx.send(Event::Packet(answer.into())).await.expect("open");
        }
        for (client, text) in [(&mut a, "\"a\""), (&mut b, "\"b\"")] {
            let Some(Event::Packet(packet)) = told(client).await else { panic!("no answer") };
            assert_eq!((packet.message.id(), packet.message.payload()), (Some(&Id::from(1)), Some(text)));
        }
    }

    #[tokio::test]
    async fn the_server_is_let_go_with_the_last_client() {
        let (link, mut server) = Link::pair();
        let (entrance, ended) = open(link, &Health::new("t"));
        let client = entrance.link();
        request(&client, 1, "ping").await;
        sent_to(&mut server).await;
        drop(entrance);
        drop(client);
        assert!(sent_to(&mut server).await.is("notifications/cancelled"));
        assert!(server.rx.recv().await.is_none());
        ended.await.expect("it ends by itself");
    }

    #[tokio::test]
    async fn all_are_told_when_the_server_is_gone() {
        let (link, server) = Link::pair();
        let (entrance, _) = open(link, &Health::new("t"));
        let (mut a, mut b) = (entrance.link(), entrance.link());
        request(&a, 1, "ping").await;
        request(&b, 1, "ping").await;
        let mut server = server;
        sent_to(&mut server).await;
        sent_to(&mut server).await;
        server.tx.send(Event::Gone("it died".into())).await.expect("open");
        for client in [&mut a, &mut b] {
            assert!(matches!(told(client).await, Some(Event::Gone(why)) if why == "it died"));
        }
    }
}
