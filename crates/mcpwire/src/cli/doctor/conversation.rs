//! The protocol itself: eras and versions, what the server can do, whether its lists are sound, how fast it answers.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use mcpwire_proto::conversation::Config;
use mcpwire_proto::meta::key;
use mcpwire_proto::version::{self, V2026_07_28};
use mcpwire_proto::{Message, method};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::report::{Report, excerpt};
use super::{Opened, initialize};
use crate::cli::ask::ping::{millis, percentile, shown};
use crate::client::{Client, Error, Options};
use crate::link::Event;
use crate::target::Target;

/// A server of the session era may not answer at all what it does not know.
const DISCOVERY: Duration = Duration::from_secs(3);
const PINGS: usize = 10;

pub(super) async fn examine(target: Target, config: Config, opened: Opened, patience: Duration, report: &mut Report) {
    let session = match opened {
        Opened::Session(result) => Some(result),
        Opened::Unknown => ask(&target, initialize(), patience).await,
        Opened::Refused | Opened::Hopeless => None,
    };
    let stateless = ask(&target, discover(), DISCOVERY.min(patience)).await;
    tell_eras(session.as_ref(), stateless.as_ref(), report);
    let label = target.label();
    let options = Options {
        name: label,
        timeout: patience,
        connect_timeout: patience,
        recover: false,
        bridge: config,
        ..Options::default()
    };
    let asked = Instant::now();
    let client = match Client::connect(target.reach(), options).await {
        Ok(client) => client,
        Err(error) => return tell_failure(&error, report),
    };
    let opens = asked.elapsed();
    report.part("latencies", "initialize", millis(opens));
    tell_server(&client, report);
    let lists = check_lists(&client, report).await;
    // The stateless era has no ping: the bridge would answer in the server's place.
    let pings = if session.is_some() { ping(&client, report).await } else { Vec::new() };
    let mut speed = format!("opens in {}, lists in {}", shown(opens), shown(lists));
    if !pings.is_empty() {
        speed.push_str(&format!(", answers ping in {} (median of {})", shown(percentile(&pings, 50)), pings.len()));
    }
    report.good("speed", speed);
    client.close().await;
}

fn discover() -> String {
    let meta = json!({
        key::PROTOCOL_VERSION: V2026_07_28,
        key::CLIENT_INFO: {"name": "mcpwire-doctor", "version": env!("CARGO_PKG_VERSION")},
        key::CLIENT_CAPABILITIES: {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method::DISCOVER, "params": {"_meta": meta}}).to_string()
}

/// One request on a link of its own, without a bridge; the result, if there is one.
async fn ask(target: &Target, request: String, patience: Duration) -> Option<Value> {
    let (mut link, goodbye) = target.open().ok()?;
    let request = Message::parse(request.into()).ok()?;
    let answered = timeout(patience, async {
        link.tx.send(request.into()).await.ok()?;
        loop {
            match link.rx.recv().await? {
                Event::Packet(packet) if packet.message.is_response() => {
                    let answer: Value = serde_json::from_slice(packet.message.as_bytes()).ok()?;
                    return answer.get("result").cloned();
                }
                Event::Failed { .. } | Event::Gone(_) | Event::SessionLost(_) => return None,
                _ => {}
            }
        }
    });
    let answer = answered.await.ok().flatten();
    drop(link);
    let _ = timeout(patience, goodbye).await;
    answer
}

fn tell_eras(session: Option<&Value>, stateless: Option<&Value>, report: &mut Report) {
    let opened = session.and_then(|result| result["protocolVersion"].as_str());
    let offered = stateless.and_then(|result| result["supportedVersions"].as_array());
    let offered: Vec<&str> = offered.into_iter().flatten().filter_map(Value::as_str).collect();
    let mut versions: Vec<&str> = offered.clone();
    versions.extend(opened.filter(|opened| !offered.contains(opened)));
    report.fact("protocolVersions", versions);
    let (era, text) = match (opened, stateless.is_some()) {
        (Some(opened), true) => (
            "both",
            format!("of both eras: sessions ({opened}) and requests without sessions ({})", offered.join(", ")),
        ),
        (Some(opened), false) => ("session", format!("of the session era: opens sessions of {opened}")),
        (None, true) => ("stateless", format!("of the stateless era ({}): opens no sessions", offered.join(", "))),
        (None, false) => {
            report.fact("era", Value::Null);
            let advice = "it may still want something that mcpwire does not know; the next lines tell how it went";
            return report.warn("no-era", "it neither opens a session nor answers server/discover", advice);
        }
    };
    report.fact("era", era);
    report.good("era", text);
    if let Some(unknown) = opened.filter(|opened| !version::ALL.contains(opened)) {
        let text = format!("it chose version {unknown}, which is none that mcpwire knows");
        report.warn("unknown-version", text, "messages are passed as they are; update mcpwire if there is a newer one");
    }
}

fn tell_failure(error: &Error, report: &mut Report) {
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        text = format!("{text}: {cause}");
    }
    let advice = match error {
        Error::ConnectTimeout { .. } => "give it longer with --patience, or look into the server's log",
        Error::Unreachable(_) | Error::NotConnected => "is the server running, and is this its address?",
        Error::Closed(_) => "the server ended the connection; its log may tell why",
        _ => "the server's log may tell more; --verbose shows what was said",
    };
    report.bad("cannot-open", format!("cannot connect: {text}"), advice);
}

