//! Tests of the envelope: what passes, what is refused and how.

use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Result<Message, Rejected> {
    Message::parse(Bytes::copy_from_slice(text.as_bytes()))
}

fn ok(text: &str) -> Message {
    parse(text).unwrap_or_else(|rejected| panic!("{text}: {rejected:?}"))
}

#[test]
fn each_kind_is_told_apart() {
    let id = || Id::from(1);
    assert_eq!(
        ok(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).kind(),
        &Kind::Request { id: id(), method: "ping".into() }
    );
    assert_eq!(ok(r#"{"jsonrpc":"2.0","method":"x/y"}"#).kind(), &Kind::Notification { method: "x/y".into() });
    assert_eq!(ok(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).kind(), &Kind::Result { id: id() });
    assert_eq!(ok(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#).kind(), &Kind::Error { id: Some(id()) });
    assert_eq!(ok(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#).kind(), &Kind::Error { id: None });
    assert_eq!(ok(r#"{"jsonrpc":"2.0","error":{}}"#).kind(), &Kind::Error { id: None });
}

#[test]
fn bytes_pass_as_they_came() {
    let text = r#"{"x-new":[1],"params":{"b":1.10,"a":123456789012345678901234567890,"é":"\u00e9"},"method":"tools/call","id":"a","jsonrpc":"2.0"}"#;
    let message = ok(text);
    assert_eq!(message.as_bytes(), text);
    assert_eq!(message.payload(), Some(r#"{"b":1.10,"a":123456789012345678901234567890,"é":"\u00e9"}"#));
}

#[test]
fn white_space_around_and_line_breaks_inside_go() {
    let message = ok("  {\"jsonrpc\": \"2.0\",\n \"id\": 1,\r\n\t\"result\": {\"a\": 1}}  ");
    assert_eq!(message.as_bytes(), r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#);
    assert_eq!(message.payload(), Some(r#"{"a":1}"#));
    let message = ok(" {\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": 5} ");
    assert_eq!(message.payload(), Some("5"));
}

#[test]
fn another_id_changes_nothing_else() {
    let message = ok(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":1}}"#);
    let other = message.with_id(&Id::from("long one"));
    assert_eq!(other.as_bytes(), r#"{"jsonrpc":"2.0","id":"long one","method":"m","params":{"id":1}}"#);
    assert_eq!(other.payload(), Some(r#"{"id":1}"#));
    assert_eq!(other.with_id(&Id::from(1)).as_bytes(), message.as_bytes());
    let behind = ok(r#"{"jsonrpc":"2.0","result":{"x":2},"id":10}"#).with_id(&Id::from(7));
    assert_eq!((behind.payload(), behind.id()), (Some(r#"{"x":2}"#), Some(&Id::from(7))));
}

#[test]
fn what_is_no_message_has_a_defined_answer() {
    let bomb = "[".repeat(100_000);
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{bomb}{}}}"#, "]".repeat(100_000));
    ok(&deep); // nesting is the receiver's business; it costs us no stack
    for (text, code, id, says) in [
        ("", -32700, None, "EOF"),
        ("{", -32700, None, "EOF"),
        ("hello", -32700, None, "expected value"),
        (&bomb, -32700, None, "EOF"),
        (r#"["2.0",1,"ping"]"#, -32600, None, "came an array"),
        ("null", -32600, None, "came null"),
        ("7", -32600, None, "came a number"),
        ("-7", -32600, None, "came a number"),
        ("true", -32600, None, "came a boolean"),
        ("\"x\"", -32600, None, "came a string"),
        ("[]", -32600, None, "came an array"),
        ("{}", -32600, None, "jsonrpc"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, -32600, Some(Id::from(1)), r#"came "1.0""#),
        (r#"{"id":1,"method":"m"}"#, -32600, Some(Id::from(1)), "came none"),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, Some(Id::from(1)), "came none"),
        (r#"{"id":"a"}"#, -32600, Some(Id::from("a")), "came none"),
        (r#"{"jsonrpc":"2.0","id":1,"params":{}}"#, -32600, Some(Id::from(1)), "came none"),
        (r#"{"jsonrpc":"2.0","id":null}"#, -32600, None, "came none"),
        (r#"{"id":1,"result":{}}"#, -32600, None, "came none"),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, Some(Id::from(1)), "string as method"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, -32600, None, "came null"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, -32600, None, "came {}"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, -32600, None, "came true"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#, -32600, Some(Id::from(1)), "several"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, -32600, None, "several"),
        (r#"{"jsonrpc":"2.0","result":1}"#, -32600, None, "id of a request"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, -32600, None, "duplicate field `id`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}"#, -32600, None, "duplicate field `method`"),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\tb\"}", -32700, None, "control character"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#, -32700, None, "trailing"),
    ] {
        let rejected = parse(text).expect_err(text);
        let answer = rejected.fault.to_message(rejected.id.as_ref());
        assert_eq!((rejected.fault.code(), &rejected.id), (code, &id), "{text:.80}: {rejected:?}");
        assert!(rejected.fault.to_string().contains(says), "{text:.80}: {}", rejected.fault);
        assert!(answer.is_response());
    }
}

#[test]
fn invalid_utf8_is_a_parse_error() {
    let rejected = Message::parse(Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}")).unwrap_err();
    assert_eq!(rejected.fault.code(), -32700);
    assert!(rejected.fault.to_string().contains("byte 27"), "{}", rejected.fault);
}

#[test]
fn messages_of_our_own_are_well_formed() {
    let id = Id::from("a\"b");
    assert_eq!(
        Message::request(&id, "m", Some("{}")).as_bytes(),
        r#"{"jsonrpc":"2.0","id":"a\"b","method":"m","params":{}}"#
    );
    assert_eq!(
        Message::error(None, -32700, "say \"what\"").as_bytes(),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"say \"what\""}}"#
    );
    assert_eq!(Message::result(&id, "{}").payload(), Some("{}"));
    assert_eq!(Message::notification("n", None).as_bytes(), r#"{"jsonrpc":"2.0","method":"n"}"#);
}

#[test]
fn debug_output_carries_no_payload() {
    let message = ok(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"password":"hunter2"}}"#);
    assert!(!format!("{message:?} {message}").contains("hunter2"));
}

#[test]
fn batches_are_split_into_slices() {
    let text = Bytes::from_static(br#" [ {"a":1}, 5 ,"x"]"#);
    assert_eq!(split_batch(&text).unwrap(), [r#"{"a":1}"#, "5", "\"x\""]);
    assert_eq!(split_batch(&Bytes::from_static(b"{}")), None);
    assert_eq!(split_batch(&Bytes::from_static(b"[1")), None);
    assert_eq!(split_batch(&Bytes::from_static(b"[]")), Some(vec![]));
    let of = |count: usize| Bytes::from(format!("[{}]", vec!["1"; count].join(",")));
    assert_eq!(split_batch(&of(MOST_IN_BATCH)).map(|parts| parts.len()), Some(MOST_IN_BATCH));
    assert_eq!(split_batch(&of(MOST_IN_BATCH + 1)), None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = Message::parse(bytes.into()) {
            prop_assert!(!message.as_bytes().contains(&b'\n'));
        }
    }

    #[test]
    fn broken_messages_never_panic(cut in 0usize..90, with in any::<u8>()) {
        let mut text = br#"{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"x","arguments":{}}}"#.to_vec();
        let at = cut.min(text.len() - 1);
        text[at] = with;
        let _ = Message::parse(text.clone().into());
        text.truncate(at);
        prop_assert!(Message::parse(text.into()).is_err());
    }
}
