//! All targets behind a front, and what is told of them: as JSON for people and programs, as text for Prometheus.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::{Condition, Health, Record};

/// The targets behind a front; they may change. Clones are the same board.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<Vec<Health>>>);

/// How all targets are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overall {
    Ok,
    /// Some are down.
    Degraded,
    /// All are down.
    Down,
}

impl Board {
    pub fn new(targets: impl IntoIterator<Item = Health>) -> Board {
        Board(Arc::new(Mutex::new(targets.into_iter().collect())))
    }

    /// Puts these targets in the place of those that were there.
    pub fn show(&self, targets: impl IntoIterator<Item = Health>) {
        *self.targets() = targets.into_iter().collect();
    }

    pub fn overall(&self) -> Overall {
        let targets = self.targets();
        match targets.iter().filter(|target| !target.is_up()).count() {
            0 => Overall::Ok,
            down if down == targets.len() => Overall::Down,
            _ => Overall::Degraded,
        }
    }

    pub fn to_json(&self) -> Value {
        let status = match self.overall() {
            Overall::Ok => "ok",
            Overall::Degraded => "degraded",
            Overall::Down => "down",
        };
        json!({"status": status, "targets": self.targets().iter().map(Health::to_json).collect::<Vec<_>>()})
    }

    /// The text format of Prometheus, version 0.0.4.
    pub fn to_prometheus(&self) -> String {
        let targets = self.targets();
        let records: Vec<MutexGuard<'_, Record>> = targets.iter().map(Health::record).collect();
        let mut page = Page { text: String::new(), records: &records };
        page.family(
            "mcpwire_target_up",
            "gauge",
            "Whether the target can be reached, or was not asked yet.",
            |record| f64::from(u8::from(record.state != Condition::Down)),
        );
        page.family("mcpwire_target_sessions", "gauge", "Clients that are connected to the target.", |record| {
            record.bridges.len() as f64
        });
        page.family(
            "mcpwire_target_restarts_total",
            "counter",
            "How often the target was lost after it had been there.",
            |record| record.restarts as f64,
        );
        page.family(
            "mcpwire_target_tools",
            "gauge",
            "Tools that the target offers, where they were counted.",
            |record| record.tools.map_or(f64::NAN, |tools| tools as f64),
        );
        page.family("mcpwire_calls_failed_total", "counter", "Calls that were answered with an error.", |record| {
            record.traffic.failed() as f64
        });
        page.latencies();
        page.text
    }

    fn targets(&self) -> MutexGuard<'_, Vec<Health>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Page<'a> {
    text: String,
    records: &'a [MutexGuard<'a, Record>],
}

impl Page<'_> {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One number for each target; those that are none are left out.
    fn family(&mut self, name: &str, kind: &str, help: &str, value: impl Fn(&Record) -> f64) {
        self.head(name, kind, help);
        for record in self.records {
            let value = value(record);
            if !value.is_nan() {
                let _ = writeln!(self.text, "{name}{{target=\"{}\"}} {value}", label(&record.name));
            }
        }
    }

    fn latencies(&mut self) {
        let name = "mcpwire_call_seconds";
        self.head(name, "summary", "How long calls took.");
        for record in self.records {
            let target = label(&record.name);
            for (_, share, seconds) in record.traffic.quantiles() {
                let _ = writeln!(self.text, "{name}{{target=\"{target}\",quantile=\"{share}\"}} {seconds}");
            }
            let _ = writeln!(self.text, "{name}_sum{{target=\"{target}\"}} {}", record.traffic.seconds());
            let _ = writeln!(self.text, "{name}_count{{target=\"{target}\"}} {}", record.traffic.calls());
        }
    }
}

/// A text as the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn prometheus_is_told_every_target() {
        let (a, b) = (Health::new("a"), Health::new("say \"b\""));
        let board = Board::new([a.clone(), b.clone()]);
        let mut watch = b.watch();
        watch.report(Condition::Down, "it died");
        a.set_tools(3);
        a.record_call(Duration::from_millis(5), true);
        a.record_call(Duration::from_millis(5), false);
        let text = board.to_prometheus();
        for line in [
            "# TYPE mcpwire_target_up gauge",
            "mcpwire_target_up{target=\"a\"} 1",
            "mcpwire_target_up{target=\"say \\\"b\\\"\"} 0",
            "mcpwire_target_tools{target=\"a\"} 3",
            "mcpwire_calls_failed_total{target=\"a\"} 1",
            "# TYPE mcpwire_call_seconds summary",
            "mcpwire_call_seconds_sum{target=\"a\"} 0.01",
            "mcpwire_call_seconds_count{target=\"a\"} 2",
            "mcpwire_call_seconds_count{target=\"say \\\"b\\\"\"} 0",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} is not in\n{text}");
        }
        assert!(text.contains("mcpwire_call_seconds{target=\"a\",quantile=\"0.5\"} 0.00"), "{text}");
        assert!(!text.contains("mcpwire_target_tools{target=\"say"), "{text}");
        assert_eq!(board.overall(), Overall::Degraded);
        board.show([b]);
        assert_eq!(board.overall(), Overall::Down);
        board.show([]);
        assert_eq!(board.overall(), Overall::Ok);
    }
}
