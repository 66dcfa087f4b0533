//! Requests over HTTP: the flags for headers and certificates, the environment's variables and proxies.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use url::{Host, Url};

use crate::transport::http::client::{Options, Proxy, Tls};

/// What is said to a server behind a URL, and how it is known.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct HttpArgs {
    /// Send this header with every request; ${NAME} stands for an environment variable
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'")]
    headers: Vec<String>,
    /// Trust the authorities and the very certificates in this PEM file, besides the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Our certificate for the server, in PEM
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// The private key of our certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
    /// Take any certificate from the server: anybody on the way can read and change everything
    #[arg(long)]
    insecure: bool,
}

impl HttpArgs {
    pub(super) fn has_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Reads the files and variables that the arguments name.
    pub(super) fn options(&self, url: &Url) -> Result<Options> {
        let mut headers = HeaderMap::new();
        for text in &self.headers {
            let (name, value) = header(text)?;
            headers.append(name, value);
        }
        if self.insecure {
            tracing::warn!(target: "connect", "--insecure: the server's certificate is not checked");
        }
        let authorities = self.ca.as_deref().map(read).transpose()?;
        let identity = match (&self.client_cert, &self.client_key) {
            (Some(chain), Some(key)) => Some((read(chain)?, read(key)?)),
            _ => None,
        };
        let tls = Tls { authorities, identity, insecure: self.insecure };
        Ok(Options { proxy: proxy_for(url), headers, tls, ..Options::new(url.clone()) })
    }
}

pub(super) fn our_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The proxy that the environment names for this URL. A server on this machine is never behind one.
pub(super) fn proxy_for(url: &Url) -> Option<Proxy> {
    let local = match url.host()? {
        Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    if local {
        return None;
    }
    let uri: Uri = url.as_str().parse().ok()?;
    let intercept = Matcher::from_env().intercept(&uri)?;
    let credentials = intercept.raw_auth().map(|(user, password)| (user.to_owned(), password.to_owned()));
    let proxy = Proxy { uri: intercept.uri().clone(), authorization: intercept.basic_auth().cloned(), credentials };
    tracing::info!(target: "connect", "through the proxy at {}", intercept.uri().host().unwrap_or_default());
    Some(proxy)
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue)> {
    let Some((name, value)) = text.split_once(':') else {
        bail!("--header: expected 'NAME: VALUE', got no colon");
    };
    // What is no name may be a part of the value, and secret.
    let name: HeaderName =
        name.trim().parse().context("--header: expected 'NAME: VALUE', got a name that no header can have")?;
    let value = expand(value.trim(), our_variable).with_context(|| format!("--header {name}"))?;
    let mut value = HeaderValue::from_str(&value).with_context(|| format!("--header {name}: bad value"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Puts environment variables in the place of `${NAME}`.
pub(super) fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { bail!("expected '}}' behind '${{'") };
        out.push_str(before);
        out.push_str(&variable(name).with_context(|| format!("environment variable {name} is not set"))?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_and_missing_ones_named() {
        let variable = |name: &str| (name == "TOKEN").then(|| "t0p".to_owned());
        assert_eq!(expand("Bearer ${TOKEN}!", variable).unwrap(), "Bearer t0p!");
        assert_eq!(expand("$5 {x}", variable).unwrap(), "$5 {x}");
        assert!(expand("${NONE}", variable).unwrap_err().to_string().contains("NONE"));
        assert!(expand("${TOKEN", variable).is_err());
    }
}
