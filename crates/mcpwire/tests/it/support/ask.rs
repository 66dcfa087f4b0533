//! One HTTP request by hand, on a connection of its own: for what no well-behaved client would send.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::within;

pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The answer: the body, or the last event of a stream.
    pub fn json(&self) -> Value {
        let data = self.body.lines().rev().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(data.unwrap_or(&self.body)).unwrap_or_else(|e| panic!("not JSON: {e}: {}", self.body))
    }
}

/// Sends a request and reads the response to its end. A `host` among the headers takes the place of ours.
pub async fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "host") {
        text.push_str(&format!("host: {address}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    let mut answer = Vec::new();
    within("an HTTP response", async {
        let mut stream = TcpStream::connect(address).await.expect("somebody listens");
        stream.write_all(text.as_bytes()).await.expect("the request is read");
        stream.read_to_end(&mut answer).await.expect("a whole response");
    })
    .await;
    let answer = String::from_utf8(answer).expect("responses are text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP response: {answer:?}"));
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Reply { status, headers, body: body.to_owned() }
}
