//! Direct calls: one request to a server without a handshake and without a session, as small programs make them.
//!
//! A server of 2026-07-28 needs no handshake. Many older ones answer `tools/list` and `tools/call` without one, too. A direct
//! call opens the target, sends one request, waits for its answer and closes the target again. Nothing is sent twice.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use mcpwire::client::direct;
//! use serde_json::json;
//!
//! let url = "https://example.com/mcp".parse()?;
//! let envelope = direct::call_mcp(url, "tools/call", json!({"name": "search", "arguments": {"query": "mcp"}})).await?;
//! println!("{}", envelope.result()?);
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use mcpwire_proto::frame::sse::{SseDecoder, SseEvent};
use mcpwire_proto::message::split_batch;
use mcpwire_proto::meta::key;
use mcpwire_proto::object::quoted;
use mcpwire_proto::version::STATELESS_ERA;
use mcpwire_proto::{Failure, Id, Kind, Message, Object, Packet, Policy, method};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::timeout;
use url::Url;

use super::request::{after, cancelled, params_text, until};
use super::tap::finally;
use super::{Error, Options, RequestOptions, RpcError};
use crate::link::{Event, Link};
use crate::target::Target;
use crate::transport::http::client::Transport;

/// How long the target may take to be let go; its own limits are shorter.
const GOODBYE: Duration = Duration::from_secs(10);

/// A JSON-RPC response as the server wrote it.
#[derive(Debug, Clone)]
pub struct Envelope(Message);

impl Envelope {
    /// The whole response.
    pub fn raw(&self) -> &str {
        std::str::from_utf8(self.0.as_bytes()).unwrap_or_default() // a message is text
    }

    /// The text of the result, or the error that the server answered with.
    pub fn result(&self) -> Result<&str, Error> {
        match self.0.kind() {
            Kind::Error { .. } => Err(Error::of(&Packet::from(self.0.clone()), false)),
            _ => Ok(self.0.payload().unwrap_or_default()),
        }
    }

    /// The result as a type of the caller's.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_str(self.result()?).map_err(|error| Error::Unexpected {
            method: "the request".to_owned(),
            why: format!("expected another result: {error}"),
        })
    }
}

/// One POST to a server behind a URL. The answer may be JSON or an event of a stream; nothing is read after it.
pub async fn call_mcp(url: Url, method: &str, params: impl Serialize) -> Result<Envelope, Error> {
    let options = RequestOptions::within(Options::default().timeout);
    request(Target::http(url), method, params, None, options).await
}

/// One request to any target, and its answer. With a `version` of the stateless era the request says that it is of it.
///
/// What the server asks meanwhile is refused. A server of HTTP+SSE cannot be asked in this way: its stream is a session.
pub async fn request(
    target: Target,
    method: &str,
    params: impl Serialize,
    version: Option<&str>,
    options: RequestOptions,
) -> Result<Envelope, Error> {
    let params = params_text(&params)?;
    let params = match version.filter(|version| STATELESS_ERA.contains(version)) {
        Some(version) => signed(&params, version),
        None => params,
    };
    let message = Message::request(&Id::from(1), method, Some(&params));
    let (mut target, policy) = target.into_parts();
    policy.check(&message).map_err(|fault| RpcError::new(fault.code(), fault.to_string()))?;
    if let Target::Http(options) = &mut target
        && options.transport == Transport::Auto
    {
        // Another transport would take a handshake to be found.
        options.transport = Transport::Streamable;
    }
    let (link, closed) = target.open().map_err(|error| Error::Unreachable(format!("{error:#}")))?;
    let limit = options.timeout.unwrap_or_default();
    let answer = tokio::select! {
        answer = exchange(link, &policy, message) => answer,
        reason = cancelled(options.cancel.as_ref()) => Err(Error::Aborted(reason)),
        () = until(after(limit)) => Err(Error::Timeout(limit)),
    };
    let _ = timeout(GOODBYE, closed).await;
    answer
}

