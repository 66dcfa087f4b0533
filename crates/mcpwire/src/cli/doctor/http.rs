//! A server behind a URL, layer by layer: its name, its port, its certificate, its answers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::report::{Report, excerpt};
use super::{Opened, auth, initialize};
use crate::cli::ask::ping::{millis, shown};
use crate::transport::http::client::{Options, Probe, Seen, SendError, Transport};
use crate::transport::http::{EVENT_STREAM, PROTOCOL_VERSION, SESSION_ID};

pub(super) async fn examine(options: &Options, patience: Duration, report: &mut Report) -> Opened {
    report.fact("transport", "http");
    if options.proxy.is_some() {
        report.note("proxy", "reached through the proxy that the environment names");
    } else if !reach(options, patience, report).await {
        return Opened::Hopeless;
    }
    let probe = match Probe::new(options.clone()) {
        Ok(probe) => probe,
        Err(error) => {
            report.bad("settings", error.to_string(), "check the files that --ca, --client-cert and --client-key name");
            return Opened::Hopeless;
        }
    };
    if options.transport == Transport::Sse {
        return older(&probe, patience, None, report).await;
    }
    let asked = Instant::now();
    let body = Bytes::from(initialize());
    let seen = match probe.ask(Method::POST, &[], &body, is_whole_event, patience).await {
        None => {
            let text = format!("it did not answer initialize within {}", humantime::format_duration(patience));
            report.bad(
                "silent",
                text,
                "the port is open, but nobody answers: is it the right port, and is the server busy?",
            );
            return Opened::Hopeless;
        }
        Some(Err(error)) => {
            tell_failure(&error, report);
            return Opened::Hopeless;
        }
        Some(Ok(seen)) => seen,
    };
    report.part("latencies", "http", millis(asked.elapsed()));
    judge(options, &probe, seen, patience, report).await
}

/// The name and the port.
async fn reach(options: &Options, patience: Duration, report: &mut Report) -> bool {
    let (host, port) = (options.url.host_str().unwrap_or_default(), options.url.port_or_known_default().unwrap_or(80));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let asked = Instant::now();
    let addresses: Vec<SocketAddr> = match timeout(patience, lookup_host((host, port))).await {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => {
            let text = format!("the name {host} is not known: {error}");
            report.bad("dns", text, "check how the host is written, and your network");
            return false;
        }
        Err(_) => {
            report.bad("dns", format!("nobody tells where {host} is"), "check your network and its name servers");
            return false;
        }
    };
    report.part("latencies", "dns", millis(asked.elapsed()));
    let mut failures = Vec::new();
    let asked = Instant::now();
    for address in &addresses {
        match timeout(patience, TcpStream::connect(address)).await {
            Ok(Ok(_)) => {
                report.part("latencies", "connect", millis(asked.elapsed()));
                report.good("reached", format!("reached {address} in {}", shown(asked.elapsed())));
                return true;
            }
            Ok(Err(error)) => {
                failures.push((error.kind() == std::io::ErrorKind::ConnectionRefused, format!("{address}: {error}")))
            }
            Err(_) => failures.push((false, format!("{address}: no answer"))),
        }
    }
    let refused = failures.iter().any(|(refused, _)| *refused);
    let text = failures.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; ");
    match refused {
        true => report.bad("refused", format!("nobody listens: {text}"), "start the server, or check the port"),
        false => {
            report.bad("unreachable", format!("cannot connect: {text}"), "check the address, firewalls and the network")
        }
    }
    false
}

fn tell_failure(error: &SendError, report: &mut Report) {
    match error {
        SendError::Distrusted(reason) => report.bad("certificate", error.to_string(), reason.advice()),
        SendError::Tls(why) => report.bad(
            "tls",
            format!("no TLS handshake: {why}"),
            "is it a server without TLS? Then the URL begins with http://",
        ),
        SendError::Redirected { .. } | SendError::RedirectLoop => {
            report.bad("redirect", error.to_string(), "use the address that it redirects to");
        }
        SendError::Unreachable(why) | SendError::NotProcessed(why) | SendError::Interrupted(why) => {
            let advice = "the port is open, but what answers there speaks no HTTP, or only HTTPS (https://)";
            report.bad("no-http", format!("no answer to an HTTP request: {why}"), advice);
        }
    }
}

/// What an answer to `initialize` tells.
async fn judge(options: &Options, probe: &Probe, seen: Seen, patience: Duration, report: &mut Report) -> Opened {
    let message = message(&seen);
    let kind = seen.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let said = excerpt(&String::from_utf8_lossy(&seen.body));
    match (seen.status, message) {
        (StatusCode::UNAUTHORIZED, _) => {
            auth::examine(options, &seen.headers, patience, report).await;
            Opened::Hopeless
        }
        (StatusCode::FORBIDDEN, _) => {
            let advice = "check the credentials and the Host and Origin that the server allows";
            report.bad("forbidden", format!("the server refuses access (HTTP 403): {said}"), advice);
            Opened::Hopeless
        }
        (status, Some(answer)) if status.is_success() && answer.get("result").is_some() => {
            report.fact("transport", "streamable http");
            let stream = if kind.starts_with(EVENT_STREAM) { "an event stream" } else { "JSON" };
            report.good("streamable-http", format!("speaks Streamable HTTP; answers as {stream}"));
            session(probe, &seen, &answer, patience, report).await;
            Opened::Session(answer["result"].clone())
        }
        // It answers this very request: a server of the other era, perhaps.
        (_, Some(answer)) if answer.get("error").is_some() && answer["id"] == 1 => {
            report.fact("transport", "streamable http");
            let why = excerpt(answer["error"]["message"].as_str().unwrap_or_default());
            report.note("no-session", format!("refuses initialize (HTTP {}): {why}", seen.status.as_u16()));
            Opened::Refused
        }
        (status, _) if matches!(status.as_u16(), 400 | 404 | 405) && options.transport == Transport::Auto => {
            older(probe, patience, Some((status, said)), report).await
        }
        (status, _) if status.is_success() => {
            not_mcp(&kind, &said, report);
            Opened::Hopeless
        }
        (status, _) => {
            refused(status, &said, report);
            Opened::Hopeless
        }
    }
}

