//! Log lines on stderr: `[ISO-8601 with ms, Z] [LEVEL] [component] message`.

use std::fmt::{self, Write};
use std::time::SystemTime;

use clap::Args;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

use super::printable::Printable;
use super::stderr::Stderr;

/// The components that log.
const OURS: [&str; 18] = [
    "bridge",
    "cache",
    "certs",
    "child",
    "client",
    "config",
    "connect",
    "era",
    "expose",
    "folder",
    "http",
    "quic",
    "reference",
    "share",
    "stdio",
    "unix",
    "watch",
    "wire",
];

#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// What is logged: error, warn, info or debug [env: LOG_LEVEL] [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    log_level: Option<LevelFilter>,
    /// Log every message's type, direction and session, as DEBUG=1 does
    #[arg(short = 'v', long, visible_alias = "debug")]
    verbose: bool,
    /// Log whole messages, too; they may hold secrets
    #[arg(long)]
    log_payloads: bool,
}

fn level(text: &str) -> Result<LevelFilter, String> {
    match text.to_ascii_lowercase().as_str() {
        "error" => Ok(LevelFilter::ERROR),
        "warn" | "warning" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        _ => Err("expected error, warn, info or debug".into()),
    }
}

/// Sets up logging for the process.
pub(super) fn init(args: &LogArgs) {
    init_at(args, LevelFilter::INFO);
}

/// For commands that report an error once, at the end. Files of a folder that are skipped are no error and would otherwise
/// go unnoticed, so these warnings are logged.
pub(super) fn init_quiet(args: &LogArgs) {
    init_with(args, |component| if component == "folder" { LevelFilter::WARN } else { LevelFilter::OFF });
}

/// The same, with another level where none is asked for.
pub(super) fn init_at(args: &LogArgs, default: LevelFilter) {
    init_with(args, |_| default);
}

fn init_with(args: &LogArgs, default: impl Fn(&str) -> LevelFilter) {
    let debug = std::env::var("DEBUG").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    // The variable may be meant for somebody else: what we do not know in it is no reason to fail.
    let wanted = std::env::var("LOG_LEVEL").ok().and_then(|name| level(&name).ok());
    let asked = match args.log_level.or(wanted) {
        _ if args.log_payloads => Some(LevelFilter::TRACE),
        _ if args.verbose || debug => Some(LevelFilter::DEBUG),
        level => level,
    };
    let level = |component: &str| asked.unwrap_or_else(|| default(component));
    // The libraries below us speak of sockets and buffers: only what worries them is of use here.
    let others = LevelFilter::WARN.min(level(""));
    let filter = Targets::new().with_default(others).with_targets(OURS.map(|ours| (ours, level(ours))));
    let lines = tracing_subscriber::fmt::layer().event_format(Line).with_writer(|| Stderr);
    // Fails only if there is a subscriber already, as there may be in a test.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines).with(filter));
}

struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let time = humantime::format_rfc3339_millis(SystemTime::now());
        let (level, component) = (event.metadata().level(), event.metadata().target());
        write!(writer, "[{time}] [{level}] [{component}] ")?;
        // Much of what is logged was said by peers, and an event is one line whatever they said.
        event.record(&mut Text(Printable(&mut writer)));
        writeln!(writer)
    }
}

/// The message, then other fields as `name=value`.
struct Text<'a, 'w>(Printable<&'a mut Writer<'w>>);

impl Visit for Text<'_, '_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A log line that cannot be written is lost; there is nowhere to say so.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
