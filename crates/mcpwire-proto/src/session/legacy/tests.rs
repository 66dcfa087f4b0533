//! The conversation under any interleaving of answers, failures and time. Single stories are told on the built binary,
//! in the tests of the `mcpwire` crate.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::Failure;

/// Both ends of a conversation, in virtual time.
struct Rig {
    session: Session,
    now: Instant,
    /// Messages that the server has got and not dealt with.
    at_server: Vec<Message>,
    /// What the client was sent.
    at_client: Vec<Message>,
    /// How often each request may have been executed.
    executed: HashMap<Id, u32>,
}

impl Rig {
    #[allow(clippy::disallowed_methods, reason = "any instant will do to start from")]
    fn new(config: Config) -> Rig {
        let (at_server, at_client, executed) = (Vec::new(), Vec::new(), HashMap::new());
        Rig { session: Session::new(config), now: Instant::now(), at_server, at_client, executed }
    }

    /// A client that has done the handshake.
    fn open() -> Rig {
        let mut rig = Rig::new(Config { timeout: Some(Duration::from_secs(60)), ..Config::default() });
        rig.client(Message::request(&Id::from("init"), method::INITIALIZE, Some("{}")));
        rig.answer(0);
        rig.client(Message::notification(method::INITIALIZED, None));
        rig
    }

    fn pump(&mut self) {
        while let Some(effect) = self.session.poll_effect() {
            match effect {
                Effect::ToClient(packet) => self.at_client.push(packet.message),
                Effect::ToServer(packet) if packet.message.is_request() => self.at_server.push(packet.message),
                Effect::ToServer(_) => {}
            }
        }
    }

    fn client(&mut self, message: Message) {
        self.session.handle_client(message, self.now);
        self.pump();
    }

    fn request(&mut self, id: u64, method: &str) {
        self.client(Message::request(&Id::from(id), method, None));
    }

    fn take(&mut self, nth: usize) -> Option<Message> {
        (!self.at_server.is_empty()).then(|| self.at_server.remove(nth % self.at_server.len()))
    }

    fn executes(&mut self, message: &Message) {
        *self.executed.entry(message.id().unwrap().clone()).or_default() += 1;
    }

