//! Two clients on one server: what each of them sees, and what the server does.

use super::*;

const A: Member = Member(1);
const B: Member = Member(2);

struct Rig {
    share: Share,
    at_server: Vec<Message>,
}

impl Rig {
    /// Two clients that have done their handshake.
    fn open() -> Rig {
        let mut rig = Rig { share: Share::default(), at_server: Vec::new() };
        rig.share.handle_join(A);
        rig.share.handle_join(B);
        rig.client(A, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
        rig.client(B, r#"{"jsonrpc":"2.0","id":"zero","method":"initialize","params":{}}"#);
        assert_eq!(rig.at_server.len(), 1, "one handshake is enough");
        let answers = rig.server(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"x"}}"#);
        assert_eq!(answers.len(), 2);
        rig.client(A, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        rig.client(B, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(rig.at_server.len(), 2);
        rig.at_server.clear();
        rig
    }

    fn pump(&mut self) -> Vec<(Member, String)> {
        let mut told = Vec::new();
        while let Some(effect) = self.share.poll_effect() {
            match effect {
                Effect::ToServer(message) => self.at_server.push(message),
                Effect::Replace(_) => self.at_server.clear(),
                Effect::ToClient(member, packet) => {
                    told.push((member, String::from_utf8_lossy(packet.message.as_bytes()).into_owned()));
                }
            }
        }
        told
    }

    fn client(&mut self, member: Member, text: &str) -> Vec<(Member, String)> {
        self.share.handle_client(member, Message::parse(text.to_owned().into()).unwrap());
        self.pump()
    }

    fn server(&mut self, text: &str) -> Vec<(Member, String)> {
        self.share.handle_server(Message::parse(text.to_owned().into()).unwrap());
        self.pump()
    }

    fn last_id(&self) -> String {
        self.at_server.last().unwrap().id().unwrap().to_string()
    }
}

#[test]
fn the_same_id_and_token_of_two_clients_stay_apart() {
    let mut rig = Rig::open();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"progressToken":7}}}"#;
    rig.client(A, call);
    let a = rig.last_id();
    rig.client(B, call);
    let b = rig.last_id();
    assert_ne!(a, b);
    let progress = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id}}}}}"#)
    };
    assert_eq!(rig.server(&progress(&b)), [(B, progress("7"))]);
    assert_eq!(rig.server(&progress(&a)), [(A, progress("7"))]);
    let result = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    assert_eq!(rig.server(&result(&b)), [(B, result("7"))]);
    assert_eq!(rig.server(&result(&b)), [], "an answer counts once");
    assert_eq!(rig.server(&progress(&b)), [], "no progress after the answer");
    assert_eq!(rig.server(&result(&a)), [(A, result("7"))]);
}

#[test]
fn a_cancellation_reaches_the_right_request() {
    let mut rig = Rig::open();
    rig.client(A, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    rig.client(B, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    let b = rig.last_id();
    rig.client(B, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    let sent = rig.at_server.last().unwrap();
    assert_eq!(meta::cancelled_request(sent).unwrap().to_string(), b);
}

#[test]
fn list_changes_are_for_all_and_updates_for_those_who_subscribed() {
    let mut rig = Rig::open();
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert_eq!(rig.server(changed), [(A, changed.to_owned()), (B, changed.to_owned())]);
    let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"r"}}"#;
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"r"}}"#;
    assert_eq!(rig.server(updated), []);
    rig.client(A, subscribe);
    assert_eq!(rig.server(updated), [(A, updated.to_owned())]);
    assert_eq!(rig.client(B, subscribe).len(), 1, "the server watches already");
    assert_eq!(rig.server(updated).len(), 2);
    let before = rig.at_server.len();
    rig.share.handle_leave(A);
    rig.pump();
    assert!(rig.at_server[before..].iter().all(|sent| !sent.is(method::RESOURCES_UNSUBSCRIBE)), "B still watches");
    rig.share.handle_leave(B);
    rig.pump();
    assert!(rig.at_server.last().unwrap().is(method::RESOURCES_UNSUBSCRIBE));
}

