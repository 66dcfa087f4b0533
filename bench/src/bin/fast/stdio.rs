//! The same server on stdin and stdout: a line in, a line out, and one write for the answers to one read.
//!
//! `fast-stdio [TOOLS [ERA [DELAY]]]`: it has so many tools, is of the era `session` or `stateless`, and takes so many
//! milliseconds to start.

mod mcp;

use std::io::{Read, Write};
use std::time::Duration;

use anyhow::Result;

use crate::mcp::{Reply, Server};

const CHUNK: usize = 16 * 1024;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let server = match args.first() {
        Some(tools) => Server::of(tools.parse()?, args.get(1).is_some_and(|era| era == "stateless")),
        None => Server::default(),
    };
    if let Some(delay) = args.get(2) {
        std::thread::sleep(Duration::from_millis(delay.parse()?));
    }
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut chunk = vec![0; CHUNK];
    // What was read and ends in no newline yet.
    let mut rest = Vec::new();
    let mut out = Vec::new();
    loop {
        let length = stdin.read(&mut chunk)?;
        if length == 0 {
            return Ok(());
        }
        rest.extend_from_slice(&chunk[..length]);
        let whole = memchr::memrchr(b'\n', &rest).map_or(0, |at| at + 1);
        for line in rest[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if let Reply::Welcome(answer) | Reply::Answer(answer) = mcp::reply(&server, line) {
                out.extend_from_slice(answer.as_bytes());
                out.push(b'\n');
            }
        }
        rest.drain(..whole);
        if !out.is_empty() {
            stdout.write_all(&out)?;
            stdout.flush()?;
            out.clear();
        }
    }
}