fn tell_server(client: &Client, report: &mut Report) {
    let server = client.server();
    let info = &server.info;
    report.fact("server", json!({"name": info.name, "version": info.version, "title": info.title}));
    report.fact("capabilities", server.capabilities.clone());
    report.fact("instructions", server.instructions.is_some());
    match info.name.is_empty() {
        true => {
            report.warn("no-name", "it does not say what it is called", "serverInfo should have a name and a version")
        }
        false => report.good("server", format!("{} {}", excerpt(&info.name), excerpt(&info.version))),
    }
    let can: Vec<&str> = server.capabilities.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    match can.is_empty() {
        true => report.warn(
            "no-capabilities",
            "it declares nothing that it can do",
            "declare tools, prompts or resources in the answer to initialize",
        ),
        false => report.good("capabilities", format!("can do: {}", excerpt(&can.join(", ")))),
    }
}

/// All lists; gives the time for the tools, or for whatever there is.
async fn check_lists(client: &Client, report: &mut Report) -> Duration {
    let asked = Instant::now();
    let mut counts = json!({});
    let tools = client.list_tools().await;
    let time = asked.elapsed();
    report.part("latencies", "list", millis(time));
    match &tools {
        Ok(tools) => {
            counts["tools"] = tools.len().into();
            let mut names = HashSet::new();
            for tool in tools {
                if !names.insert(tool.name.as_str()) {
                    let text = format!("there are two tools called {}", excerpt(&tool.name));
                    report.warn("double-tool", text, "only one of them can be called: give them different names");
                }
                let schema: Option<Value> =
                    tool.input_schema.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
                if schema.is_none_or(|schema| schema["type"] != "object") {
                    let text = format!("the inputSchema of {} is no schema of an object", excerpt(&tool.name));
                    report.warn("bad-schema", text, "clients refuse such tools: it must have \"type\": \"object\"");
                }
            }
        }
        Err(error) => list_failed("tools", error, report),
    }
    let (resources, templates) = (client.list_resources().await, client.list_templates().await);
    match resources.and_then(|resources| Ok((resources.len(), templates?.len()))) {
        Ok((resources, templates)) => {
            counts["resources"] = resources.into();
            counts["resourceTemplates"] = templates.into();
        }
        Err(error) => list_failed("resources", &error, report),
    }
    match client.list_prompts().await {
        Ok(prompts) => counts["prompts"] = prompts.len().into(),
        Err(error) => list_failed("prompts", &error, report),
    }
    let shown: Vec<String> = ["tools", "resources", "resourceTemplates", "prompts"]
        .iter()
        .filter_map(|name| {
            Some(format!(
                "{} {}",
                counts[name].as_u64()?,
                if *name == "resourceTemplates" { "templates" } else { name }
            ))
        })
        .collect();
    report.good("lists", format!("has {}", shown.join(", ")));
    report.fact("counts", counts);
    time
}

fn list_failed(what: &str, error: &Error, report: &mut Report) {
    let text = format!("it declares {what}, but cannot list them: {}", excerpt(&error.to_string()));
    report.bad("list-failed", text, "look into the server's log");
}

async fn ping(client: &Client, report: &mut Report) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..PINGS {
        let asked = Instant::now();
        if let Err(error) = client.ping().await {
            let text = format!("it does not answer ping: {}", excerpt(&error.to_string()));
            report.warn(
                "no-ping",
                text,
                "every server of the session era must answer ping; clients use it to notice dead ones",
            );
            return Vec::new();
        }
        times.push(asked.elapsed());
    }
    times.sort_unstable();
    report.part("latencies", "pingP50", millis(percentile(&times, 50)));
    times
}
