//! Where an orchestrator and the certificates of its programs are: flags that targets, fronts and plugins share.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;

use crate::target::text_without_secrets;
use crate::transport::quic::certs::Certs;
use crate::transport::quic::{Address, ORCHESTRATOR_PORT};

/// Where Orchestra's own programs keep their certificates.
const CERTS_DIR: &str = "~/.orchestra/certs";
/// Where Orchestra's own bridge looks for the orchestrator.
const ORCHESTRATOR: &str = "localhost:9100";

/// The flags of Orchestra's programs. They are written in Go, where one dash is as good as two.
const GO_FLAGS: [&str; 4] = ["orchestrator-addr", "certs-dir", "listen-addr", "manifest"];

/// Gives the flags of Orchestra's programs their second dash, up to COMMAND.
pub(super) fn take_go_flags(argv: &mut [OsString]) {
    for word in argv.iter_mut().skip(1).take_while(|word| *word != "--") {
        let Some(flag) = word.to_str().and_then(|word| word.strip_prefix('-')) else { continue };
        if GO_FLAGS.contains(&flag.split_once('=').map_or(flag, |(name, _)| name)) {
            *word = format!("--{flag}").into();
        }
    }
}

#[derive(Debug, Clone, ClapArgs)]
pub(super) struct OrchestraArgs {
    /// An Orchestra orchestrator: the target if there is no other, or where --plugin registers [without ADDR: localhost:9100]
    #[arg(long, value_name = "ADDR", value_parser = host_and_port, num_args = 0..=1, default_missing_value = ORCHESTRATOR,
        overrides_with = "orchestrator_addr")]
    orchestrator_addr: Option<Address>,
    #[command(flatten)]
    certs: CertsArgs,
}

/// The folder of certificates.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct CertsArgs {
    /// The folder of certificates for QUIC, made if there are none
    #[arg(long, value_name = "DIR", default_value = CERTS_DIR, overrides_with = "certs_dir", global = true)]
    certs_dir: PathBuf,
}

impl CertsArgs {
    pub(super) fn open(&self) -> Result<Certs> {
        let folder = match self.certs_dir.strip_prefix("~") {
            Ok(below) => {
                let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
                PathBuf::from(home.context("--certs-dir: HOME is not set")?).join(below)
            }
            Err(_) => self.certs_dir.clone(),
        };
        Ok(Certs::new(folder))
    }
}

impl OrchestraArgs {
    pub(super) fn address(&self) -> Option<&Address> {
        self.orchestrator_addr.as_ref()
    }

    pub(super) fn certs(&self) -> Result<Certs> {
        self.certs.open()
    }

    /// Takes the flags that an orchestrator adds to a plugin's command line, which otherwise would go to the program that
    /// the plugin runs. Gives back where to listen, if it says so.
    pub(super) fn take_from(&mut self, command: &mut Vec<OsString>) -> Result<Option<String>> {
        let mut listen = None;
        while let Some((name, value)) = command.last().and_then(|word| word.to_str()?.split_once('=')) {
            let Some(flag) = name.strip_prefix("--").or_else(|| name.strip_prefix('-')) else { break };
            match flag {
                "orchestrator-addr" if !value.is_empty() => {
                    self.orchestrator_addr = Some(host_and_port(value).map_err(anyhow::Error::msg)?);
                }
                "certs-dir" => self.certs.certs_dir = value.into(),
                "listen-addr" => listen = Some(value.to_owned()),
                "orchestrator-addr" => {}
                _ => break,
            }
            command.pop();
        }
        Ok(listen)
    }
}

/// HOST, HOST:PORT, or an IP address of either kind.
pub(super) fn host_and_port(text: &str) -> Result<Address, String> {
    let text = text.trim_end_matches('/');
    let expected = || format!("expected HOST:PORT, got {:?}", text_without_secrets(text));
    let (host, port) = match text.rsplit_once(':') {
        // An IPv6 address without its port is not in brackets, or ends with one.
        Some((host, _)) if host.contains(':') && !host.starts_with('[') => (text, None),
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.map_or(Ok(ORCHESTRATOR_PORT), |port| port.parse().map_err(|_| expected()))?;
    if host.is_empty() || host.contains(['/', '@', '?', '[']) {
        return Err(expected());
    }
    Ok(Address { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, host, port) in [
            ("localhost:9100", "localhost", 9100),
            ("localhost", "localhost", 50100),
            ("127.0.0.1:1/", "127.0.0.1", 1),
            ("[::1]:2", "::1", 2),
            ("::1", "::1", 50100),
            ("[::1]", "::1", 50100),
        ] {
            assert_eq!(host_and_port(text), Ok(Address { host: host.into(), port }), "{text}");
        }
        for text in ["", ":1", "a:b", "a:99999", "user@a:1", "a/b:1"] {
            assert!(host_and_port(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_of_go_programs_have_one_dash_or_two() {
        for (typed, read) in [
            ("m connect -orchestrator-addr h:1 -certs-dir=/c", "m connect --orchestrator-addr h:1 --certs-dir=/c"),
            ("m connect --orchestrator-addr h:1 -v", "m connect --orchestrator-addr h:1 -v"),
            ("m expose -manifest -listen-addr=h:0", "m expose --manifest --listen-addr=h:0"),
            ("m connect -- go-server -certs-dir /c", "m connect -- go-server -certs-dir /c"),
            ("m connect -certs-directory", "m connect -certs-directory"),
        ] {
            let mut argv: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            take_go_flags(&mut argv);
            assert_eq!(argv.join(std::ffi::OsStr::new(" ")), *read);
        }
    }

    #[test]
    fn what_an_orchestrator_adds_is_not_given_to_the_program() {
        let certs = CertsArgs { certs_dir: "/old".into() };
        let mut args = OrchestraArgs { orchestrator_addr: None, certs };
        let words = ["my-server", "--x=1", "--orchestrator-addr=h:1", "-listen-addr=localhost:0", "--certs-dir=/c"];
        let mut command: Vec<OsString> = words.map(OsString::from).to_vec();
        assert_eq!(args.take_from(&mut command).unwrap().as_deref(), Some("localhost:0"));
        assert_eq!(command, ["my-server", "--x=1"]);
        assert_eq!(args.address(), Some(&Address { host: "h".into(), port: 1 }));
        assert_eq!(args.certs().unwrap().folder(), "/c");
    }
}
