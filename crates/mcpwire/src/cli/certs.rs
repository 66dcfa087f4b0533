//! `mcpwire certs`: the certificates of Orchestra's programs, seen, made and renewed.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, Subcommand};

use super::log::{self, LogArgs};
use super::orchestra::CertsArgs;
use crate::transport::quic::certs::{AUTHORITY, View};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Show, make and renew the certificates for QUIC
///
/// Without a command it shows them. Programs make theirs when they first need them; this is for other machines and other
/// names.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    certs: CertsArgs,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show every certificate: its name, how long it is valid, what it is good for
    Show,
    /// Make a program's certificate, and the authority if there is none; one that is good is left alone
    Make {
        /// The program, as in orchestrator or my-plugin-client
        name: String,
        /// Make it good for this host name or address, too, besides loopback; may be repeated
        #[arg(long, value_name = "HOST")]
        host: Vec<String>,
    },
    /// Make certificates anew: of one program, of all, or the authority
    Renew {
        /// The program; all of them if none is named
        name: Option<String>,
        /// The authority and all programs: what runs with the old ones must be started anew
        #[arg(long, conflicts_with = "name")]
        ca: bool,
    },
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    log::init(&args.log);
    let certs = args.certs.open()?;
    match args.command.as_ref().unwrap_or(&Command::Show) {
        Command::Show => {}
        Command::Make { name, host } if host.is_empty() => drop(certs.identity(name)?),
        Command::Make { name, host } => {
            // One that is good for these hosts already is left alone, too.
            let known = certs.list()?.into_iter().find(|view| view.name == *name);
            match known.is_some_and(|known| host.iter().all(|host| known.hosts.contains(host))) {
                true => drop(certs.identity(name)?),
                false => drop(certs.renew(name, host)?),
            }
        }
        Command::Renew { name: Some(name), .. } => {
            if !certs.list()?.iter().any(|view| view.name == *name) {
                bail!("there is no certificate of {name} in {}", certs.folder().display());
            }
            certs.renew(name, &[])?;
        }
        Command::Renew { name: None, ca } => {
            if *ca {
                certs.renew_authority()?;
            }
            for view in certs.list()?.iter().filter(|view| view.name != AUTHORITY) {
                certs.renew(&view.name, &[])?;
            }
        }
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{}", certs.folder().display()).context("cannot write to stdout")?;
    for view in certs.list()? {
        writeln!(out, "{}", line(&view, SystemTime::now())).context("cannot write to stdout")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(view: &View, now: SystemTime) -> String {
    let left = match view.until.duration_since(now) {
        Ok(left) => format!("{} days left", left.as_secs() / DAY.as_secs()),
        Err(_) => "ENDED".to_owned(),
    };
    let hosts = if view.hosts.is_empty() { String::new() } else { format!("  {}", view.hosts.join(" ")) };
    format!("  {:<28} until {} ({left}){hosts}", view.name, view.until_text())
}
