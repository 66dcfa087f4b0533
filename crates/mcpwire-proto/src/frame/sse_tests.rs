//! Tests of the event stream: every fixture is split at every byte.

use super::*;
use proptest::prelude::*;

#[derive(Debug, PartialEq)]
struct Seen {
    events: Vec<SseEvent>,
    last_event_id: Option<Bytes>,
    retry: Option<Duration>,
}

fn decode(chunks: &[&[u8]], limit: usize) -> Seen {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(event) = decoder.next_event() {
            events.push(event);
        }
    }
    Seen { events, last_event_id: decoder.last_event_id().cloned(), retry: decoder.retry() }
}

fn event(name: &str, data: &str) -> SseEvent {
    SseEvent::Event { name: Bytes::copy_from_slice(name.as_bytes()), data: Bytes::copy_from_slice(data.as_bytes()) }
}

/// Decodes the input split at every byte, and byte by byte; the outcome must always be the same.
fn check_limited(input: &[u8], limit: usize, expected: &[SseEvent]) -> Seen {
    let whole = decode(&[input], limit);
    assert_eq!(whole.events, expected);
    for at in 0..=input.len() {
        let (a, b) = input.split_at(at);
        assert_eq!(decode(&[a, b], limit), whole, "split at {at}");
    }
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(decode(&bytes, limit), whole, "byte by byte");
    whole
}

fn check(input: &str, expected: &[SseEvent]) -> Seen {
    check_limited(input.as_bytes(), 1000, expected)
}

#[test]
fn every_line_end_counts() {
    let expected = [event("", "a"), event("", "b")];
    check("data: a\n\ndata: b\n\n", &expected);
    check("data: a\r\rdata: b\r\r", &expected);
    check("data: a\r\n\r\ndata: b\r\n\r\n", &expected);
    check("data: a\r\n\ndata: b\n\r\n", &expected);
}

#[test]
fn the_space_behind_the_colon_is_optional_and_only_one_goes() {
    check("data:a\n\ndata: b\n\ndata:  c\n\n", &[event("", "a"), event("", "b"), event("", " c")]);
}

#[test]
fn data_lines_are_joined() {
    check("data: {\ndata:  \"a\": 1\ndata: }\n\n", &[event("", "{\n \"a\": 1\n}")]);
}

#[test]
fn names_comments_and_unknown_fields() {
    check(": hi\nevent: endpoint\nfoo: bar\nfoo\ndata: /m\n\ndata: x\n\n", &[event("endpoint", "/m"), event("", "x")]);
}

#[test]
fn an_event_without_data_is_none_but_its_id_and_retry_count() {
    let seen = check("id: 7\nretry: 1500\nevent: x\n\n", &[]);
    assert_eq!(seen.last_event_id.as_deref(), Some(&b"7"[..]));
    assert_eq!(seen.retry, Some(Duration::from_millis(1500)));
}

#[test]
fn a_priming_event_has_empty_data() {
    let seen = check("id: 7\ndata:\n\n", &[event("", "")]);
    assert_eq!(seen.last_event_id.as_deref(), Some(&b"7"[..]));
}

#[test]
fn a_bare_field_name_is_a_field_with_an_empty_value() {
    let seen = check("id: 7\n\nid\ndata\n\n", &[event("", "")]);
    assert_eq!(seen.last_event_id.as_deref(), Some(&b""[..]));
}

#[test]
fn bad_retry_and_ids_with_nul_are_ignored() {
    let seen = check("retry: 10\nretry: 1x\nretry:\nid: 1\nid: a\0b\n\n", &[]);
    assert_eq!(seen.retry, Some(Duration::from_millis(10)));
    assert_eq!(seen.last_event_id.as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_byte_order_mark_is_skipped_once() {
    check("\u{feff}data: a\n\n", &[event("", "a")]);
    check("\u{feff}\u{feff}data: a\n\n", &[]);
}

#[test]
fn an_event_that_was_not_ended_is_dropped() {
    check("data: a\n\ndata: b\n", &[event("", "a")]);
    check("data: a\n\ndata: b", &[event("", "a")]);
}

#[test]
fn the_id_of_an_event_that_was_cut_is_not_committed() {
    let events = [
        ("id: 1\ndata:\n\n", "1"),
        ("id: 2\ndata: a\ndata: b\n\n", "2"),
        (": idle\n\n", "2"),
        ("id: 3\n\n", "3"),
        ("data: c\nid: 4\n\n", "4"),
        ("data: d\n\n", "4"),
    ];
    let (mut stream, mut committed) = (String::new(), None);
    for (event, id) in events {
        for at in 0..event.len() {
            let cut = format!("{stream}{}", &event[..at]);
            assert_eq!(decode(&[cut.as_bytes()], 1000).last_event_id.as_deref(), committed, "{cut:?}");
        }
        stream.push_str(event);
        committed = Some(id.as_bytes());
        assert_eq!(decode(&[stream.as_bytes()], 1000).last_event_id.as_deref(), committed, "{stream:?}");
    }
    let limited = decode(&[b"id: 1\ndata: 0123456789\n\nid: 2\ndata: "], 5);
    assert_eq!(limited.events, [SseEvent::TooLarge]);
    assert_eq!(limited.last_event_id.as_deref(), Some(&b"1"[..]), "a skipped event was ended as well");
}

#[test]
fn too_large_events_are_skipped_and_the_stream_goes_on() {
    let long = "x".repeat(50);
    let expected = [SseEvent::TooLarge, event("", "ok")];
    check_limited(format!("data: {long}\n\ndata: ok\n\n").as_bytes(), 20, &expected);
    check_limited("data: 1234567890\ndata: 1234567890\n\ndata: ok\n\n".as_bytes(), 20, &expected);
    check_limited(format!(": {long}\nevent: {long}\n\ndata: ok\n\n").as_bytes(), 20, &[event("", "ok")]);
}

#[test]
fn one_data_line_is_not_copied() {
    let mut decoder = SseDecoder::new(1000);
    decoder.push(b"data: 0123456789\n\n");
    let start = decoder.buffer.as_ptr() as usize;
    let Some(SseEvent::Event { data, .. }) = decoder.next_event() else { panic!("no event") };
    assert_eq!(data.as_ptr() as usize, start + "data: ".len());
}

proptest! {
    #[test]
    fn arbitrary_bytes_in_arbitrary_chunks_decode_alike(
        input in proptest::collection::vec(prop_oneof![
            2 => any::<u8>(),
            3 => proptest::sample::select(b"data: id\r\n\n\r:".to_vec()),
        ], 0..200),
        cut in 0usize..200,
        limit in 20usize..64,
    ) {
        let (a, b) = input.split_at(cut.min(input.len()));
        prop_assert_eq!(decode(&[a, b], limit), decode(&[&input], limit));
    }

    #[test]
    fn what_is_encoded_is_decoded(name in "[a-z]{0,8}", id in "[a-z0-9]{0,8}", data in "[ -~éß\n]{0,80}") {
        let mut out = BytesMut::new();
        encode(&mut out, Some(&name), Some(&id), None, data.as_bytes());
        let seen = decode(&[&out], 1000);
        prop_assert_eq!(seen.events, vec![event(&name, &data)]);
        prop_assert_eq!(seen.last_event_id, Some(Bytes::from(id)));
    }
}
