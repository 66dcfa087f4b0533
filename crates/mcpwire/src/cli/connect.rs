//! `mcpwire connect`: our stdin and stdout, joined to a server.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use mcpwire_proto::frame::DEFAULT_LIMIT;
use mcpwire_proto::session::legacy::{Config, Session};
use url::{Host, Url};

use super::log::{self, LogArgs};
use super::{duration, hub};
use crate::bridge::{self, End};
use crate::shutdown;
use crate::transport::http::client::{self, Options, Proxy, Tls, Transport};
use crate::transport::stdio;

/// Connect stdin and stdout to an MCP server
///
/// An MCP client starts this and speaks newline-delimited JSON-RPC with it. Exit codes: 0 when the client is done, 1 when
/// it could not start, 2 when the command line is not understood.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Where the server is: an http:// or https:// URL
    #[arg(value_name = "URL", value_parser = server_url, required_unless_present = "mcp_hub")]
    url: Option<Url>,
    /// What the server speaks: Streamable HTTP, the older HTTP+SSE, or whichever it turns out to be
    #[arg(long, value_enum, default_value_t = Spoken::Auto)]
    transport: Spoken,
    /// The same as --transport sse
    #[arg(long, conflicts_with = "transport")]
    mcp_hub_mode: bool,
    /// Connect to the mcp-hub that runs on this machine; of several, to the one whose project is nearest
    #[arg(long, conflicts_with_all = ["url", "transport"])]
    mcp_hub: bool,
    /// Send this header with every request; ${NAME} stands for an environment variable
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'")]
    headers: Vec<String>,
    /// Give up a request after this long without an answer or progress, as in 30s or 5m [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// How long a request waits for a server that cannot be reached
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s")]
    wait: Duration,
    /// How long answers under way may still take when the client is done
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    drain: Duration,
    /// The largest message taken from either side, as in 10MiB
    #[arg(long, value_name = "SIZE", value_parser = size, default_value_t = Size(DEFAULT_LIMIT))]
    max_message: Size,
    /// Trust the authorities in this PEM file, besides the system's
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
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: Args) -> Result<ExitCode> {
    log::init(&args.log);
    let limit = args.max_message.0;
    let session =
        Session::new(Config { wait: args.wait, timeout: args.timeout, seed: fastrand::u64(..), ..Config::default() });
    let drain = args.drain;
    let options = options(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let outcome = runtime.block_on(async {
        let stop = shutdown::requested().context("cannot watch for signals")?;
        tracing::info!(target: "connect", "connecting stdin and stdout to {}", shown(&options.url));
        let (upstream, goodbye) = client::connect(options)?;
        let (downstream, stdout) = stdio::open(limit).context("cannot take over stdin and stdout")?;
        let end = bridge::run(downstream, upstream, session, stop, drain).await;
        tracing::info!(target: "connect", "{}", farewell(&end));
        if end != End::ClientGone {
            let _ = tokio::time::timeout(drain, stdout.written()).await;
        }
        let _ = goodbye.await;
        Ok(ExitCode::SUCCESS)
    });
    // A name lookup that hangs does not hold up the end.
    runtime.shutdown_background();
    outcome
}

fn farewell(end: &End) -> &'static str {
    match end {
        End::Done => "the client is done",
        End::CutShort => "ended before every answer had come",
        End::ClientGone => "the client is gone",
    }
}

fn options(args: Args) -> Result<Options> {
    let mut headers = HeaderMap::new();
    for text in &args.headers {
        let (name, value) = header(text)?;
        headers.append(name, value);
    }
    if args.insecure {
        tracing::warn!(target: "connect", "--insecure: the server's certificate is not checked");
    }
    let authorities = args.ca.as_deref().map(read).transpose()?;
    let identity = match (&args.client_cert, &args.client_key) {
        (Some(chain), Some(key)) => Some((read(chain)?, read(key)?)),
        _ => None,
    };
    let (url, transport) = match args.url {
        Some(url) if args.mcp_hub_mode => (url, Transport::Sse),
        Some(url) => (url, args.transport.into()),
        None => (hub::find()?, Transport::Sse),
    };
    Ok(Options {
        proxy: proxy_for(&url),
        url,
        transport,
        headers,
        tls: Tls { authorities, identity, insecure: args.insecure },
        max_message: args.max_message.0,
        resume_for: args.wait,
    })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The proxy that the environment names for this URL. A server on this machine is never behind one.
fn proxy_for(url: &Url) -> Option<Proxy> {
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

/// A URL without what may be secret in it.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if url.query().is_some() {
        url.set_query(Some("..."));
    }
    url.to_string()
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue)> {
    let Some((name, value)) = text.split_once(':') else {
        bail!("--header: expected 'NAME: VALUE', came no colon");
    };
    let name: HeaderName = name.trim().parse().with_context(|| format!("--header: bad name {name:?}"))?;
    let value = expand(value.trim(), |name| std::env::var(name).ok()).with_context(|| format!("--header {name}"))?;
    let mut value = HeaderValue::from_str(&value).with_context(|| format!("--header {name}: bad value"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Puts environment variables in the place of `${NAME}`.
fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String> {
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

fn server_url(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|e| format!("expected an http:// or https:// URL: {e}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(format!("expected an http:// or https:// URL, came scheme {:?}", url.scheme()));
    }
    Ok(url)
}

/// What the server speaks.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Spoken {
    Auto,
    Http,
    Sse,
}

impl From<Spoken> for Transport {
    fn from(spoken: Spoken) -> Transport {
        match spoken {
            Spoken::Auto => Transport::Auto,
            Spoken::Http => Transport::Streamable,
            Spoken::Sse => Transport::Sse,
        }
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size(usize);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}MiB", self.0 / (1024 * 1024))
    }
}

fn size(text: &str) -> Result<Size, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: usize = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        unit => return Err(format!("expected a unit such as MiB, came {unit:?}")),
    };
    let count: usize = digits.parse().map_err(|_| "expected a size such as 10MiB".to_owned())?;
    count.checked_mul(unit).filter(|size| *size > 0).map(Size).ok_or_else(|| "expected a size above 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_take_units() {
        assert_eq!(size("10MiB"), Ok(Size(10 << 20)));
        assert_eq!(size("1500"), Ok(Size(1500)));
        assert_eq!(size("2 kB"), Ok(Size(2000)));
        assert!(size("x").is_err() && size("0").is_err() && size("5 parsecs").is_err());
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(duration("soon").is_err());
    }

    #[test]
    fn variables_are_expanded_and_missing_ones_named() {
        let variable = |name: &str| (name == "TOKEN").then(|| "t0p".to_owned());
        assert_eq!(expand("Bearer ${TOKEN}!", variable).unwrap(), "Bearer t0p!");
        assert_eq!(expand("$5 {x}", variable).unwrap(), "$5 {x}");
        assert!(expand("${NONE}", variable).unwrap_err().to_string().contains("NONE"));
        assert!(expand("${TOKEN", variable).is_err());
    }

    #[test]
    fn what_is_shown_of_a_url_holds_no_secrets() {
        let url = "https://user:pw@example.com/mcp?key=s3cret".parse().unwrap();
        assert_eq!(shown(&url), "https://example.com/mcp?...");
    }
}
