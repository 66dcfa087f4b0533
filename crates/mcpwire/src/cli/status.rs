//! `mcpwire status`: how the servers behind a running `mcpwire expose` are.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use clap::Args as ClapArgs;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Method, StatusCode};
use serde_json::Value;
use tracing::level_filters::LevelFilter;
use url::Url;

use super::ask::print;
use super::ask::terminal::Terminal;
use super::http::HttpArgs;
use super::log::{self, LogArgs};
use super::units::duration;
use crate::target::without_secrets;
use crate::transport::http::client::{Options, Probe};

const HEADINGS: [&str; 9] = ["NAME", "STATE", "SINCE", "RESTARTS", "TOOLS", "CALLS", "FAILED", "P50/P99", "LAST ERROR"];

/// Show how the servers behind a running mcpwire expose are
///
/// Asks its /health. Exit codes: 0 when all servers are well, 1 when one is down or mcpwire expose cannot be asked, 2 when the
/// command line is not understood.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Where mcpwire expose listens, with or without /mcp
    #[arg(value_parser = front, default_value = "http://127.0.0.1:8080")]
    url: Url,
    /// The bearer token that it requires
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    #[command(flatten)]
    http: HttpArgs,
    /// Print what it answered as JSON
    #[arg(long)]
    json: bool,
    /// How long the answer may take
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    patience: Duration,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    log::init_at(&args.log, LevelFilter::OFF);
    let mut options = args.http.options(&args.url)?;
    if let Some(token) = &args.token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).context("--token: not fit for a header")?;
        value.set_sensitive(true);
        options.headers.insert(AUTHORIZATION, value);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let told = runtime.block_on(ask(options, args.patience));
    // A name lookup that hangs does not hold up the end.
    runtime.shutdown_background();
    let told = told.with_context(|| without_secrets(&args.url))?;
    print(&match args.json {
        true => format!("{told:#}\n"),
        false => table(&told),
    })?;
    let down = |target: &Value| target["state"] == "down";
    let any_down = targets(&told).iter().any(down);
    Ok(if any_down { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The address of `/health`, from that of the front or of anything it serves.
fn front(text: &str) -> Result<Url, String> {
    let expected = "expected an http:// or https:// URL";
    let mut url: Url = text.parse().map_err(|e| format!("{expected}: {e}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(format!("{expected}; came scheme {:?}", url.scheme()));
    }
    let path = url.path().trim_end_matches('/');
    let base = ["/mcp", "/sse", "/health", "/metrics"].iter().find_map(|known| path.strip_suffix(known));
    let path = format!("{}/health", base.unwrap_or(path));
    url.set_path(&path);
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

async fn ask(options: Options, patience: Duration) -> Result<Value> {
    let probe = Probe::new(options)?;
    let Some(seen) = probe.ask(Method::GET, &[], &Bytes::new(), |_| false, patience).await else {
        bail!("no answer within {}", humantime::format_duration(patience));
    };
    let seen = seen.map_err(|failure| anyhow!("{failure}"))?;
    let told: Option<Value> = serde_json::from_slice(&seen.body).ok();
    match (seen.status, told) {
        // It also answers so when all servers are down.
        (StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE, Some(told)) if told["targets"].is_array() => Ok(told),
        (StatusCode::UNAUTHORIZED, _) => bail!("it wants a token (HTTP 401): give it with --token"),
        (status, _) if status.is_success() => bail!("what answers there is no mcpwire expose"),
        (status, _) => bail!("HTTP {status}: is it mcpwire expose?"),
    }
}

fn targets(told: &Value) -> &[Value] {
    told["targets"].as_array().map_or(&[], Vec::as_slice)
}

fn table(told: &Value) -> String {
    let rows: Vec<Vec<String>> = targets(told).iter().map(row).collect();
    match rows.is_empty() {
        true => "No servers.\n".to_owned(),
        // Errors are told whole, whatever the width.
        false => Terminal { width: None, ..Terminal::stdout() }.table(&HEADINGS, &rows),
    }
}

fn row(target: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let number = |name: &str| target[name].as_u64().map_or_else(|| "-".to_owned(), |number| number.to_string());
    let latency = &target["latencyMs"];
    let millis = |name: &str| latency[name].as_f64().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
    let error = &target["lastError"];
    vec![
        text(&target["name"]),
        text(&target["state"]),
        ago(&target["since"]),
        number("restarts"),
        number("tools"),
        number("calls"),
        number("failed"),
        if latency.is_object() { format!("{}/{} ms", millis("p50"), millis("p99")) } else { "-".to_owned() },
        if error.is_object() { format!("{} ago: {}", ago(&error["at"]), text(&error["text"])) } else { "-".to_owned() },
    ]
}

/// How long ago this was, in its two largest units.
fn ago(time: &Value) -> String {
    let Some(at) = time.as_str().and_then(|time| humantime::parse_rfc3339(time).ok()) else { return "-".to_owned() };
    let seconds = SystemTime::now().duration_since(at).unwrap_or_default().as_secs();
    let since = humantime::format_duration(Duration::from_secs(seconds)).to_string();
    since.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_found_from_whatever_it_serves() {
        for (given, asked) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/health"),
            ("http://127.0.0.1:8080/mcp", "http://127.0.0.1:8080/health"),
            ("http://127.0.0.1:8080/sse?x=1#y", "http://127.0.0.1:8080/health"),
            ("https://example.com/wire/mcp/", "https://example.com/wire/health"),
            ("https://example.com/wire/", "https://example.com/wire/health"),
            ("https://example.com/health", "https://example.com/health"),
        ] {
            assert_eq!(front(given).unwrap().as_str(), asked);
        }
        assert!(front("ftp://example.com").unwrap_err().contains("scheme"));
        assert!(front("example").is_err());
    }
}