#[test]
fn a_question_goes_to_the_one_client_at_work_and_its_answer_back() {
    let mut rig = Rig::open();
    let ask = r#"{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage"}"#;
    rig.client(A, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    assert_eq!(rig.server(ask), [(A, ask.to_owned())]);
    let answer = r#"{"jsonrpc":"2.0","id":5,"result":{}}"#;
    rig.client(B, answer);
    assert!(!rig.at_server.last().unwrap().is_response(), "B was not asked");
    rig.client(A, answer);
    assert_eq!(rig.at_server.last().unwrap().as_bytes(), answer);
    rig.client(B, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    assert_eq!(rig.server(ask), [], "it may be either's");
    assert!(rig.at_server.last().unwrap().is_response(), "the server is told");
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    assert_eq!(rig.server(log), [], "it may be either's");
}

#[test]
fn a_client_that_leaves_takes_its_requests_along() {
    let mut rig = Rig::open();
    rig.client(A, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    let a = rig.last_id();
    rig.share.handle_leave(A);
    rig.pump();
    assert!(rig.at_server.last().unwrap().is(method::CANCELLED));
    assert_eq!(rig.server(&format!(r#"{{"jsonrpc":"2.0","id":{a},"result":{{}}}}"#)), []);
}

#[test]
fn a_new_server_gets_a_new_handshake() {
    let mut rig = Rig::open();
    rig.client(A, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    rig.share.handle_server_gone();
    assert_eq!(rig.share.members().count(), 2);
    rig.client(B, r#"{"jsonrpc":"2.0","id":8,"method":"initialize","params":{}}"#);
    assert!(rig.at_server.last().unwrap().is(method::INITIALIZE));
    let id = rig.last_id();
    rig.client(A, r#"{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}"#);
    assert_eq!(rig.server(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).len(), 2);
}

#[test]
fn a_cancelled_request_keeps_nobody_busy() {
    let mut rig = Rig::open();
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    rig.client(A, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    rig.client(B, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    assert_eq!(rig.server(log), [], "it may be either's");
    rig.client(A, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    assert_eq!(rig.server(log), [(B, log.to_owned())]);
}

#[test]
fn a_lost_session_is_opened_anew_and_what_is_under_way_may_still_be_answered() {
    let mut rig = Rig::open();
    rig.client(A, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    let under_way = rig.last_id();
    rig.client(A, r#"{"jsonrpc":"2.0","id":8,"method":"tools/call"}"#);
    let refused = rig.at_server.last().unwrap().clone();
    assert!(rig.share.is_present(&refused));
    assert_eq!(rig.share.handle_failed(&refused).len(), 1);
    assert!(rig.share.handle_session_lost());
    assert!(!rig.share.handle_session_lost(), "they know already");
    rig.client(A, r#"{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}"#);
    assert!(rig.at_server.last().unwrap().is(method::INITIALIZE), "the server is asked for a new session");
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{under_way},"result":{{}}}}"#);
    assert_eq!(rig.server(&answer), [(A, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#.to_owned())]);
}

#[test]
fn a_late_failure_of_an_earlier_session_does_not_end_the_present_one() {
    let mut rig = Rig::open();
    rig.client(A, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    let late = rig.at_server.last().unwrap().clone();
    assert!(rig.share.handle_session_lost());
    assert!(!rig.share.is_present(&late));
    assert_eq!(rig.share.handle_failed(&late).len(), 1);
    assert!(!rig.share.is_present(&late), "it is on no books any more");
}

#[test]
fn an_answer_that_fails_takes_no_request_with_it() {
    let mut rig = Rig::open();
    rig.client(A, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#);
    let id = rig.last_id();
    let question = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#);
    assert_eq!(rig.server(&question).len(), 1);
    rig.client(A, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    let answer = rig.at_server.last().unwrap().clone();
    assert!(answer.is_response() && rig.share.handle_failed(&answer).is_empty());
    assert_eq!(rig.server(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).len(), 1);
}

#[test]
fn what_a_client_listens_for_reaches_it_under_its_own_name() {
    let mut rig = Rig::open();
    let key = meta::key::SUBSCRIPTION_ID;
    rig.client(A, r#"{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{}}"#);
    let first = rig.last_id();
    rig.client(B, r#"{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{}}"#);
    let second = rig.last_id();
    let changed = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"{key}":{id}}}}}}}"#
        )
    };
    assert_eq!(rig.server(&changed(&first)), [(A, changed("\"l\""))]);
    assert_eq!(rig.server(&changed(&second)), [(B, changed("\"l\""))]);
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    rig.client(A, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
    assert_eq!(rig.server(log), [(A, log.to_owned())], "listening keeps nobody busy");
    let ended = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"_meta":{{"{key}":{id}}}}}}}"#);
    assert_eq!(rig.server(&ended(&second)), [(B, ended("\"l\""))]);
}

#[test]
fn what_is_said_in_the_session_is_not_for_those_who_have_none() {
    const C: Member = Member(3);
    let mut rig = Rig::open();
    rig.share.handle_join(C);
    rig.client(C, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert_eq!(rig.server(changed), [(A, changed.to_owned()), (B, changed.to_owned())]);
    rig.client(A, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
    assert_eq!(rig.server(question), [(A, question.to_owned())], "a client without a session cannot be asked in one");
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

impl Rig {
    fn of_one_era() -> Rig {
        let mut rig = Rig { share: Share::of_one_era(), at_server: Vec::new() };
        rig.share.handle_join(A);
        rig.share.handle_join(B);
        rig
    }

    /// The server answers what it got last.
    fn reply(&mut self, reply: &str) -> usize {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},{reply}}}"#, self.last_id());
        self.server(&text).len()
    }

    fn methods(&self) -> Vec<String> {
        self.at_server.iter().filter_map(Message::method).map(ToString::to_string).collect()
    }
}

const ACCEPTS: &str = r#""result":{"protocolVersion":"2025-11-25","supportedVersions":["2026-07-28"]}"#;
const DECLINES: &str = r#""error":{"code":-32601,"message":"no"}"#;
const INVALID: &str = r#""error":{"code":-32602,"message":"no"}"#;

fn is_refused(told: &[(Member, String)], member: Member) -> bool {
    told.len() == 1 && told[0].0 == member && told[0].1.contains("-32601")
}

#[test]
fn a_server_that_has_accepted_one_opening_never_gets_the_other_and_neither_do_its_successors() {
    for (first, other) in [(INITIALIZE, DISCOVER), (DISCOVER, INITIALIZE)] {
        let mut rig = Rig::of_one_era();
        rig.client(A, first);
        assert_eq!(rig.reply(ACCEPTS), 1);
        for _ in 0..2 {
            let told = rig.client(B, other);
            assert!(is_refused(&told, B), "{told:?}");
            assert_eq!(rig.at_server.len(), 1, "{:?}", rig.methods());
            rig.share.handle_server_gone();
        }
    }
}

#[test]
fn an_opening_that_the_server_has_declined_leaves_it_to_the_other_era() {
    for (first, other) in [(INITIALIZE, DISCOVER), (DISCOVER, INITIALIZE)] {
        let mut rig = Rig::of_one_era();
        rig.client(A, first);
        assert_eq!(rig.reply(DECLINES), 1);
        assert_eq!(rig.client(B, other), []);
        assert_eq!(rig.at_server.len(), 2, "{:?}", rig.methods());
        assert_eq!(rig.reply(ACCEPTS), 1);
    }
}

#[test]
fn a_server_that_may_have_seen_a_question_is_replaced_before_it_gets_initialize() {
    let mut rig = Rig::of_one_era();
    rig.client(A, DISCOVER);
    rig.share.handle_client(B, Message::parse(INITIALIZE.into()).unwrap());
    let effects: Vec<Effect> = std::iter::from_fn(|| rig.share.poll_effect()).collect();
    let [Effect::Replace(by), Effect::ToServer(sent)] = &effects[..] else { panic!("{effects:?}") };
    assert!(*by == B && sent.is(method::INITIALIZE));
    rig.at_server = vec![sent.clone()];
    assert_eq!(rig.client(A, DISCOVER), [], "while initialize is under way");
    assert_eq!(rig.reply(ACCEPTS), 2, "the answer and a refusal");
    assert_eq!(rig.methods(), ["initialize"]);
}

#[test]
fn requests_that_stand_for_themselves_wait_for_the_answer_to_initialize() {
    let mut rig = Rig::of_one_era();
    rig.client(A, INITIALIZE);
    assert_eq!(rig.client(B, DISCOVER), []);
    assert_eq!(rig.client(B, &DISCOVER.replace(r#""id":1"#, r#""id":2"#)), []);
    rig.client(B, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert_eq!(rig.reply(DECLINES), 1);
    assert_eq!(rig.methods(), ["initialize", "server/discover"], "the one that was not cancelled");
    assert_eq!(rig.reply(ACCEPTS), 1);

    let mut rig = Rig::of_one_era();
    rig.client(A, INITIALIZE);
    assert_eq!(rig.client(B, DISCOVER), []);
    assert_eq!(rig.reply(INVALID), 1);
    assert_eq!(rig.methods(), ["server/discover"], "on a new server");
}

#[test]
fn an_initialize_with_invalid_params_does_not_decide_the_era_and_its_server_is_not_kept_for_the_other() {
    let mut rig = Rig::of_one_era();
    rig.client(A, INITIALIZE);
    assert_eq!(rig.reply(INVALID), 1);
    rig.client(B, DISCOVER);
    assert_eq!(rig.methods(), ["server/discover"], "a new server");
}

#[test]
fn a_server_that_dies_of_one_opening_is_tried_with_the_other() {
    let mut rig = Rig::of_one_era();
    rig.client(A, INITIALIZE);
    rig.share.handle_server_gone();
    assert_eq!(rig.client(B, DISCOVER), []);
    assert_eq!(rig.reply(ACCEPTS), 1);
}