    /// The server answers one of the requests it has.
    fn answer(&mut self, nth: usize) {
        let Some(message) = self.take(nth) else { return };
        self.executes(&message);
        let result = Message::result(message.id().unwrap(), r#"{"protocolVersion":"2025-11-25"}"#);
        for _ in 0..2 {
            // Said twice, it still counts once.
            self.session.handle_server(result.clone().into(), self.now);
        }
        self.pump();
    }

    fn fail(&mut self, nth: usize, failure: Failure) {
        let Some(message) = self.take(nth) else { return };
        if matches!(failure, Failure::Interrupted(_)) {
            self.executes(&message);
        }
        self.session.handle_failed(message, failure, self.now);
        self.pump();
    }

    /// The server dies with all it has.
    fn die(&mut self) {
        for message in std::mem::take(&mut self.at_server) {
            self.executes(&message);
        }
        self.session.handle_server_gone("it died", self.now);
        self.pump();
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        self.session.handle_timeout(self.now);
        self.pump();
    }

    fn answers_to(&self, id: &Id) -> usize {
        self.at_client.iter().filter(|message| message.is_response() && message.id() == Some(id)).count()
    }
}

#[derive(Debug, Clone)]
enum Act {
    Request(&'static str),
    Cancel(u64),
    Initialize,
    Ask,
    Answer(usize),
    Fail(usize, Failure),
    LoseSession,
    Die,
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let failure = prop_oneof![
        Just(Failure::Unreachable("refused".into())),
        Just(Failure::SessionLost("404".into())),
        Just(Failure::Interrupted("cut".into())),
        Just(Failure::refused_by_server(r#"{"code":-32603,"message":"HTTP 500"}"#)),
    ];
    prop_oneof![
        6 => proptest::sample::select(vec![method::TOOLS_CALL, method::TOOLS_LIST, method::LOGGING_SET_LEVEL, "vendor/x"])
            .prop_map(Act::Request),
        1 => (0u64..40).prop_map(Act::Cancel),
        1 => Just(Act::Initialize),
        1 => Just(Act::Ask),
        6 => (0usize..8).prop_map(Act::Answer),
        6 => (0usize..8, failure).prop_map(|(nth, failure)| Act::Fail(nth, failure)),
        1 => Just(Act::LoseSession),
        1 => Just(Act::Die),
        3 => (1u64..30_000).prop_map(Act::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_request_is_answered_exactly_once_and_nothing_runs_twice(acts in proptest::collection::vec(act(), 0..80)) {
        let mut rig = Rig::open();
        let mut asked: Vec<(Id, bool)> = Vec::new();
        for act in acts {
            match act {
                Act::Request(method) => {
                    let id = Id::from(asked.len() as u64);
                    asked.push((id.clone(), false));
                    rig.client(Message::request(&id, method, None));
                }
                Act::Initialize => {
                    let id = Id::from(asked.len() as u64);
                    asked.push((id.clone(), false));
                    rig.client(Message::request(&id, method::INITIALIZE, Some("{}")));
                }
                Act::Cancel(nth) => {
                    let params = format!(r#"{{"requestId":{nth}}}"#);
                    if let Some((id, cancelled)) = asked.get_mut(nth as usize) {
                        *cancelled |= rig.answers_to(id) == 0;
                    }
                    rig.client(Message::notification(method::CANCELLED, Some(&params)));
                }
                Act::Ask => {
                    let message = Message::request(&Id::from(0), method::ROOTS_LIST, None);
                    rig.session.handle_server(message.into(), rig.now);
                    rig.pump();
                }
                Act::Answer(nth) => rig.answer(nth),
                Act::Fail(nth, failure) => rig.fail(nth, failure),
                Act::LoseSession => {
                    rig.session.handle_session_lost("stream", rig.now);
                    rig.pump();
                }
                Act::Die => rig.die(),
                Act::Wait(ms) => rig.advance(Duration::from_millis(ms)),
            }
        }
        rig.session.abandon("the end");
        rig.pump();
        prop_assert_eq!(rig.session.owed_to_client(), 0);
        for (id, cancelled) in &asked {
            let answers = rig.answers_to(id);
            prop_assert!(answers == 1 || (*cancelled && answers == 0), "request {} has {} answers", id, answers);
        }
        let responses = rig.at_client.iter().filter(|message| message.is_response()).count();
        prop_assert!(responses <= asked.len() + 1, "somebody else's answer reached the client");
        for (id, times) in &rig.executed {
            let once = asked.iter().any(|(asked, _)| asked == id);
            prop_assert!(*times <= 2 && (*times == 1 || once), "{} may have been executed {} times", id, times);
        }
    }

    #[test]
    fn what_may_have_run_is_not_sent_again(acts in proptest::collection::vec(act(), 0..80)) {
        let mut rig = Rig::open();
        let mut next = 0;
        for act in acts {
            match act {
                Act::Request(_) => {
                    rig.request(next, method::TOOLS_CALL);
                    next += 1;
                }
                Act::Answer(nth) => rig.answer(nth),
                Act::Fail(nth, failure) => rig.fail(nth, failure),
                Act::Wait(ms) => rig.advance(Duration::from_millis(ms)),
                Act::LoseSession => rig.session.handle_session_lost("stream", rig.now),
                Act::Die => rig.die(),
                _ => {}
            }
        }
        for (id, times) in rig.executed.iter().filter(|(id, _)| !id.as_json().starts_with('"')) {
            prop_assert_eq!(*times, 1, "call {} may have been executed more than once", id);
        }
    }
}

#[test]
fn nothing_waits_for_an_unreachable_server_longer_than_it_should() {
    let mut rig = Rig::open();
    rig.request(1, method::TOOLS_CALL);
    let started = rig.now;
    while rig.answers_to(&Id::from(1)) == 0 {
        rig.fail(0, Failure::Unreachable("refused".into()));
        let at = rig.session.poll_timeout().expect("something is planned");
        rig.advance(at.saturating_duration_since(rig.now));
        assert!(rig.now - started <= Config::default().wait, "given up too late");
    }
    assert_eq!(rig.now - started, Config::default().wait);
    // It goes on trying nothing, and the next request is sent at once or after the planned wait.
    rig.request(2, method::TOOLS_CALL);
    rig.advance(Duration::from_secs(5));
    rig.answer(0);
    assert_eq!(rig.answers_to(&Id::from(2)), 1);
}

/// Each try to connect takes longer than anybody wants to wait.
#[test]
fn the_time_that_a_try_to_connect_takes_counts_as_waiting() {
    let mut rig = Rig::open();
    rig.request(1, method::TOOLS_CALL);
    rig.advance(Config::default().wait);
    rig.fail(0, Failure::NotConnected("it does not answer".into()));
    assert_eq!(rig.answers_to(&Id::from(1)), 1, "given up with the try that took all the time");
    // A server that was at work on it all the time and then says that it did not do it is tried again.
    rig.request(2, method::TOOLS_CALL);
    rig.advance(Config::default().wait);
    rig.fail(0, Failure::Unreachable("HTTP 503".into()));
    assert_eq!(rig.answers_to(&Id::from(2)), 0);
    rig.advance(Duration::from_secs(1));
    rig.answer(0);
    assert_eq!(rig.answers_to(&Id::from(2)), 1);
}

#[test]
fn tries_to_connect_that_take_their_time_end_with_the_wait() {
    let mut rig = Rig::open();
    rig.request(1, method::TOOLS_CALL);
    let started = rig.now;
    rig.advance(Config::default().wait / 2);
    while rig.answers_to(&Id::from(1)) == 0 {
        rig.fail(0, Failure::NotConnected("it does not answer".into()));
        let at = rig.session.poll_timeout().expect("something is planned");
        rig.advance(at.saturating_duration_since(rig.now));
    }
    assert_eq!(rig.now - started, Config::default().wait);
}

#[test]
fn a_request_cancelled_before_it_was_sent_never_is() {
    let mut rig = Rig::open();
    rig.request(1, method::TOOLS_CALL);
    rig.fail(0, Failure::Unreachable("refused".into()));
    rig.client(Message::notification(method::CANCELLED, Some(r#"{"requestId":1}"#)));
    rig.advance(Duration::from_secs(60));
    assert!(rig.at_server.is_empty() && rig.answers_to(&Id::from(1)) == 0);
}

#[test]
fn too_many_requests_are_refused_one_by_one() {
    let mut rig = Rig::new(Config { max_in_flight: 2, ..Config::default() });
    for id in 0..3 {
        rig.request(id, method::TOOLS_CALL);
    }
    assert_eq!(rig.at_server.len(), 2);
    assert_eq!(rig.answers_to(&Id::from(2)), 1);
    rig.answer(0);
    rig.request(3, method::TOOLS_CALL);
    assert_eq!(rig.at_server.len(), 2);
}

#[test]
fn late_failures_of_an_earlier_session_do_not_end_the_present_one() {
    let mut rig = Rig::open();
    rig.request(1, method::TOOLS_CALL);
    rig.request(2, method::TOOLS_CALL);
    rig.fail(0, Failure::SessionLost("404".into()));
    assert!(rig.at_server[1].is(method::INITIALIZE));
    rig.answer(1);
    assert_eq!(rig.at_server.len(), 2, "the second request, and the first one again");
    rig.fail(0, Failure::SessionLost("404".into()));
    assert!(rig.at_server.iter().all(|message| message.is(method::TOOLS_CALL)), "no second handshake");
    rig.answer(0);
    rig.answer(0);
    assert_eq!((rig.answers_to(&Id::from(1)), rig.answers_to(&Id::from(2))), (1, 1));
}

#[test]
fn a_server_that_dies_whenever_it_has_started_is_restarted_ever_more_slowly() {
    let mut rig = Rig::open();
    let started = rig.now;
    for _ in 0..10 {
        rig.die();
        let at = rig.session.poll_timeout().expect("a new try is planned");
        rig.advance(at - rig.now);
        assert!(rig.at_server[0].is(method::INITIALIZE));
        rig.answer(0);
    }
    assert!(rig.now - started > Duration::from_secs(10), "10 restarts took {:?} only", rig.now - started);
}

#[test]
fn a_call_that_never_reached_a_dead_server_goes_to_the_next_one_after_its_handshake() {
    let mut rig = Rig::open();
    rig.request(1, method::TOOLS_CALL);
    rig.fail(0, Failure::Unreachable("it died".into()));
    rig.die();
    rig.advance(Duration::from_secs(1));
    assert!(rig.at_server.len() == 1 && rig.at_server[0].is(method::INITIALIZE), "{:?}", rig.at_server);
    rig.answer(0);
    rig.answer(0);
    assert_eq!(rig.answers_to(&Id::from(1)), 1);
}

#[test]
fn a_server_that_dies_at_the_handshake_is_an_error_and_the_next_request_tries_again() {
    let mut rig = Rig::new(Config::default());
    rig.client(Message::request(&Id::from(0), method::INITIALIZE, Some("{}")));
    rig.die();
    rig.die();
    assert_eq!(rig.answers_to(&Id::from(0)), 1);
    rig.advance(Duration::from_secs(60));
    assert!(rig.at_server.is_empty(), "nobody has asked");
    rig.request(1, method::TOOLS_LIST);
    assert!(rig.at_server.len() == 1 && rig.at_server[0].is(method::INITIALIZE), "{:?}", rig.at_server);
    rig.answer(0);
    rig.answer(0);
    assert_eq!(rig.answers_to(&Id::from(1)), 1);
}

#[test]
fn a_handshake_that_fails_for_good_leaves_nothing_waiting() {
    for cancelled in [false, true] {
        let mut rig = Rig::new(Config::default());
        rig.request(0, method::INITIALIZE);
        rig.request(1, method::TOOLS_CALL);
        if cancelled {
            rig.client(Message::notification(method::CANCELLED, Some(r#"{"requestId":0}"#)));
        }
        rig.fail(0, Failure::Interrupted("cut".into()));
        rig.fail(0, Failure::Interrupted("cut".into()));
        assert_eq!((rig.answers_to(&Id::from(0)), rig.answers_to(&Id::from(1))), (1, 1));
        // The next request tries again.
        rig.request(2, method::TOOLS_CALL);
        rig.answer(0);
        rig.answer(0);
        assert_eq!(rig.answers_to(&Id::from(2)), 1);
    }
}

#[test]
fn a_server_that_forgets_every_session_is_asked_ever_more_slowly() {
    let mut rig = Rig::open();
    let started = rig.now;
    for _ in 0..10 {
        rig.session.handle_session_lost("404", rig.now);
        rig.pump();
        if rig.at_server.is_empty() {
            let at = rig.session.poll_timeout().expect("a new try is planned");
            rig.advance(at - rig.now);
        }
        rig.answer(0);
    }
    assert!(rig.now - started > Duration::from_secs(10), "10 sessions took {:?} only", rig.now - started);
}

#[test]
fn a_late_failure_of_what_the_servers_end_has_covered_changes_nothing() {
    let mut rig = Rig::open();
    rig.request(1, method::TOOLS_LIST);
    let sent = rig.at_server[0].clone();
    rig.die();
    for failure in [Failure::SessionLost("no stream".into()), Failure::Interrupted("cut".into())] {
        rig.session.handle_failed(sent.clone(), failure, rig.now);
    }
    rig.advance(Duration::from_secs(1));
    assert!(rig.at_server.len() == 1 && rig.at_server[0].is(method::INITIALIZE));
    rig.answer(0);
    assert_eq!(rig.at_server.len(), 1, "the list is repeated once");
    rig.answer(0);
    assert_eq!(rig.answers_to(&Id::from(1)), 1);
}

#[test]
fn a_server_that_dies_while_it_is_waited_for_gets_a_handshake_first() {
    let mut rig = Rig::open();
    rig.request(1, method::TOOLS_CALL);
    rig.fail(0, Failure::Unreachable("refused".into()));
    rig.die();
    rig.advance(Duration::from_secs(1));
    assert!(rig.at_server.len() == 1 && rig.at_server[0].is(method::INITIALIZE));
    rig.answer(0);
    assert!(rig.at_server[0].is(method::TOOLS_CALL));
}

#[test]
fn cancelled_requests_that_are_never_answered_leave_nothing_behind() {
    let mut rig = Rig::new(Config { max_in_flight: 2, ..Config::default() });
    for id in 0..10 {
        rig.request(id, method::TOOLS_CALL);
        let params = format!(r#"{{"requestId":{id}}}"#);
        rig.client(Message::notification(method::CANCELLED, Some(&params)));
    }
    let calls = rig.at_server.iter().filter(|message| message.is(method::TOOLS_CALL)).count();
    assert_eq!((calls, rig.at_client.len()), (10, 0));
    // An answer that comes nevertheless is not passed on.
    rig.answer(0);
    assert_eq!(rig.at_client.len(), 0);
}
