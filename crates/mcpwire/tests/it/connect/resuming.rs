//! A model of a server that keeps its events and replays them (2025-11-25, transports, resumability), whose streams are
//! cut at every byte.

use std::collections::HashMap;

use mcpwire::link::Event;
use mcpwire::transport::http::client;
use mcpwire_proto::{Failure, Message};
use serde_json::{Value, json};

use super::{connected, finish, listening};
use crate::support::script::{Exchange, Script};
use crate::support::within;

/// The events of one stream, as they are stored.
struct Stored {
    name: String,
    events: Vec<Value>,
    line_end: &'static str,
}

impl Stored {
    /// The stream that answers a call: an event that only has an id, progress, and the result.
    fn answer_to(name: &str, id: &Value, line_end: &'static str) -> Stored {
        let params = json!({"progressToken": name, "progress": 1});
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        let result = json!({"jsonrpc": "2.0", "id": id, "result": {"name": name}});
        Stored { name: name.to_owned(), events: vec![Value::Null, progress, result], line_end }
    }

    /// What is written from this event on.
    fn text(&self, from: usize) -> String {
        let n = self.line_end;
        let event = |(number, event): (usize, &Value)| match event {
            Value::Null => format!("id: {}/{number:03}{n}retry: 10{n}data:{n}{n}", self.name),
            event => format!("event: message{n}id: {}/{number:03}{n}data: {event}{n}{n}", self.name),
        };
        self.events.iter().enumerate().skip(from).map(event).collect()
    }
}

/// The stream and the number of the event after which a GET wants to resume.
fn resumed_after(get: &Exchange) -> (String, usize) {
    let id = get.header("last-event-id").expect("an id to resume after");
    let (name, number) = id.split_once('/').expect("an id that was given");
    (name.to_owned(), number.parse().expect("a number"))
}

/// Writes so many bytes of a text and breaks the connection, or ends the stream where there are no more.
async fn write_cut(exchange: Exchange, text: &str, at: usize) {
    let mut stream = exchange.stream().await;
    if at < text.len() {
        if at > 0 {
            stream.event(&text[..at]).await;
        }
        stream.cut();
    } else {
        stream.event(text).await;
        stream.end().await;
    }
}

/// Calls as often as the answer has bytes. The answer of each call is cut at another byte, and so is what is replayed first.
async fn cut_at_every_byte(line_end: &'static str) {
    let (mut server, mut client) = connected(&[]).await;
    let longest = Stored::answer_to("c000", &json!(1000), line_end).text(0).len();
    let primed = Stored { events: vec![Value::Null], ..Stored::answer_to("c000", &json!(1000), line_end) }.text(0);
    let mut stored = HashMap::new();
    let mut resumptions: HashMap<String, usize> = HashMap::new();
    for at in 0..=longest {
        client.call(1000 + at, "slow", json!({})).await;
    }
    let (mut results, mut failures, mut progress) = (HashMap::new(), Vec::new(), HashMap::new());
    while results.len() + failures.len() <= longest {
        tokio::select! {
            exchange = server.next() => match exchange.method.as_str() {
                "POST" => {
                    let id = exchange.id();
                    let at = usize::try_from(id.as_u64().unwrap() - 1000).unwrap();
                    let stream = Stored::answer_to(&format!("c{at:03}"), &id, line_end);
                    write_cut(exchange, &stream.text(0), at).await;
                    stored.insert(stream.name.clone(), (stream, at));
                }
                _ => {
                    let (name, number) = resumed_after(&exchange);
                    let (stream, at) = &stored[&name];
                    let tries = resumptions.entry(name).or_default();
                    *tries += 1;
                    write_cut(exchange, &stream.text(number + 1), if *tries == 1 { *at } else { usize::MAX }).await;
                }
            },
            message = client.message() => match message.get("id").and_then(Value::as_u64) {
                Some(id) if message.get("result").is_some() => {
                    let name = format!("c{:03}", id - 1000);
                    assert_eq!(message["result"]["name"], json!(name));
                    assert_eq!(results.insert(id - 1000, name), None, "answered twice: {message}");
                }
                Some(id) => {
                    assert!(message["error"]["message"].as_str().unwrap().contains("may have been executed"), "{message}");
                    failures.push(id - 1000);
                }
                None => {
                    let token = message["params"]["progressToken"].as_str().unwrap().to_owned();
                    assert_eq!(progress.insert(token, ()), None, "delivered twice: {message}");
                }
            },
        }
    }
    // Before the first event was whole there is nothing to resume after; its last carriage return makes it whole.
    let whole = if line_end == "\n" { primed.len() } else { primed.len() - 1 };
    failures.sort_unstable();
    assert_eq!(failures, (0..whole as u64).collect::<Vec<_>>());
    assert_eq!(progress.len(), results.len());
    assert!(resumptions.values().all(|tries| *tries <= 3), "{resumptions:?}");
    finish(client, server).await;
}

