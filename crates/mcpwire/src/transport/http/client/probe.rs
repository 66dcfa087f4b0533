//! Single HTTP requests to a target, taken as they are: for finding out what is wrong with it.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::endpoint::Endpoint;
use super::fault::SendError;
use super::{ConnectError, Options};
use crate::channel::channel;

/// No more of a body is read.
const MOST_READ: usize = 1 << 20;

/// Asks a server with the headers, the trust and the proxy of a target.
pub struct Probe(Endpoint);

/// What a server answered, and as much of the body as was wanted.
#[derive(Debug)]
pub struct Seen {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Probe {
    pub fn new(options: Options) -> Result<Probe, ConnectError> {
        // Nobody listens: an answer is given to whoever asked.
        let (events, _) = channel(1);
        Endpoint::new(options, events).map(Probe)
    }

    /// One request. The body is read until there is enough of it, or the time is up; `None` if that is so before any answer.
    pub async fn ask(
        &self,
        method: Method,
        headers: &[(HeaderName, HeaderValue)],
        body: &Bytes,
        enough: impl Fn(&[u8]) -> bool,
        limit: Duration,
    ) -> Option<Result<Seen, SendError>> {
        let until = Instant::now() + limit;
        let mut all = self.0.headers().as_ref().clone();
        all.extend(headers.iter().cloned());
        let response = match timeout_at(until, self.0.request(method, &all, body)).await.ok()? {
            Ok(response) => response,
            Err(error) => return Some(Err(error)),
        };
        let (head, mut incoming) = response.into_parts();
        let mut body = Vec::new();
        while !enough(&body)
            && body.len() < MOST_READ
            && let Ok(Some(Ok(frame))) = timeout_at(until, incoming.frame()).await
        {
            body.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        }
        Some(Ok(Seen { status: head.status, headers: head.headers, body }))
    }
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Probe")
    }
}