/// Sends the message and waits for its answer. The link ends with it.
async fn exchange(mut link: Link, policy: &Policy, message: Message) -> Result<Envelope, Error> {
    let id = message.id().cloned();
    link.tx.send(message.into()).await.map_err(|_| Error::closed(None))?;
    loop {
        match link.rx.recv().await.ok_or_else(|| Error::closed(None))? {
            Event::Packet(Packet { message, .. }) => match message.kind() {
                // An error without an id can only be about the one request that there is.
                Kind::Result { .. } | Kind::Error { id: Some(_) } if message.id() != id.as_ref() => {}
                Kind::Result { .. } | Kind::Error { .. } => return Ok(Envelope(policy.filter(message))),
                Kind::Request { id, method } => {
                    let answer = match *method == method::PING {
                        true => Message::result(id, "{}"),
                        false => Message::error_object(Some(id), &RpcError::method_not_found(method).to_object()),
                    };
                    let _ = link.tx.send(answer.into()).await;
                }
                Kind::Notification { .. } => {}
            },
            Event::Batch(text) => {
                let parts = split_batch(&text).unwrap_or_default();
                let mut messages = parts.into_iter().filter_map(|part| Message::parse(part).ok());
                if let Some(answer) = messages.find(|message| message.is_response() && message.id() == id.as_ref()) {
                    return Ok(Envelope(policy.filter(answer)));
                }
            }
            Event::Failed { message, failure } if message.is_request() => return failed(message, failure),
            Event::Gone(why) => return Err(Error::closed(Some(&why))),
            Event::Failed { .. } | Event::Garbage(_) | Event::SessionLost(_) => {}
        }
    }
}

fn failed(message: Message, failure: Failure) -> Result<Envelope, Error> {
    let id = message.id().cloned();
    let Event::Failed { failure: Failure::Refused(refusal), .. } = finally(Event::Failed { message, failure }) else {
        return Err(Error::closed(None));
    };
    let answer = Message::error_object(id.as_ref(), &refusal.error);
    match refusal.cause {
        // The server's own error, which came with an HTTP status that is no success.
        None => Ok(Envelope(answer)),
        cause => Err(Error::of(&Packet::from(answer).because(cause), false)),
    }
}

/// The JSON in the text of an answer: that of the first event with data if it is an event stream, or the text itself.
pub fn parse_sse(text: &str) -> Option<Box<RawValue>> {
    let json = |text: &str| RawValue::from_string(text.trim().to_owned()).ok();
    let mut events = SseDecoder::new(text.len());
    events.push(text.as_bytes());
    // The last event counts even if the text ends with it.
    events.push(b"\n\n");
    while let Some(event) = events.next_event() {
        if let SseEvent::Event { data, .. } = event
            && !data.is_empty()
        {
            return json(std::str::from_utf8(&data).ok()?);
        }
    }
    json(text)
}

/// Parameters with what a request of the stateless era says of its sender, where they do not say it themselves.
fn signed(params: &str, version: &str) -> String {
    let mut params = Object::parse(params).unwrap_or_default();
    let mut meta = params.object("_meta").unwrap_or_default();
    let info = serde_json::to_string(&Options::default().client_info).unwrap_or_else(|_| "{}".to_owned());
    for (name, value) in
        [(key::PROTOCOL_VERSION, quoted(version)), (key::CLIENT_INFO, info), (key::CLIENT_CAPABILITIES, "{}".into())]
    {
        if meta.get(name).is_none() {
            meta.set(name, value);
        }
    }
    let meta = meta.to_string();
    params.set("_meta", meta);
    params.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_with_data_or_the_text_itself_is_taken() {
        let sse = |text: &str| parse_sse(text).map(|json| json.get().to_owned());
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"n":1.10}}"#;
        for text in [
            answer.to_owned(),
            format!(" {answer}\n"),
            format!("data: {answer}"),
            format!("event: message\r\ndata:{answer}\r\n\r\ndata: {{}}\r\n\r\n"),
            format!(": comment\n\nid: 1\ndata:\n\ndata: {answer}\n\n"),
        ] {
            assert_eq!(sse(&text).as_deref(), Some(answer), "{text:?}");
        }
        assert_eq!(sse("data: {\"a\":\ndata: 1}\n\n").as_deref(), Some("{\"a\":\n1}"));
        for text in ["", "<html>", "data: nonsense\n\n", "event: ping\n\n"] {
            assert_eq!(sse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_stateless_request_says_who_sends_it_where_it_does_not_say_so_itself() {
        let version = "2026-07-28";
        let own = format!(r#"{{"a":1,"_meta":{{"{}":{{"sampling":{{}}}}}}}}"#, key::CLIENT_CAPABILITIES);
        let params: serde_json::Value = serde_json::from_str(&signed(&own, version)).unwrap();
        assert_eq!(params["a"], 1);
        assert_eq!(params["_meta"][key::PROTOCOL_VERSION], version);
        assert_eq!(params["_meta"][key::CLIENT_INFO]["name"], "mcpwire");
        assert_eq!(params["_meta"][key::CLIENT_CAPABILITIES], serde_json::json!({"sampling": {}}));
    }
}
