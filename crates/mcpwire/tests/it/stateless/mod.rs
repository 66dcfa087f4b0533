//! HTTP without sessions (2026-07-28), as the library has it: our client against a scripted server, and against our front.

mod cancelling;
mod failures;
mod headers;
mod joined;

use std::time::Duration;

use mcpwire::link::{Event, Link};
use mcpwire::transport::http::client::{self, Options, Transport};
use mcpwire_proto::{Failure, Id, Lane, Message};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::within;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn connect(url: &str, transport: Transport) -> (Link, JoinHandle<()>) {
    let options =
        Options { transport, resume_for: Duration::from_secs(5), ..Options::new(url.parse().expect("a URL")) };
    client::connect(options).unwrap()
}

/// A request of 2026-07-28; what is in `params._meta` is added to what must be there.
fn modern(id: Value, method: &str, mut params: Value) -> Message {
    let mut meta = json!({VERSION: "2026-07-28", CAPABILITIES: {}});
    for (name, value) in params["_meta"].as_object().into_iter().flatten() {
        meta[name] = value.clone();
    }
    params["_meta"] = meta;
    Message::request(&Id::from_json(&id.to_string()).unwrap(), method, Some(&params.to_string()))
}

fn call(id: u64, arguments: Value) -> Message {
    modern(json!(id), "tools/call", json!({"name": "t", "arguments": arguments}))
}

async fn send(link: &Link, message: Message) {
    link.tx.send(message.into()).await.unwrap();
}

async fn cancel(link: &Link, id: &Id) {
    let params = format!(r#"{{"requestId":{id}}}"#);
    send(link, Message::notification("notifications/cancelled", Some(&params))).await;
}

async fn event(link: &mut Link) -> Event {
    within("an event", link.rx.recv()).await.expect("the link lives")
}

/// The next message, which must come on the stream of this request.
async fn message(link: &mut Link, id: &Id) -> Value {
    match event(link).await {
        Event::Packet(packet) => {
            assert_eq!(packet.lane, Lane::Request(id.clone()));
            serde_json::from_slice(packet.message.as_bytes()).unwrap()
        }
        other => panic!("unexpected {other:?}"),
    }
}

async fn failure(link: &mut Link) -> Failure {
    match event(link).await {
        Event::Failed { failure, .. } => failure,
        other => panic!("unexpected {other:?}"),
    }
}
