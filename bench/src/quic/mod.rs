//! The third benchmark: the same bridge and the same gateway, with QUIC or HTTP between them, beside Orchestra's own bridge.

mod goals;
mod orchestrator;

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::Args;
use crate::connect::Report;
use crate::connect::contender::Contender;
use crate::connect::measure::{self, Server};
use crate::connect::piped::Piped;
use crate::connect::summary::Summary;
use crate::places::{Places, Skipped, missing, only, program, words};

/// Orchestra's own bridge.
const GO: &str = "go";
/// The same two in front of Orchestra's own orchestrator, with mcpwire as its plugin.
const BEHIND: [&str; 2] = ["quic-orch", "go-orch"];
const NAMES: [&str; 6] = ["http", "quic+mcp", "quic", GO, BEHIND[0], BEHIND[1]];

/// Whether a contender is Orchestra's own bridge, for whose faults we do not answer.
pub fn is_theirs(name: &str) -> bool {
    name == GO || name == BEHIND[1]
}

/// The names of all contenders, installed or not.
pub fn names() -> Vec<String> {
    words(&NAMES)
}

pub fn run(places: &Places, args: &Args) -> Result<Report> {
    let certs = places.here.join("state/certs");
    let certs = certs.to_str().context("the path of the certificates is no text")?;
    let mcpwire = places.mcpwire.display().to_string();
    let mut gateway = Command::new(&mcpwire);
    gateway.args([
        "expose",
        "--http",
        "127.0.0.1:0",
        "--quic",
        "127.0.0.1:0",
        "--print-url",
        "--certs-dir",
        certs,
        "--",
    ]);
    gateway.arg(places.here.join("fast-stdio")).stderr(if args.verbose { Stdio::inherit() } else { Stdio::null() });
    let mut gateway = Piped::spawn(gateway)?;
    let mut url = || Ok::<_, anyhow::Error>(String::from_utf8(gateway.line()?.to_vec())?);
    let (http, quic) = (url()?, url()?);
    let address = quic.strip_prefix("quic://").context("expected a quic:// address")?;

    let go = program(&places.peers, "orchestra/transport-stdio");
    let orchestrator = program(&places.peers, "orchestra/orchestrator");
    let wanted = args.only.is_empty() || args.only.iter().any(|name| BEHIND.contains(&name.as_str()));
    let orchestrator = match missing(std::slice::from_ref(&orchestrator)) {
        None if wanted => Some(orchestrator::start(&orchestrator, places, certs)?),
        _ => None,
    };
    let behind = orchestrator.as_ref().map_or("", |(_, at)| at);
    let lines = [
        words(&[&mcpwire, "connect", &http]),
        words(&[&mcpwire, "connect", &format!("quic+mcp://{address}"), "--certs-dir", certs]),
        words(&[&mcpwire, "connect", &quic, "--certs-dir", certs]),
        words(&[&go, "--orchestrator-addr", address, "--certs-dir", certs]),
        words(&[&mcpwire, "connect", "--orchestrator-addr", behind, "--certs-dir", certs]),
        words(&[&go, "--orchestrator-addr", behind, "--certs-dir", certs]),
    ];
    let mut skipped = Vec::new();
    let mut contenders = Vec::new();
    for (name, words) in NAMES.into_iter().zip(lines) {
        let lacks = |what: &str| Skipped { name: name.to_string(), why: format!("no {what}") };
        match missing(&words[..1]) {
            Some(path) => skipped.push(lacks(&path.display().to_string())),
            None if orchestrator.is_none() && BEHIND.contains(&name) => skipped.push(lacks("orchestrator")),
            None => contenders.push(Contender::new(name, words, places, args.verbose)),
        }
    }
    only(&mut contenders, &mut skipped, &args.only);
    let measured = measure::run(&contenders, args.quick, &Server { url: http, pid: gateway.pid() });

    let summaries: Vec<Summary> = measured.into_iter().map(Summary::of).collect();
    Ok(Report {
        cores: std::thread::available_parallelism()?.get(),
        quick: args.quick,
        base: "http",
        title: "goals of mcpwire over QUIC",
        binary_mb: fs::metadata(&places.mcpwire).ok().map(|file| file.len() as f64 / 1e6),
        skipped,
        goals: goals::check(&summaries),
        contenders: summaries,
    })
}
