//! How connections, and the server, reach a session: what they send is handled in their own turn, under a lock that nobody
//! holds for long. The session's task sees to the rest: what has to wait, and what time brings.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::Poll;

use mcpwire_proto::Packet;
use tokio::sync::{Notify, oneshot, watch};

use super::{Command, Idle, Manner, Post, Session};
use crate::channel::{Sender, channel};
use crate::link::Link;
use crate::rarely::Rarely;
use crate::transport::http::server::Stage;
use crate::transport::http::server::answer::{Answer, Refusal};
use crate::transport::http::server::options::Options;

/// How many commands wait for the session before their connections do.
const MAILBOX: usize = 64;

/// A way to a session. Taken for every request: one count goes up and down, and not one for each part.
#[derive(Debug, Clone)]
pub(in super::super) struct Handle(Arc<Entrance>);

#[derive(Debug)]
struct Entrance {
    /// `None` when it is over.
    session: Mutex<Option<Session>>,
    /// For what cannot be done at once.
    commands: Sender<Command>,
    end: Notify,
    version: Arc<OnceLock<String>>,
}

/// Makes a session and the link to whoever serves it. It ends with [`Handle::run`].
pub(in super::super) fn open(options: Arc<Options>, manner: Manner, stage: watch::Receiver<Stage>) -> (Handle, Link) {
    let (commands, received) = channel(MAILBOX);
    let version = Arc::new(OnceLock::new());
    let entrance = Entrance { session: Mutex::default(), commands, end: Notify::new(), version: version.clone() };
    let entrance = Arc::new(entrance);
    let weak = Arc::downgrade(&entrance);
    let (link, port) = Link::pair();
    port.rx.open_shortcut(Box::new(move |packet| match weak.upgrade() {
        Some(entrance) => entrance.pass(packet),
        None => Some(packet),
    }));
    *entrance.lock() = Some(Session::new(options, manner, stage, received, port, version));
    (Handle(entrance), link)
}

impl Handle {
    /// The version that was negotiated, once it was.
    pub(in super::super) fn version(&self) -> Option<&str> {
        self.0.version.get().map(String::as_str)
    }

    /// Hands the messages of a POST over whole: once they are taken, a client that goes away takes nothing back.
    pub(in super::super) async fn post(&self, post: Post) -> Answer {
        let (reply, answer) = oneshot::channel();
        match self.0.post_at_once(post, reply) {
            Ok(()) => answer.await.unwrap_or_else(|_| gone()),
            Err((post, reply)) => self.ask(Command::Post(Box::new(post), reply), answer).await,
        }
    }

    /// Listens to what belongs to no request, or goes on with the stream of that event.
    pub(in super::super) async fn listen(&self, after: Option<super::EventId>) -> Answer {
        let (reply, answer) = oneshot::channel();
        self.ask(Command::Listen { after, reply }, answer).await
    }

    async fn ask(&self, command: Command, answer: oneshot::Receiver<Answer>) -> Answer {
        let taken = self.0.commands.send(command).await;
        match (taken, answer.await) {
            (Ok(()), Ok(answer)) => answer,
            _ => gone(),
        }
    }

    pub(in super::super) fn end(&self) {
        self.0.end.notify_one();
    }

    /// How idle the session is, unless its client is connected or somebody is at work here.
    pub(in super::super) fn idle(&self) -> Option<Idle> {
        self.0.session.try_lock().ok()?.as_ref()?.idle()
    }

    /// Ends the session in favour of another.
    pub(in super::super) fn evict(&self) {
        if let Some(session) = &mut *self.0.lock() {
            session.over = Some("the session was ended to make room for another");
            session.nudge();
        }
    }

    /// Serves the session until it is over.
    pub(in super::super) async fn run(self) {
        let Some(mut stage) = self.0.lock().as_ref().map(Session::stage) else { return };
        let why = {
            let mut signal = self.signal(stage.clone());
            loop {
                tokio::select! {
                    biased;
                    ended = &mut signal => {
                        if let Some(session) = &mut *self.0.lock() {
                            session.on_signal(ended, &mut stage);
                        }
                        signal = self.signal(stage.clone());
                    }
                    why = poll_fn(|cx| match &mut *self.0.lock() {
                        Some(session) => session.poll(cx),
                        None => Poll::Ready("the session is over"),
                    }) => break why,
                }
            }
        };
        let session = self.0.lock().take();
        session.into_iter().for_each(|session| session.finish(why));
    }

    /// What comes a few times at most, and is not to be looked for with every message: the client's end (`true`), or a new
    /// stage.
    fn signal(&self, mut stage: watch::Receiver<Stage>) -> Rarely<Pin<Box<impl Future<Output = bool> + use<>>>> {
        let entrance = self.0.clone();
        Rarely::new(Box::pin(async move {
            tokio::select! {
                () = entrance.end.notified() => true,
                _ = stage.changed() => false,
            }
        }))
    }
}

impl Entrance {
    fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        // What a panic may leave behind concerns this one session, which still has to come to its end.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives it back if others must be served before, or the session is over.
    fn post_at_once(&self, post: Post, reply: oneshot::Sender<Answer>) -> Result<(), (Post, oneshot::Sender<Answer>)> {
        match self.lock().as_mut().filter(|session| session.takes_posts()) {
            Some(session) => {
                session.post(post, reply);
                session.nudge();
                Ok(())
            }
            None => Err((post, reply)),
        }
    }

    /// Takes what the server sends, unless something waits before it or somebody is at work here.
    fn pass(&self, packet: Packet) -> Option<Packet> {
        let mut session = match self.session.try_lock() {
            Ok(session) => session,
            Err(TryLockError::Poisoned(session)) => session.into_inner(),
            Err(TryLockError::WouldBlock) => return Some(packet),
        };
        match session.as_mut().filter(|session| session.takes_packets()) {
            Some(session) => {
                session.pass(packet);
                session.nudge();
                None
            }
            None => Some(packet),
        }
    }
}

fn gone() -> Answer {
    Answer::Refused(Refusal::session_not_found())
}
