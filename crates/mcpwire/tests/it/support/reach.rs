//! Ways to reach a front: links made by our own transports.

use std::net::SocketAddr;
use std::time::Duration;

use mcpwire::link::Link;
use mcpwire::transport::child::{self, Closing};
use mcpwire::transport::http::client::{self, Transport};
use mcpwire::transport::quic::certs::Certs;
use mcpwire::transport::{quic, unix};
use mcpwire_proto::frame::DEFAULT_LIMIT;
use tokio::task::JoinHandle;

pub const MCPWIRE: &str = env!("CARGO_BIN_EXE_mcpwire");

/// The binary with these arguments, on its stdin and stdout.
pub fn stdio(args: &[String]) -> (Link, JoinHandle<()>) {
    program(MCPWIRE, args)
}

/// A program, on its stdin and stdout.
pub fn program(program: &str, args: &[String]) -> (Link, JoinHandle<()>) {
    child::connect(child::Options {
        name: "mcpwire".into(),
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        env: Vec::new(),
        cwd: None,
        max_message: DEFAULT_LIMIT,
        closing: Closing::default(),
        guard: None,
    })
}

pub fn http(url: &str) -> (Link, JoinHandle<()>) {
    dial(url, Transport::Streamable)
}

pub fn sse(url: &str) -> (Link, JoinHandle<()>) {
    dial(url, Transport::Sse)
}

/// The socket at this path.
pub fn unix(path: &str) -> (Link, JoinHandle<()>) {
    unix::connect(path.into(), DEFAULT_LIMIT)
}

/// MCP over QUIC, with certificates of this folder.
pub fn quic_mcp(address: SocketAddr, certs: &str) -> (Link, JoinHandle<()>) {
    let identity = Certs::new(certs).identity("transport.stdio-client").expect("certificates");
    let address = quic::Address { host: address.ip().to_string(), port: address.port() };
    let wait = Duration::from_secs(20);
    let options = quic::TargetOptions { address, identity, wait, max_message: DEFAULT_LIMIT };
    quic::connect_mcp(options).expect("sound settings")
}

/// Where a front says on stderr that it listens.
pub fn quic_address(stderr: &str) -> SocketAddr {
    let (_, rest) = stderr.split_once("listening on quic://").expect("an address");
    rest.split_whitespace().next().and_then(|address| address.parse().ok()).expect("an address")
}

fn dial(url: &str, transport: Transport) -> (Link, JoinHandle<()>) {
    let options = client::Options {
        transport,
        resume_for: Duration::from_secs(5),
        ..client::Options::new(url.parse().expect("a URL"))
    };
    client::connect(options).expect("plain http needs no settings")
}