#[tokio::test]
async fn an_answer_cut_inside_its_event_is_resumed_before_that_event() {
    cut_at_every_byte("\n").await;
}

#[tokio::test]
async fn an_answer_with_long_line_ends_cut_inside_its_event_is_resumed_before_that_event() {
    cut_at_every_byte("\r\n").await;
}

#[tokio::test]
async fn a_listening_stream_cut_inside_an_event_loses_and_repeats_nothing() {
    let (mut server, mut client, mut stream) = listening().await;
    let event = |number: usize| json!({"jsonrpc": "2.0", "method": format!("notifications/{number:03}")});
    let stored = Stored { name: "main".to_owned(), events: (0..200).map(event).collect(), line_end: "\n" };
    let longest = stored.text(199).len();
    stream.event("retry: 10\n\n").await;
    // Each connection brings one whole event and a part of the next, and every part is tried once.
    for number in 0..longest {
        let text = stored.text(number);
        let next = stored.text(number + 1).len();
        stream.event(&text[..text.len() - next + number]).await;
        stream.cut();
        assert_eq!(client.message().await, event(number));
        let get = server.expect("GET").await;
        assert_eq!(resumed_after(&get), ("main".to_owned(), number));
        stream = get.stream().await;
    }
    stream.event(&stored.text(longest)).await;
    for number in longest..200 {
        assert_eq!(client.message().await, event(number));
    }
    finish(client, server).await;
}

/// A server with a session whose streams never bring the answer: what it replays is always the same.
async fn fruitless(replayed: &str) -> usize {
    let mut server = Script::start().await;
    let options = client::Options { max_empty_resumptions: 4, ..client::Options::new(server.url().parse().unwrap()) };
    let (mut link, _goodbye) = client::connect(options).unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}});
    link.tx.send(Message::parse(call.to_string().into()).unwrap().into()).await.unwrap();
    write_cut(server.expect("tools/call").await, "id: s/1\nretry: 10\ndata:\n\nid: s/2\ndata: {", 38).await;
    let mut resumptions = 0;
    loop {
        tokio::select! {
            get = server.expect("GET") => {
                assert_eq!(resumed_after(&get), ("s".to_owned(), 1));
                resumptions += 1;
                let mut stream = get.stream().await;
                stream.event(replayed).await;
                stream.end().await;
            }
            event = within("the failure", link.rx.recv()) => match event {
                Some(Event::Failed { failure: Failure::Interrupted(_), .. }) => return resumptions,
                Some(Event::Packet(_)) => {}
                other => panic!("{other:?}"),
            },
        }
    }
}

#[tokio::test]
async fn resumptions_that_deliver_nothing_come_to_an_end() {
    assert_eq!(fruitless(": nothing\n\n").await, 4);
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    let repeated = format!("id: s/0\ndata: {progress}\n\nid: s/1\ndata: {progress}\n\nid: s/2\ndata: {{");
    assert_eq!(fruitless(&repeated).await, 4, "the same events again are nothing new");
}

#[tokio::test]
async fn a_server_that_lets_us_poll_is_polled_until_the_answer_is_there() {
    let (mut server, mut client) = connected(&[]).await;
    client.call(1, "slow", json!({})).await;
    write_cut(server.expect("tools/call").await, "id: s/0\nretry: 10\ndata:\n\n", usize::MAX).await;
    for number in 0..40 {
        let get = server.expect("GET").await;
        assert_eq!(resumed_after(&get), ("s".to_owned(), number));
        let mut stream = get.stream().await;
        stream.event(&format!("id: s/{}\ndata:\n\n", number + 1)).await;
        stream.end().await;
    }
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    write_cut(server.expect("GET").await, &format!("data: {result}\n\n"), usize::MAX).await;
    assert_eq!(within("the answer", client.message()).await, result);
    finish(client, server).await;
}