fn not_mcp(kind: &str, said: &str, report: &mut Report) {
    let html = kind.contains("html") || said.to_ascii_lowercase().starts_with("<!doctype") || said.starts_with("<html");
    let what = if html {
        "an HTML page".to_owned()
    } else {
        format!("{} ({said})", if kind.is_empty() { "something" } else { kind })
    };
    let text = format!("it answers with {what}, which is no MCP");
    report.bad("not-mcp", text, "it is a web server, but not its MCP endpoint: check the path, which is often /mcp");
}

fn refused(status: StatusCode, said: &str, report: &mut Report) {
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let (code, advice) = match status.as_u16() {
        404 => ("not-found", "there is nothing at this path: it is often /mcp, or /sse for older servers"),
        405 => ("not-mcp", "nothing there takes POST: it is no MCP endpoint, check the path"),
        400..500 => ("refused-request", "the server does not like the request; its log may tell more"),
        _ => ("server-error", "the server, or a proxy before it, has a problem of its own: look at its log"),
    };
    report.bad(code, format!("HTTP {status}{said}"), advice);
}

/// HTTP+SSE of 2024-11-05, where a GET begins a stream that names the address for messages.
async fn older(probe: &Probe, patience: Duration, first: Option<(StatusCode, String)>, report: &mut Report) -> Opened {
    let accept = [(ACCEPT, HeaderValue::from_static(EVENT_STREAM))];
    let seen = probe.ask(Method::GET, &accept, &Bytes::new(), is_whole_event, patience).await;
    let names_endpoint = |seen: &Seen| {
        String::from_utf8_lossy(&seen.body).contains("event: endpoint")
            || String::from_utf8_lossy(&seen.body).contains("event:endpoint")
    };
    match (seen, first) {
        (Some(Ok(seen)), _) if seen.status.is_success() && names_endpoint(&seen) => {
            report.fact("transport", "http+sse");
            report.good("http-sse", "speaks HTTP+SSE of 2024-11-05");
            report.note("older-transport", "that transport was replaced in 2025-03-26; clients drop it by and by");
            Opened::Unknown
        }
        (Some(Ok(seen)), None) if seen.status == StatusCode::UNAUTHORIZED => {
            report.bad("unauthorized", "the server wants credentials (HTTP 401)", "give them with --header");
            Opened::Hopeless
        }
        (Some(Ok(seen)), None) => {
            refused(seen.status, "no stream of HTTP+SSE", report);
            Opened::Hopeless
        }
        (_, Some((status, said))) => {
            refused(status, &said, report);
            Opened::Hopeless
        }
        (_, None) => {
            report.bad("silent", "it did not open a stream of HTTP+SSE", "check the path, which is often /sse");
            Opened::Hopeless
        }
    }
}

/// What the server does with sessions; the one that was opened is ended.
async fn session(probe: &Probe, seen: &Seen, answer: &Value, patience: Duration, report: &mut Report) {
    let Some(id) = seen.headers.get(SESSION_ID) else {
        report.part("session", "id", false);
        return report.note("no-session-id", "keeps no sessions by id (no Mcp-Session-Id)");
    };
    report.part("session", "id", true);
    let mut headers = vec![(HeaderName::from_static(SESSION_ID), id.clone())];
    if let Some(version) =
        answer["result"]["protocolVersion"].as_str().and_then(|version| HeaderValue::from_str(version).ok())
    {
        headers.push((HeaderName::from_static(PROTOCOL_VERSION), version));
    }
    let status = |seen: Option<Result<Seen, SendError>>| seen.and_then(Result::ok).map(|seen| seen.status);
    let mut listening = headers.clone();
    listening.push((ACCEPT, HeaderValue::from_static(EVENT_STREAM)));
    let stream = status(probe.ask(Method::GET, &listening, &Bytes::new(), |_| true, patience).await);
    let ended = status(probe.ask(Method::DELETE, &headers, &Bytes::new(), |_| true, patience).await);
    let stream_offered = stream.is_some_and(|status| status == StatusCode::OK);
    let can_end = ended.is_some_and(|status| status.is_success());
    report.part("session", "stream", stream_offered);
    report.part("session", "delete", can_end);
    let stream = if stream_offered { "offers a stream for what it says by itself" } else { "offers no stream by GET" };
    let end = if can_end { "ends them on DELETE" } else { "does not end them on DELETE" };
    report.good("sessions", format!("keeps sessions, {stream}, {end}"));
}

/// The JSON-RPC answer in a body: JSON, or the first event with one.
fn message(seen: &Seen) -> Option<Value> {
    let text = String::from_utf8_lossy(&seen.body);
    let whole = serde_json::from_str(&text).ok();
    let events = || text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok());
    let answers =
        |value: &Value| value["jsonrpc"] == "2.0" && (value.get("result").is_some() || value.get("error").is_some());
    whole.filter(answers).or_else(|| events().find(answers))
}

/// Whether an event stream has brought an event with an answer; a body of another kind is read to its end.
fn is_whole_event(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let Some(end) = text.rfind("\n\n").or_else(|| text.rfind("\r\n\r\n")) else { return false };
    let events = text[..end].lines().filter_map(|line| line.strip_prefix("data:"));
    text.contains("event: endpoint")
        || events.map(str::trim).any(|data| data.contains("\"result\"") || data.contains("\"error\""))
}
