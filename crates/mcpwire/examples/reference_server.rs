//! The reference server over Streamable HTTP, as a program that uses the library:
//! `reference_server [--http ADDR] [--era session|stateless]`.
//!
//! Prints its URL and serves until it is stopped by a signal.

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use mcpwire::reference::{self, Eras, Settings, Shared};
use mcpwire::shutdown;
use mcpwire::transport::http::server::Options;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = argument("--http").unwrap_or("127.0.0.1:0".to_owned());
    let eras = match argument("--era").as_deref() {
        None | Some("both") => Eras::Both,
        Some("session") => Eras::Session,
        Some("stateless") => Eras::Stateless,
        Some(other) => return Err(format!("expected both, session or stateless as --era, came {other}").into()),
    };
    let listener = TcpListener::bind(&address).await?;
    // Clients of 2025-11-25 know to come back for the answer; the conformance suite checks that a server makes them.
    let options = Options {
        stream_after: Duration::from_millis(100),
        close_stream_after: Some(Duration::from_millis(300)),
        ..Options::default()
    };
    writeln!(io::stdout(), "http://{}{}", listener.local_addr()?, options.path)?;
    let stop = shutdown::requested()?;
    let shared = Shared::new(Settings { eras, ..Settings::default() });
    reference::host(listener, options, shared, async { drop(stop.await) }).await;
    Ok(())
}

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|arg| arg != name).nth(1)
}
