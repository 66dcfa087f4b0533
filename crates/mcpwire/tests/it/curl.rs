//! The curl transcripts in the documentation, played against the binary.

use std::fs;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::docs::{blocks, words};
use crate::support::process::Mcpwire;
use crate::support::within;

/// What a curl command asks for, as far as the pages use it.
struct Ask {
    method: String,
    path: String,
    headers: Vec<String>,
    body: String,
}

impl Ask {
    fn parse(command: &str, session: &str) -> Ask {
        let mut ask = Ask { method: String::new(), path: String::new(), headers: Vec::new(), body: String::new() };
        let mut words = words(command).into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "curl" | "-i" => {}
                "-X" => ask.method = words.next().unwrap(),
                "-H" => ask.headers.push(words.next().unwrap().replace("$SESSION", session)),
                "-d" => ask.body = words.next().unwrap(),
                url => ask.path = url.strip_prefix("http://127.0.0.1:8080").expect("the URL of the page").to_owned(),
            }
        }
        if ask.method.is_empty() {
            ask.method = if ask.body.is_empty() { "GET" } else { "POST" }.to_owned();
        }
        ask
    }

    async fn send(&self, address: &str) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\nConnection: close\r\n", self.method, self.path);
        if !self.headers.iter().any(|header| header.starts_with("Host:")) {
            head.push_str(&format!("Host: {address}\r\n"));
        }
        for header in &self.headers {
            head.push_str(&format!("{header}\r\n"));
        }
        let request = format!("{head}Content-Length: {}\r\n\r\n{}", self.body.len(), self.body);
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        within("an answer", stream.read_to_string(&mut answer)).await.unwrap();
        answer
    }
}

/// Whether a line is as shown; `…` stands for anything.
fn fits(line: &str, shown: &str) -> bool {
    let Some((first, others)) = shown.split_once('…') else { return line == shown };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = others.split('…').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[tokio::test]
async fn what_curl_is_shown_to_get_it_gets() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/expose.md");
    let page = fs::read_to_string(page).unwrap();
    let program = env!("CARGO_BIN_EXE_mcpwire");
    let args = ["expose", "--http", "127.0.0.1:0", "--print-url", "--", program, "reference", "--stdio"];
    let mut server = Mcpwire::start(&args);
    let url = server.line().await.expect("a URL");
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut session = String::new();
    let mut played = 0;
    for (_, text) in blocks(&page).into_iter().filter(|(language, _)| language == "curl") {
        let (command, shown) = text.split_once('\n').unwrap();
        let answer = Ask::parse(command.strip_prefix("$ ").unwrap(), &session).send(&address).await;
        let mut lines = answer.lines();
        for shown in shown.lines() {
            assert!(lines.any(|line| fits(line, shown)), "{command}\nexpected {shown}\nin\n{answer}");
        }
        if let Some((_, id)) = answer.lines().find_map(|line| line.split_once("mcp-session-id: ")) {
            session = id.to_owned();
        }
        played += 1;
    }
    assert_eq!(played, 9);
    server.signal("TERM");
    assert_eq!(server.wait().await.code(), Some(0));
}
