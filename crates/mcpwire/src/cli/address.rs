//! Targets as they are written.

use std::path::PathBuf;

use url::Url;

use super::folder::{self, Place};
use super::orchestra::host_and_port;
use crate::transport::quic;

/// A target as it is written.
#[derive(Debug, Clone)]
pub(super) enum Address {
    Http(Url),
    Unix(PathBuf),
    Folder(Place),
    Orchestra(quic::Address),
    QuicMcp(quic::Address),
    /// A server of this name in a configuration.
    Named(String),
}

pub(super) fn address(text: &str) -> Result<Address, String> {
    let expected = "expected an http:// or https:// URL, quic://HOST:PORT, quic+mcp://HOST:PORT, unix:PATH, a folder, \
                    the name of a configured server, or -- COMMAND";
    if let Some(place) = folder::place(text) {
        return Ok(Address::Folder(place));
    }
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.is_empty() { Err(format!("{expected}; came no path")) } else { Ok(Address::Unix(path.into())) };
    }
    if let Some(at) = text.strip_prefix("quic://") {
        return host_and_port(at).map(Address::Orchestra);
    }
    if let Some(at) = text.strip_prefix("quic+mcp://") {
        return host_and_port(at).map(Address::QuicMcp);
    }
    if is_name(text) {
        return Ok(Address::Named(text.to_owned()));
    }
    let url: Url = text.parse().map_err(|e| format!("{expected}: {e}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(format!("{expected}; came scheme {:?}", url.scheme()));
    }
    Ok(Address::Http(url))
}

/// Whether servers may be called so.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}
