//! Targets: anything that speaks MCP as a server, with all it takes to open a link to it.

mod later;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use mcpwire_proto::Policy;
use mcpwire_proto::conversation::{Config, Key, Known};
use mcpwire_proto::session::legacy;
use tokio::task::JoinHandle;
use url::Url;

pub use self::later::Later;
use crate::bridge::Reach;
use crate::folder::Folder;
use crate::link::Link;
use crate::transport::child;
use crate::transport::http::client::{self, Transport};
use crate::transport::{quic, unix};

/// A server, and how to reach it. Nothing is started or connected before it is opened.
#[derive(Debug)]
pub enum Target {
    Http(Box<client::Options>),
    Child(child::Options),
    Unix {
        path: PathBuf,
        max_message: usize,
    },
    Folder(Folder),
    Orchestra(quic::TargetOptions),
    QuicMcp(quic::TargetOptions),
    /// One of the above that takes time to find out.
    Later(Later),
    /// One of the above of which bridges offer only what a policy allows.
    Limited(Box<Target>, Policy),
}

impl Target {
    /// A server behind a URL, over whichever transport it speaks.
    pub fn http(url: Url) -> Target {
        Target::Http(Box::new(client::Options::new(url)))
    }

    /// A program on its stdin and stdout.
    pub fn command(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Target {
        Target::Child(child::Options::new(program.as_ref(), args))
    }

    /// A folder of prompts, resources and data.
    pub fn folder(path: impl AsRef<Path>) -> Result<Target> {
        let settings = crate::folder::Settings { folder: path.as_ref().to_owned(), ..Default::default() };
        Ok(Target::Folder(Folder::open(&settings)?))
    }

    /// The same target, of which bridges offer only what the policy allows.
    pub fn limited(self, policy: Policy) -> Target {
        if policy.is_open() { self } else { Target::Limited(Box::new(self), policy) }
    }

    /// The target itself, and its policy.
    pub fn into_parts(self) -> (Target, Policy) {
        match self {
            Target::Limited(target, policy) => (*target, policy),
            target => (target, Policy::default()),
        }
    }

    /// How to reach it, as often as needed.
    pub fn reach(self) -> Reach {
        let (target, policy) = self.into_parts();
        let known = match &target {
            // HTTP+SSE is older than requests that stand for themselves.
            Target::Http(options) if options.transport == Transport::Sse => {
                Known { session: Some(true), stateless: Some(false), ..Known::default() }
            }
            // Both eras are spoken by ourselves.
            Target::Folder(_) | Target::Orchestra(_) => {
                Known { session: Some(true), stateless: Some(true), ..Known::default() }
            }
            _ => Known::default(),
        };
        let reach = Reach::new(Arc::new(move || target.open().map(|(link, goodbye)| (link, Some(goodbye)))));
        reach.learn(known);
        reach.limited(policy)
    }

    /// Makes a link to the target. The handle completes when the link was dropped and all is put away. A policy is applied
    /// by bridges, not by links.
    pub fn open(&self) -> Result<(Link, JoinHandle<()>)> {
        Ok(match self {
            Target::Http(options) => client::connect(client::Options::clone(options))?,
            Target::Child(options) => child::connect(options.clone()),
            Target::Folder(folder) => folder.connect(),
            Target::Unix { path, max_message } => unix::connect(path.clone(), *max_message),
            Target::Orchestra(options) => quic::connect(options.clone())?,
            Target::QuicMcp(options) => quic::connect_mcp(options.clone())?,
            Target::Later(later) => later.open(),
            Target::Limited(target, _) => target.open()?,
        })
    }

    /// How a conversation with it behaves, where nothing else is asked for.
    pub fn config(&self) -> Result<Config> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).context("cannot get random bytes")?;
        let relay = legacy::Config { seed: fastrand::u64(..), ..legacy::Config::default() };
        Ok(Config { relay, sorted: self.is_sorted(), key: Key(key), ..Config::default() })
    }

    /// Whether its transport tells to which request a message belongs.
    fn is_sorted(&self) -> bool {
        match self {
            Target::Http(_) | Target::Orchestra(_) | Target::QuicMcp(_) => true,
            Target::Child(_) | Target::Unix { .. } | Target::Folder(_) => false,
            Target::Later(later) => later.sorted,
            Target::Limited(target, _) => target.is_sorted(),
        }
    }

    /// The target as peers may see it: neither paths nor secrets.
    pub fn label(&self) -> String {
        match self {
            Target::Http(options) => options.url.host_str().unwrap_or_default().to_owned(),
            Target::Unix { .. } => "unix socket".to_owned(),
            Target::Child(options) => options.name.clone(),
            Target::Folder(_) => "folder".to_owned(),
            Target::Orchestra(options) | Target::QuicMcp(options) => options.address.host.clone(),
            Target::Later(later) => later.name.clone(),
            Target::Limited(target, _) => target.label(),
        }
    }
}

impl From<Target> for Reach {
    fn from(target: Target) -> Reach {
        target.reach()
    }
}

/// The target as its user may see it: without what may be secret in it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Http(options) => f.write_str(&options.shown()),
            Target::Child(options) => f.write_str(&options.name),
            Target::Unix { path, .. } => write!(f, "unix:{}", path.display()),
            Target::Folder(_) => f.write_str("the folder"),
            Target::Orchestra(options) => write!(f, "quic://{}", options.address),
            Target::QuicMcp(options) => write!(f, "quic+mcp://{}", options.address),
            Target::Later(later) => f.write_str(&later.name),
            Target::Limited(target, _) => target.fmt(f),
        }
    }
}

/// A URL without what may be secret in it.
pub fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    if url.query().is_some() {
        url.set_query(Some("..."));
    }
    url.to_string()
}

/// The same for a text that may be no URL: without whatever may be a password or a query.
pub fn text_without_secrets(text: &str) -> String {
    let (scheme, rest) = match text.find("://") {
        Some(at) => text.split_at(at + 3),
        None => ("", text),
    };
    // A password may hold anything, also what would end the host of a URL.
    let rest = rest.rfind('@').map_or(rest, |at| &rest[at + 1..]);
    match rest.find(['?', '#']) {
        Some(at) => format!("{scheme}{}?...", &rest[..at]),
        None => format!("{scheme}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_url_holds_no_secrets() {
        let url = "https://user:pw@example.com/mcp?key=s3cret".parse().unwrap();
        assert_eq!(without_secrets(&url), "https://example.com/mcp?...");
        for (text, shown) in [
            ("https://user:pw@example.com/mcp?key=s3cret#s3cret", "https://example.com/mcp?..."),
            ("http://user:p/w?@ex ample/", "http://ex ample/"),
            ("user:pw@host:http", "host:http"),
            ("http://host:port/mcp", "http://host:port/mcp"),
            ("files", "files"),
        ] {
            assert_eq!(text_without_secrets(text), shown);
        }
    }
}
