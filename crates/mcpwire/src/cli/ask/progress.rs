//! How far a call has come, on stderr: a bar on a terminal, a line each where there is none.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::super::printable::printable;
use super::terminal::{Style, Terminal};
use crate::client::Progress;

/// A terminal is not written to more often.
const PACE: Duration = Duration::from_millis(50);
/// How wide the bar itself is.
const BAR: usize = 24;

/// Clones are the same bar.
#[derive(Debug, Clone)]
pub(super) struct Bar(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    terminal: Terminal,
    drawn: Option<Instant>,
}

impl Bar {
    pub(super) fn new() -> Bar {
        Bar(Arc::new(Mutex::new(State { terminal: Terminal::stderr(), drawn: None })))
    }

    pub(super) fn show(&self, progress: &Progress) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(width) = state.terminal.width else { return write(&format!("{}\n", line(progress))) };
        let last = progress.total.is_some_and(|total| progress.progress >= total);
        if !last && state.drawn.is_some_and(|drawn| drawn.elapsed() < PACE) {
            return;
        }
        state.drawn = Some(Instant::now());
        let text: String = state.terminal.safe(&drawing(progress)).replace('\n', " ");
        let text: String = text.chars().take(width.saturating_sub(1)).collect();
        write(&format!("\r\x1b[K{}", state.terminal.styled(Style::Faint, &text)));
    }

    /// Leaves the line as it was before.
    pub(super) fn clear(&self) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.drawn.is_some() {
            write("\r\x1b[K");
        }
    }
}

/// What cannot be shown is lost; the answer is what counts.
fn write(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn line(progress: &Progress) -> String {
    let total = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
    let message = progress.message.as_ref().map(|message| format!(" {}", printable(&message.replace('\n', " "))));
    format!("progress: {}{total}{}", progress.progress, message.unwrap_or_default())
}

fn drawing(progress: &Progress) -> String {
    let message = progress.message.as_deref().unwrap_or_default();
    match progress.total.filter(|total| *total > 0.0) {
        Some(total) => {
            let share = (progress.progress / total).clamp(0.0, 1.0);
            let full = (share * BAR as f64) as usize;
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR - full));
            format!("{bar} {:3.0} % {message}", share * 100.0)
        }
        None => format!("{} {message}", progress.progress),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        let at = |progress, total| Progress { progress, total, message: Some("m".to_owned()) };
        assert_eq!(drawing(&at(1.0, Some(2.0))), format!("{}{}  50 % m", "█".repeat(12), "░".repeat(12)));
        assert_eq!(drawing(&at(9.0, Some(2.0))), format!("{} 100 % m", "█".repeat(24)));
        assert_eq!(drawing(&at(3.0, None)), "3 m");
        assert_eq!(drawing(&at(f64::NAN, Some(2.0))).chars().filter(|c| *c == '░').count(), 24);
        assert_eq!(line(&at(1.0, Some(2.0))), "progress: 1/2 m");
    }
}
