//! Signals that ask us to stop.

use std::io;
use std::process;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// The exit code of a program ended by SIGINT, as shells count.
const INTERRUPTED: i32 = 130;

/// Completes at the first SIGINT or SIGTERM; a second one ends the process at once.
pub fn requested() -> io::Result<oneshot::Receiver<()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        let mut tell = Some(tell);
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            match tell.take() {
                Some(tell) => drop(tell.send(())),
                #[allow(clippy::disallowed_methods, reason = "the second signal means: at once")]
                None => process::exit(INTERRUPTED),
            }
        }
    });
    Ok(told)
}
